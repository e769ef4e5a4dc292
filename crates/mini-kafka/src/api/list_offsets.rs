//! ListOffsets: earliest, latest, by time, and the largest time.

use kafka_protocol::ResponseError::UnsupportedForMessageFormat;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use super::{Answer, Api, Call};
use crate::refusal::{Refusal, code};
use crate::state::Partition;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
/// The replica id of tools that may see behind the high watermark and ask any replica.
const DEBUGGING_REPLICA: i32 = -2;
const CONSUMER: i32 = -1;

/// A timestamp, an offset and its epoch; -1 for what is not there.
type Found = (i64, i64, i32);

impl Api for ListOffsetsRequest {
    const OURS: (i16, i16) = (1, 10);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|p| (topic.name.to_string(), p.partition_index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<ListOffsetsResponse> {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let found = call.guarded(&topic.name, asked.partition_index, || {
                    find(call, self, &topic.name, asked)
                });
                let (timestamp, offset, epoch) = *found.as_ref().unwrap_or(&(-1, -1, -1));
                // The codec refuses to write an epoch where the version has no room for one.
                let epoch = if call.version < 4 { -1 } else { epoch };
                ListOffsetsPartitionResponse::default()
                    .with_partition_index(asked.partition_index)
                    .with_error_code(code(&found))
                    .with_timestamp(timestamp)
                    .with_offset(offset)
                    .with_leader_epoch(epoch)
            });
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(ListOffsetsResponse::default().with_topics(topics.collect()))
    }
}

fn find(
    call: &Call,
    request: &ListOffsetsRequest,
    topic: &str,
    asked: &ListOffsetsPartition,
) -> Result<Found, Refusal> {
    let state = call.state();
    let partition = state.partition(topic, asked.partition_index)?;
    let any_replica = request.replica_id.0 == DEBUGGING_REPLICA;
    if any_replica && partition.replicas.contains(&call.broker) {
        partition.check_epoch(asked.current_leader_epoch)?;
    } else {
        partition.check_leader(call.broker, asked.current_leader_epoch)?;
    }
    let log = &partition.log;
    let limit = match (request.replica_id.0, request.isolation_level) {
        (CONSUMER, 1) => log.last_stable_offset(),
        (CONSUMER, _) => log.high_watermark(),
        _ => log.end(),
    };
    Ok(match asked.timestamp {
        LATEST => (-1, limit, partition.leader_epoch),
        EARLIEST | EARLIEST_LOCAL => at(partition, -1, log.start()),
        MAX_TIMESTAMP => match log.max_timestamp() {
            Some((time, offset)) if offset < limit => at(partition, time, offset),
            _ => (-1, -1, -1),
        },
        LATEST_TIERED => (-1, -1, -1),
        time if time < 0 => return Err(UnsupportedForMessageFormat.into()),
        time => match log.find_timestamp(time, limit) {
            Some((time, offset)) => at(partition, time, offset),
            None => (-1, -1, -1),
        },
    })
}

fn at(partition: &Partition, time: i64, offset: i64) -> Found {
    (time, offset, partition.log.epoch_of(offset).unwrap_or(-1))
}
