//! Source batches for tests, written by hand so that no encoder of ours vouches for itself.

use bytes::{BufMut, Bytes, BytesMut};
use twinlog_kafka::batch::{Entry, RawBatch, Record, decode, walk};

pub const APPEND_TIME: i16 = 0x08;
pub const TRANSACTIONAL: i16 = 0x10;
pub const CONTROL: i16 = 0x20;

/// A batch whose records stand at `offsets`, each with its offset as value.
pub fn batch(offsets: &[i64], end: i64, attributes: i16, producer_id: i64) -> Bytes {
    let base = offsets.first().copied().unwrap_or(end - 1);
    batch_from(base, offsets, end, attributes, producer_id)
}

/// As [`batch`], with a base offset that compaction left before the first record.
pub fn batch_from(
    base: i64,
    offsets: &[i64],
    end: i64,
    attributes: i16,
    producer_id: i64,
) -> Bytes {
    let mut body = BytesMut::new();
    for offset in offsets {
        put_record(
            &mut body,
            offset - base,
            None,
            offset.to_string().as_bytes(),
        );
    }
    whole(base, end, attributes, producer_id, offsets.len(), &body)
}

/// A batch of the records `base..end`.
pub fn data(base: i64, end: i64) -> Bytes {
    batch(&(base..end).collect::<Vec<_>>(), end, 0, -1)
}

/// The end of a transaction.
pub fn marker(offset: i64, producer_id: i64, commit: bool) -> Bytes {
    let mut body = BytesMut::new();
    put_record(&mut body, 0, Some(&[0, 0, 0, u8::from(commit)]), &[0; 6]);
    whole(
        offset,
        offset + 1,
        TRANSACTIONAL | CONTROL,
        producer_id,
        1,
        &body,
    )
}

/// A batch with one record of `size` bytes.
pub fn large(offset: i64, size: usize) -> Bytes {
    let mut body = BytesMut::new();
    put_record(&mut body, 0, None, &vec![b'x'; size]);
    whole(offset, offset + 1, 0, -1, 1, &body)
}

/// The batch that `bytes` hold.
pub fn raw(bytes: Bytes) -> RawBatch {
    match walk(bytes).next() {
        Some(Ok(Entry::Batch(batch))) => batch,
        other => panic!("expected a batch, got {other:?}"),
    }
}

/// The values of the records, which are their offsets on the source.
pub fn values(batch: &RawBatch) -> Vec<i64> {
    let number = |record: &Record| {
        let value = record.value.as_deref().unwrap_or_default();
        std::str::from_utf8(value).unwrap().parse().unwrap()
    };
    decode(batch, Default::default())
        .unwrap()
        .iter()
        .map(number)
        .collect()
}

fn whole(base: i64, end: i64, attributes: i16, producer: i64, count: usize, body: &[u8]) -> Bytes {
    let mut checked = BytesMut::new();
    checked.put_i16(attributes);
    checked.put_i32((end - base - 1) as i32);
    checked.put_i64(1_000);
    checked.put_i64(2_000);
    checked.put_i64(producer);
    checked.put_i16(0);
    checked.put_i32(0);
    checked.put_i32(count as i32);
    checked.put_slice(body);
    let mut bytes = BytesMut::new();
    bytes.put_i64(base);
    bytes.put_i32(checked.len() as i32 + 9);
    bytes.put_i32(7);
    bytes.put_i8(2);
    bytes.put_u32(crc32c(&checked));
    bytes.put_slice(&checked);
    bytes.freeze()
}

fn put_record(body: &mut BytesMut, delta: i64, key: Option<&[u8]>, value: &[u8]) {
    let mut record = BytesMut::new();
    record.put_u8(0);
    put_varint(&mut record, 0);
    put_varint(&mut record, delta);
    put_varint(&mut record, key.map_or(-1, |key| key.len() as i64));
    record.put_slice(key.unwrap_or_default());
    put_varint(&mut record, value.len() as i64);
    record.put_slice(value);
    put_varint(&mut record, 0);
    put_varint(body, record.len() as i64);
    body.put_slice(&record);
}

fn put_varint(out: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest > 0x7f {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}
