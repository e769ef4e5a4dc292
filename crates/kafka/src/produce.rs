//! Produce requests written by hand, so that batches go from the frame they were fetched in to the
//! socket without a copy.
//!
//! A request is a list of slices: framing and a batch's 61 header bytes, then its body, and so on.
//! The broker takes one batch per partition and request; many partitions share one.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use twinlog_core::ids::{Topic, TopicId, TopicPartition};

use crate::batch::HEADER_LEN;
use crate::connection::{CallOptions, Connection, Reply};
use crate::error::{ErrorCode, Result};
use crate::wire::{self, ProduceRequest, ProduceResponse};

/// One batch for one partition.
#[derive(Debug, Clone)]
pub struct ProduceItem {
    /// The topic.
    pub topic: Topic,
    /// Its id; [`TopicId::ZERO`] lets the broker go by name.
    pub topic_id: TopicId,
    /// The partition. No two items of a request may have the same.
    pub partition: i32,
    /// The batch's header.
    pub header: [u8; HEADER_LEN],
    /// What follows the header.
    pub body: Bytes,
}

/// What is the same for all batches of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceOptions {
    /// The transaction the batches belong to.
    pub transactional_id: Option<String>,
    /// -1 for all in-sync replicas, 1 for the leader. 0 would mean no answer and is not supported.
    pub acks: i16,
    /// How long the broker may wait for replicas; less than `request.timeout.ms`, so that its
    /// answer comes before the client gives up on the connection.
    pub timeout: Duration,
}

impl Default for ProduceOptions {
    fn default() -> Self {
        ProduceOptions {
            transactional_id: None,
            acks: -1,
            timeout: Duration::from_secs(20),
        }
    }
}

/// What became of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// The partition.
    pub partition: TopicPartition,
    /// [`ErrorCode::NONE`], or why the batch was not appended.
    pub error: ErrorCode,
    /// The offset of the batch's first record; -1 with an error. A recognised duplicate gets the
    /// offset it has.
    pub base_offset: i64,
    /// When the broker appended it, in ms, if the topic stamps that; -1 otherwise.
    pub log_append_time: i64,
    /// The first offset there is; -1 if unknown.
    pub log_start_offset: i64,
    /// The broker's own words.
    pub message: Option<String>,
    /// What was wrong with single records, by their index in the batch.
    pub record_errors: Vec<(i32, Option<String>)>,
    /// The leader and its epoch, if the asked broker isn't it (KIP-951).
    pub current_leader: Option<(i32, i32)>,
}

/// The answer to a produce request, on its way.
#[must_use = "the answer says what became of the batches"]
pub struct ProduceReply {
    reply: Reply<ProduceRequest>,
    names: Vec<(TopicId, Topic)>,
}

/// The last version by topic name.
const VERSION_BY_NAME: i16 = 12;
/// The first version with flexible fields (KIP-482).
const VERSION_FLEXIBLE: i16 = 9;
/// Bodies up to this size are copied into the framing: cheaper than a slice of their own.
const INLINE_BYTES_MAX: usize = 1 << 10;

/// Queues a request; see [`Connection::send_raw`]. Requests on one connection are written in the
/// order of the calls.
///
/// # Errors
/// As [`Connection::send_raw`].
pub async fn send(
    connection: &Connection,
    options: &ProduceOptions,
    items: Vec<ProduceItem>,
) -> Result<ProduceReply> {
    let by_id = items.iter().all(|item| item.topic_id != TopicId::ZERO);
    let version_max = (!by_id).then_some(VERSION_BY_NAME);
    let version = connection.version_of::<ProduceRequest>(version_max)?;
    let mut names: Vec<_> = items
        .iter()
        .map(|item| (item.topic_id, item.topic.clone()))
        .collect();
    names.sort();
    names.dedup();
    let body = encode(version, options, items);
    let reply = connection
        .send_raw(version, body, CallOptions::default())
        .await?;
    Ok(ProduceReply { reply, names })
}

impl ProduceReply {
    /// Waits for the answer. Throttling has been passed on to the connection.
    ///
    /// # Errors
    /// As [`Reply::response`]. Whether the batches were appended is then unknown.
    pub async fn results(self) -> Result<Vec<Produced>> {
        let by_id = self.reply.version() > VERSION_BY_NAME;
        let names = self.names;
        let response = self.reply.response().await?;
        Ok(interpret(response, |id| {
            let found = names.iter().find(|(known, _)| *known == id);
            found.filter(|_| by_id).map(|(_, name)| name.clone())
        }))
    }
}

/// The body of a request in `version`, as slices. Items are put in order of topic and partition.
pub fn encode(version: i16, options: &ProduceOptions, mut items: Vec<ProduceItem>) -> Vec<Bytes> {
    items.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    let topics: Vec<_> = items.chunk_by(|a, b| a.topic == b.topic).collect();
    let mut body = Body::new(version, items.len());
    body.nullable_text(options.transactional_id.as_deref());
    body.framing.put_i16(options.acks);
    let timeout = i32::try_from(options.timeout.as_millis()).unwrap_or(i32::MAX);
    body.framing.put_i32(timeout);
    body.length(topics.len());
    for topic in topics {
        if version > VERSION_BY_NAME {
            body.framing.put_slice(&topic[0].topic_id.0);
        } else {
            body.text(&topic[0].topic);
        }
        body.length(topic.len());
        for item in topic {
            body.framing.put_i32(item.partition);
            body.batch(item);
            body.tags();
        }
        body.tags();
    }
    body.tags();
    body.into_slices()
}

/// What an answer means. `name_of` knows the topics by id, for answers that go by id.
pub fn interpret(
    response: ProduceResponse,
    name_of: impl Fn(TopicId) -> Option<Topic>,
) -> Vec<Produced> {
    let mut produced = Vec::new();
    for topic in response.responses {
        let by_id = name_of(wire::topic_id(topic.topic_id));
        let name = by_id.unwrap_or_else(|| Topic::from(topic.name.as_str()));
        for partition in topic.partition_responses {
            let leader = &partition.current_leader;
            let leader = (leader.leader_id.0, leader.leader_epoch);
            let record_errors = partition.record_errors.into_iter();
            let text = |text: wire::StrBytes| text.to_string();
            produced.push(Produced {
                partition: TopicPartition {
                    topic: name.clone(),
                    partition: partition.index,
                },
                error: ErrorCode(partition.error_code),
                base_offset: partition.base_offset,
                log_append_time: partition.log_append_time_ms,
                log_start_offset: partition.log_start_offset,
                message: partition.error_message.map(text),
                record_errors: record_errors
                    .map(|error| (error.batch_index, error.batch_index_error_message.map(text)))
                    .collect(),
                current_leader: Some(leader).filter(|(id, _)| *id >= 0),
            });
        }
    }
    produced
}

/// A request's body while it is written: framing grows in one buffer, and each body that is not
/// inlined ends a slice of it.
struct Body {
    flexible: bool,
    framing: BytesMut,
    slices: Vec<Bytes>,
}

impl Body {
    fn new(version: i16, items: usize) -> Body {
        Body {
            flexible: version >= VERSION_FLEXIBLE,
            framing: BytesMut::with_capacity(64 + items * 128),
            slices: Vec::with_capacity(1 + 2 * items),
        }
    }

    fn batch(&mut self, item: &ProduceItem) {
        let size = HEADER_LEN + item.body.len();
        if self.flexible {
            self.varint(size + 1);
        } else {
            self.framing.put_u32(saturated(size));
        }
        self.framing.put_slice(&item.header);
        if item.body.len() <= INLINE_BYTES_MAX {
            self.framing.put_slice(&item.body);
        } else {
            self.slices.push(self.framing.split().freeze());
            self.slices.push(item.body.clone());
        }
    }

    fn into_slices(mut self) -> Vec<Bytes> {
        self.slices.push(self.framing.freeze());
        self.slices
    }

    fn nullable_text(&mut self, value: Option<&str>) {
        match (value, self.flexible) {
            (Some(value), _) => self.text(value),
            (None, true) => self.varint(0),
            (None, false) => self.framing.put_i16(-1),
        }
    }

    fn text(&mut self, value: &str) {
        if self.flexible {
            self.varint(value.len() + 1);
        } else {
            self.framing
                .put_i16(i16::try_from(value.len()).unwrap_or(i16::MAX));
        }
        self.framing.put_slice(value.as_bytes());
    }

    fn length(&mut self, items: usize) {
        if self.flexible {
            self.varint(items + 1);
        } else {
            self.framing.put_u32(saturated(items));
        }
    }

    fn tags(&mut self) {
        if self.flexible {
            self.framing.put_u8(0);
        }
    }

    fn varint(&mut self, value: usize) {
        let mut rest = saturated(value);
        while rest >= 0x80 {
            // Truncation is the point: seven bits at a time.
            self.framing.put_u8((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.framing.put_u8(rest as u8);
    }
}

/// Sizes that do not fit are refused as a whole where the frame's length is written.
fn saturated(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
