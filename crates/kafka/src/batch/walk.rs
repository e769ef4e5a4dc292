//! From a fetch response's bytes to its batches, without copying or decoding any.

use bytes::Bytes;

use super::crc::crc32c;
use super::header::{CRC_FROM, HEADER_LEN, LENGTH_END, LENGTH_LEAST, MAGIC_AT};
use super::{BatchError, BatchHeader, Compression, LegacyMessage, Problem};

/// Walks over the batches of one partition of a fetch response.
///
/// The walk ends at the end of the bytes, at a batch that is cut off ([`Walk::cut`]), or with the
/// first error: lengths behind it mean nothing.
pub fn walk(records: Bytes) -> Walk {
    Walk {
        rest: records,
        position: 0,
        cut: None,
    }
}

/// One piece of a record set.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A batch of magic 2.
    Batch(RawBatch),
    /// A message of magic 0 or 1, from a log written before Kafka 0.11; compressed ones wrap
    /// others.
    Legacy(LegacyMessage),
}

/// The end of a record set where the broker's limit cut a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where the batch begins, in bytes; 0 if there is nothing else in the record set.
    pub position: usize,
    /// How many of its bytes are there.
    pub present: usize,
    /// Its size in bytes as it claims, if that much is there; what a fetch must allow to get it.
    pub size: Option<usize>,
}

/// The iterator of [`walk`].
#[derive(Debug)]
pub struct Walk {
    rest: Bytes,
    position: usize,
    cut: Option<Cut>,
}

impl Walk {
    /// The batch cut off at the end; known when the iterator has ended.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The next entry, `None` if it is cut.
    fn split_entry(&mut self) -> Result<Option<Entry>, BatchError> {
        let Some(length) = be_i32(&self.rest, 8) else {
            return Ok(self.set_cut(None));
        };
        let offset = be_i64(&self.rest);
        let check_length = |least: i32| {
            if length < least {
                return Err(Problem::Length { length, least }.at(offset, self.position + 8));
            }
            Ok(LENGTH_END + length.unsigned_abs() as usize)
        };
        let size = check_length(LegacyMessage::LENGTH_LEAST_0)?;
        let Some(magic) = self.rest.get(MAGIC_AT).map(|byte| *byte as i8) else {
            return Ok(self.set_cut(Some(size)));
        };
        check_length(match magic {
            0 => LegacyMessage::LENGTH_LEAST_0,
            1 => LegacyMessage::LENGTH_LEAST_1,
            2 => LENGTH_LEAST,
            _ => return Err(Problem::Magic(magic).at(offset, self.position + MAGIC_AT)),
        })?;
        if self.rest.len() < size {
            return Ok(self.set_cut(Some(size)));
        }

        let bytes = self.rest.split_to(size);
        let position = self.position;
        self.position += size;
        if magic < 2 {
            let message = LegacyMessage::new(offset, magic, bytes);
            return message
                .map(|message| Some(Entry::Legacy(message)))
                .map_err(|problem| problem.at(offset, position));
        }
        RawBatch::new(bytes)
            .map(|batch| Some(Entry::Batch(batch)))
            .map_err(|(at, problem)| problem.at(offset, position + at))
    }

    fn set_cut(&mut self, size: Option<usize>) -> Option<Entry> {
        self.cut = Some(Cut {
            position: self.position,
            present: self.rest.len(),
            size,
        });
        None
    }
}

impl Iterator for Walk {
    type Item = Result<Entry, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.split_entry().transpose();
        if !matches!(entry, Some(Ok(_))) {
            self.rest = Bytes::new();
        }
        entry
    }
}

impl std::iter::FusedIterator for Walk {}

/// A whole batch of magic 2 as it lies in the log: its header decoded, its records not.
#[derive(Clone, PartialEq, Eq)]
pub struct RawBatch {
    header: BatchHeader,
    bytes: Bytes,
}

impl RawBatch {
    /// `bytes` must have magic 2 and be as long as their length field says.
    pub(super) fn new(bytes: Bytes) -> Result<Self, (usize, Problem)> {
        let fixed = bytes
            .first_chunk::<HEADER_LEN>()
            .ok_or((0, Problem::Truncated("header")))?;
        let header = BatchHeader::parse(fixed)?;
        Ok(RawBatch { header, bytes })
    }

    /// `header` must be what `bytes` begin with.
    pub(super) fn from_parts(header: BatchHeader, bytes: Bytes) -> Self {
        debug_assert_eq!(bytes.get(..HEADER_LEN), Some(&header.to_bytes()[..]));
        RawBatch { header, bytes }
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The records, compressed as they are: everything behind the header.
    pub fn body(&self) -> Bytes {
        self.bytes.slice(HEADER_LEN..)
    }

    /// The size in bytes, header included: what `max.message.bytes` limits.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// See [`BatchHeader::last_offset`].
    pub fn last_offset(&self) -> i64 {
        self.header.last_offset()
    }

    /// See [`BatchHeader::next_offset`].
    pub fn next_offset(&self) -> i64 {
        self.header.next_offset()
    }

    /// See [`BatchHeader::is_contiguous`].
    pub fn is_contiguous(&self) -> bool {
        self.header.is_contiguous()
    }

    /// How the body is compressed.
    pub fn compression(&self) -> Compression {
        self.header.attributes.compression()
    }

    /// Whether this is a control batch, to be interpreted by [`RawBatch::control`].
    pub fn is_control(&self) -> bool {
        self.header.attributes.is_control()
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.header.attributes.is_transactional()
    }

    /// Compares the stored checksum with the bytes.
    ///
    /// # Errors
    /// [`Problem::Crc`]
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.header.crc, crc32c(&self.bytes[CRC_FROM..]));
        if stored != computed {
            return Err(Problem::Crc { stored, computed }.at(self.header.base_offset, 0));
        }
        Ok(())
    }
}

impl std::fmt::Debug for RawBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawBatch")
            .field("header", &self.header)
            .field("size", &self.size())
            .finish()
    }
}

fn be_i64(bytes: &[u8]) -> i64 {
    bytes
        .first_chunk()
        .map_or(-1, |field| i64::from_be_bytes(*field))
}

fn be_i32(bytes: &[u8], at: usize) -> Option<i32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|field| i32::from_be_bytes(*field))
}
