//! Offsets of a log: its ends, offsets by time, ends of epochs, and cutting its start.

use std::collections::BTreeMap;

use twinlog_core::ids::{Topic, TopicPartition};

use super::Results;
use super::leaders::{Asked, ask_leaders, by_topic};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::fetch::Isolation;
use crate::wire::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use crate::wire::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use crate::wire::list_offsets_response::ListOffsetsPartitionResponse;
use crate::wire::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use crate::wire::{self, DeleteRecordsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest};

/// Which offset of a log to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OffsetQuery {
    /// The first offset there is.
    Earliest,
    /// The offset that the next record gets, as far as the [`View`] sees.
    Latest,
    /// The first record at or after this time, in ms since 1970.
    AtOrAfter(i64),
}

/// Who asks, which decides where the log seems to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// A consumer: the log ends at the high watermark, or at the last stable offset.
    Consumer(Isolation),
    /// The leader's own log end, replicated or not: what a sequence number continues. (Replica id
    /// -2, which Java calls the debugging consumer.)
    Leader,
}

/// An offset that was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; `None` only if no record is at or after the time asked for.
    pub offset: Option<i64>,
    /// The record's time in ms, for queries by time; -1 otherwise.
    pub timestamp: i64,
    /// The epoch of the record's leader; -1 if unknown.
    pub leader_epoch: i32,
}

impl ListedOffset {
    /// The offset of a query that always has one.
    pub fn offset_or_end(&self, end: i64) -> i64 {
        self.offset.unwrap_or(end)
    }
}

/// Looks up one offset for each partition, one request per leader.
pub async fn list_offsets(
    client: &Client,
    queries: impl IntoIterator<Item = (TopicPartition, OffsetQuery)>,
    view: View,
) -> Results<TopicPartition, ListedOffset> {
    ask_leaders(client, queries, move |connection, asked| async move {
        let response = connection.call(&list_request(&asked, view)).await?;
        let queries = asked.into_iter().map(|asked| (asked.partition, asked.item));
        let queries: BTreeMap<_, _> = queries.collect();
        let mut answered = Vec::new();
        for topic in response.topics {
            let name = Topic::from(topic.name.as_str());
            for answer in topic.partitions {
                let partition = TopicPartition::new(name.clone(), answer.partition_index);
                if let Some(query) = queries.get(&partition) {
                    let listed = listed(&partition, *query, &answer);
                    answered.push((partition, listed));
                }
            }
        }
        Ok(answered)
    })
    .await
}

fn list_request(asked: &[Asked<OffsetQuery>], view: View) -> ListOffsetsRequest {
    let (replica, isolation) = match view {
        View::Consumer(isolation) => (-1, isolation),
        View::Leader => (-2, Isolation::ReadUncommitted),
    };
    let partition = |asked: &&Asked<OffsetQuery>| {
        ListOffsetsPartition::default()
            .with_partition_index(asked.partition.partition)
            .with_current_leader_epoch(asked.leader.epoch)
            .with_timestamp(match asked.item {
                OffsetQuery::Earliest => -2,
                OffsetQuery::Latest => -1,
                OffsetQuery::AtOrAfter(time) => time,
            })
    };
    let topics = by_topic(asked).into_iter().map(|(topic, asked)| {
        ListOffsetsTopic::default()
            .with_name(wire::topic_name(topic))
            .with_partitions(asked.iter().map(partition).collect())
    });
    ListOffsetsRequest::default()
        .with_replica_id(replica.into())
        .with_isolation_level(isolation.wire())
        .with_topics(topics.collect())
}

/// A missing end is an error, never an offset: reading it as -1 or 0 would start a copy over.
fn listed(
    partition: &TopicPartition,
    query: OffsetQuery,
    answer: &ListOffsetsPartitionResponse,
) -> Result<ListedOffset> {
    Error::check(answer.error_code, None, || {
        format!("list offsets of {partition}")
    })?;
    let offset = Some(answer.offset).filter(|offset| *offset >= 0);
    if offset.is_none() && !matches!(query, OffsetQuery::AtOrAfter(_)) {
        return Err(Error::Unanswered {
            item: format!("the {query:?} offset of {partition}"),
        });
    }
    Ok(ListedOffset {
        offset,
        timestamp: answer.timestamp,
        leader_epoch: answer.leader_epoch,
    })
}

/// Where an epoch ends in the leader's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch not above the one asked for that the log has; -1 if it has none.
    pub leader_epoch: i32,
    /// The offset where the next epoch starts; -1 if unknown.
    pub end_offset: i64,
}

/// Asks for each partition where an epoch ended, which shows whether a log was cut below a position
/// (KIP-320). Brokers before 2.0 don't know the version we speak.
pub async fn end_offsets_for_epochs(
    client: &Client,
    epochs: impl IntoIterator<Item = (TopicPartition, i32)>,
) -> Results<TopicPartition, EpochEnd> {
    ask_leaders(client, epochs, |connection, asked| async move {
        let partition = |asked: &&Asked<i32>| {
            OffsetForLeaderPartition::default()
                .with_partition(asked.partition.partition)
                .with_current_leader_epoch(asked.leader.epoch)
                .with_leader_epoch(asked.item)
        };
        let topics = by_topic(&asked).into_iter().map(|(topic, asked)| {
            OffsetForLeaderTopic::default()
                .with_topic(wire::topic_name(topic))
                .with_partitions(asked.iter().map(partition).collect())
        });
        let request = OffsetForLeaderEpochRequest::default()
            .with_replica_id((-1).into())
            .with_topics(topics.collect());
        let response = connection.call(&request).await?;
        let mut answered = Vec::new();
        for topic in response.topics {
            for answer in topic.partitions {
                let partition = TopicPartition::new(topic.topic.as_str(), answer.partition);
                let checked = Error::check(answer.error_code, None, || {
                    format!("look up the end of an epoch of {partition}")
                });
                let end = EpochEnd {
                    leader_epoch: answer.leader_epoch,
                    end_offset: answer.end_offset,
                };
                answered.push((partition, checked.map(|()| end)));
            }
        }
        Ok(answered)
    })
    .await
}

/// Deletes all records below an offset; answers each log's new start.
pub async fn delete_records(
    client: &Client,
    offsets: impl IntoIterator<Item = (TopicPartition, i64)>,
) -> Results<TopicPartition, i64> {
    let timeout = super::topics::timeout_ms(client);
    ask_leaders(client, offsets, move |connection, asked| async move {
        let partition = |asked: &&Asked<i64>| {
            DeleteRecordsPartition::default()
                .with_partition_index(asked.partition.partition)
                .with_offset(asked.item)
        };
        let topics = by_topic(&asked).into_iter().map(|(topic, asked)| {
            DeleteRecordsTopic::default()
                .with_name(wire::topic_name(topic))
                .with_partitions(asked.iter().map(partition).collect())
        });
        let request = DeleteRecordsRequest::default()
            .with_timeout_ms(timeout)
            .with_topics(topics.collect());
        let response = connection.call(&request).await?;
        let mut answered = Vec::new();
        for topic in response.topics {
            for answer in topic.partitions {
                let partition = TopicPartition::new(topic.name.as_str(), answer.partition_index);
                let checked = Error::check(answer.error_code, None, || {
                    format!("delete records of {partition}")
                });
                answered.push((partition, checked.map(|()| answer.low_watermark)));
            }
        }
        Ok(answered)
    })
    .await
}
