//! OffsetForLeaderEpoch: where an epoch ended, by which clients find out that a log was truncated
//! (KIP-320).

use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::{Answer, Api, Call};
use crate::refusal::code;

impl Api for OffsetForLeaderEpochRequest {
    const OURS: (i16, i16) = (2, 4);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|p| (topic.topic.to_string(), p.partition))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<OffsetForLeaderEpochResponse> {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let found = call.guarded(&topic.topic, asked.partition, || {
                    let state = call.state();
                    let partition = state.partition(&topic.topic, asked.partition)?;
                    partition.check_leader(call.broker, asked.current_leader_epoch)?;
                    Ok(partition.log.end_of_epoch(asked.leader_epoch))
                });
                let (epoch, end) = found.as_ref().ok().copied().flatten().unwrap_or((-1, -1));
                EpochEndOffset::default()
                    .with_error_code(code(&found))
                    .with_partition(asked.partition)
                    .with_leader_epoch(epoch)
                    .with_end_offset(end)
            });
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(OffsetForLeaderEpochResponse::default().with_topics(topics.collect()))
    }
}
