//! Produce: one batch per partition, checked as `log::validate` and the producer state say.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError::{
    InvalidProducerEpoch, InvalidProducerIdMapping, InvalidRequiredAcks, InvalidTxnState,
    NotEnoughReplicas, NotLeaderOrFollower, RequestTimedOut, TransactionAbortable,
    TransactionalIdAuthorizationFailed,
};
use kafka_protocol::messages::produce_request::TopicProduceData;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};
use tokio::time::{Instant, timeout_at};

use super::{Answer, Api, Call, text};
use crate::log::batch::Header;
use crate::log::validate::{only_batch, validate};
use crate::refusal::{Refusal, code};
use crate::state::State;

/// Since this version topics are named by id (KIP-516).
const BY_ID: i16 = 13;
/// Since this version a produce adds its partition to the transaction itself (KIP-890).
const ADDS_PARTITION: i16 = 12;

/// Since this version clients know TRANSACTION_ABORTABLE (KIP-890).
const KNOWS_ABORTABLE: i16 = 11;

/// Where a batch went.
#[derive(Debug, Clone, Copy)]
struct Appended {
    base_offset: i64,
    last_offset: i64,
    append_time: i64,
    log_start: i64,
}

struct Part {
    topic: String,
    index: i32,
    outcome: Result<Appended, Refusal>,
}

impl Api for ProduceRequest {
    const OURS: (i16, i16) = (3, 13);

    fn partitions(&self, call: &Call) -> Vec<(String, i32)> {
        let state = call.state();
        let named = |topic| {
            let name = name_of(&state, topic, call.version).unwrap_or_default();
            topic
                .partition_data
                .iter()
                .map(move |part| (name.clone(), part.index))
        };
        self.topic_data.iter().flat_map(named).collect()
    }

    async fn answer(&self, call: &Call) -> Answer<ProduceResponse> {
        let mut topics: Vec<Vec<Part>> = Vec::with_capacity(self.topic_data.len());
        for topic in &self.topic_data {
            topics.push(append_topic(call, self, topic));
        }
        if self.acks == 0 {
            let failed = topics.iter().flatten().any(|part| part.outcome.is_err());
            return if failed {
                Answer::Hangup
            } else {
                Answer::Nothing
            };
        }
        if self.acks == -1 {
            replicated(call, self, &mut topics).await;
        }
        Answer::Response(respond(call, self, &topics))
    }
}

fn name_of(state: &State, topic: &TopicProduceData, version: i16) -> Result<String, Refusal> {
    if version >= BY_ID {
        state.topic_name(topic.topic_id).map(str::to_owned)
    } else {
        Ok(topic.name.to_string())
    }
}

fn append_topic(call: &Call, request: &ProduceRequest, topic: &TopicProduceData) -> Vec<Part> {
    let mut state = call.state();
    let name = name_of(&state, topic, call.version);
    let parts = topic.partition_data.iter().map(|part| {
        let outcome = name.clone().and_then(|name| {
            call.guarded(&name, part.index, || {
                append(
                    call,
                    &mut state,
                    request,
                    &name,
                    part.index,
                    part.records.as_ref(),
                )
            })
        });
        Part {
            topic: name.clone().unwrap_or_default(),
            index: part.index,
            outcome,
        }
    });
    parts.collect()
}

fn append(
    call: &Call,
    state: &mut State,
    request: &ProduceRequest,
    topic: &str,
    index: i32,
    records: Option<&Bytes>,
) -> Result<Appended, Refusal> {
    if !(-1..=1).contains(&request.acks) {
        return Err(InvalidRequiredAcks.into());
    }
    let sent = only_batch(records, call.version)?;
    let layers = state.layers(Some(state.topic(topic)?), call.broker);
    let (rules, min_insync) = (layers.rules(), layers.min_insync_replicas());
    state
        .partition(topic, index)?
        .check_leader(call.broker, -1)?;
    check_transaction(call, state, request, topic, index, &sent)?;
    let now = state.now_ms();
    let partition = state.partition_mut(topic, index)?;
    if request.acks == -1 && partition.isr.len() < min_insync {
        return Err(NotEnoughReplicas.into());
    }
    let log_start = partition.log.start();
    let append_time = if rules.append_time { now } else { -1 };
    let batch = validate(
        &sent,
        &rules,
        partition.log.end(),
        partition.leader_epoch,
        now,
    )?;
    let header = batch.header;
    if header.producer_id >= 0 {
        if let Some(base_offset) = partition.log.producers.duplicate_of(&header) {
            let last_offset = base_offset + i64::from(header.last_offset_delta);
            return Ok(Appended {
                base_offset,
                last_offset,
                append_time: -1,
                log_start,
            });
        }
        partition.log.producers.check(&header)?;
    }
    partition.log.append(batch);
    let replicas = partition.replicas.clone();
    state.appended_to(&replicas);
    let (base_offset, last_offset) = (header.base_offset, header.last_offset());
    Ok(Appended {
        base_offset,
        last_offset,
        append_time,
        log_start,
    })
}

/// A transactional batch needs an open transaction of its producer that the partition is part of.
fn check_transaction(
    call: &Call,
    state: &mut State,
    request: &ProduceRequest,
    topic: &str,
    index: i32,
    sent: &Bytes,
) -> Result<(), Refusal> {
    let Some(header) = Header::parse(sent).filter(Header::is_transactional) else {
        return Ok(());
    };
    let id = request
        .transactional_id
        .as_ref()
        .ok_or(TransactionalIdAuthorizationFailed)?;
    let known = state.transactions.get(id).ok_or(InvalidProducerIdMapping)?;
    if known.producer_id != header.producer_id {
        return Err(InvalidProducerIdMapping.into());
    }
    if known.epoch != header.producer_epoch {
        return Err(InvalidProducerEpoch.into());
    }
    let part = (topic.to_owned(), index);
    if known.ongoing && known.partitions.contains(&part) {
        return Ok(());
    }
    if call.version < KNOWS_ABORTABLE {
        return Err(InvalidTxnState.into());
    }
    if call.version < ADDS_PARTITION {
        return Err(TransactionAbortable.into());
    }
    let owned = state
        .transactions
        .owned(id, header.producer_id, header.producer_epoch)?;
    owned.ongoing = true;
    owned.partitions.insert(part);
    Ok(())
}

/// Waits until the high watermark has passed what was appended, or the request's time is over.
async fn replicated(call: &Call, request: &ProduceRequest, topics: &mut [Vec<Part>]) {
    let deadline = Instant::now() + Duration::from_millis(request.timeout_ms.max(0) as u64);
    let mut changes = match call.state().broker(call.broker) {
        Some(broker) => broker.changes.subscribe(),
        None => return,
    };
    let waiting = |part: &Part| {
        let Ok(appended) = &part.outcome else {
            return false;
        };
        let state = call.state();
        let known = state.partition(&part.topic, part.index);
        known.is_ok_and(|partition| partition.log.high_watermark() <= appended.last_offset)
    };
    while topics.iter().flatten().any(waiting) {
        if timeout_at(deadline, changes.changed()).await.is_ok() {
            continue;
        }
        for part in topics.iter_mut().flatten().filter(|part| waiting(part)) {
            part.outcome = Err(RequestTimedOut.into());
        }
    }
}

fn respond(call: &Call, request: &ProduceRequest, topics: &[Vec<Part>]) -> ProduceResponse {
    let mut endpoints = Vec::new();
    let responses = request.topic_data.iter().zip(topics).map(|(asked, parts)| {
        let parts = parts
            .iter()
            .map(|part| respond_part(call, part, &mut endpoints))
            .collect();
        TopicProduceResponse::default()
            .with_name(asked.name.clone())
            .with_topic_id(asked.topic_id)
            .with_partition_responses(parts)
    });
    let responses = responses.collect();
    ProduceResponse::default()
        .with_responses(responses)
        .with_throttle_time_ms(call.throttle_ms())
        .with_node_endpoints(endpoints)
}

fn respond_part(
    call: &Call,
    part: &Part,
    endpoints: &mut Vec<NodeEndpoint>,
) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default()
        .with_index(part.index)
        .with_error_code(code(&part.outcome));
    let refusal = match &part.outcome {
        Ok(appended) => {
            return response
                .with_base_offset(appended.base_offset)
                .with_log_append_time_ms(appended.append_time)
                .with_log_start_offset(appended.log_start);
        }
        Err(refusal) => refusal,
    };
    let mut response = response
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
        .with_error_message(refusal.text())
        .with_record_errors(
            refusal
                .records
                .iter()
                .map(|at| BatchIndexAndErrorMessage::default().with_batch_index(*at))
                .collect(),
        );
    if refusal.code == NotLeaderOrFollower && call.version >= 10 {
        let state = call.state();
        if let Ok(partition) = state.partition(&part.topic, part.index)
            && let Some(leader) = partition.leader.and_then(|id| state.broker(id))
        {
            response.current_leader = LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(leader.id))
                .with_leader_epoch(partition.leader_epoch);
            let endpoint = NodeEndpoint::default()
                .with_node_id(BrokerId(leader.id))
                .with_host(text(leader.host.as_str()))
                .with_port(leader.port.into())
                .with_rack(leader.rack.as_deref().map(text));
            endpoints.push(endpoint);
        }
    }
    response
}
