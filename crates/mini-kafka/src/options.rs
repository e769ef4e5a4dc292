//! What a cluster is like: its size, its clock, its settings, and which Kafka it passes for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use kafka_protocol::messages::ApiKey;
use tokio::time::Instant;

/// How a cluster is made. Everything that could differ from run to run (clock, random ids) comes
/// from here.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many brokers there are; their ids are 1, 2, 3 and so on.
    pub brokers: i32,
    /// The cluster's id, as clients see it.
    pub cluster_id: String,
    /// What topic ids, session ids and the like are drawn from.
    pub seed: u64,
    /// Wall clock at the start (ms since 1970); it goes on with tokio's clock.
    pub wall_clock_ms: i64,
    /// `auto.create.topics.enable`: a Metadata request may create the topic it asks for.
    pub auto_create_topics: bool,
    /// `num.partitions`, of topics created without a number.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// Settings of the brokers' properties file, such as `message.max.bytes`.
    pub broker_config: BTreeMap<String, String>,
    /// The rack of each broker, first broker first; missing ones have none.
    pub racks: Vec<String>,
    /// Leaders point consumers to a replica in their rack (KIP-392).
    pub fetch_from_closest_replica: bool,
    /// How many fetch sessions a broker keeps (`max.incremental.fetch.session.cache.slots`).
    pub fetch_sessions_max: usize,
    /// Which APIs, in which versions.
    pub versions: Versions,
    /// The finalised level of the feature `transaction.version` (KIP-890): 2 since Kafka 4.0.
    pub transaction_version: i16,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            brokers: 1,
            cluster_id: "mini-kafka".to_owned(),
            seed: 1,
            wall_clock_ms: 1_750_000_000_000,
            auto_create_topics: false,
            default_partitions: 1,
            default_replication_factor: 1,
            broker_config: BTreeMap::new(),
            racks: Vec::new(),
            fetch_from_closest_replica: false,
            fetch_sessions_max: 1_000,
            versions: Versions::kafka_4_3(),
            transaction_version: 2,
        }
    }
}

/// The API versions that brokers offer; never more than mini-kafka has.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    limits: BTreeMap<i16, Option<(i16, i16)>>,
}

impl Versions {
    /// All that mini-kafka has, which passes for a 4.3 broker.
    pub fn kafka_4_3() -> Self {
        Versions::default()
    }

    /// What a 2.8 broker offers: topic ids in Metadata, but fetch and produce by name.
    pub fn kafka_2_8() -> Self {
        Versions::up_to(&[
            (ApiKey::Produce, 9),
            (ApiKey::Fetch, 12),
            (ApiKey::ListOffsets, 6),
            (ApiKey::Metadata, 11),
            (ApiKey::OffsetCommit, 8),
            (ApiKey::OffsetFetch, 7),
            (ApiKey::FindCoordinator, 3),
            (ApiKey::JoinGroup, 7),
            (ApiKey::LeaveGroup, 4),
            (ApiKey::ApiVersions, 3),
            (ApiKey::InitProducerId, 4),
            (ApiKey::OffsetForLeaderEpoch, 4),
            (ApiKey::AddPartitionsToTxn, 3),
            (ApiKey::EndTxn, 3),
            (ApiKey::DescribeCluster, 0),
            (ApiKey::ListGroups, 4),
            (ApiKey::DescribeGroups, 5),
        ])
    }

    /// What a 1.1 broker offers: no leader epochs, no flexible versions, no incremental alter.
    pub fn kafka_1_1() -> Self {
        Versions::up_to(&[
            (ApiKey::Produce, 5),
            (ApiKey::Fetch, 7),
            (ApiKey::ListOffsets, 2),
            (ApiKey::Metadata, 5),
            (ApiKey::OffsetCommit, 3),
            (ApiKey::OffsetFetch, 3),
            (ApiKey::FindCoordinator, 1),
            (ApiKey::JoinGroup, 2),
            (ApiKey::Heartbeat, 1),
            (ApiKey::LeaveGroup, 1),
            (ApiKey::SyncGroup, 1),
            (ApiKey::ApiVersions, 1),
            (ApiKey::CreateTopics, 2),
            (ApiKey::DeleteTopics, 1),
            (ApiKey::DeleteRecords, 0),
            (ApiKey::InitProducerId, 0),
            (ApiKey::AddPartitionsToTxn, 0),
            (ApiKey::EndTxn, 0),
            (ApiKey::DescribeConfigs, 1),
            (ApiKey::CreatePartitions, 0),
            (ApiKey::ListGroups, 1),
            (ApiKey::DescribeGroups, 1),
        ])
        .without(ApiKey::OffsetForLeaderEpoch)
        .without(ApiKey::IncrementalAlterConfigs)
        .without(ApiKey::DescribeCluster)
        .without(ApiKey::DescribeProducers)
        .without(ApiKey::WriteTxnMarkers)
    }

    /// Offers `api` in these versions only.
    #[must_use]
    pub fn limit(mut self, api: ApiKey, versions: RangeInclusive<i16>) -> Self {
        self.limits
            .insert(api as i16, Some((*versions.start(), *versions.end())));
        self
    }

    /// Does not offer `api`.
    #[must_use]
    pub fn without(mut self, api: ApiKey) -> Self {
        self.limits.insert(api as i16, None);
        self
    }

    fn up_to(newest: &[(ApiKey, i16)]) -> Self {
        newest
            .iter()
            .fold(Versions::default(), |v, (api, max)| v.limit(*api, 0..=*max))
    }

    /// What is offered of an API that mini-kafka has in versions `ours`.
    pub(crate) fn offered(&self, api: ApiKey, ours: (i16, i16)) -> Option<(i16, i16)> {
        let (min, max) = match self.limits.get(&(api as i16)) {
            None => ours,
            Some(limit) => (*limit).map(|(min, max)| (min.max(ours.0), max.min(ours.1)))?,
        };
        (min <= max).then_some((min, max))
    }
}

/// The cluster's wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start_ms: i64,
    started: Instant,
}

impl Clock {
    pub fn starting_at(start_ms: i64) -> Self {
        Clock {
            start_ms,
            started: Instant::now(),
        }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.start_ms + self.started.elapsed().as_millis() as i64
    }
}

/// A source of ids that repeats itself for the same seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
