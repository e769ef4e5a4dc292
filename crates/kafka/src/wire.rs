//! The only module that knows the codec crate: its message types, and the frames they travel in.
//!
//! Everybody else names messages as `wire::FetchRequest` and so on, so that a new release of the
//! codec, or another one, is a change of this file. Record batches never pass through the codec: to
//! it they are opaque bytes.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, HeaderVersion};

pub use kafka_protocol::messages::*;
pub use kafka_protocol::protocol::{Message, Request, StrBytes, VersionRange};
pub use uuid::Uuid;

use twinlog_core::ids::{Topic, TopicId};

/// An API of the protocol by its number; prints its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Api(pub i16);

impl Api {
    /// The API of a request type.
    pub const fn of<R: Request>() -> Api {
        Api(R::KEY)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ApiKey::try_from(self.0) {
            Ok(key) => write!(f, "{key:?}"),
            Err(()) => write!(f, "API {}", self.0),
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How long the broker asks the client to stay silent (KIP-219), for answers that say so.
pub trait Throttle {
    /// Milliseconds; 0 means not throttled.
    fn throttle_time_ms(&self) -> i32;
}

macro_rules! throttled {
    ($($response:ident)*) => {
        $(impl Throttle for $response {
            fn throttle_time_ms(&self) -> i32 {
                self.throttle_time_ms
            }
        })*
    };
}

throttled! {
    AddOffsetsToTxnResponse AddPartitionsToTxnResponse AlterConfigsResponse ApiVersionsResponse
    ConsumerGroupDescribeResponse CreateAclsResponse CreatePartitionsResponse
    CreateTopicsResponse DeleteAclsResponse DeleteGroupsResponse DeleteRecordsResponse
    DeleteTopicsResponse DescribeAclsResponse DescribeClusterResponse DescribeConfigsResponse
    DescribeGroupsResponse DescribeProducersResponse EndTxnResponse FetchResponse
    FindCoordinatorResponse HeartbeatResponse IncrementalAlterConfigsResponse
    InitProducerIdResponse JoinGroupResponse LeaveGroupResponse ListGroupsResponse
    ListOffsetsResponse MetadataResponse OffsetCommitResponse OffsetDeleteResponse
    OffsetFetchResponse OffsetForLeaderEpochResponse ProduceResponse SyncGroupResponse
    TxnOffsetCommitResponse
}

/// Text for a message field.
pub fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

/// A topic's name for a message field.
pub fn topic_name(topic: &Topic) -> TopicName {
    TopicName(text(topic))
}

/// A topic id for a message field.
pub fn uuid(id: TopicId) -> Uuid {
    Uuid::from_bytes(id.0)
}

/// A topic id from a message field.
pub fn topic_id(id: Uuid) -> TopicId {
    TopicId(*id.as_bytes())
}

/// Bytes before a request's body: length (filled in by [`finish_frame`]) and header.
///
/// The header is written by hand, because it is the same few bytes for each request: API key,
/// version, correlation id, client id, and in flexible versions (KIP-482) an empty list of tagged
/// fields.
pub(crate) fn begin_frame(
    api: Api,
    version: i16,
    header_version: i16,
    correlation_id: i32,
    client_id: &str,
) -> BytesMut {
    let mut frame = BytesMut::with_capacity(64 + client_id.len());
    frame.put_i32(0);
    frame.put_i16(api.0);
    frame.put_i16(version);
    frame.put_i32(correlation_id);
    frame.put_i16(i16::try_from(client_id.len()).unwrap_or(0));
    if i16::try_from(client_id.len()).is_ok() {
        frame.put_slice(client_id.as_bytes());
    }
    if header_version >= 2 {
        frame.put_u8(0);
    }
    frame
}

/// Writes the length of everything that follows it into a frame whose first chunk is `head`.
pub(crate) fn finish_frame(head: &mut BytesMut, rest: usize) -> Option<()> {
    let length = i32::try_from(head.len() - 4 + rest).ok()?;
    head[..4].copy_from_slice(&length.to_be_bytes());
    Some(())
}

/// The body of `request` in `version`.
pub(crate) fn encode_body<R: Request>(request: &R, version: i16) -> Result<Bytes, String> {
    let size = request
        .compute_size(version)
        .map_err(|error| format!("{error:#}"))?;
    let mut body = BytesMut::with_capacity(size);
    request
        .encode(&mut body, version)
        .map_err(|error| format!("{error:#}"))?;
    Ok(body.freeze())
}

/// The response of a request of type `R` sent in `version`. `frame` starts behind the correlation
/// id.
///
/// Decoding from [`Bytes`] is zero-copy: record fields are slices of `frame`.
pub(crate) fn decode_response<R: Request>(
    mut frame: Bytes,
    version: i16,
) -> Result<R::Response, String> {
    if <R::Response as HeaderVersion>::header_version(version) >= 1 {
        skip_tagged_fields(&mut frame)?;
    }
    let response =
        R::Response::decode(&mut frame, version).map_err(|error| format!("{error:#}"))?;
    match frame.remaining() {
        0 => Ok(response),
        left => Err(format!("{left} bytes are left behind the answer")),
    }
}

/// Skips the tagged fields of a flexible header; brokers send none today.
fn skip_tagged_fields(frame: &mut Bytes) -> Result<(), String> {
    for _ in 0..unsigned_varint(frame)? {
        unsigned_varint(frame)?;
        let size = unsigned_varint(frame)? as usize;
        if frame.remaining() < size {
            return Err("a tagged field is cut".to_owned());
        }
        frame.advance(size);
    }
    Ok(())
}

fn unsigned_varint(frame: &mut Bytes) -> Result<u32, String> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        if !frame.has_remaining() {
            return Err("the answer is cut".to_owned());
        }
        let byte = frame.get_u8();
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a varint is longer than five bytes".to_owned())
}
