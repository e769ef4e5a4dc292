//! What logs remember of producers, and new producer ids.

use twinlog_core::ids::TopicPartition;

use super::Results;
use super::leaders::{ask_leaders, by_topic};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::wire::describe_producers_request::TopicRequest;
use crate::wire::{self, DescribeProducersRequest, InitProducerIdRequest};

/// What a log remembers of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i32,
    /// The sequence of its last record; -1 if only a transaction marker is remembered, after which
    /// 0 follows.
    pub last_sequence: i32,
    /// The time of its last record in ms; -1 for none.
    pub last_timestamp: i64,
    /// The epoch of the coordinator that wrote its last marker; -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction starts, if one is open.
    pub transaction_start: Option<i64>,
}

/// Asks the leaders what their logs remember of producers (KIP-664). Brokers before 2.8 don't know
/// this: [`Error::UnsupportedApi`].
pub async fn describe_producers(
    client: &Client,
    partitions: impl IntoIterator<Item = TopicPartition>,
) -> Results<TopicPartition, Vec<ProducerState>> {
    let items = partitions.into_iter().map(|partition| (partition, ()));
    ask_leaders(client, items, |connection, asked| async move {
        let topics = by_topic(&asked).into_iter().map(|(topic, asked)| {
            let partitions = asked.iter().map(|asked| asked.partition.partition);
            TopicRequest::default()
                .with_name(wire::topic_name(topic))
                .with_partition_indexes(partitions.collect())
        });
        let request = DescribeProducersRequest::default().with_topics(topics.collect());
        let response = connection.call(&request).await?;
        let mut answered = Vec::new();
        for topic in response.topics {
            for answer in topic.partitions {
                let partition = TopicPartition::new(topic.name.as_str(), answer.partition_index);
                let checked =
                    Error::check(answer.error_code, answer.error_message.as_deref(), || {
                        format!("describe the producers of {partition}")
                    });
                let producers = answer.active_producers.iter().map(producer_state);
                answered.push((partition, checked.map(|()| producers.collect())));
            }
        }
        Ok(answered)
    })
    .await
}

fn producer_state(state: &wire::describe_producers_response::ProducerState) -> ProducerState {
    ProducerState {
        producer_id: state.producer_id.0,
        producer_epoch: state.producer_epoch,
        last_sequence: state.last_sequence,
        last_timestamp: state.last_timestamp,
        coordinator_epoch: state.coordinator_epoch,
        transaction_start: Some(state.current_txn_start_offset).filter(|offset| *offset >= 0),
    }
}

/// An id that a cluster gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerId {
    /// The id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

/// Asks any broker for a new producer id, without a transaction.
///
/// # Errors
/// [`Error::NoBroker`], and the broker's refusal.
pub async fn init_producer_id(client: &Client) -> Result<ProducerId> {
    let connection = client.any_connection().await?;
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(i32::MAX)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let response = connection.call(&request).await?;
    Error::check(response.error_code, None, || "get a producer id".to_owned())?;
    Ok(ProducerId {
        id: response.producer_id.0,
        epoch: response.producer_epoch,
    })
}
