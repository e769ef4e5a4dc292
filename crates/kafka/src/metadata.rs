//! What a cluster looks like: an immutable snapshot, and the pure rule that merges an answer into
//! it.
//!
//! Brokers learn of changes at different times, so an answer may be older than what is known. A
//! partition's leader epoch only grows (KIP-320): of a topic with the same id, a partition with a
//! lower epoch than the known one is not taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use twinlog_core::ids::{Topic, TopicId, TopicPartition};

use crate::address::Address;
use crate::error::{Error, ErrorCode, Result};
use crate::wire::{self, MetadataRequest, MetadataResponse};

/// Which topics to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topics {
    /// Brokers and controller only.
    None,
    /// All that the principal may see.
    All,
    /// These; those that don't exist are not created.
    Named(BTreeSet<Topic>),
}

/// A cluster as an answer showed it, merged with what was known before. Shared, never changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Counts the answers taken; 0 before the first.
    pub generation: u64,
    /// The id the cluster was given when it was formatted.
    pub cluster_id: Option<Arc<str>>,
    /// The broker that takes changes to topics; with KRaft any broker, which forwards them.
    pub controller: Option<i32>,
    /// Brokers that are alive, by id.
    pub brokers: BTreeMap<i32, Broker>,
    /// Topics that were asked for and exist.
    pub topics: BTreeMap<Topic, Arc<TopicMetadata>>,
}

/// One broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Where it listens for clients.
    pub address: Address,
    /// Where it stands (`broker.rack`).
    pub rack: Option<Arc<str>>,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its id, [`TopicId::ZERO`] from brokers before 2.8.
    pub id: TopicId,
    /// Whether the brokers use it for themselves (`__consumer_offsets`).
    pub is_internal: bool,
    /// [`ErrorCode::NONE`], or why there are no partitions to see.
    pub error: ErrorCode,
    /// The partitions, ascending.
    pub partitions: Vec<PartitionMetadata>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Its number.
    pub partition: i32,
    /// The leader, if there is one.
    pub leader: Option<i32>,
    /// Grows with each election; -1 from brokers before 2.1.
    pub leader_epoch: i32,
    /// All brokers that hold a copy.
    pub replicas: Vec<i32>,
    /// Those whose copies are complete.
    pub isr: Vec<i32>,
    /// Those that are away.
    pub offline: Vec<i32>,
}

/// Who leads a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// The leader's broker id.
    pub broker: i32,
    /// Its epoch; sent with requests so that a deposed leader refuses them. -1 if unknown.
    pub epoch: i32,
    /// The topic's id, [`TopicId::ZERO`] if unknown.
    pub topic_id: TopicId,
}

impl TopicMetadata {
    /// A partition by its number.
    pub fn partition(&self, partition: i32) -> Option<&PartitionMetadata> {
        let index = usize::try_from(partition).ok()?;
        let direct = self.partitions.get(index);
        direct
            .filter(|found| found.partition == partition)
            .or_else(|| {
                self.partitions
                    .iter()
                    .find(|found| found.partition == partition)
            })
    }
}

impl Metadata {
    /// A topic by name.
    pub fn topic(&self, topic: &Topic) -> Option<&TopicMetadata> {
        self.topics.get(topic).map(Arc::as_ref)
    }

    /// Who leads a partition, if that is known.
    pub fn leader(&self, partition: &TopicPartition) -> Option<Leader> {
        let topic = self.topic(&partition.topic)?;
        let found = topic.partition(partition.partition)?;
        Some(Leader {
            broker: found.leader?,
            epoch: found.leader_epoch,
            topic_id: topic.id,
        })
    }

    /// As [`leader`](Self::leader), with the reason if there is none.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], also if the topic is there but has no such partition;
    /// [`Error::NoLeader`]; the topic's own error, such as a missing permission.
    pub fn require_leader(&self, partition: &TopicPartition) -> Result<Leader> {
        if let Some(leader) = self.leader(partition) {
            return Ok(leader);
        }
        let unknown = || Error::UnknownTopic {
            topic: partition.topic.clone(),
        };
        let topic = self.topic(&partition.topic).ok_or_else(unknown)?;
        Error::check(topic.error.0, None, || {
            format!("look up topic {}", partition.topic)
        })?;
        topic.partition(partition.partition).ok_or_else(unknown)?;
        Err(Error::NoLeader {
            partition: partition.clone(),
        })
    }

    /// This snapshot with an answer about `asked` taken in.
    #[must_use]
    pub fn merged(&self, response: &MetadataResponse, asked: &Topics) -> Metadata {
        let mut topics = match asked {
            Topics::All => BTreeMap::new(),
            Topics::None | Topics::Named(_) => self.topics.clone(),
        };
        for answer in &response.topics {
            let Some(name) = &answer.name else { continue };
            let name = Topic::from(name.as_str());
            if ErrorCode(answer.error_code) == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                topics.remove(&name);
                continue;
            }
            let known = self.topics.get(&name);
            let merged = merged_topic(known.map(Arc::as_ref), answer);
            let shared = match known {
                Some(known) if **known == merged => known.clone(),
                _ => Arc::new(merged),
            };
            topics.insert(name, shared);
        }
        Metadata {
            generation: self.generation + 1,
            cluster_id: response
                .cluster_id
                .as_ref()
                .map(|id| Arc::from(id.as_str())),
            controller: Some(response.controller_id.0).filter(|id| *id >= 0),
            brokers: response.brokers.iter().filter_map(broker).collect(),
            topics,
        }
    }
}

/// The request for `topics`. It never creates any.
pub fn build_request(topics: &Topics) -> MetadataRequest {
    let named = |topic: &Topic| {
        wire::metadata_request::MetadataRequestTopic::default()
            .with_name(Some(wire::topic_name(topic)))
    };
    let topics = match topics {
        Topics::None => Some(Vec::new()),
        Topics::All => None,
        Topics::Named(names) => Some(names.iter().map(named).collect()),
    };
    MetadataRequest::default()
        .with_topics(topics)
        .with_allow_auto_topic_creation(false)
}

fn broker(answer: &wire::metadata_response::MetadataResponseBroker) -> Option<(i32, Broker)> {
    let port = u16::try_from(answer.port).ok()?;
    let broker = Broker {
        address: Address::new(&answer.host, port),
        rack: answer.rack.as_ref().map(|rack| Arc::from(rack.as_str())),
    };
    Some((answer.node_id.0, broker))
}

fn merged_topic(
    known: Option<&TopicMetadata>,
    answer: &wire::metadata_response::MetadataResponseTopic,
) -> TopicMetadata {
    let id = wire::topic_id(answer.topic_id);
    // Without ids a topic made anew, whose epochs start again, looks like a stale answer: take all.
    let same = known.filter(|known| known.id == id && id != TopicId::ZERO);
    let mut partitions: Vec<_> = answer
        .partitions
        .iter()
        .map(|partition| {
            let answered = partition_metadata(partition);
            let newer = same
                .and_then(|known| known.partition(answered.partition))
                .filter(|known| known.leader_epoch > answered.leader_epoch);
            newer.cloned().unwrap_or(answered)
        })
        .collect();
    partitions.sort_by_key(|partition| partition.partition);
    partitions.dedup_by_key(|partition| partition.partition);
    TopicMetadata {
        id,
        is_internal: answer.is_internal,
        error: ErrorCode(answer.error_code),
        partitions,
    }
}

fn partition_metadata(
    answer: &wire::metadata_response::MetadataResponsePartition,
) -> PartitionMetadata {
    let ids = |brokers: &[wire::BrokerId]| brokers.iter().map(|broker| broker.0).collect();
    PartitionMetadata {
        partition: answer.partition_index,
        leader: Some(answer.leader_id.0).filter(|leader| *leader >= 0),
        leader_epoch: answer.leader_epoch,
        replicas: ids(&answer.replica_nodes),
        isr: ids(&answer.isr_nodes),
        offline: ids(&answer.offline_replicas),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::metadata_response::{
        MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::*;

    fn answer(name: &str, id: u8, epochs: &[(i32, i32)]) -> MetadataResponseTopic {
        let partitions = epochs.iter().enumerate().map(|(index, (leader, epoch))| {
            MetadataResponsePartition::default()
                .with_partition_index(i32::try_from(index).unwrap())
                .with_leader_id((*leader).into())
                .with_leader_epoch(*epoch)
        });
        MetadataResponseTopic::default()
            .with_name(Some(wire::topic_name(&name.into())))
            .with_topic_id(wire::uuid(TopicId([id; 16])))
            .with_partitions(partitions.collect())
    }

    fn response(topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
        MetadataResponse::default().with_topics(topics)
    }

    fn leader(metadata: &Metadata, topic: &str) -> Option<(i32, i32)> {
        let leader = metadata.leader(&TopicPartition::new(topic, 0));
        leader.map(|leader| (leader.broker, leader.epoch))
    }

    #[test]
    fn an_answer_older_than_what_is_known_is_not_taken() {
        let known =
            Metadata::default().merged(&response(vec![answer("t", 1, &[(2, 5)])]), &Topics::All);
        for (id, leader_and_epoch, expected, why) in [
            (1, (1, 4), (2, 5), "a lower epoch is stale"),
            (1, (1, 5), (1, 5), "an equal epoch is taken"),
            (1, (1, 6), (1, 6), "a higher epoch is taken"),
            (
                9,
                (1, 0),
                (1, 0),
                "another topic of the same name starts anew",
            ),
        ] {
            let answer = response(vec![answer("t", id, &[leader_and_epoch])]);

            let merged = known.merged(&answer, &Topics::All);

            assert_eq!(leader(&merged, "t"), Some(expected), "{why}");
        }
    }

    #[test]
    fn without_topic_ids_every_answer_is_taken() {
        let known =
            Metadata::default().merged(&response(vec![answer("t", 0, &[(2, 5)])]), &Topics::All);

        let merged = known.merged(&response(vec![answer("t", 0, &[(1, 0)])]), &Topics::All);

        assert_eq!(leader(&merged, "t"), Some((1, 0)));
    }

    #[test]
    fn an_answer_about_some_topics_keeps_the_others() {
        let all = response(vec![answer("a", 1, &[(1, 1)]), answer("b", 2, &[(1, 1)])]);
        let known = Metadata::default().merged(&all, &Topics::All);
        let gone = answer("a", 1, &[]).with_error_code(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0);
        let named = Topics::Named(BTreeSet::from(["a".into()]));

        let merged = known.merged(&response(vec![gone]), &named);

        assert_eq!(
            (leader(&merged, "a"), leader(&merged, "b")),
            (None, Some((1, 1)))
        );
        assert_eq!(merged.generation, 2);
    }

    #[test]
    fn an_answer_about_all_topics_forgets_those_it_does_not_name() {
        let known =
            Metadata::default().merged(&response(vec![answer("a", 1, &[(1, 1)])]), &Topics::All);

        let merged = known.merged(&response(vec![]), &Topics::All);

        assert!(merged.topics.is_empty());
    }

    #[test]
    fn a_partition_without_leader_has_none() {
        let answer = response(vec![answer("t", 1, &[(-1, 3)])]);

        let merged = Metadata::default().merged(&answer, &Topics::All);

        assert_eq!(leader(&merged, "t"), None);
        let partition = TopicPartition::new("t", 0);
        let required = merged.require_leader(&partition);
        assert!(
            matches!(required, Err(Error::NoLeader { .. })),
            "{required:?}"
        );
    }

    #[test]
    fn a_topic_we_may_not_see_says_so() {
        let denied = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
        let answer = response(vec![answer("t", 0, &[]).with_error_code(denied.0)]);

        let merged = Metadata::default().merged(&answer, &Topics::All);

        let required = merged.require_leader(&TopicPartition::new("t", 0));
        assert_eq!(required.unwrap_err().code(), Some(denied));
    }
}
