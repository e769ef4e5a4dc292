//! AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and WriteTxnMarkers.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError::{
    self, OperationNotAttempted, ProducerFenced, UnsupportedVersion,
};
use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse, ProducerId, WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
};

use super::{Answer, Api, Call, by_topic, topic_name};
use crate::log::batch::Marker;
use crate::refusal::{Refusal, code};

/// Since this version one request carries several transactions (KIP-890).
const BATCHED: i16 = 4;
/// Since this version EndTxn bumps the epoch (KIP-890).
const BUMPS_EPOCH: i16 = 5;
/// Before these versions PRODUCER_FENCED did not exist (KIP-588).
const KNOWS_FENCED: i16 = 2;

impl Api for AddPartitionsToTxnRequest {
    const OURS: (i16, i16) = (0, 5);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let old = self.v3_and_below_topics.iter();
        let topics = old.chain(self.transactions.iter().flat_map(|txn| &txn.topics));
        let named = topics.flat_map(|t| {
            t.partitions
                .iter()
                .map(|index| (t.name.to_string(), *index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<AddPartitionsToTxnResponse> {
        let response = AddPartitionsToTxnResponse::default();
        if call.version < BATCHED {
            let only = AddPartitionsToTxnTransaction::default()
                .with_transactional_id(self.v3_and_below_transactional_id.clone())
                .with_producer_id(self.v3_and_below_producer_id)
                .with_producer_epoch(self.v3_and_below_producer_epoch)
                .with_topics(self.v3_and_below_topics.clone());
            let results = add_partitions(call, &only);
            return Answer::Response(response.with_results_by_topic_v3_and_below(results));
        }
        let results = self.transactions.iter().map(|transaction| {
            AddPartitionsToTxnResult::default()
                .with_transactional_id(transaction.transactional_id.clone())
                .with_topic_results(add_partitions(call, transaction))
        });
        Answer::Response(response.with_results_by_transaction(results.collect()))
    }
}

/// All or nothing: one unknown partition keeps the others out.
fn add_partitions(
    call: &Call,
    wanted: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut state = call.state();
    let each = |topic: &AddPartitionsToTxnTopic, index: i32| {
        call.guarded(&topic.name, index, || {
            state.partition(&topic.name, index).map(|_| ())
        })
    };
    let mut codes: Vec<Vec<i16>> = wanted
        .topics
        .iter()
        .map(|topic| {
            topic
                .partitions
                .iter()
                .map(|index| code(&each(topic, *index)))
                .collect()
        })
        .collect();
    let all_there = codes.iter().flatten().all(|code| *code == 0);
    let id = &wanted.transactional_id;
    let owned = state
        .transactions
        .owned(id, wanted.producer_id.0, wanted.producer_epoch)
        .map_err(|refusal| older_code(call, refusal));
    let verdict = match owned {
        Err(refusal) => Some(refusal.code),
        Ok(_) if !all_there => Some(OperationNotAttempted),
        Ok(transaction) => {
            transaction.ongoing = true;
            for topic in &wanted.topics {
                let parts = topic
                    .partitions
                    .iter()
                    .map(|index| (topic.name.to_string(), *index));
                transaction.partitions.extend(parts);
            }
            None
        }
    };
    if let Some(verdict) = verdict {
        codes
            .iter_mut()
            .flatten()
            .filter(|code| **code == 0)
            .for_each(|c| *c = verdict.code());
    }
    let results = wanted.topics.iter().zip(codes).map(|(topic, codes)| {
        let parts = topic.partitions.iter().zip(codes).map(|(index, code)| {
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*index)
                .with_partition_error_code(code)
        });
        AddPartitionsToTxnTopicResult::default()
            .with_name(topic.name.clone())
            .with_results_by_partition(parts.collect())
    });
    results.collect()
}

fn older_code(call: &Call, refusal: Refusal) -> Refusal {
    if refusal.code == ProducerFenced && call.version < KNOWS_FENCED {
        return ResponseError::InvalidProducerEpoch.into();
    }
    refusal
}

impl Api for AddOffsetsToTxnRequest {
    const OURS: (i16, i16) = (0, 4);

    async fn answer(&self, call: &Call) -> Answer<AddOffsetsToTxnResponse> {
        let outcome = call.whole(|| {
            let mut state = call.state();
            let (id, epoch) = (self.producer_id.0, self.producer_epoch);
            let owned = state
                .transactions
                .owned(&self.transactional_id, id, epoch)
                .map_err(|refusal| older_code(call, refusal))?;
            owned.ongoing = true;
            Ok(())
        });
        Answer::Response(AddOffsetsToTxnResponse::default().with_error_code(code(&outcome)))
    }
}

impl Api for EndTxnRequest {
    const OURS: (i16, i16) = (0, 5);

    async fn answer(&self, call: &Call) -> Answer<EndTxnResponse> {
        let outcome = call.whole(|| {
            let mut state = call.state();
            let bump = call.version >= BUMPS_EPOCH;
            if bump && state.options.transaction_version < 2 {
                return Err(UnsupportedVersion.into());
            }
            let producer = (self.producer_id.0, self.producer_epoch);
            state
                .end_transaction(&self.transactional_id, producer, self.committed, bump)
                .map_err(|refusal| older_code(call, refusal))
        });
        let response = EndTxnResponse::default().with_error_code(code(&outcome));
        let response = match outcome {
            Ok((id, epoch)) if call.version >= BUMPS_EPOCH => response
                .with_producer_id(ProducerId(id))
                .with_producer_epoch(epoch),
            _ => response,
        };
        Answer::Response(response)
    }
}

impl Api for WriteTxnMarkersRequest {
    const OURS: (i16, i16) = (1, 1);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let topics = self.markers.iter().flat_map(|marker| &marker.topics);
        let named = topics.flat_map(|t| {
            t.partition_indexes
                .iter()
                .map(|index| (t.name.to_string(), *index))
        });
        named.collect()
    }

    async fn answer(&self, call: &Call) -> Answer<WriteTxnMarkersResponse> {
        // Answers are gathered by producer, however many markers it has.
        let mut outcomes: BTreeMap<i64, BTreeMap<(String, i32), i16>> = BTreeMap::new();
        for asked in &self.markers {
            let marker = Marker {
                producer_id: asked.producer_id.0,
                producer_epoch: asked.producer_epoch,
                coordinator_epoch: asked.coordinator_epoch,
                committed: asked.transaction_result,
            };
            let of_producer = outcomes.entry(marker.producer_id).or_default();
            for topic in &asked.topics {
                for index in &topic.partition_indexes {
                    let outcome = call.guarded(&topic.name, *index, || {
                        let mut state = call.state();
                        state
                            .partition(&topic.name, *index)?
                            .check_leader(call.broker, -1)?;
                        state.write_marker(&topic.name, *index, marker)
                    });
                    of_producer.insert((topic.name.to_string(), *index), code(&outcome));
                }
            }
        }
        let markers = outcomes.into_iter().map(|(producer_id, codes)| {
            WritableTxnMarkerResult::default()
                .with_producer_id(ProducerId(producer_id))
                .with_topics(marker_results(codes))
        });
        Answer::Response(WriteTxnMarkersResponse::default().with_markers(markers.collect()))
    }
}

fn marker_results(codes: BTreeMap<(String, i32), i16>) -> Vec<WritableTxnMarkerTopicResult> {
    let parts = codes.into_iter().map(|((topic, index), code)| {
        let part = WritableTxnMarkerPartitionResult::default().with_partition_index(index);
        (topic, part.with_error_code(code))
    });
    let topics = by_topic(parts).into_iter().map(|(topic, parts)| {
        WritableTxnMarkerTopicResult::default()
            .with_name(topic_name(&topic))
            .with_partitions(parts)
    });
    topics.collect()
}
