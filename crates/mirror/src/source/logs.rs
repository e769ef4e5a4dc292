//! Questions about logs: where they begin and end, what their last records say.

use std::collections::BTreeMap;
use std::ops::Range;

use twinlog_core::ids::{DownstreamOffset, TopicPartition, UpstreamOffset};
use twinlog_core::offsets::{
    Expects, OutOfSequence, Sequence, TailCount, TailCounter, TargetMark, TargetTail,
};
use twinlog_kafka::admin::{
    EpochEnd, ListedOffset, OffsetQuery, ProducerState, Results, View, describe_producers,
    end_offsets_for_epochs, list_offsets,
};
use twinlog_kafka::batch::{DecodeLimits, Entry, decode, walk};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::connection::Connection;
use twinlog_kafka::error::{Class, Error, ErrorCode, Result};
use twinlog_kafka::fetch::{FetchOptions, FetchPosition, FetchSession, Isolation};
use twinlog_kafka::metadata::Leader;

use crate::pipeline::overlap::print;

/// The ends of a source log as a reader sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnds {
    /// The first offset there is.
    pub start: UpstreamOffset,
    /// The high watermark, also for readers of committed records: a position between an open
    /// transaction and it is in the log.
    pub end: UpstreamOffset,
    /// The offset that follows the last record that may be read.
    pub readable_end: UpstreamOffset,
    /// Where the epoch that was asked about ended: a log that was read further in that epoch has
    /// been cut since. None if that was not asked, or is not known.
    pub epoch_end: Option<UpstreamOffset>,
}

/// Asks the source where logs begin and end for readers of this isolation, and where `epochs` ended
/// in some of them.
pub async fn ends(
    client: &Client,
    partitions: Vec<TopicPartition>,
    isolation: Isolation,
    epochs: Vec<(TopicPartition, i32)>,
) -> Results<TopicPartition, LogEnds> {
    let mut epoch_ends = end_offsets_for_epochs(client, epochs).await;
    let view = View::Consumer(Isolation::ReadUncommitted);
    let query = |query| {
        partitions
            .iter()
            .map(move |partition| (partition.clone(), query))
    };
    let starts = list_offsets(client, query(OffsetQuery::Earliest), view).await;
    let mut readable = match isolation {
        Isolation::ReadUncommitted => Results::new(),
        Isolation::ReadCommitted => {
            let view = View::Consumer(Isolation::ReadCommitted);
            list_offsets(client, query(OffsetQuery::Latest), view).await
        }
    };
    let mut ends = list_offsets(client, query(OffsetQuery::Latest), view).await;
    let both = starts.into_iter().map(|(partition, start)| {
        let end = ends.remove(&partition);
        let ends = start.and_then(|start| {
            let end = end.unwrap_or_else(|| Err(unanswered(&partition)))?;
            let epoch_end = known_epoch_end(epoch_ends.remove(&partition))?;
            let readable_end = readable.remove(&partition).transpose()?.unwrap_or(end);
            Ok(LogEnds {
                start: UpstreamOffset(start.offset_or_end(0)),
                end: UpstreamOffset(end.offset_or_end(0)),
                readable_end: UpstreamOffset(readable_end.offset_or_end(0)),
                epoch_end,
            })
        });
        (partition, ends)
    });
    both.collect()
}

/// The end of an epoch. Brokers that do not have the question, or do not let us ask it, leave it
/// open.
fn known_epoch_end(answer: Option<Result<EpochEnd>>) -> Result<Option<UpstreamOffset>> {
    match answer {
        None => Ok(None),
        Some(Ok(end)) => Ok(Some(UpstreamOffset(end.end_offset)).filter(|end| end.0 >= 0)),
        Some(Err(error)) => match error.class() {
            Class::Authorization | Class::Unsupported => Ok(None),
            _ => Err(error),
        },
    }
}

/// Asks the target how logs end and what they expect of `producer_id`. The end is read twice around
/// the question for the sequence: an answer is only given when nothing was appended in between.
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
        let found = |ends: &mut Results<TopicPartition, ListedOffset>| {
            let end = ends.remove(&partition);
            let end = end.unwrap_or_else(|| Err(unanswered(&partition)))?;
            end.offset.ok_or_else(|| unanswered(&partition))
        };
        let end = match (found(&mut before), found(&mut after)) {
            (Ok(before), Ok(after)) if before == after => Ok(after),
            (Ok(_), Ok(_)) => Err(still_moving(&partition)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let producers = producers.remove(&partition);
        let tail = match (
            end,
            producers.unwrap_or_else(|| Err(unanswered(&partition))),
        ) {
            (Err(error), _) => Err(error),
            (Ok(end), Ok(producers)) => Ok(tail(end, expects(&producers, producer_id))),
            (Ok(end), Err(Error::UnsupportedApi { .. })) => {
                let expects = expects_by_last_batch(client, &partition, end, producer_id).await;
                expects.map(|expects| tail(end, expects))
            }
            (Ok(_), Err(error)) => Err(error),
        };
        tails.insert(partition, tail);
    }
    tails
}

fn tail(log_end: i64, expects: Expects) -> TargetTail {
    TargetTail {
        log_end: DownstreamOffset(log_end),
        expects,
    }
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

/// Counts the records of a target log from `mark` to `to` by the headers of their batches. Batches
/// of ours that do not follow on from the mark are an answer of their own.
///
/// # Errors
/// Those of fetching, and [`Error::Records`] for a stretch that cannot be read.
pub async fn count(
    client: &Client,
    partition: &TopicPartition,
    mark: TargetMark,
    to: DownstreamOffset,
    producer_id: i64,
) -> Result<Result<TailCount, OutOfSequence>> {
    let mut counter = TailCounter::new(mark);
    let mut out_of_sequence = None;
    each_batch(client, partition, mark.downstream, to, |seen| {
        let sequence = (seen.producer_id == producer_id).then_some(seen.sequence);
        let added = counter.add(seen.base, seen.next.min(to), sequence.flatten());
        out_of_sequence = out_of_sequence.or(added.err());
    })
    .await?;
    Ok(out_of_sequence.map_or_else(|| Ok(counter.count()), Err))
}

/// Counts the records of a target log in `from..to` by whose they are.
///
/// # Errors
/// As [`count`].
pub async fn whose(
    client: &Client,
    partition: &TopicPartition,
    from: DownstreamOffset,
    to: DownstreamOffset,
    producer_id: i64,
) -> Result<TailCount> {
    let mut count = TailCount::default();
    each_batch(client, partition, from, to, |seen| {
        let records = (seen.next.min(to).0 - seen.base.max(from).0).max(0);
        match seen.producer_id == producer_id {
            true => count.ours += records,
            false => count.foreign += records,
        }
    })
    .await?;
    Ok(count)
}

/// The part of a batch's header that says whose it is.
struct Seen {
    base: DownstreamOffset,
    next: DownstreamOffset,
    producer_id: i64,
    sequence: Option<Sequence>,
}

/// Shows the batches of a target log in `from..to`.
async fn each_batch(
    client: &Client,
    partition: &TopicPartition,
    from: DownstreamOffset,
    to: DownstreamOffset,
    mut show: impl FnMut(Seen),
) -> Result<()> {
    let mut reader = Reader::open(client, partition).await?;
    let mut at = from;
    while at < to {
        let before = at;
        for entry in reader.read(at.0).await? {
            let seen = match &entry {
                Entry::Batch(batch) => {
                    let header = batch.header();
                    Seen {
                        base: DownstreamOffset(header.base_offset),
                        next: DownstreamOffset(header.next_offset()),
                        producer_id: header.producer_id,
                        sequence: Sequence::new(header.base_sequence),
                    }
                }
                Entry::Legacy(message) => Seen {
                    base: at,
                    next: DownstreamOffset(message.next_offset()),
                    producer_id: -1,
                    sequence: None,
                },
            };
            at = seen.next;
            if seen.base < to {
                show(seen);
            }
        }
        if at == before {
            // What lies above the high watermark is not to be had yet; it will be, or it will
            // vanish.
            return Err(still_moving(partition));
        }
    }
    Ok(())
}

/// The prints of our records in a stretch of a target log, to be compared with the source's.
///
/// # Errors
/// As [`count`].
pub async fn prints(
    client: &Client,
    partition: &TopicPartition,
    stretch: Range<DownstreamOffset>,
    producer_id: i64,
    with_time: bool,
) -> Result<Vec<u64>> {
    let mut reader = Reader::open(client, partition).await?;
    let (mut at, mut prints) = (stretch.start.0, Vec::new());
    while at < stretch.end.0 {
        let before = at;
        for entry in reader.read(at).await? {
            let batch = match entry {
                Entry::Batch(batch) => batch,
                Entry::Legacy(message) => {
                    at = message.next_offset();
                    continue;
                }
            };
            if batch.header().producer_id == producer_id && !batch.is_control() {
                let records = decode(&batch, DecodeLimits::default());
                let records = records.map_err(|error| Error::Records {
                    partition: partition.clone(),
                    offset: batch.header().base_offset,
                    detail: error.to_string(),
                })?;
                let asked = at..stretch.end.0;
                let asked = records
                    .iter()
                    .filter(|record| asked.contains(&record.offset));
                prints.extend(asked.map(|record| print(record, with_time)));
            }
            at = batch.next_offset();
        }
        if at == before {
            return Err(still_moving(partition));
        }
    }
    Ok(prints)
}

/// What a log expects of `producer_id` judged by its last batch, for brokers that cannot be asked
/// (before 2.8). If that is somebody else's batch nothing is known.
async fn expects_by_last_batch(
    client: &Client,
    partition: &TopicPartition,
    log_end: i64,
    producer_id: i64,
) -> Result<Expects> {
    if log_end == 0 {
        return Ok(Expects::Anything);
    }
    let entries = Reader::open(client, partition)
        .await?
        .read(log_end - 1)
        .await?;
    let Some(last) = entries.last() else {
        return Err(still_moving(partition));
    };
    let Entry::Batch(batch) = last else {
        return Ok(Expects::Anything);
    };
    let header = batch.header();
    let sequence =
        Sequence::new(header.base_sequence).filter(|_| header.producer_id == producer_id);
    Ok(sequence.map_or(Expects::Anything, |first| {
        Expects::Exactly(first.plus(i64::from(header.record_count)))
    }))
}

/// Reads a target log whatever it holds.
struct Reader<'a> {
    partition: &'a TopicPartition,
    leader: Leader,
    connection: Connection,
    session: FetchSession,
}

impl<'a> Reader<'a> {
    async fn open(client: &Client, partition: &'a TopicPartition) -> Result<Self> {
        let leader = client.leader(partition).await?;
        let connection = client.connection(leader.broker, Purpose::General).await?;
        let options = FetchOptions {
            isolation: Isolation::ReadUncommitted,
            ..FetchOptions::default()
        };
        Ok(Reader {
            partition,
            leader,
            connection,
            session: FetchSession::new(options),
        })
    }

    /// The batches from the one that holds `offset` on, as many as come at once; none above the
    /// high watermark.
    async fn read(&mut self, offset: i64) -> Result<Vec<Entry>> {
        let position = FetchPosition {
            topic_id: self.leader.topic_id,
            offset,
            leader_epoch: self.leader.epoch,
            max_bytes: None,
        };
        self.session.set(self.partition, position);
        let fetched = self
            .session
            .fetch(&self.connection, READ_BYTES, None)
            .await?;
        let Some(answer) = fetched.partitions.into_iter().next() else {
            return Ok(Vec::new());
        };
        Error::check(answer.error.0, None, || {
            format!("read the end of {}", self.partition)
        })?;
        let entries: Result<Vec<Entry>, _> = walk(answer.records).collect();
        entries.map_err(|error| Error::Records {
            partition: self.partition.clone(),
            offset,
            detail: error.to_string(),
        })
    }
}

/// What is read of a log at once.
const READ_BYTES: i32 = 1 << 20;

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
