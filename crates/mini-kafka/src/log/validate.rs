//! What a broker accepts on Produce (`LogValidator`, `UnifiedLog.append`, `ProduceRequest`), in its
//! order.

use bytes::Bytes;
use kafka_protocol::ResponseError::{
    self, CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge, RecordListTooLarge,
    UnsupportedCompressionType,
};

use super::batch::{Batch, HEADER_BYTES, Header, LENGTH_END, NONE, crc};
use super::compression;
use super::records::Records;
use crate::refusal::Refusal;

/// The smallest batch length that a log can walk over (`Records`, magic 0).
const LENGTH_MIN: i32 = 14;
const ZSTD: u8 = 4;
const MAGIC_AT: usize = 16;

/// The topic's settings that decide.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// `max.message.bytes`.
    pub batch_bytes_max: i64,
    /// `segment.bytes`.
    pub segment_bytes: i64,
    /// `cleanup.policy` contains `compact`.
    pub compacted: bool,
    /// `message.timestamp.type` is `LogAppendTime`.
    pub append_time: bool,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// The codec of `compression.type`; nothing for `producer`.
    pub codec: Option<u8>,
}

/// The one batch that `records` must hold, without the bytes of a cut one behind it, which are
/// dropped. Shape and codec are checked; size, checksum and records not yet.
pub(crate) fn only_batch(records: Option<&Bytes>, version: i16) -> Result<Bytes, Refusal> {
    let records = records.ok_or_else(|| invalid("there are no records"))?;
    let size = next_batch(records)?.ok_or_else(|| invalid("there is no record batch"))?;
    if records[MAGIC_AT] != 2 {
        return Err(invalid("the batch's magic is not 2"));
    }
    if Header::parse(records).is_some_and(|h| h.codec() == ZSTD) && version < 7 {
        return Err(UnsupportedCompressionType.into());
    }
    if next_batch(&records[size..])?.is_some() {
        return Err(invalid("there is more than one record batch"));
    }
    Ok(records.slice(..size))
}

/// The size of the batch at the start of `bytes`, if all of it is there
/// (`ByteBufferLogInputStream`).
fn next_batch(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
    let Some(length) = bytes
        .get(LENGTH_END - 4..LENGTH_END)
        .and_then(|l| l.first_chunk::<4>())
    else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    if length < LENGTH_MIN {
        return Err(Refusal::new(
            CorruptMessage,
            "the batch's length is below the minimum",
        ));
    }
    let size = LENGTH_END + length as usize;
    match bytes.get(MAGIC_AT) {
        Some(3..) => Err(Refusal::new(CorruptMessage, "the batch's magic is unknown")),
        Some(_) if size <= bytes.len() => Ok(Some(size)),
        _ => Ok(None),
    }
}

/// The batch as it will be stored at `offset`; `now` is the broker's clock (ms).
pub(crate) fn validate(
    sent: &Bytes,
    rules: &Rules,
    offset: i64,
    leader_epoch: i32,
    now: i64,
) -> Result<Batch, Refusal> {
    let header = check_header(sent, rules)?;
    let body = &sent[HEADER_BYTES..];
    let inflated = compression::decompress(header.codec(), body)
        .map_err(|error| invalid(format!("the body does not decompress: {error}")))?;
    let newest = check_records(&header, &inflated, rules, now)?;
    let mut stored = header;
    stored.base_offset = offset;
    stored.leader_epoch = leader_epoch;
    stored.max_timestamp = if rules.append_time { now } else { newest };
    stored.set_append_time(rules.append_time);
    let batch = match rules.codec {
        Some(codec) if codec != header.codec() => {
            stored.set_codec(codec);
            let packed = compression::compress(codec, &inflated)
                .map_err(|_| Refusal::from(ResponseError::UnknownServerError))?;
            Batch::build(stored, &packed)
        }
        _ => Batch::with_header(sent, stored),
    };
    check_size(batch.bytes.len(), rules)?;
    if batch.bytes.len() as i64 > rules.segment_bytes {
        return Err(Refusal::new(
            RecordListTooLarge,
            "the batch is larger than segment.bytes",
        ));
    }
    Ok(batch)
}

fn check_header(sent: &Bytes, rules: &Rules) -> Result<Header, Refusal> {
    let short = || Refusal::new(CorruptMessage, "the batch is shorter than a header");
    let header = Header::parse(sent).ok_or_else(short)?;
    if header.base_offset != 0 {
        return Err(invalid(format!(
            "the base offset is {}, not 0",
            header.base_offset
        )));
    }
    check_size(sent.len(), rules)?;
    if crc(sent) != header.crc {
        return Err(Refusal::new(
            CorruptMessage,
            "the batch's checksum does not match",
        ));
    }
    if header.count <= 0 || i64::from(header.last_offset_delta) + 1 != i64::from(header.count) {
        return Err(invalid(format!(
            "count {} does not fit last offset delta {}",
            header.count, header.last_offset_delta
        )));
    }
    if header.is_control() {
        return Err(invalid("clients may not write control batches"));
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return Err(invalid("a producer id needs a sequence"));
    }
    Ok(header)
}

fn check_size(bytes: usize, rules: &Rules) -> Result<(), Refusal> {
    if bytes as i64 <= rules.batch_bytes_max {
        return Ok(());
    }
    let limit = rules.batch_bytes_max;
    Err(Refusal::new(
        MessageTooLarge,
        format!("{bytes} bytes where {limit} are allowed"),
    ))
}

/// Reads every record, and answers the largest timestamp.
fn check_records(header: &Header, body: &[u8], rules: &Rules, now: i64) -> Result<i64, Refusal> {
    let (mut count, mut newest, mut in_order) = (0, NONE, true);
    let (mut keyless, mut untimely) = (Vec::new(), Vec::new());
    for record in Records::new(body) {
        let record = record.map_err(|error| invalid(error.to_string()))?;
        in_order &= record.offset_delta == count;
        let timestamp = if header.is_append_time() {
            header.max_timestamp
        } else {
            header.base_timestamp.wrapping_add(record.timestamp_delta)
        };
        if rules.compacted && record.key.is_none() {
            keyless.push(count);
        }
        if !rules.append_time && timestamp != NONE {
            if !rules.allows_timestamp(timestamp, now) {
                untimely.push(count);
            }
        } else if header.is_append_time() {
            return Err(Refusal::new(
                InvalidTimestamp,
                "clients may not set append time",
            ));
        }
        newest = newest.max(timestamp);
        count += 1;
    }
    if count != header.count {
        return Err(invalid(format!(
            "{count} records where the header says {}",
            header.count
        )));
    }
    for (records, code, message) in [
        (keyless, InvalidRecord, "a compacted topic needs keys"),
        (
            untimely,
            InvalidTimestamp,
            "a timestamp is out of the topic's range",
        ),
    ] {
        if !records.is_empty() {
            return Err(Refusal {
                code,
                message: Some(message.to_owned()),
                records,
            });
        }
    }
    // The broker rebuilds such a batch and trips over its own count, but looks only inside
    // compressed ones.
    let target_codec = rules.codec.unwrap_or(header.codec());
    if !in_order && (header.codec() != 0 || target_codec != 0) {
        return Err(ResponseError::UnknownServerError.into());
    }
    Ok(newest)
}

impl Rules {
    fn allows_timestamp(&self, timestamp: i64, now: i64) -> bool {
        now.saturating_sub(timestamp) <= self.before_max_ms
            && timestamp.saturating_sub(now) <= self.after_max_ms
    }
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(InvalidRecord, message)
}
