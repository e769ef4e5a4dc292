//! DescribeProducers and InitProducerId.

use kafka_protocol::ResponseError::{InvalidRequest, InvalidTransactionTimeout, ProducerFenced};
use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, InitProducerIdRequest,
    InitProducerIdResponse, ProducerId,
};

use super::{Answer, Api, Call};
use crate::refusal::{Refusal, code};

/// `transaction.max.timeout.ms`.
const TRANSACTION_TIMEOUT_MS_MAX: i32 = 900_000;

impl Api for DescribeProducersRequest {
    const OURS: (i16, i16) = (0, 0);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let named = self.topics.iter().flat_map(|topic| {
            topic
                .partition_indexes
                .iter()
                .map(|index| (topic.name.to_string(), *index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<DescribeProducersResponse> {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| {
                let found = call.guarded(&topic.name, *index, || active(call, &topic.name, *index));
                PartitionResponse::default()
                    .with_partition_index(*index)
                    .with_error_code(code(&found))
                    .with_active_producers(found.unwrap_or_default())
            });
            TopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Answer::Response(DescribeProducersResponse::default().with_topics(topics.collect()))
    }
}

fn active(call: &Call, topic: &str, index: i32) -> Result<Vec<ProducerState>, Refusal> {
    let state = call.state();
    let partition = state.partition(topic, index)?;
    partition.check_leader(call.broker, -1)?;
    let producers = partition.log.producers.iter().map(|(id, producer)| {
        ProducerState::default()
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(producer.epoch.into())
            .with_last_sequence(producer.last_sequence())
            .with_last_timestamp(producer.last_timestamp)
            .with_coordinator_epoch(producer.coordinator_epoch)
            .with_current_txn_start_offset(producer.open_since.unwrap_or(-1))
    });
    Ok(producers.collect())
}

impl Api for InitProducerIdRequest {
    const OURS: (i16, i16) = (0, 5);

    async fn answer(&self, call: &Call) -> Answer<InitProducerIdResponse> {
        let outcome = call.whole(|| init(call, self));
        let response = InitProducerIdResponse::default().with_error_code(code(&outcome));
        let (id, epoch) = outcome.unwrap_or((-1, -1));
        Answer::Response(
            response
                .with_producer_id(ProducerId(id))
                .with_producer_epoch(epoch),
        )
    }
}

fn init(call: &Call, request: &InitProducerIdRequest) -> Result<(i64, i16), Refusal> {
    let mut state = call.state();
    let Some(id) = &request.transactional_id else {
        return Ok((state.transactions.new_producer_id(), 0));
    };
    if id.is_empty() {
        return Err(InvalidRequest.into());
    }
    if !(1..=TRANSACTION_TIMEOUT_MS_MAX).contains(&request.transaction_timeout_ms) {
        return Err(InvalidTransactionTimeout.into());
    }
    // A producer that names its id and epoch only wants the next epoch, and only if it is not
    // fenced (KIP-360).
    if call.version >= 3
        && request.producer_id.0 >= 0
        && let Some(known) = state.transactions.get(id)
        && (known.producer_id, known.epoch) != (request.producer_id.0, request.producer_epoch)
    {
        return Err(ProducerFenced.into());
    }
    state.init_transactional(id)
}
