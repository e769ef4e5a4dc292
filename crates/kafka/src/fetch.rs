//! Incremental fetch sessions (KIP-227), one per source broker: a pure half that builds requests, a
//! pure half that interprets answers, and a thin send between them.
//!
//! A session's first request names every partition, the following ones only what changed; ten
//! thousand idle partitions cost one small request per poll. Records stay raw: what a partition got
//! is a slice of the answer's frame.
//!
//! Invariants: (A) while `epoch` is positive, broker and session agree on all partitions but those
//! in `changed` and `forgotten`. (B) `names` holds exactly the ids of topics with a partition in
//! the session. (C) One request is under way at a time, and whatever leaves its fate unknown resets
//! the session.

mod answer;

use std::collections::HashMap;
use std::time::Duration;

use indexmap::{IndexMap, IndexSet};
use twinlog_core::ids::{Topic, TopicId, TopicPartition};

pub use self::answer::{AbortedTransaction, Fetched, FetchedPartition};
use crate::connection::{CallOptions, Connection};
use crate::error::{Error, ErrorCode, Result};
use crate::memory::Share;
use crate::wire::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use crate::wire::{self, FetchRequest, FetchResponse};

/// Which records a fetch may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// All up to the high watermark, those of open and aborted transactions included.
    #[default]
    ReadUncommitted,
    /// All up to the last stable offset; the answer lists the aborted transactions, whose records
    /// are the reader's to skip.
    ReadCommitted,
}

impl Isolation {
    /// The value on the wire.
    pub fn wire(self) -> i8 {
        match self {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        }
    }
}

/// What is the same for all requests of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// `fetch.max.wait.ms`: the broker answers after this long even if there is too little.
    pub max_wait: Duration,
    /// `fetch.min.bytes`: the broker answers as soon as it has this much.
    pub min_bytes: i32,
    /// `max.partition.fetch.bytes`, unless a position says otherwise.
    pub partition_max_bytes: i32,
    /// Which records to see.
    pub isolation: Isolation,
    /// `client.rack`; empty for none.
    pub rack: String,
}

impl Default for FetchOptions {
    /// Kafka's defaults. 1 MiB per partition was twice as fast as 8 MiB, at half the memory (fewer
    /// page faults).
    fn default() -> Self {
        FetchOptions {
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            partition_max_bytes: 1 << 20,
            isolation: Isolation::ReadUncommitted,
            rack: String::new(),
        }
    }
}

/// Where to read a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPosition {
    /// The topic's id, [`TopicId::ZERO`] if unknown; the broker then goes by name.
    pub topic_id: TopicId,
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the metadata that led here, so that a deposed leader refuses (KIP-320);
    /// -1 for unknown.
    pub leader_epoch: i32,
    /// Bytes at most, `None` for the session's default.
    pub max_bytes: Option<i32>,
}

/// A session with one broker. Pure: it builds requests and interprets answers.
#[derive(Debug)]
pub struct FetchSession {
    options: FetchOptions,
    partitions: IndexMap<TopicPartition, Entry>,
    names: HashMap<TopicId, (Topic, usize)>,
    changed: IndexSet<TopicPartition>,
    forgotten: IndexMap<TopicPartition, TopicId>,
    session_id: i32,
    /// 0: the next request names everything.
    epoch: i32,
    /// The version of the session's requests; another one needs another session.
    version: i16,
    requests: usize,
}

#[derive(Debug)]
struct Entry {
    position: FetchPosition,
    sent_offset: i64,
}

/// The last version by topic name; from 13 on topics go by id (KIP-516).
const VERSION_BY_NAME: i16 = 12;
/// The last version that was tried here; 18 only adds a field for followers.
const VERSION_MAX: i16 = 17;
/// The first version with sessions.
const VERSION_WITH_SESSIONS: i16 = 7;

impl FetchSession {
    /// A session without partitions.
    pub fn new(options: FetchOptions) -> FetchSession {
        FetchSession {
            options,
            partitions: IndexMap::new(),
            names: HashMap::new(),
            changed: IndexSet::new(),
            forgotten: IndexMap::new(),
            session_id: 0,
            epoch: 0,
            version: -1,
            requests: 0,
        }
    }

    /// Adds a partition or moves its position. Costs nothing on the wire if nothing changed.
    pub fn set(&mut self, partition: &TopicPartition, position: FetchPosition) {
        if let Some(entry) = self.partitions.get_mut(partition) {
            if entry.position == position {
                return;
            }
            if entry.position.topic_id == position.topic_id {
                entry.position = position;
                self.changed.insert(partition.clone());
                return;
            }
            // A topic made anew: to the broker it is another one.
            self.remove(partition);
        }
        let entry = Entry {
            position,
            sent_offset: -1,
        };
        self.partitions.insert(partition.clone(), entry);
        self.changed.insert(partition.clone());
        if self.forgotten.get(partition) == Some(&position.topic_id) {
            self.forgotten.swap_remove(partition);
        }
        let name = || (partition.topic.clone(), 0);
        self.names.entry(position.topic_id).or_insert_with(name).1 += 1;
    }

    /// Takes a partition out; `false` if it wasn't in.
    pub fn remove(&mut self, partition: &TopicPartition) -> bool {
        let Some(entry) = self.partitions.swap_remove(partition) else {
            return false;
        };
        let id = entry.position.topic_id;
        self.changed.swap_remove(partition);
        self.forgotten.insert(partition.clone(), id);
        if let Some((_, partitions)) = self.names.get_mut(&id) {
            *partitions -= 1;
            if *partitions == 0 {
                self.names.remove(&id);
            }
        }
        true
    }

    /// The position of a partition, if it is in.
    pub fn position(&self, partition: &TopicPartition) -> Option<FetchPosition> {
        self.partitions.get(partition).map(|entry| entry.position)
    }

    /// How many partitions are in.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether no partition is in.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Starts over with a full request. To be called when a request's fate is unknown.
    pub fn reset(&mut self) {
        self.epoch = 0;
    }

    /// The highest version the session may use: by id only if every topic has one.
    pub fn version_max(&self) -> i16 {
        if self.names.contains_key(&TopicId::ZERO) {
            VERSION_BY_NAME
        } else {
            VERSION_MAX
        }
    }

    /// The next request, asking for `max_bytes` at most (a first batch larger than that comes
    /// nevertheless, KIP-74).
    pub fn build(&mut self, version: i16, max_bytes: i32) -> FetchRequest {
        if version != self.version {
            self.version = version;
            self.reset();
        }
        self.requests = self.requests.wrapping_add(1);
        let sessions = version >= VERSION_WITH_SESSIONS;
        let max_wait = i32::try_from(self.options.max_wait.as_millis()).unwrap_or(i32::MAX);
        let mut request = FetchRequest::default()
            .with_max_wait_ms(max_wait)
            .with_min_bytes(self.options.min_bytes)
            .with_max_bytes(max_bytes)
            .with_isolation_level(self.options.isolation.wire());
        if version >= 11 {
            request = request.with_rack_id(wire::text(&self.options.rack));
        }
        if sessions {
            // A full request with the old id closes the old session at the broker.
            request = request
                .with_session_id(self.session_id)
                .with_session_epoch(self.epoch);
        }
        let (topics, forgotten) = if self.epoch > 0 && sessions {
            let changed = std::mem::take(&mut self.changed);
            let mut forgotten = std::mem::take(&mut self.forgotten);
            // By name a topic made anew is the same topic, which must not be forgotten.
            forgotten.retain(|partition, _| {
                version > VERSION_BY_NAME || !self.partitions.contains_key(partition)
            });
            (
                self.fetch_topics(changed.into_iter()),
                forgotten_topics(forgotten, version),
            )
        } else {
            self.changed.clear();
            self.forgotten.clear();
            let all: Vec<_> = self.partitions.keys().cloned().collect();
            let mut topics = self.fetch_topics(all.into_iter());
            self.rotate(&mut topics);
            (topics, Vec::new())
        };
        request
            .with_topics(topics)
            .with_forgotten_topics_data(forgotten)
    }

    /// What an answer means. Partitions that left the session meanwhile are dropped.
    ///
    /// # Errors
    /// [`Error::Broker`] if the answer as a whole failed; with
    /// [`ResetFetchSession`](crate::error::Class::ResetFetchSession) the session has been reset,
    /// and the same partitions can be asked for again at once.
    pub fn interpret(&mut self, response: FetchResponse) -> Result<Fetched> {
        let code = ErrorCode(response.error_code);
        if code != ErrorCode::NONE {
            self.reset();
            if code == ErrorCode::FETCH_SESSION_ID_NOT_FOUND {
                self.session_id = 0;
            }
        }
        Error::check(code.0, None, || {
            format!("fetch in session {}", self.session_id)
        })?;
        if self.epoch == 0 {
            // A broker whose cache of sessions is full answers 0: full requests until it has room.
            self.session_id = response.session_id;
            self.epoch = i32::from(response.session_id != 0);
        } else {
            self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        }
        let mut fetched = Fetched {
            throttle: Duration::from_millis(u64::try_from(response.throttle_time_ms).unwrap_or(0)),
            partitions: Vec::new(),
        };
        for topic in response.responses {
            let id = wire::topic_id(topic.topic_id);
            let name = match self.names.get(&id) {
                Some((name, _)) if self.version > VERSION_BY_NAME => name.clone(),
                None if self.version > VERSION_BY_NAME => continue,
                _ => Topic::from(topic.topic.as_str()),
            };
            for data in topic.partitions {
                let partition = TopicPartition {
                    topic: name.clone(),
                    partition: data.partition_index,
                };
                if let Some(entry) = self.partitions.get(&partition) {
                    let sent_offset = entry.sent_offset;
                    fetched
                        .partitions
                        .push(FetchedPartition::new(partition, sent_offset, data));
                }
            }
        }
        Ok(fetched)
    }

    /// Sends the next request and interprets the answer. `share` is the memory the answer's records
    /// will hold; ask for no more `max_bytes` than it has.
    ///
    /// Not cancel-safe: call [`reset`](Self::reset) after dropping it.
    ///
    /// # Errors
    /// Those of [`Connection::call`] and [`interpret`](Self::interpret); the session has then been
    /// reset.
    pub async fn fetch(
        &mut self,
        connection: &Connection,
        max_bytes: i32,
        share: Option<Share>,
    ) -> Result<Fetched> {
        let version = connection.version_of::<FetchRequest>(Some(self.version_max()))?;
        let request = self.build(version, max_bytes);
        let options = CallOptions {
            version_max: Some(version),
            timeout: None,
            share,
        };
        match connection.call_with(&request, options).await {
            Ok(response) => self.interpret(response),
            Err(error) => {
                self.reset();
                Err(error)
            }
        }
    }

    fn fetch_topics(
        &mut self,
        partitions: impl Iterator<Item = TopicPartition>,
    ) -> Vec<FetchTopic> {
        let mut topics: IndexMap<Topic, FetchTopic> = IndexMap::new();
        for partition in partitions {
            let Some(entry) = self.partitions.get_mut(&partition) else {
                continue;
            };
            entry.sent_offset = entry.position.offset;
            let position = entry.position;
            let by_id = self.version > VERSION_BY_NAME;
            let topic = topics.entry(partition.topic).or_insert_with_key(|name| {
                if by_id {
                    FetchTopic::default().with_topic_id(wire::uuid(position.topic_id))
                } else {
                    FetchTopic::default().with_topic(wire::topic_name(name))
                }
            });
            let max_bytes = position
                .max_bytes
                .unwrap_or(self.options.partition_max_bytes);
            topic.partitions.push(
                FetchPartition::default()
                    .with_partition(partition.partition)
                    .with_current_leader_epoch(position.leader_epoch)
                    .with_fetch_offset(position.offset)
                    .with_last_fetched_epoch(-1)
                    .with_log_start_offset(-1)
                    .with_partition_max_bytes(max_bytes),
            );
        }
        topics.into_values().collect()
    }

    /// Brokers fill an answer in the order of the request. In a session they move what was served
    /// to the end; without one the order is ours to turn, or the first partitions would starve the
    /// last.
    fn rotate(&self, topics: &mut [FetchTopic]) {
        if !topics.is_empty() {
            let turn = self.requests % topics.len();
            topics.rotate_left(turn);
        }
        for topic in topics {
            let turn = self.requests % topic.partitions.len().max(1);
            topic.partitions.rotate_left(turn);
        }
    }
}

fn forgotten_topics(
    forgotten: IndexMap<TopicPartition, TopicId>,
    version: i16,
) -> Vec<ForgottenTopic> {
    let mut topics: IndexMap<(Topic, TopicId), ForgottenTopic> = IndexMap::new();
    for (partition, id) in forgotten {
        let topic = topics
            .entry((partition.topic, id))
            .or_insert_with_key(|(name, id)| {
                if version > VERSION_BY_NAME {
                    ForgottenTopic::default().with_topic_id(wire::uuid(*id))
                } else {
                    ForgottenTopic::default().with_topic(wire::topic_name(name))
                }
            });
        topic.partitions.push(partition.partition);
    }
    topics.into_values().collect()
}

#[cfg(test)]
mod tests;
