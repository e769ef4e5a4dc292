//! Metadata: brokers, topics, leaders.

use kafka_protocol::ResponseError::{
    InvalidTopicException, UnknownTopicId, UnknownTopicOrPartition,
};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};

use super::create_topics::is_legal_name;
use super::{Answer, Api, Call, text, topic_name};
use crate::refusal::Refusal;
use crate::state::{Partition, State, Topic};

impl Api for MetadataRequest {
    const OURS: (i16, i16) = (0, 13);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let topics = self.topics.iter().flatten();
        topics
            .filter_map(|topic| Some((topic.name.as_ref()?.to_string(), -1)))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<MetadataResponse> {
        let mut state = call.state();
        let wants_all = match &self.topics {
            None => true,
            Some(topics) => topics.is_empty() && call.version == 0,
        };
        let topics = if wants_all {
            state
                .topics
                .iter()
                .map(|(name, topic)| describe(&state, name, topic))
                .collect()
        } else {
            let wanted = self.topics.iter().flatten();
            let may_create = self.allow_auto_topic_creation || call.version < 4;
            wanted
                .map(|topic| lookup(call, &mut state, topic, may_create))
                .collect()
        };
        let brokers = state
            .brokers
            .iter()
            .filter(|broker| broker.up)
            .map(|broker| {
                MetadataResponseBroker::default()
                    .with_node_id(BrokerId(broker.id))
                    .with_host(text(broker.host.as_str()))
                    .with_port(broker.port.into())
                    .with_rack(broker.rack.as_deref().map(text))
            });
        let response = MetadataResponse::default()
            .with_throttle_time_ms(0)
            .with_brokers(brokers.collect())
            .with_cluster_id(Some(text(state.options.cluster_id.as_str())))
            .with_controller_id(BrokerId(state.controller().map_or(-1, |broker| broker.id)))
            .with_topics(topics);
        Answer::Response(response)
    }
}

fn lookup(
    call: &Call,
    state: &mut State,
    wanted: &MetadataRequestTopic,
    may_create: bool,
) -> MetadataResponseTopic {
    let found = resolve(state, wanted)
        .and_then(|name| call.guarded(&name, -1, || find(state, &name, may_create)));
    found.unwrap_or_else(|refusal| {
        let unknown_id = refusal.code == UnknownTopicId;
        let name = if unknown_id {
            None
        } else {
            wanted.name.clone()
        };
        MetadataResponseTopic::default()
            .with_error_code(refusal.code.code())
            .with_name(name.or_else(|| (call.version < 12).then(Default::default)))
            .with_topic_id(wanted.topic_id)
    })
}

fn resolve(state: &State, wanted: &MetadataRequestTopic) -> Result<String, Refusal> {
    match &wanted.name {
        Some(name) => Ok(name.to_string()),
        None => state.topic_name(wanted.topic_id).map(str::to_owned),
    }
}

fn find(state: &mut State, name: &str, may_create: bool) -> Result<MetadataResponseTopic, Refusal> {
    if let Some(topic) = state.topics.get(name) {
        return Ok(describe(state, name, topic));
    }
    if !is_legal_name(name) {
        return Err(InvalidTopicException.into());
    }
    if may_create && state.options.auto_create_topics {
        let (count, replicas) = (
            state.options.default_partitions,
            state.options.default_replication_factor,
        );
        let assignments = state.spread(0, count, replicas);
        state.add_topic(name, assignments, Default::default());
    }
    // Also when it was just made: the answer comes from what the broker knew before (KRaft).
    Err(UnknownTopicOrPartition.into())
}

fn describe(state: &State, name: &str, topic: &Topic) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter().enumerate();
    MetadataResponseTopic::default()
        .with_name(Some(topic_name(name)))
        .with_topic_id(topic.id)
        .with_is_internal(matches!(name, "__consumer_offsets" | "__transaction_state"))
        .with_partitions(
            partitions
                .map(|(at, p)| describe_partition(state, at, p))
                .collect(),
        )
}

fn describe_partition(
    state: &State,
    index: usize,
    partition: &Partition,
) -> MetadataResponsePartition {
    let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
    let offline: Vec<i32> = partition
        .replicas
        .iter()
        .copied()
        .filter(|id| !state.is_up(*id))
        .collect();
    MetadataResponsePartition::default()
        .with_error_code(partition.metadata_error())
        .with_partition_index(index as i32)
        .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
        .with_leader_epoch(partition.leader_epoch)
        .with_replica_nodes(ids(&partition.replicas))
        .with_isr_nodes(ids(&partition.isr))
        .with_offline_replicas(ids(&offline))
}
