//! DeleteRecords: advances the log start.

use kafka_protocol::ResponseError::{OffsetOutOfRange, PolicyViolation};
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::{Answer, Api, Call};
use crate::refusal::{Refusal, code};

/// Stands for the high watermark.
const ALL: i64 = -1;

impl Api for DeleteRecordsRequest {
    const OURS: (i16, i16) = (0, 2);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|p| (topic.name.to_string(), p.partition_index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<DeleteRecordsResponse> {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let index = asked.partition_index;
                let outcome = call.guarded(&topic.name, index, || {
                    delete(call, &topic.name, index, asked.offset)
                });
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(index)
                    .with_error_code(code(&outcome))
                    .with_low_watermark(outcome.unwrap_or(-1))
            });
            DeleteRecordsTopicResult::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(DeleteRecordsResponse::default().with_topics(topics.collect()))
    }
}

fn delete(call: &Call, topic: &str, index: i32, offset: i64) -> Result<i64, Refusal> {
    let mut state = call.state();
    let (compacts, deletes) = state
        .layers(Some(state.topic(topic)?), call.broker)
        .cleanup();
    let partition = state.partition_mut(topic, index)?;
    partition.check_leader(call.broker, -1)?;
    if compacts && !deletes {
        return Err(PolicyViolation.into());
    }
    let before = if offset == ALL {
        partition.log.high_watermark()
    } else {
        offset
    };
    if before < 0 || before > partition.log.high_watermark() {
        return Err(OffsetOutOfRange.into());
    }
    partition.log.delete_before(before);
    Ok(partition.log.start())
}
