//! Message sets of magic 0 and 1: what logs hold that were written before Kafka 0.11.
//!
//! ```text
//!  0 offset i64    12 crc u32    17 attributes i8      key
//!  8 size i32      16 magic i8   [18 timestamp i64]    value
//! ```
//!
//! Keys and values stand behind an i32 length, -1 for null; the timestamp came with magic 1
//! (KIP-32). A compressed message wraps a whole message set in its value and has the offset of the
//! last one in it. Inner offsets are absolute in magic 0 and relative in magic 1 (KIP-31).

use bytes::Bytes;

use super::crc::crc32;
use super::decode::{Budget, check_rise};
use super::wire::{Reader, not_negative};
use super::{BatchError, Compression, DecodeLimits, Problem, Record};

/// Where the checksum is that covers everything behind it.
const CRC_AT: usize = 12;
const APPEND_TIME: u8 = 0x08;
const CODEC: u8 = 0x07;

/// A message of magic 0 or 1, which wraps others if it is compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyMessage {
    offset: i64,
    magic: i8,
    bytes: Bytes,
}

impl LegacyMessage {
    /// The least the size field of magic 0 can say.
    pub(super) const LENGTH_LEAST_0: i32 = 14;
    /// The least the size field of magic 1 can say.
    pub(super) const LENGTH_LEAST_1: i32 = 22;

    pub(super) fn new(offset: i64, magic: i8, bytes: Bytes) -> Result<Self, Problem> {
        match offset {
            0..i64::MAX => Ok(LegacyMessage {
                offset,
                magic,
                bytes,
            }),
            i64::MAX => Err(Problem::OffsetOverflow),
            _ => Err(Problem::Negative {
                field: "offset",
                value: offset,
            }),
        }
    }

    /// The offset of the message, or of the last one it wraps.
    pub fn last_offset(&self) -> i64 {
        self.offset
    }

    /// The offset that follows.
    pub fn next_offset(&self) -> i64 {
        self.offset + 1
    }

    /// The whole message.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Compares the stored checksum with the bytes.
    ///
    /// # Errors
    /// [`Problem::Crc`]
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        check_crc(&self.bytes).map_err(|problem| problem.at(self.offset, 0))
    }
}

/// The records of a message: itself, or those it wraps. Magic 0 has no timestamps: -1.
///
/// # Errors
/// As [`decode`](super::decode).
pub fn decode_legacy(
    message: &LegacyMessage,
    limits: DecodeLimits,
) -> Result<Vec<Record>, BatchError> {
    message.verify_crc()?;
    let mut reader = Reader::new(&message.bytes);
    let outer =
        Message::read(&mut reader).map_err(|problem| reader.error(message.offset, problem))?;
    if outer.compression == Compression::None {
        return Ok(vec![outer.into_record()]);
    }
    let mut budget = Budget::new(limits);
    let content = outer
        .content(&mut budget)
        .map_err(|problem| problem.at(message.offset, 0))?;
    let mut reader = Reader::new(&content);
    read_wrapped(&outer, &mut reader, &mut budget)
        .map_err(|problem| reader.error(message.offset, problem))
}

fn read_wrapped(
    outer: &Message,
    reader: &mut Reader<'_>,
    budget: &mut Budget,
) -> Result<Vec<Record>, Problem> {
    let mut records = Vec::new();
    let mut last = -1;
    while reader.remaining() > 0 {
        let inner = Message::read(reader)?;
        if inner.magic != outer.magic {
            return Err(Problem::Magic(inner.magic));
        }
        if inner.compression != Compression::None {
            return Err(Problem::Wrapper);
        }
        check_rise(&mut last, inner.offset, outer.offset)?;
        budget.charge::<Record>(1)?;
        let mut record = inner.into_record();
        if outer.append_time {
            record.timestamp = outer.timestamp;
        }
        records.push(record);
    }
    if records.is_empty() {
        return Err(Problem::Wrapper);
    }
    if outer.magic == 1 {
        // The wrapper's offset is the last message's, which tells what the others are relative to.
        let base = outer.offset - last;
        for record in &mut records {
            record.offset += base;
        }
    }
    Ok(records)
}

/// A message's fields.
struct Message {
    offset: i64,
    magic: i8,
    compression: Compression,
    append_time: bool,
    timestamp: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
}

impl Message {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
        let offset = i64::from_be_bytes(reader.fixed("offset")?);
        let length = not_negative(
            "message size",
            i32::from_be_bytes(reader.fixed("message size")?),
        )?;
        let mut reader = reader.part(length, "message")?;
        let _crc: [u8; 4] = reader.fixed("checksum")?;
        let magic = reader.byte("magic")? as i8;
        let attributes = reader.byte("attributes")?;
        let codec = attributes & CODEC;
        let message = Message {
            offset,
            magic,
            compression: Compression::from_id(codec).ok_or(Problem::Codec(codec))?,
            append_time: magic == 1 && attributes & APPEND_TIME != 0,
            timestamp: match magic {
                0 => -1,
                1 => i64::from_be_bytes(reader.fixed("timestamp")?),
                _ => return Err(Problem::Magic(magic)),
            },
            key: reader.nullable_bytes_fixed("key")?,
            value: reader.nullable_bytes_fixed("value")?,
        };
        match reader.remaining() {
            0 => Ok(message),
            left => Err(Problem::Trailing(left)),
        }
    }

    /// The message set that a compressed message wraps.
    fn content(&self, budget: &mut Budget) -> Result<Bytes, Problem> {
        let packed = self.value.as_ref().ok_or(Problem::Wrapper)?;
        let content = self.compression.decompress(packed, budget.left())?;
        budget.charge::<u8>(content.len())?;
        Ok(content)
    }

    fn into_record(self) -> Record {
        Record {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key,
            value: self.value,
            headers: Vec::new(),
        }
    }
}

fn check_crc(message: &[u8]) -> Result<(), Problem> {
    let (stored, covered) = message
        .get(CRC_AT..)
        .and_then(|rest| rest.split_first_chunk())
        .ok_or(Problem::Truncated("checksum"))?;
    let (stored, computed) = (u32::from_be_bytes(*stored), crc32(covered));
    if stored != computed {
        return Err(Problem::Crc { stored, computed });
    }
    Ok(())
}
