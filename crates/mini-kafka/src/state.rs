//! All that a cluster knows: brokers, topics, transactions, groups. One lock, held for single
//! requests and never while waiting.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::ResponseError::{
    self, FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch, UnknownTopicId,
    UnknownTopicOrPartition,
};
use uuid::Uuid;

use crate::changes::Changes;
use crate::configs::{Layers, Overrides};
use crate::groups::Groups;
use crate::log::Log;
use crate::options::{Clock, Options, Random};
use crate::refusal::Refusal;
use crate::sessions::Sessions;
use crate::transactions::Transactions;

/// One broker's part of the state.
#[derive(Debug)]
pub(crate) struct Broker {
    pub id: i32,
    pub up: bool,
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
    /// Fetch sessions die with the broker.
    pub sessions: Sessions,
    /// Counts what may end a long poll at this broker.
    pub changes: Changes,
}

/// A topic and its partitions.
#[derive(Debug)]
pub(crate) struct Topic {
    pub id: Uuid,
    pub configs: Overrides,
    pub partitions: Vec<Partition>,
}

/// A partition: where it lies, who leads it, and its log.
#[derive(Debug)]
pub(crate) struct Partition {
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub leader: Option<i32>,
    pub leader_epoch: i32,
    pub log: Log,
}

/// The cluster's state.
#[derive(Debug)]
pub(crate) struct State {
    pub options: Options,
    pub clock: Clock,
    pub random: Random,
    pub brokers: Vec<Broker>,
    pub topics: BTreeMap<String, Topic>,
    names: BTreeMap<Uuid, String>,
    pub transactions: Transactions,
    pub groups: Groups,
    /// Altered broker settings: by broker id, and for all under the empty name.
    pub broker_configs: BTreeMap<String, Overrides>,
    /// How long each API's answers ask clients to wait, by API number.
    pub throttles: BTreeMap<i16, Duration>,
}

impl State {
    pub fn new(options: Options) -> Self {
        let brokers = (1..=options.brokers)
            .map(|id| Broker {
                id,
                up: true,
                host: format!("broker-{id}.{}", options.cluster_id),
                port: 9092,
                rack: options.racks.get(id as usize - 1).cloned(),
                sessions: Sessions::new(options.fetch_sessions_max),
                changes: Changes::default(),
            })
            .collect();
        State {
            clock: Clock::starting_at(options.wall_clock_ms),
            random: Random::seeded(options.seed),
            brokers,
            topics: BTreeMap::new(),
            names: BTreeMap::new(),
            transactions: Transactions::default(),
            groups: Groups::default(),
            broker_configs: BTreeMap::from([(String::new(), cluster_defaults())]),
            throttles: BTreeMap::new(),
            options,
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    pub fn broker(&self, id: i32) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.id == id)
    }

    pub fn broker_mut(&mut self, id: i32) -> Option<&mut Broker> {
        self.brokers.iter_mut().find(|broker| broker.id == id)
    }

    pub fn is_up(&self, id: i32) -> bool {
        self.broker(id).is_some_and(|broker| broker.up)
    }

    /// The lowest broker that is up plays controller, and coordinator of everything.
    pub fn controller(&self) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.up)
    }

    pub fn topic(&self, name: &str) -> Result<&Topic, Refusal> {
        self.topics
            .get(name)
            .ok_or_else(|| UnknownTopicOrPartition.into())
    }

    /// The name of the topic with this id.
    pub fn topic_name(&self, id: Uuid) -> Result<&str, Refusal> {
        self.names
            .get(&id)
            .map(String::as_str)
            .ok_or_else(|| UnknownTopicId.into())
    }

    pub fn partition(&self, topic: &str, index: i32) -> Result<&Partition, Refusal> {
        let partition = self
            .topic(topic)?
            .partitions
            .get(usize::try_from(index).unwrap_or(usize::MAX));
        partition.ok_or_else(|| UnknownTopicOrPartition.into())
    }

    pub fn partition_mut(&mut self, topic: &str, index: i32) -> Result<&mut Partition, Refusal> {
        self.topics
            .get_mut(topic)
            .and_then(|topic| topic.partitions.get_mut(usize::try_from(index).ok()?))
            .ok_or_else(|| UnknownTopicOrPartition.into())
    }

    /// The settings in force for a topic at `broker`.
    pub fn layers<'a>(&'a self, topic: Option<&'a Topic>, broker: i32) -> Layers<'a> {
        Layers {
            topic: topic.map(|topic| &topic.configs),
            broker: self.broker_configs.get(&broker.to_string()),
            all_brokers: self.broker_configs.get(""),
            file: &self.options.broker_config,
        }
    }

    /// Adds a topic. `assignments` has the replicas of each partition, the leader first.
    pub fn add_topic(
        &mut self,
        name: &str,
        assignments: Vec<Vec<i32>>,
        configs: Overrides,
    ) -> Uuid {
        let id = self.new_uuid();
        let partitions = assignments
            .into_iter()
            .map(|r| self.new_partition(r))
            .collect();
        self.topics.insert(
            name.to_owned(),
            Topic {
                id,
                configs,
                partitions,
            },
        );
        self.names.insert(id, name.to_owned());
        self.changed();
        id
    }

    pub fn new_partition(&self, replicas: Vec<i32>) -> Partition {
        let isr: Vec<i32> = replicas
            .iter()
            .copied()
            .filter(|id| self.is_up(*id))
            .collect();
        let mut log = Log::default();
        log.begin_epoch(0);
        Partition {
            leader: isr.first().copied(),
            isr,
            replicas,
            leader_epoch: 0,
            log,
        }
    }

    /// Spreads `partitions` over the brokers that are up, round robin.
    pub fn spread(&self, first: usize, partitions: i32, replication_factor: i16) -> Vec<Vec<i32>> {
        let up: Vec<i32> = self.brokers.iter().filter(|b| b.up).map(|b| b.id).collect();
        (0..partitions as usize)
            .map(|index| {
                let from = (first + index) % up.len().max(1);
                up.iter()
                    .copied()
                    .cycle()
                    .skip(from)
                    .take(replication_factor as usize)
                    .collect()
            })
            .collect()
    }

    pub fn remove_topic(&mut self, name: &str) -> Option<Topic> {
        let topic = self.topics.remove(name)?;
        self.names.remove(&topic.id);
        self.groups.forget_topic(name);
        self.changed();
        Some(topic)
    }

    /// Wakes the long polls of all brokers.
    pub fn changed(&self) {
        for broker in &self.brokers {
            broker.changes.happened();
        }
    }

    /// Wakes the long polls of the brokers that hold a partition.
    pub fn appended_to(&self, replicas: &[i32]) {
        for broker in self
            .brokers
            .iter()
            .filter(|broker| replicas.contains(&broker.id))
        {
            broker.changes.happened();
        }
    }

    fn new_uuid(&mut self) -> Uuid {
        let (high, low) = (self.random.next(), self.random.next());
        Uuid::from_u64_pair(high, low)
    }
}

/// Brokers from 4.1 on write this one down for the whole cluster (KIP-966), so that it does not
/// count as a default.
fn cluster_defaults() -> Overrides {
    Overrides::from([("min.insync.replicas".to_owned(), "1".to_owned())])
}

impl Partition {
    /// Refuses what only the leader may do, and requests from another epoch (KIP-320).
    pub fn check_leader(&self, broker: i32, epoch_of_client: i32) -> Result<(), Refusal> {
        if self.leader != Some(broker) {
            return Err(NotLeaderOrFollower.into());
        }
        self.check_epoch(epoch_of_client)
    }

    /// Refuses requests from another epoch; -1 is not checked.
    pub fn check_epoch(&self, epoch_of_client: i32) -> Result<(), Refusal> {
        match epoch_of_client {
            -1 => Ok(()),
            older if older < self.leader_epoch => Err(FencedLeaderEpoch.into()),
            newer if newer > self.leader_epoch => Err(UnknownLeaderEpoch.into()),
            _ => Ok(()),
        }
    }

    /// Makes `leader` the leader in a new epoch.
    pub fn elect(&mut self, leader: Option<i32>) {
        self.leader = leader;
        self.leader_epoch += 1;
        if leader.is_some() {
            self.log.begin_epoch(self.leader_epoch);
        }
    }

    /// What Metadata says of a partition without a leader.
    pub fn metadata_error(&self) -> i16 {
        if self.leader.is_some() {
            0
        } else {
            ResponseError::LeaderNotAvailable.code()
        }
    }
}
