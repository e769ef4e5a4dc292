//! Small topics as logs that are read whole, such as those that Connect keeps its state in.
//!
//! Keys go to partitions as Java's default partitioner puts them, so that a key written by Java and
//! then by us is in one partition, where the later record replaces the earlier. Appends are not
//! idempotent: after a lost answer a record is written again, which a reader that keeps the last
//! value for each key does not notice.

mod aborted;
mod partitioner;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use twinlog_core::ids::{Topic, TopicPartition};

use self::aborted::AbortedSet;
pub use self::partitioner::partition_of_key;
use crate::admin::{OffsetQuery, View, list_offsets};
use crate::batch::{self, BatchError, Compression, DecodeLimits, Entry, Record};
use crate::client::{Client, Purpose};
use crate::error::{Error, ErrorCode, Result};
use crate::fetch::{FetchOptions, FetchPosition, FetchSession, FetchedPartition, Isolation};
use crate::metadata::{Leader, Topics};
use crate::produce::{self, ProduceItem, ProduceOptions, ProduceReply};
use crate::retry::{Retry, Verdict};

/// A record of a topic that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// The partition it is in.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Its time in ms since 1970; -1 for none.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value; `None` deletes the key.
    pub value: Option<Bytes>,
}

/// A key and its value; `None` deletes the key.
pub type KeyValue = (Bytes, Option<Bytes>);

/// Reads all committed records of all partitions, up to where each log ended when this began. Order
/// holds within a partition. A topic that does not exist is [`Error::UnknownTopic`].
///
/// # Errors
/// What `verdict` gives up on. A record that cannot be read is [`Error::Records`].
pub async fn read_to_end(
    client: &Client,
    topic: &Topic,
    retry: &mut Retry,
    verdict: impl Fn(&Error) -> Verdict,
) -> Result<Vec<LogRecord>> {
    let action = format!("read topic {topic} to its end");
    retry
        .run(&action, verdict, || read_once(client, topic))
        .await
}

/// Appends records with this time, in ms since 1970, and waits until all in-sync replicas have
/// them.
///
/// # Errors
/// What `verdict` gives up on; records of other partitions may have been appended then.
pub async fn append(
    client: &Client,
    topic: &Topic,
    records: &[KeyValue],
    timestamp: i64,
    retry: &mut Retry,
    verdict: impl Fn(&Error) -> Verdict,
) -> Result<()> {
    let action = format!("append to topic {topic}");
    let left = Mutex::new(records.to_vec());
    while !left.lock().is_empty() {
        let attempt = || append_once(client, topic, &left, timestamp);
        retry.run(&action, &verdict, attempt).await?;
    }
    Ok(())
}

/// Bytes asked for at once.
const FETCH_BYTES_MAX: i32 = 16 << 20;
/// So many answers without a record, though the end is not reached, mean that there is nothing more
/// to read.
const EMPTY_ANSWERS_AT_END: u32 = 3;
/// The lane of appends, apart from those of the data.
const LANE: u32 = u32::MAX;
/// Batches stay well below `max.message.bytes`, whose lowest default was 1,000,012 (Kafka 1.1).
const APPEND_BYTES_MAX: usize = 512 << 10;

/// A partition on its way to its end.
struct Reading {
    position: i64,
    end: i64,
    leader: Leader,
}

async fn read_once(client: &Client, topic: &Topic) -> Result<Vec<LogRecord>> {
    let mut leaders: BTreeMap<i32, BTreeMap<TopicPartition, Reading>> = BTreeMap::new();
    for (partition, reading) in readings(client, topic).await? {
        let same_leader = leaders.entry(reading.leader.broker).or_default();
        same_leader.insert(partition, reading);
    }
    let mut records = Vec::new();
    for (broker, readings) in leaders {
        read_from(client, broker, readings, &mut records).await?;
    }
    Ok(records)
}

/// Where each partition starts and ends now.
async fn readings(client: &Client, topic: &Topic) -> Result<Vec<(TopicPartition, Reading)>> {
    let topics = Topics::Named([topic.clone()].into());
    let metadata = client.current(&topics).await?;
    let known = metadata.topic(topic).ok_or_else(|| Error::UnknownTopic {
        topic: topic.clone(),
    })?;
    Error::check(known.error.0, None, || format!("look up topic {topic}"))?;
    let numbers = known.partitions.iter().map(|found| found.partition);
    let partitions: Vec<_> = numbers
        .map(|number| TopicPartition::new(topic.clone(), number))
        .collect();
    let ask = async |query| {
        let queries = partitions
            .iter()
            .map(|partition| (partition.clone(), query));
        list_offsets(client, queries, View::Consumer(Isolation::ReadCommitted)).await
    };
    let (mut starts, mut ends) = (
        ask(OffsetQuery::Earliest).await,
        ask(OffsetQuery::Latest).await,
    );
    let mut readings = Vec::new();
    for partition in partitions {
        let missing = || Error::Unanswered {
            item: format!("the ends of {partition}"),
        };
        let start = starts.remove(&partition).ok_or_else(missing)??;
        let end = ends.remove(&partition).ok_or_else(missing)??;
        let reading = Reading {
            position: start.offset.ok_or_else(missing)?,
            end: end.offset.ok_or_else(missing)?,
            leader: client.leader(&partition).await?,
        };
        if reading.position < reading.end {
            readings.push((partition, reading));
        }
    }
    Ok(readings)
}

async fn read_from(
    client: &Client,
    broker: i32,
    mut readings: BTreeMap<TopicPartition, Reading>,
    records: &mut Vec<LogRecord>,
) -> Result<()> {
    let connection = client.connection(broker, Purpose::Fetch(LANE)).await?;
    let mut session = FetchSession::new(FetchOptions {
        isolation: Isolation::ReadCommitted,
        max_wait: Duration::from_millis(100),
        ..FetchOptions::default()
    });
    for (partition, reading) in &readings {
        session.set(partition, reading.position());
    }
    let mut empty_answers = 0;
    while !readings.is_empty() {
        let fetched = session.fetch(&connection, FETCH_BYTES_MAX, None).await?;
        let mut progressed = !fetched.throttle.is_zero();
        for answer in fetched.partitions {
            let Some(reading) = readings.get_mut(&answer.partition) else {
                continue;
            };
            if answer.error != ErrorCode::NONE {
                client.mark_stale();
            }
            Error::check(answer.error.0, None, || {
                format!("read {}", answer.partition)
            })?;
            progressed |= take(&answer, reading, records)?;
            if reading.position >= reading.end {
                readings.remove(&answer.partition);
                session.remove(&answer.partition);
            } else {
                session.set(&answer.partition, reading.position());
            }
        }
        // Compaction may have removed everything below an end that it left in place. A throttled
        // answer is empty too.
        empty_answers = if progressed { 0 } else { empty_answers + 1 };
        if empty_answers == EMPTY_ANSWERS_AT_END {
            return Ok(());
        }
    }
    Ok(())
}

impl Reading {
    fn position(&self) -> FetchPosition {
        FetchPosition {
            topic_id: self.leader.topic_id,
            offset: self.position,
            leader_epoch: self.leader.epoch,
            max_bytes: None,
        }
    }
}

/// Takes the records of one answer; whether the position moved.
fn take(
    answer: &FetchedPartition,
    reading: &mut Reading,
    records: &mut Vec<LogRecord>,
) -> Result<bool> {
    let before = reading.position;
    let bad = |error: &BatchError| Error::Records {
        partition: answer.partition.clone(),
        offset: before,
        detail: format!("{error}: {}", error.problem),
    };
    let mut aborted = AbortedSet::new(&answer.aborted);
    for entry in batch::walk(answer.records.clone()) {
        let (decoded, next) = match entry.map_err(|error| bad(&error))? {
            Entry::Batch(batch) => {
                let skip = aborted.on_batch(&batch).map_err(|error| bad(&error))?;
                let next = batch.next_offset();
                let decoded = match skip {
                    true => Ok(Vec::new()),
                    false => batch::decode(&batch, DecodeLimits::default()),
                };
                (decoded, next)
            }
            Entry::Legacy(message) => {
                let next = message.next_offset();
                (
                    batch::decode_legacy(&message, DecodeLimits::default()),
                    next,
                )
            }
        };
        let decoded = decoded.map_err(|error| bad(&error))?;
        let wanted = |record: &Record| (reading.position..reading.end).contains(&record.offset);
        records.extend(decoded.into_iter().filter(wanted).map(|record| LogRecord {
            partition: answer.partition.partition,
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key,
            value: record.value,
        }));
        reading.position = reading.position.max(next);
    }
    Ok(reading.position > before)
}

/// Sends one batch to each partition, and takes out of `left` what was appended, also if another
/// partition failed.
async fn append_once(
    client: &Client,
    topic: &Topic,
    left: &Mutex<Vec<KeyValue>>,
    timestamp: i64,
) -> Result<()> {
    let topics = Topics::Named([topic.clone()].into());
    let metadata = client.current(&topics).await?;
    let known = metadata.topic(topic).ok_or_else(|| Error::UnknownTopic {
        topic: topic.clone(),
    })?;
    let partitions = known.partitions.len();
    let batches = first_batches(&left.lock(), partitions);
    let mut sent = Vec::new();
    let mut outcome = Ok(());
    for (number, batch) in batches {
        let partition = TopicPartition::new(topic.clone(), number);
        match send_batch(client, &partition, &batch, timestamp).await {
            Ok(reply) => sent.push((batch.len(), reply)),
            Err(error) => outcome = Err(error),
        }
    }
    for (count, reply) in sent {
        match appended(client, reply).await {
            Ok(number) => forget(&mut left.lock(), partitions, number, count),
            Err(error) => outcome = Err(error),
        }
    }
    outcome
}

async fn send_batch(
    client: &Client,
    partition: &TopicPartition,
    batch: &[KeyValue],
    timestamp: i64,
) -> Result<ProduceReply> {
    let leader = client.leader(partition).await?;
    let item = produce_item(partition, leader, batch, timestamp)?;
    let purpose = Purpose::Produce(LANE);
    let connection = client.connection(leader.broker, purpose).await?;
    produce::send(&connection, &ProduceOptions::default(), vec![item]).await
}

/// The partition that was appended to.
async fn appended(client: &Client, reply: ProduceReply) -> Result<i32> {
    let results = reply.results().await?;
    let produced = results.first().ok_or_else(|| Error::Unanswered {
        item: "an appended batch".to_owned(),
    })?;
    if produced.error != ErrorCode::NONE {
        client.mark_stale();
    }
    Error::check(produced.error.0, produced.message.as_deref(), || {
        format!("append to {}", produced.partition)
    })?;
    Ok(produced.partition.partition)
}

/// Takes the first `count` records of a partition out.
fn forget(records: &mut Vec<KeyValue>, partitions: usize, number: i32, mut count: usize) {
    records.retain(|(key, _)| {
        let appended = count > 0 && partition_of_key(key, partitions) == number;
        count -= usize::from(appended);
        !appended
    });
}

/// For each partition its first records, as many as a batch may hold.
fn first_batches(records: &[KeyValue], partitions: usize) -> BTreeMap<i32, Vec<KeyValue>> {
    let mut batches: BTreeMap<i32, (usize, Vec<KeyValue>)> = BTreeMap::new();
    for (key, value) in records {
        let size = key.len() + value.as_ref().map_or(0, Bytes::len) + RECORD_OVERHEAD_BYTES;
        let (bytes, batch) = batches
            .entry(partition_of_key(key, partitions))
            .or_default();
        *bytes += size;
        // Once a batch is full, no later record of its partition may overtake.
        if batch.is_empty() || *bytes <= APPEND_BYTES_MAX {
            batch.push((key.clone(), value.clone()));
        }
    }
    let batches = batches.into_iter();
    batches
        .map(|(number, (_, batch))| (number, batch))
        .collect()
}

/// More than a record's lengths and deltas take.
const RECORD_OVERHEAD_BYTES: usize = 32;

fn produce_item(
    partition: &TopicPartition,
    leader: Leader,
    records: &[KeyValue],
    timestamp: i64,
) -> Result<ProduceItem> {
    let records = records.iter().map(|(key, value)| Record {
        timestamp,
        key: Some(key.clone()),
        value: value.clone(),
        ..Record::default()
    });
    let records: Vec<_> = records.collect();
    let unwritable = |detail: String| Error::Records {
        partition: partition.clone(),
        offset: 0,
        detail,
    };
    let batch = batch::encode(&records, Compression::None)
        .map_err(|error| unwritable(error.to_string()))?
        .ok_or_else(|| unwritable("there is nothing to append".to_owned()))?;
    let header = batch.bytes().first_chunk().copied();
    Ok(ProduceItem {
        topic: partition.topic.clone(),
        topic_id: leader.topic_id,
        partition: partition.partition,
        header: header.ok_or_else(|| unwritable("the batch has no header".to_owned()))?,
        body: batch.body(),
    })
}
