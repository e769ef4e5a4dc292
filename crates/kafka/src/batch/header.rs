//! The 61 bytes in front of every batch of magic 2 (Java's `DefaultRecordBatch`).
//!
//! ```text
//!  0 base offset i64      21 attributes i16            43 producer id i64
//!  8 length i32           23 last offset delta i32     51 producer epoch i16
//! 12 leader epoch i32     27 base timestamp i64        53 base sequence i32
//! 16 magic i8             35 max timestamp i64         57 record count i32
//! 17 crc u32 over everything from byte 21              61 records, compressed as one piece
//! ```

use bytes::{Buf, BufMut};

use super::{Compression, Problem};

/// The size of a header in bytes.
pub const HEADER_LEN: usize = 61;
/// The bytes that the length field does not count: itself and the base offset.
pub(super) const LENGTH_END: usize = 12;
/// Where the magic is, in every format there ever was.
pub(super) const MAGIC_AT: usize = 16;
/// Where the checksum is.
pub(super) const CRC_AT: usize = 17;
/// Where the bytes begin that the checksum covers.
pub(super) const CRC_FROM: usize = 21;
/// The least the length field can say.
pub(super) const LENGTH_LEAST: i32 = (HEADER_LEN - LENGTH_END) as i32;

/// A batch's header, checked: counts are not negative, no offset overflows, the codec is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset that deltas are relative to; the first record may lie behind it after
    /// compaction.
    pub base_offset: i64,
    /// The bytes after the length field.
    pub batch_length: i32,
    /// The epoch of the leader that appended the batch; -1 from producers.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything from byte 21 to the end.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: Attributes,
    /// The last offset minus the base offset, as it was before compaction.
    pub last_offset_delta: i32,
    /// What timestamp deltas are relative to; the delete horizon where that flag is set (KIP-534).
    pub base_timestamp: i64,
    /// The greatest timestamp in ms, or the append time of all records; -1 for none.
    pub max_timestamp: i64,
    /// The idempotent producer; -1 for none.
    pub producer_id: i64,
    /// Its epoch; -1 for none.
    pub producer_epoch: i16,
    /// The sequence number of the first record; -1 for none.
    pub base_sequence: i32,
    /// How many records there are; fewer than offsets after compaction, even 0.
    pub record_count: i32,
}

impl BatchHeader {
    /// The offset of the last record there was when the batch was written.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The offset that follows the batch: where to fetch next, whatever records are left in it.
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// Whether there is a record for every offset. Brokers accept nothing else (`LogValidator`,
    /// error 87).
    pub fn is_contiguous(&self) -> bool {
        i64::from(self.last_offset_delta) + 1 == i64::from(self.record_count)
    }

    /// Reads and checks a header whose magic and length are known to be right; the error comes with
    /// the position of the field.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, (usize, Problem)> {
        let mut fields = &bytes[..];
        let base_offset = fields.get_i64();
        let batch_length = fields.get_i32();
        let partition_leader_epoch = fields.get_i32();
        let _magic = fields.get_i8();
        let crc = fields.get_u32();
        let attributes = Attributes::parse(fields.get_i16());
        let header = BatchHeader {
            base_offset,
            batch_length,
            partition_leader_epoch,
            crc,
            attributes: attributes.map_err(|problem| (CRC_FROM, problem))?,
            last_offset_delta: fields.get_i32(),
            base_timestamp: fields.get_i64(),
            max_timestamp: fields.get_i64(),
            producer_id: fields.get_i64(),
            producer_epoch: fields.get_i16(),
            base_sequence: fields.get_i32(),
            record_count: fields.get_i32(),
        };
        header.check()
    }

    fn check(self) -> Result<Self, (usize, Problem)> {
        for (position, field, value) in [
            (0, "base offset", self.base_offset),
            (23, "last offset delta", self.last_offset_delta.into()),
            (57, "record count", self.record_count.into()),
        ] {
            if value < 0 {
                return Err((position, Problem::Negative { field, value }));
            }
        }
        // `next_offset` is the greatest number that is ever derived from a header.
        let offsets = i64::from(self.last_offset_delta) + 1;
        let next_offset = self.base_offset.checked_add(offsets);
        next_offset
            .map(|_| self)
            .ok_or((0, Problem::OffsetOverflow))
    }

    /// The header as it goes over the wire.
    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let mut fields = &mut bytes[..];
        fields.put_i64(self.base_offset);
        fields.put_i32(self.batch_length);
        fields.put_i32(self.partition_leader_epoch);
        fields.put_i8(2);
        fields.put_u32(self.crc);
        fields.put_i16(self.attributes.bits);
        fields.put_i32(self.last_offset_delta);
        fields.put_i64(self.base_timestamp);
        fields.put_i64(self.max_timestamp);
        fields.put_i64(self.producer_id);
        fields.put_i16(self.producer_epoch);
        fields.put_i32(self.base_sequence);
        fields.put_i32(self.record_count);
        bytes
    }
}

/// The attributes of a batch; its codec is known to be one of the five.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    bits: i16,
    compression: Compression,
}

impl Attributes {
    const CODEC: i16 = 0x07;
    const APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    pub(super) fn parse(bits: i16) -> Result<Self, Problem> {
        let codec = (bits & Self::CODEC) as u8;
        let compression = Compression::from_id(codec).ok_or(Problem::Codec(codec))?;
        Ok(Attributes { bits, compression })
    }

    /// How the records are compressed.
    pub fn compression(self) -> Compression {
        self.compression
    }

    /// Whether all records have the header's max timestamp, set by the broker (`LogAppendTime`).
    pub fn is_append_time(self) -> bool {
        self.bits & Self::APPEND_TIME != 0
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(self) -> bool {
        self.bits & Self::TRANSACTIONAL != 0
    }

    /// Whether the records are control records: for clients to act on, never to hand out.
    pub fn is_control(self) -> bool {
        self.bits & Self::CONTROL != 0
    }

    /// Whether the base timestamp is a delete horizon, set by the log cleaner (KIP-534). Deltas
    /// still add up with it.
    pub fn has_delete_horizon(self) -> bool {
        self.bits & Self::DELETE_HORIZON != 0
    }
}

impl From<Compression> for Attributes {
    fn from(compression: Compression) -> Self {
        Attributes {
            bits: compression.id().into(),
            compression,
        }
    }
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x}", self.bits)
    }
}
