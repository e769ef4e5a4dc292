//! Positions of groups: OffsetCommit, OffsetFetch, TxnOffsetCommit.

use kafka_protocol::ResponseError::{
    InvalidGroupId, UnknownTopicOrPartition, UnstableOffsetCommit,
};
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::groups::check_coordinator;
use super::{Answer, Api, Call, by_topic, text, topic_name};
use crate::groups::Committed;
use crate::refusal::{Refusal, code};

/// Since this version one request asks for several groups (KIP-709).
const BATCHED: i16 = 8;
/// Since this version a transactional commit adds the group to the transaction itself (KIP-890).
const ADDS_OFFSETS: i16 = 5;

impl Api for OffsetCommitRequest {
    const OURS: (i16, i16) = (2, 9);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|p| (topic.name.to_string(), p.partition_index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<OffsetCommitResponse> {
        let allowed = check(call, self);
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|part| {
                let index = part.partition_index;
                let outcome = allowed.clone().and_then(|()| {
                    call.guarded(&topic.name, index, || {
                        let committed = Committed {
                            offset: part.committed_offset,
                            leader_epoch: part.committed_leader_epoch,
                            metadata: metadata(part.committed_metadata.as_ref()),
                        };
                        commit(call, &self.group_id, &topic.name, index, committed)
                    })
                });
                OffsetCommitResponsePartition::default()
                    .with_partition_index(index)
                    .with_error_code(code(&outcome))
            });
            OffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(OffsetCommitResponse::default().with_topics(topics.collect()))
    }
}

fn metadata(from: Option<&StrBytes>) -> String {
    from.map_or_else(String::new, ToString::to_string)
}

fn check(call: &Call, request: &OffsetCommitRequest) -> Result<(), Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    let group = state.groups.entry(&request.group_id);
    group.expire();
    group.check_commit(&request.member_id, request.generation_id_or_member_epoch)?;
    group.heard(&request.member_id);
    Ok(())
}

fn commit(
    call: &Call,
    group: &str,
    topic: &str,
    index: i32,
    committed: Committed,
) -> Result<(), Refusal> {
    let mut state = call.state();
    state
        .partition(topic, index)
        .map_err(|_| Refusal::from(UnknownTopicOrPartition))?;
    state
        .groups
        .entry(group)
        .offsets
        .insert((topic.to_owned(), index), committed);
    Ok(())
}

/// One partition's position, if there is one, or why it can't be told.
type Position = (i32, Result<Option<Committed>, Refusal>);

impl Api for OffsetFetchRequest {
    const OURS: (i16, i16) = (1, 9);

    async fn answer(&self, call: &Call) -> Answer<OffsetFetchResponse> {
        let response = OffsetFetchResponse::default();
        if call.version >= BATCHED {
            let groups = self.groups.iter().map(|group| {
                let wanted = group.topics.as_ref().map(|topics| {
                    topics
                        .iter()
                        .map(|t| (t.name.to_string(), t.partition_indexes.clone()))
                        .collect()
                });
                let found =
                    call.whole(|| positions(call, &group.group_id, wanted, self.require_stable));
                OffsetFetchResponseGroup::default()
                    .with_group_id(group.group_id.clone())
                    .with_error_code(code(&found))
                    .with_topics(found.unwrap_or_default().into_iter().map(newer).collect())
            });
            return Answer::Response(response.with_groups(groups.collect()));
        }
        let wanted = self.topics.as_ref().map(|topics| {
            topics
                .iter()
                .map(|t| (t.name.to_string(), t.partition_indexes.clone()))
                .collect()
        });
        let found = call.whole(|| positions(call, &self.group_id, wanted, self.require_stable));
        let response = response.with_error_code(code(&found));
        let topics = found.unwrap_or_default().into_iter().map(older).collect();
        Answer::Response(response.with_topics(topics))
    }
}

fn positions(
    call: &Call,
    id: &str,
    wanted: Option<Vec<(String, Vec<i32>)>>,
    require_stable: bool,
) -> Result<Vec<(String, Vec<Position>)>, Refusal> {
    let state = call.state();
    check_coordinator(call, &state)?;
    let group = state.groups.by_id.get(id);
    let keys: Vec<(String, i32)> = match wanted {
        Some(wanted) => {
            let each = |(topic, indexes): (String, Vec<i32>)| {
                indexes.into_iter().map(move |index| (topic.clone(), index))
            };
            wanted.into_iter().flat_map(each).collect()
        }
        None => group.map_or_else(Vec::new, |group| group.offsets.keys().cloned().collect()),
    };
    let found = keys.into_iter().map(|key| {
        let pending = group.is_some_and(|g| g.pending.values().any(|o| o.contains_key(&key)));
        let position = if require_stable && pending {
            Err(UnstableOffsetCommit.into())
        } else {
            Ok(group.and_then(|group| group.offsets.get(&key).cloned()))
        };
        (key.0, (key.1, position))
    });
    Ok(by_topic(found))
}

fn unknown() -> Committed {
    Committed {
        offset: -1,
        leader_epoch: -1,
        metadata: String::new(),
    }
}

fn newer((topic, positions): (String, Vec<Position>)) -> OffsetFetchResponseTopics {
    let partitions = positions.into_iter().map(|(index, position)| {
        let error = code(&position);
        let committed = position.ok().flatten().unwrap_or_else(unknown);
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_error_code(error)
            .with_committed_offset(committed.offset)
            .with_committed_leader_epoch(committed.leader_epoch)
            .with_metadata(Some(text(committed.metadata)))
    });
    let partitions = partitions.collect();
    OffsetFetchResponseTopics::default()
        .with_name(topic_name(&topic))
        .with_partitions(partitions)
}

fn older((topic, positions): (String, Vec<Position>)) -> OffsetFetchResponseTopic {
    let partitions = positions.into_iter().map(|(index, position)| {
        let error = code(&position);
        let committed = position.ok().flatten().unwrap_or_else(unknown);
        OffsetFetchResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(error)
            .with_committed_offset(committed.offset)
            .with_committed_leader_epoch(committed.leader_epoch)
            .with_metadata(Some(text(committed.metadata)))
    });
    let partitions = partitions.collect();
    OffsetFetchResponseTopic::default()
        .with_name(topic_name(&topic))
        .with_partitions(partitions)
}

impl Api for TxnOffsetCommitRequest {
    const OURS: (i16, i16) = (0, 5);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|p| (topic.name.to_string(), p.partition_index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<TxnOffsetCommitResponse> {
        let allowed = check_transactional(call, self);
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|part| {
                let index = part.partition_index;
                let outcome = allowed.clone().and_then(|()| {
                    call.guarded(&topic.name, index, || {
                        let committed = Committed {
                            offset: part.committed_offset,
                            leader_epoch: part.committed_leader_epoch,
                            metadata: metadata(part.committed_metadata.as_ref()),
                        };
                        let mut state = call.state();
                        state.partition(&topic.name, index)?;
                        let group = state.groups.entry(&self.group_id);
                        let pending = group.pending.entry(self.producer_id.0).or_default();
                        pending.insert((topic.name.to_string(), index), committed);
                        Ok(())
                    })
                });
                TxnOffsetCommitResponsePartition::default()
                    .with_partition_index(index)
                    .with_error_code(code(&outcome))
            });
            TxnOffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(TxnOffsetCommitResponse::default().with_topics(topics.collect()))
    }
}

fn check_transactional(call: &Call, request: &TxnOffsetCommitRequest) -> Result<(), Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    if request.group_id.is_empty() {
        return Err(InvalidGroupId.into());
    }
    let (id, epoch) = (request.producer_id.0, request.producer_epoch);
    let owned = state
        .transactions
        .owned(&request.transactional_id, id, epoch)?;
    if call.version >= ADDS_OFFSETS {
        owned.ongoing = true;
    }
    if call.version >= 3 && request.generation_id >= 0 {
        state
            .groups
            .entry(&request.group_id)
            .check(&request.member_id, request.generation_id)?;
    }
    Ok(())
}
