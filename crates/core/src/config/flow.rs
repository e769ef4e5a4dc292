//! The checked configuration: what is true for each flow, in types that need no second look.
//!
//! Everything here was validated; nothing is a string that somebody must parse later. A setting
//! that MirrorMaker 2 spells as a pair `<x>.enabled` and `<x>.interval.seconds` is one
//! `Option<Duration>`: none means never.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::circles::{Circle, Circles, Hop};
use crate::filter::{ConfigPropertyFilter, GroupFilter};
use crate::ids::{ClusterAlias, Flow, Topic};
use crate::pattern::MatchError;

/// All flows of one file that this process runs.
#[derive(Debug, Clone, PartialEq)]
pub struct MirrorConfig {
    /// The flows, in the order in which their clusters stand in `clusters`.
    pub flows: Vec<FlowConfig>,
    /// What fetched and not yet acknowledged records of all flows may occupy, in bytes
    /// (`twinlog.buffer.memory`).
    pub buffer_memory_bytes: usize,
}

/// Everything that is configured for one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowConfig {
    /// Which flow it is.
    pub flow: Flow,
    /// Whether topics are replicated, or the flow exists for its heartbeats alone.
    pub role: FlowRole,
    /// The cluster that is read.
    pub source: ClusterConfig,
    /// The cluster that is written, as its admin and consumer clients see it.
    pub target: ClusterConfig,
    /// The producer of replicated records on the target: `T.producer.*`, then
    /// `S->T.producer.override.*` (in Java the Connect framework's producer).
    pub writer: ProducerConfig,
    /// The client of the worker on the target (`T.*`), which reads and writes its internal topics.
    pub worker: WorkerConfig,
    /// Which topics are replicated (`topics`, `topics.exclude`) and how they are named
    /// (`replication.policy.*`); [`FlowConfig::select`] is the whole rule.
    pub names: Hop,
    /// The flows of the file that may lead a topic back to where it came from.
    pub circles: Arc<Circles>,
    /// Which topic settings are copied (`config.properties.exclude`, `use.defaults.from`).
    pub config_properties: ConfigPropertyFilter,
    /// The largest number of tasks of a connector (`tasks.max`); at least 1.
    pub tasks_max: usize,
    /// Copies of each partition of a new remote topic (`replication.factor`).
    pub replication_factor: ReplicationFactor,
    /// How often topics and partitions are discovered after the start (`refresh.topics.*`).
    ///
    /// 5 s where no interval is written anywhere; Java's default is 600 s. Different on purpose:
    /// new topics should not wait ten minutes, and a round costs two requests.
    pub refresh_topics: Option<Duration>,
    /// How often topic settings are compared (`sync.topic.configs.*`).
    pub sync_topic_configs: Option<Duration>,
    /// How often access rules are compared (`sync.topic.acls.*`).
    pub sync_topic_acls: Option<Duration>,
    /// How long an administrative step at start or stop may take (`admin.timeout.ms`).
    pub admin_timeout: Duration,
    /// Offset syncs; none when `emit.offset-syncs.enabled` is false.
    pub offset_syncs: Option<OffsetSyncsConfig>,
    /// Checkpoints and group offsets.
    pub checkpoints: CheckpointConfig,
    /// Heartbeats.
    pub heartbeats: HeartbeatConfig,
    /// The name under which source positions are stored (`MirrorSourceConnector` unless `name` is
    /// set).
    pub source_connector_name: String,
}

/// Why a flow has a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowRole {
    /// `S->T.enabled = true`: topics, groups and heartbeats.
    Replicates,
    /// Not enabled, but heartbeats are on: it only writes them to the target, for the flow in the
    /// opposite direction to carry back.
    HeartbeatsOnly,
}

/// One side of a flow: the cluster, and what each kind of client uses to talk to it.
///
/// The kinds may differ in everything, addresses and credentials included; they are usually equal,
/// and one connection pool serves all whose [`ClientConfig`] is equal.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterConfig {
    /// The name the configuration gives the cluster.
    pub alias: ClusterAlias,
    /// Discovery, creation, settings: `X.cluster.*`, `admin.*`, `X.admin.*`.
    pub admin: ClientConfig,
    /// Reading records: `X.cluster.*`, `consumer.*`, `X.consumer.*`.
    pub consumer: ConsumerConfig,
    /// Writing offset syncs: `X.cluster.*`, `producer.*`, `X.producer.*`. Replicated records are
    /// written with [`FlowConfig::writer`].
    pub producer: ProducerConfig,
}

/// How to reach a cluster, and how patient to be with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where to ask first (`bootstrap.servers`); never empty.
    pub bootstrap: Vec<BrokerAddress>,
    /// How the connection is secured (`security.protocol`).
    pub security: Security,
    /// What the user put before client ids (`client.id`).
    pub client_id: Option<String>,
    /// How long one request may take (`request.timeout.ms`).
    pub request_timeout: Duration,
    /// How old metadata may be before it is asked for again (`metadata.max.age.ms`).
    pub metadata_max_age: Duration,
    /// The wait between attempts to connect to one broker (`reconnect.backoff.ms`, `.max.ms`).
    pub reconnect_backoff: Backoff,
    /// The wait between attempts of one request (`retry.backoff.ms`, `.max.ms`).
    pub retry_backoff: Backoff,
    /// How long establishing a connection may take (`socket.connection.setup.timeout.ms`,
    /// `.max.ms`).
    pub connection_setup_timeout: Backoff,
    /// After how long an unused connection is closed (`connections.max.idle.ms`); none: never.
    pub connections_max_idle: Option<Duration>,
    /// `SO_SNDBUF` (`send.buffer.bytes`); none leaves it to the system.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` (`receive.buffer.bytes`); none leaves it to the system.
    pub receive_buffer_bytes: Option<u32>,
}

/// A host and a port, as written in `bootstrap.servers`; the host of an IPv6 address has no
/// brackets.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokerAddress {
    /// Name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// How a connection is secured.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Security {
    /// Not at all.
    Plaintext,
}

/// A wait that grows from `initial` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub initial: Duration,
    /// The longest wait; never below `initial`.
    pub max: Duration,
}

/// Settings of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// The connection.
    pub client: ClientConfig,
    /// Read from a replica in this rack where there is one (`client.rack`, KIP-392).
    pub client_rack: Option<String>,
    /// How long a broker may hold a fetch that finds nothing (`fetch.max.wait.ms`).
    pub fetch_max_wait: Duration,
    /// How much a broker should gather before it answers (`fetch.min.bytes`).
    pub fetch_min_bytes: u32,
    /// The size of one fetch response (`fetch.max.bytes`); its first batch may be larger.
    pub fetch_max_bytes: u32,
    /// The share of one partition in it (`max.partition.fetch.bytes`); its first batch may be
    /// larger.
    pub max_partition_fetch_bytes: u32,
    /// Whether records of open and aborted transactions are seen (`isolation.level`).
    ///
    /// [`Isolation::ReadCommitted`] where nothing is written; Java's consumer reads uncommitted
    /// then and mirrors aborted records. Different on purpose.
    pub isolation: Isolation,
    /// Where to begin in a partition without a position (`auto.offset.reset`).
    pub auto_offset_reset: OffsetReset,
}

/// Which records of transactions a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// All records, those of aborted transactions included.
    ReadUncommitted,
    /// Only records outside of transactions and of committed ones.
    ReadCommitted,
}

/// Where to begin when there is no position, or none that exists any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the first record that is still there; MirrorMaker's default.
    Earliest,
    /// After the last record.
    Latest,
    /// Nowhere: the partition is paused and somebody must decide.
    None,
}

/// Settings of writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerConfig {
    /// The connection.
    pub client: ClientConfig,
    /// Re-encode everything to this codec (`compression.type` and `compression.<codec>.level`).
    ///
    /// None where nothing is written: batches keep the codec they were written with. (Java decodes
    /// everything and writes it uncompressed then.)
    pub compression: Option<Compression>,
    /// The size of one request (`max.request.size`) where somebody set it.
    ///
    /// None where nothing is written: the topics' `max.message.bytes` alone limits a batch.
    pub max_request_bytes: Option<u32>,
    /// How long to gather small batches before sending (`linger.ms`); zero sends at once.
    pub linger: Duration,
}

/// A codec to encode to, with its level where one was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Plain bytes.
    None,
    /// gzip; levels 1 to 9.
    Gzip(Option<i32>),
    /// Snappy, which has no levels.
    Snappy,
    /// LZ4; levels 1 to 17.
    Lz4(Option<i32>),
    /// zstd; levels -131072 to 22.
    Zstd(Option<i32>),
}

/// The worker of a flow on the target: where it keeps positions, and how it stops.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerConfig {
    /// Its connection (`T.*`).
    pub client: ClientConfig,
    /// Where source positions are stored (`offset.storage.*`).
    pub offsets_topic: InternalTopic,
    /// Where connector configurations are stored (`config.storage.*`); always one partition.
    pub config_topic: InternalTopic,
    /// Where states are published (`status.storage.*`).
    pub status_topic: InternalTopic,
    /// The worker's group (`T.group.id`); `<S>-mm2` by default.
    pub group_id: String,
    /// How often positions are stored (`T.offset.flush.interval.ms`).
    pub offset_flush_interval: Duration,
    /// How long storing them may take (`T.offset.flush.timeout.ms`).
    pub offset_flush_timeout: Duration,
    /// How long a task may take to stop (`T.task.shutdown.graceful.timeout.ms`).
    pub task_shutdown_timeout: Duration,
}

/// A compacted topic that the worker makes for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalTopic {
    /// Its name.
    pub name: Topic,
    /// How many partitions it is created with; none: the broker's default.
    pub partitions: Option<u32>,
    /// How many copies each has.
    pub replication_factor: ReplicationFactor,
}

/// How many copies a partition of a new topic has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationFactor {
    /// What the broker is configured with; -1 in files and requests.
    BrokerDefault,
    /// This many; at least 1.
    Copies(i16),
}

/// The topic that pairs upstream with downstream offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetSyncsConfig {
    /// Its name.
    pub topic: Topic,
    /// Which side it is on (`offset-syncs.topic.location`).
    pub location: Side,
    /// Copies of its one partition (`offset-syncs.topic.replication.factor`).
    pub replication_factor: ReplicationFactor,
    /// How many records a sync may be behind (`offset.lag.max`); zero writes one for each record.
    pub offset_lag_max: u64,
}

/// Source or target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The cluster that is read.
    Source,
    /// The cluster that is written.
    Target,
}

/// Checkpoints of consumer groups.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointConfig {
    /// Which groups (`groups`, `groups.exclude`).
    pub groups: GroupFilter,
    /// How often checkpoints are written (`emit.checkpoints.*`).
    pub emit: Option<Duration>,
    /// How often groups are discovered (`refresh.groups.*`).
    pub refresh_groups: Option<Duration>,
    /// How often translated offsets are written to the target's groups (`sync.group.offsets.*`).
    pub sync_group_offsets: Option<Duration>,
    /// The topic of checkpoints on the target.
    pub topic: Topic,
    /// Copies of its one partition (`checkpoints.topic.replication.factor`).
    pub replication_factor: ReplicationFactor,
}

/// Heartbeats, written to `heartbeats` on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatConfig {
    /// How often one is written (`emit.heartbeats.*`).
    pub emit: Option<Duration>,
    /// Copies of the topic's one partition (`heartbeats.topic.replication.factor`).
    pub replication_factor: ReplicationFactor,
}

/// Whether a topic of the source is replicated, and if not, why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// It is.
    Replicate,
    /// The include or exclude lists reject it.
    NotSelected,
    /// It belongs to Kafka or MirrorMaker.
    Internal,
    /// It came from the target.
    Cycle,
    /// It would be copied round and round, over flows that keep its name.
    Circle(Circle),
}

impl FlowConfig {
    /// Whether `topic` of the source is replicated (`MirrorSourceConnector.shouldReplicateTopic`,
    /// and [`crate::circles`], which Java does not look for).
    pub fn select(&self, topic: &str) -> Result<Selection, MatchError> {
        let selection = self.names.select(topic)?;
        if selection != Selection::Replicate {
            return Ok(selection);
        }
        let circle = self.circles.through(&self.flow, topic)?;
        Ok(circle.map_or(Selection::Replicate, Selection::Circle))
    }

    /// The name on the target of `topic` of the source.
    pub fn remote_topic(&self, topic: &str) -> Topic {
        self.names.policy.remote_topic(&self.flow.source, topic)
    }
}

impl ReplicationFactor {
    /// As requests carry it.
    pub fn as_i16(self) -> i16 {
        match self {
            ReplicationFactor::BrokerDefault => -1,
            ReplicationFactor::Copies(copies) => copies,
        }
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Target => "target",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flow from `source` to `target` with these further lines.
    fn flow(lines: &str) -> FlowConfig {
        let text = format!(
            "clusters = source, target\nsource.bootstrap.servers = a:1\ntarget.bootstrap.servers = b:1\n\
             source->target.enabled = true\n{lines}"
        );
        let config = MirrorConfig::parse(&text).expect("the lines of a test are right");
        config
            .flow("source->target")
            .expect("the flow is enabled")
            .clone()
    }

    fn selected<'a>(flow: &FlowConfig, topics: &[&'a str]) -> Vec<&'a str> {
        let replicates = |topic: &&str| flow.select(topic) == Ok(Selection::Replicate);
        topics.iter().copied().filter(replicates).collect()
    }

    #[test]
    fn heartbeats_are_replicated_by_default() {
        let flow = flow("topics = nothing");

        let topics = ["heartbeats", "us.heartbeats", "nothing", "something"];
        assert_eq!(
            selected(&flow, &topics),
            ["heartbeats", "us.heartbeats", "nothing"]
        );
    }

    #[test]
    fn heartbeats_are_replicated_despite_the_filter() {
        let flow = flow("topics.exclude = .*heartbeats");

        assert_eq!(
            selected(&flow, &["heartbeats", "us.heartbeats"]),
            ["heartbeats", "us.heartbeats"]
        );
    }

    #[test]
    fn heartbeats_are_not_replicated_when_that_is_off_and_the_filter_rejects_them() {
        let flow = flow("heartbeats.replication.enabled = false\ntopics = orders");

        assert_eq!(flow.select("heartbeats"), Ok(Selection::NotSelected));
    }

    #[test]
    fn heartbeats_are_replicated_when_that_is_off_and_the_filter_takes_them() {
        let flow = flow("heartbeats.replication.enabled = false");

        assert_eq!(flow.select("heartbeats"), Ok(Selection::Replicate));
    }

    #[test]
    fn nothing_goes_back_to_where_it_came_from() {
        let flow = flow("");

        for topic in [
            "target.topic1",
            "target.heartbeats",
            "source.target.topic1",
            "us.target.topic1",
        ] {
            assert_eq!(flow.select(topic), Ok(Selection::Cycle), "{topic}");
        }
        for topic in [
            "topic1",
            "source.topic1",
            "us.topic1",
            "us.source.topic1",
            "target",
            "targets.topic1",
        ] {
            assert_eq!(flow.select(topic), Ok(Selection::Replicate), "{topic}");
        }
    }

    #[test]
    fn names_that_stay_tell_no_cycle_but_in_heartbeats() {
        let flow = flow(
            "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        );

        assert_eq!(flow.remote_topic("target.topic1").as_str(), "target.topic1");
        assert_eq!(
            flow.remote_topic("heartbeats").as_str(),
            "source.heartbeats"
        );
        for topic in [
            "target.topic1",
            "source.topic1",
            "backup.topic1",
            "topic1",
            "backup.heartbeats",
        ] {
            assert_eq!(flow.select(topic), Ok(Selection::Replicate), "{topic}");
        }
        assert_eq!(flow.select("target.heartbeats"), Ok(Selection::Cycle));
    }

    #[test]
    fn internal_topics_are_never_replicated() {
        let flow = flow("topics.exclude = ");

        for topic in [
            "__consumer_offsets",
            ".hidden",
            "mm2-offset-syncs.target.internal",
            "us.checkpoints.internal",
        ] {
            assert_eq!(flow.select(topic), Ok(Selection::Internal), "{topic}");
        }
        assert_eq!(
            selected(&flow, &["my.internal", "_schemas"]),
            ["my.internal", "_schemas"]
        );
    }

    #[test]
    fn settings_of_topics_are_copied_unless_excluded() {
        let default = flow("").config_properties;
        let own = flow("config.properties.exclude = retention.*").config_properties;

        assert_eq!(default.accepts("min.insync.replicas"), Ok(false));
        assert_eq!(default.accepts("retention.ms"), Ok(true));
        assert_eq!(own.accepts("retention.ms"), Ok(false));
        assert_eq!(own.accepts("min.insync.replicas"), Ok(true));
    }

    #[test]
    fn what_differs_from_kafka_on_purpose_holds_only_where_nothing_is_written() {
        let default = flow("");
        assert_eq!(default.refresh_topics, Some(Duration::from_secs(5)));
        assert_eq!(default.source.consumer.isolation, Isolation::ReadCommitted);
        assert_eq!(default.writer.compression, None);
        assert_eq!(default.writer.max_request_bytes, None);
        assert_eq!(default.writer.client.send_buffer_bytes, None);

        let written = flow(
            "refresh.topics.interval.seconds = 600\nsource.consumer.isolation.level = read_uncommitted\n\
             target.producer.compression.type = none\ntarget.producer.max.request.size = 7\n\
             target.producer.send.buffer.bytes = 131072",
        );
        assert_eq!(written.refresh_topics, Some(Duration::from_secs(600)));
        assert_eq!(
            written.source.consumer.isolation,
            Isolation::ReadUncommitted
        );
        assert_eq!(written.writer.compression, Some(Compression::None));
        assert_eq!(written.writer.max_request_bytes, Some(7));
        assert_eq!(written.writer.client.send_buffer_bytes, Some(131_072));
    }

    #[test]
    fn what_is_switched_off_or_has_a_negative_interval_never_happens() {
        let flow = flow(
            "refresh.topics.enabled = false\nsync.topic.configs.interval.seconds = -1\n\
             emit.offset-syncs.enabled = false\nsync.topic.acls.interval.seconds = 0",
        );

        assert_eq!(flow.refresh_topics, None);
        assert_eq!(flow.sync_topic_configs, None);
        assert_eq!(flow.sync_topic_acls, Some(Duration::from_secs(1)));
        assert_eq!(flow.offset_syncs, None);
    }

    #[test]
    fn the_offset_syncs_topic_is_named_by_the_far_end() {
        let on_source = flow("").offset_syncs.unwrap();
        let on_target = flow("offset-syncs.topic.location = target")
            .offset_syncs
            .unwrap();

        assert_eq!(on_source.topic.as_str(), "mm2-offset-syncs.target.internal");
        assert_eq!(on_target.topic.as_str(), "mm2-offset-syncs.source.internal");
    }

    #[test]
    fn a_codec_is_asked_for_by_the_cluster_or_by_the_flow() {
        let cluster = flow(
            "target.producer.compression.type = gzip\ntarget.producer.compression.gzip.level = 3",
        );
        let both = flow(
            "target.producer.compression.type = gzip\n\
             source->target.producer.override.compression.type = zstd",
        );
        let elsewhere = flow("source->target.target.producer.compression.type = gzip");

        assert_eq!(cluster.writer.compression, Some(Compression::Gzip(Some(3))));
        assert_eq!(both.writer.compression, Some(Compression::Zstd(None)));
        assert_eq!(elsewhere.writer.compression, None);
    }
}
