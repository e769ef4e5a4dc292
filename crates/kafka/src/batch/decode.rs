//! From a batch to its records.

use bytes::Bytes;

use super::wire::{Reader, not_negative};
use super::{BatchError, Problem, RawBatch, Record};

/// The least a record takes: its length and six fields of one byte.
const RECORD_LEN_LEAST: usize = 7;
/// The least a record header takes: two lengths.
const HEADER_LEN_LEAST: usize = 2;

/// How much a decoder may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The memory in bytes that the decoded form may take: decompressed content and the records
    /// that refer to it.
    pub bytes_max: usize,
}

impl Default for DecodeLimits {
    /// 256 MiB: room for the largest batches in use, compressed as well as text is.
    fn default() -> Self {
        DecodeLimits {
            bytes_max: 256 << 20,
        }
    }
}

/// What is left of [`DecodeLimits`] while decoding.
pub(super) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    pub(super) fn new(limits: DecodeLimits) -> Self {
        let limit = limits.bytes_max;
        Budget { limit, left: limit }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Takes the memory of `count` values of type `T`.
    pub(super) fn charge<T>(&mut self, count: usize) -> Result<(), Problem> {
        let bytes = count.saturating_mul(size_of::<T>());
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(Problem::OverLimit { limit: self.limit })?;
        Ok(())
    }
}

/// The records of a batch, control records too. Of an append-time batch every record gets the
/// append time.
///
/// # Errors
/// If the checksum is wrong, the content can't be decompressed within `limits`, a record doesn't
/// parse to its last byte, the number of records isn't the header's, or offsets don't rise within
/// the batch. Without the checksum a batch that is encoded again would bless what was damaged on
/// the way.
pub fn decode(batch: &RawBatch, limits: DecodeLimits) -> Result<Vec<Record>, BatchError> {
    batch.verify_crc()?;
    let base_offset = batch.header().base_offset;
    let mut budget = Budget::new(limits);
    let body = batch
        .compression()
        .decompress(&batch.body(), budget.left())
        .and_then(|body| budget.charge::<u8>(body.len()).map(|()| body))
        .map_err(|problem| problem.at(base_offset, 0))?;
    let mut reader = Reader::new(&body);
    let records = read_records(batch, &mut reader, &mut budget);
    records.map_err(|problem| reader.error(base_offset, problem))
}

fn read_records(
    batch: &RawBatch,
    reader: &mut Reader<'_>,
    budget: &mut Budget,
) -> Result<Vec<Record>, Problem> {
    let count = not_negative("record count", batch.header().record_count)?;
    if count > reader.remaining() / RECORD_LEN_LEAST {
        return Err(Problem::Truncated("records"));
    }
    budget.charge::<Record>(count)?;
    let mut records = Vec::with_capacity(count);
    let mut previous = -1;
    for _ in 0..count {
        let length = not_negative("record length", reader.varint("record length")?)?;
        // A record that says how long it is and is not leaves the reader inside it, where the
        // trouble is.
        let after = reader
            .remaining()
            .checked_sub(length)
            .ok_or(Problem::Truncated("record"))?;
        records.push(read_record(batch, reader, &mut previous, budget)?);
        if reader.remaining() != after {
            return Err(Problem::RecordLength { length });
        }
    }
    match reader.remaining() {
        0 => Ok(records),
        left => Err(Problem::Trailing(left)),
    }
}

fn read_record(
    batch: &RawBatch,
    reader: &mut Reader<'_>,
    previous: &mut i64,
    budget: &mut Budget,
) -> Result<Record, Problem> {
    let header = batch.header();
    let _attributes = reader.byte("record attributes")?;
    let timestamp_delta = reader.varlong("timestamp delta")?;
    let delta = reader.varint("offset delta")?;
    check_rise(previous, delta.into(), header.last_offset_delta.into())?;
    Ok(Record {
        offset: header.base_offset + i64::from(delta),
        timestamp: if header.attributes.is_append_time() {
            header.max_timestamp
        } else {
            // As Java's arithmetic, so that every pair of timestamps has a delta.
            header.base_timestamp.wrapping_add(timestamp_delta)
        },
        key: reader.nullable_bytes("key")?,
        value: reader.nullable_bytes("value")?,
        headers: read_headers(reader, budget)?,
    })
}

/// Checks that `offset`, relative or not, is above the `previous` one and not above the `last`.
pub(super) fn check_rise(previous: &mut i64, offset: i64, last: i64) -> Result<(), Problem> {
    if offset <= *previous || offset > last {
        let previous = *previous;
        return Err(Problem::OffsetOrder {
            offset,
            previous,
            last,
        });
    }
    *previous = offset;
    Ok(())
}

fn read_headers(
    reader: &mut Reader<'_>,
    budget: &mut Budget,
) -> Result<Vec<(Bytes, Option<Bytes>)>, Problem> {
    let count = not_negative("header count", reader.varint("header count")?)?;
    if count > reader.remaining() / HEADER_LEN_LEAST {
        return Err(Problem::Truncated("headers"));
    }
    budget.charge::<(Bytes, Option<Bytes>)>(count)?;
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let length = not_negative("header key length", reader.varint("header key")?)?;
        let key = reader.bytes(length, "header key")?;
        headers.push((key, reader.nullable_bytes("header value")?));
    }
    Ok(headers)
}
