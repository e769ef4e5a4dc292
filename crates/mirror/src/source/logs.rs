//! Questions about logs: where they begin and end, what their last records say.

use std::collections::BTreeMap;

use twinlog_core::ids::{DownstreamOffset, TopicPartition, UpstreamOffset};
use twinlog_core::offsets::{Expects, Sequence, TargetTail};
use twinlog_kafka::admin::{
    OffsetQuery, ProducerState, Results, View, describe_producers, list_offsets,
};
use twinlog_kafka::batch::{Entry, walk};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::error::{Error, ErrorCode, Result};
use twinlog_kafka::fetch::{FetchOptions, FetchPosition, FetchSession, Isolation};

/// The ends of a source log as a reader sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnds {
    /// The first offset there is.
    pub start: UpstreamOffset,
    /// The offset that follows the last record that may be read.
    pub end: UpstreamOffset,
}

/// Asks the source where logs begin and end.
pub async fn ends(
    client: &Client,
    partitions: Vec<TopicPartition>,
    isolation: Isolation,
) -> Results<TopicPartition, LogEnds> {
    let view = View::Consumer(isolation);
    let query = |query| {
        partitions
            .iter()
            .map(move |partition| (partition.clone(), query))
    };
    let starts = list_offsets(client, query(OffsetQuery::Earliest), view).await;
    let mut ends = list_offsets(client, query(OffsetQuery::Latest), view).await;
    let both = starts.into_iter().map(|(partition, start)| {
        let end = ends.remove(&partition);
        let ends = start.and_then(|start| {
            let end = end.unwrap_or_else(|| Err(unanswered(&partition)))?;
            Ok(LogEnds {
                start: UpstreamOffset(start.offset_or_end(0)),
                end: UpstreamOffset(end.offset_or_end(0)),
            })
        });
        (partition, ends)
    });
    both.collect()
}

/// Asks the target how logs end and what they expect of `producer_id`. The end is read twice around the question for the
/// sequence: an answer is only given when nothing was appended in between.
pub async fn tails(
    client: &Client,
    partitions: Vec<TopicPartition>,
    producer_id: i64,
) -> Results<TopicPartition, TargetTail> {
    let latest = || {
        partitions
            .iter()
            .map(|partition| (partition.clone(), OffsetQuery::Latest))
    };
    let mut before = list_offsets(client, latest(), View::Leader).await;
    let mut producers = describe_producers(client, partitions.iter().cloned()).await;
    let mut after = list_offsets(client, latest(), View::Leader).await;
    let mut tails = BTreeMap::new();
    for partition in partitions {
        let end = |ends: &mut Results<_, twinlog_kafka::admin::ListedOffset>| {
            let end = ends
                .remove(&partition)
                .unwrap_or_else(|| Err(unanswered(&partition)))?;
            end.offset.ok_or_else(|| unanswered(&partition))
        };
        let tail = (|| {
            let (before, after) = (end(&mut before)?, end(&mut after)?);
            let producers = producers
                .remove(&partition)
                .unwrap_or_else(|| Err(unanswered(&partition)));
            if before != after {
                return Err(still_moving(&partition));
            }
            Ok(TargetTail {
                log_end: DownstreamOffset(after),
                expects: expects(&producers?, producer_id),
            })
        })();
        tails.insert(partition, tail);
    }
    tails
}

fn expects(producers: &[ProducerState], producer_id: i64) -> Expects {
    match producers
        .iter()
        .find(|producer| producer.producer_id == producer_id)
    {
        None => Expects::Anything,
        Some(state) => match Sequence::new(state.last_sequence) {
            Some(last) => Expects::Exactly(last.plus(1)),
            None => Expects::Restart,
        },
    }
}

/// Whose records lie in a stretch of a target log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TailCount {
    /// Under our producer id.
    pub ours: i64,
    /// Under others', control records included.
    pub foreign: i64,
}

/// Counts the records of a target log in `from..to` by the headers of their batches.
///
/// # Errors
/// Those of fetching, and [`Error::Records`] for a stretch that cannot be read.
pub async fn count(
    client: &Client,
    partition: &TopicPartition,
    from: DownstreamOffset,
    to: DownstreamOffset,
    producer_id: i64,
) -> Result<TailCount> {
    let leader = client.leader(partition).await?;
    let connection = client.connection(leader.broker, Purpose::General).await?;
    let mut session = FetchSession::new(FetchOptions {
        isolation: Isolation::ReadUncommitted,
        ..FetchOptions::default()
    });
    let (mut at, mut count) = (from.0, TailCount::default());
    while at < to.0 {
        let position = FetchPosition {
            topic_id: leader.topic_id,
            offset: at,
            leader_epoch: leader.epoch,
            max_bytes: None,
        };
        session.set(partition, position);
        let fetched = session.fetch(&connection, COUNT_FETCH_BYTES, None).await?;
        let Some(answer) = fetched.partitions.into_iter().next() else {
            continue;
        };
        if answer.error != ErrorCode::NONE {
            Error::check(answer.error.0, None, || {
                format!("read the end of {partition}")
            })?;
        }
        let before = at;
        for entry in walk(answer.records) {
            let (base, next, producer) =
                match entry.map_err(|error| unreadable(partition, at, &error))? {
                    Entry::Batch(batch) => {
                        let header = batch.header();
                        (header.base_offset, header.next_offset(), header.producer_id)
                    }
                    Entry::Legacy(message) => (at, message.next_offset(), -1),
                };
            let records = (next.min(to.0) - base.max(at)).max(0);
            match producer == producer_id {
                true => count.ours += records,
                false => count.foreign += records,
            }
            at = next;
        }
        if at == before && answer.high_watermark <= at {
            // What lies above the high watermark is not to be had yet; it will be, or it will vanish.
            return Err(still_moving(partition));
        }
    }
    Ok(count)
}

/// What is read of a log at once to count it.
const COUNT_FETCH_BYTES: i32 = 1 << 20;

fn unanswered(partition: &TopicPartition) -> Error {
    Error::Unanswered {
        item: partition.to_string(),
    }
}

/// Something is still being appended: ask again.
fn still_moving(partition: &TopicPartition) -> Error {
    Error::Broker {
        action: format!("look at the end of {partition}"),
        code: ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        message: Some("the log is still being written".to_owned()),
    }
}

fn unreadable(partition: &TopicPartition, offset: i64, error: &dyn std::error::Error) -> Error {
    Error::Records {
        partition: partition.clone(),
        offset,
        detail: error.to_string(),
    }
}
