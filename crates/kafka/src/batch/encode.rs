//! From records to batches, as Java's producer makes them.

use bytes::Bytes;

use super::crc::crc32c;
use super::header::{CRC_FROM, HEADER_LEN, LENGTH_END};
use super::wire::{put_varint, put_varlong, varint_len, varlong_len};
use super::{Attributes, BatchHeader, Compression, RawBatch, Record};

/// No batch is larger: its length is an `i32`.
const SIZE_MAX: usize = i32::MAX as usize;

/// A record that fits no batch of the size allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record at offset {offset} takes a batch of {size} bytes where {limit} are allowed")]
pub struct TooLarge {
    /// The record's offset.
    pub offset: i64,
    /// The size in bytes, compressed and with header, of a batch that holds this record alone.
    pub size: usize,
    /// What is allowed.
    pub limit: usize,
}

/// One batch of all `records`; `None` if there are none, because brokers refuse empty batches.
///
/// Offsets count from 0, whatever the records say; timestamps are kept, as create times. There is
/// no producer: that is for [`restamp`](super::restamp) to set.
///
/// # Errors
/// If the batch would be larger than a batch can be; `offset` is the first record's.
pub fn encode(records: &[Record], compression: Compression) -> Result<Option<RawBatch>, TooLarge> {
    let Some(first) = records.first() else {
        return Ok(None);
    };
    encode_within(records, compression, SIZE_MAX)
        .map(Some)
        .map_err(|size| TooLarge {
            offset: first.offset,
            size,
            limit: SIZE_MAX,
        })
}

/// As few batches as reasonable that hold all `records` in order, each as [`encode`] makes them and
/// none larger than `size_max` bytes, compressed and with header.
///
/// What compression makes of a part is only known afterwards: when something comes out too large it
/// is cut into parts of about equal size, and so on.
///
/// # Errors
/// The first record that does not fit alone.
pub fn encode_split(
    records: &[Record],
    compression: Compression,
    size_max: usize,
) -> Result<Vec<RawBatch>, TooLarge> {
    let mut batches = Vec::new();
    if !records.is_empty() {
        split_into(records, compression, size_max.min(SIZE_MAX), &mut batches)?;
    }
    Ok(batches)
}

fn split_into(
    records: &[Record],
    compression: Compression,
    limit: usize,
    batches: &mut Vec<RawBatch>,
) -> Result<(), TooLarge> {
    let size = match encode_within(records, compression, limit) {
        Ok(batch) => {
            batches.push(batch);
            return Ok(());
        }
        Err(size) => size,
    };
    if let [Record { offset, .. }] = *records {
        return Err(TooLarge {
            offset,
            size,
            limit,
        });
    }
    // Parts compress a little worse than the whole, so they get a sixteenth less than what is
    // allowed.
    let parts = size
        .div_ceil((limit - limit / 16).max(1))
        .clamp(2, records.len());
    for share in shares(records, parts) {
        split_into(share, compression, limit, batches)?;
    }
    Ok(())
}

/// Cuts `records` into `parts` shares of about the same size, none empty; there must be as many
/// records as shares.
fn shares(mut records: &[Record], parts: usize) -> Vec<&[Record]> {
    let mut weight_left: usize = records.iter().map(weight).sum();
    let mut shares = Vec::with_capacity(parts);
    for parts_left in (1..=parts).rev() {
        let (mut count, mut taken) = (0, 0);
        // Every other share gets at least one record.
        for record in &records[..records.len() + 1 - parts_left] {
            let weight = weight(record);
            if count > 0 && taken + weight > weight_left / parts_left {
                break;
            }
            count += 1;
            taken += weight;
        }
        weight_left -= taken;
        let (share, rest) = records.split_at(count);
        shares.push(share);
        records = rest;
    }
    shares
}

/// About what a record takes uncompressed.
fn weight(record: &Record) -> usize {
    let content = content_len(record, 0, 0);
    content + varint_len(content as i32)
}

/// The batch, or the size it would have had.
fn encode_within(
    records: &[Record],
    compression: Compression,
    limit: usize,
) -> Result<RawBatch, usize> {
    let base_timestamp = records.first().map_or(-1, |record| record.timestamp);
    let lengths = |(delta, record): (usize, &Record)| {
        let length = content_len(
            record,
            record.timestamp.wrapping_sub(base_timestamp),
            delta as i32,
        );
        varint_len(length as i32) + length
    };
    let content_len: usize = records.iter().enumerate().map(lengths).sum();
    let uncompressed = HEADER_LEN + content_len;
    // Nothing above 2 GiB can be said with the format's numbers, compressed or not.
    if uncompressed > SIZE_MAX || (compression == Compression::None && uncompressed > limit) {
        return Err(uncompressed);
    }

    let mut bytes = vec![0; HEADER_LEN];
    if compression == Compression::None {
        bytes.reserve_exact(content_len);
        put_records(&mut bytes, records, base_timestamp);
    } else {
        let mut content = Vec::with_capacity(content_len);
        put_records(&mut content, records, base_timestamp);
        compression.compress(&content, &mut bytes);
        bytes.shrink_to_fit();
    }
    if bytes.len() > limit {
        return Err(bytes.len());
    }
    let timestamps = records.iter().map(|record| record.timestamp);
    let header = seal(
        &mut bytes,
        &Sealed {
            compression,
            records: records.len() as i32,
            base_timestamp,
            max_timestamp: timestamps.fold(-1, i64::max),
        },
    );
    Ok(RawBatch::from_parts(header, Bytes::from(bytes)))
}

/// What a header says of records that were written.
pub(super) struct Sealed {
    pub(super) compression: Compression,
    pub(super) records: i32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
}

/// Writes the header into the room before the body, which is at most as long as a batch can be.
pub(super) fn seal(bytes: &mut [u8], sealed: &Sealed) -> BatchHeader {
    let mut header = BatchHeader {
        base_offset: 0,
        batch_length: (bytes.len() - LENGTH_END) as i32,
        partition_leader_epoch: -1,
        crc: 0,
        attributes: Attributes::from(sealed.compression),
        last_offset_delta: sealed.records - 1,
        base_timestamp: sealed.base_timestamp,
        max_timestamp: sealed.max_timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: sealed.records,
    };
    bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    header.crc = crc32c(&bytes[CRC_FROM..]);
    bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    header
}

fn put_records(out: &mut Vec<u8>, records: &[Record], base_timestamp: i64) {
    for (delta, record) in records.iter().enumerate() {
        let (timestamp_delta, delta) =
            (record.timestamp.wrapping_sub(base_timestamp), delta as i32);
        put_varint(out, content_len(record, timestamp_delta, delta) as i32);
        out.push(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, delta);
        put_nullable(out, record.key.as_ref());
        put_nullable(out, record.value.as_ref());
        put_varint(out, record.headers.len() as i32);
        for (key, value) in &record.headers {
            put_nullable(out, Some(key));
            put_nullable(out, value.as_ref());
        }
    }
}

/// What the length field of a record counts.
fn content_len(record: &Record, timestamp_delta: i64, delta: i32) -> usize {
    let headers = record.headers.iter();
    1 + varlong_len(timestamp_delta)
        + varint_len(delta)
        + nullable_len(record.key.as_ref())
        + nullable_len(record.value.as_ref())
        + varint_len(record.headers.len() as i32)
        + headers
            .map(|(key, value)| nullable_len(Some(key)) + nullable_len(value.as_ref()))
            .sum::<usize>()
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&Bytes>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}

fn nullable_len(bytes: Option<&Bytes>) -> usize {
    bytes.map_or(1, |bytes| varint_len(bytes.len() as i32) + bytes.len())
}
