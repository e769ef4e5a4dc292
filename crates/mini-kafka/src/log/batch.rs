//! The 61-byte header of a record batch (magic 2), and batches as the log keeps them.

use bytes::{BufMut, Bytes, BytesMut};

use super::records;

/// Bytes before the first record.
pub(crate) const HEADER_BYTES: usize = 61;
/// Bytes before those that `batchLength` counts.
pub(crate) const LENGTH_END: usize = 12;
/// Where the bytes that the checksum covers begin.
pub(crate) const CRC_START: usize = 21;
/// What stands for "no producer", "no sequence" and "no timestamp".
pub(crate) const NONE: i64 = -1;

const APPEND_TIME_BIT: i16 = 1 << 3;
const TRANSACTIONAL_BIT: i16 = 1 << 4;
const CONTROL_BIT: i16 = 1 << 5;

/// All fields of the header, in the order of the wire (`DefaultRecordBatch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub base_offset: i64,
    pub batch_length: i32,
    pub leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub count: i32,
}

impl Header {
    /// Reads the header; nothing if `bytes` is shorter than one.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let mut rest: &[u8] = header;
        let mut take = |n: usize| {
            let (field, after) = rest.split_at(n);
            rest = after;
            field
                .iter()
                .fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        Some(Header {
            base_offset: take(8) as i64,
            batch_length: take(4) as i32,
            leader_epoch: take(4) as i32,
            magic: take(1) as i8,
            crc: take(4) as u32,
            attributes: take(2) as i16,
            last_offset_delta: take(4) as i32,
            base_timestamp: take(8) as i64,
            max_timestamp: take(8) as i64,
            producer_id: take(8) as i64,
            producer_epoch: take(2) as i16,
            base_sequence: take(4) as i32,
            count: take(4) as i32,
        })
    }

    fn write(&self, to: &mut impl BufMut) {
        to.put_i64(self.base_offset);
        to.put_i32(self.batch_length);
        to.put_i32(self.leader_epoch);
        to.put_i8(self.magic);
        to.put_u32(self.crc);
        to.put_i16(self.attributes);
        to.put_i32(self.last_offset_delta);
        to.put_i64(self.base_timestamp);
        to.put_i64(self.max_timestamp);
        to.put_i64(self.producer_id);
        to.put_i16(self.producer_epoch);
        to.put_i32(self.base_sequence);
        to.put_i32(self.count);
    }

    /// The codec's number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd, 5 to 7 unknown.
    pub fn codec(&self) -> u8 {
        (self.attributes & 7) as u8
    }

    pub fn set_codec(&mut self, codec: u8) {
        self.attributes = self.attributes & !7 | i16::from(codec);
    }

    pub fn is_append_time(&self) -> bool {
        self.attributes & APPEND_TIME_BIT != 0
    }

    pub fn set_append_time(&mut self, on: bool) {
        self.attributes &= !APPEND_TIME_BIT;
        if on {
            self.attributes |= APPEND_TIME_BIT;
        }
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// The offset of the last record, counted by `lastOffsetDelta` (compaction leaves it alone).
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The sequence of the last record; sequences wrap from 2^31-1 to 0.
    pub fn last_sequence(&self) -> i32 {
        self.base_sequence.wrapping_add(self.last_offset_delta) & i32::MAX
    }
}

/// One batch as the log keeps it: the decoded header and all its bytes, header included.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub header: Header,
    pub bytes: Bytes,
}

impl Batch {
    /// Joins a header and a body, with length and checksum made right.
    pub fn build(mut header: Header, body: &[u8]) -> Batch {
        header.batch_length = (HEADER_BYTES - LENGTH_END + body.len()) as i32;
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + body.len());
        header.write(&mut bytes);
        bytes.put_slice(body);
        header.crc = crc(&bytes);
        bytes[CRC_START - 4..CRC_START].copy_from_slice(&header.crc.to_be_bytes());
        Batch {
            header,
            bytes: bytes.freeze(),
        }
    }

    /// The sent bytes under another header; the checksum is made anew only if `header` differs from
    /// what was sent in a field it covers, as the broker does.
    pub fn with_header(sent: &Bytes, header: Header) -> Batch {
        let mut header_bytes = BytesMut::with_capacity(sent.len());
        header.write(&mut header_bytes);
        header_bytes.put_slice(&sent[HEADER_BYTES..]);
        let mut header = header;
        if header_bytes[CRC_START..HEADER_BYTES] != sent[CRC_START..HEADER_BYTES] {
            header.crc = crc(&header_bytes);
            header_bytes[CRC_START - 4..CRC_START].copy_from_slice(&header.crc.to_be_bytes());
        }
        Batch {
            header,
            bytes: header_bytes.freeze(),
        }
    }

    /// The end of a transaction: one control record, 78 bytes (`EndTransactionMarker`).
    pub fn marker(marker: Marker, offset: i64, leader_epoch: i32, now: i64) -> Batch {
        let mut key = BytesMut::new();
        key.put_i16(0);
        key.put_i16(i16::from(marker.committed));
        let mut value = BytesMut::new();
        value.put_i16(0);
        value.put_i32(marker.coordinator_epoch);
        let header = Header {
            base_offset: offset,
            batch_length: 0,
            leader_epoch,
            magic: 2,
            crc: 0,
            attributes: TRANSACTIONAL_BIT | CONTROL_BIT,
            last_offset_delta: 0,
            base_timestamp: now,
            max_timestamp: now,
            producer_id: marker.producer_id,
            producer_epoch: marker.producer_epoch,
            base_sequence: NONE as i32,
            count: 1,
        };
        Batch::build(header, &records::encode(0, 0, Some(&key), Some(&value)))
    }

    /// What a control batch says; nothing for other batches and other control records.
    pub fn as_marker(&self) -> Option<Marker> {
        if !self.header.is_control() {
            return None;
        }
        let record = records::Records::new(self.body()).next()?.ok()?;
        let committed = match record.key?.get(2..4)? {
            [0, 0] => false,
            [0, 1] => true,
            _ => return None,
        };
        let epoch = record.value?.get(2..6)?.first_chunk::<4>()?;
        Some(Marker {
            producer_id: self.header.producer_id,
            producer_epoch: self.header.producer_epoch,
            coordinator_epoch: i32::from_be_bytes(*epoch),
            committed,
        })
    }

    /// The records' bytes, compressed or not.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }
}

/// What ends a transaction in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub coordinator_epoch: i32,
    pub committed: bool,
}

/// CRC-32C of everything that the batch's checksum covers.
pub(crate) fn crc(batch: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &batch[CRC_START..]) as u32
}
