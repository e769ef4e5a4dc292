//! Control batches: the ends of transactions, as far as a reader needs to know (KIP-98).

use super::varint::Reader;
use super::{BatchError, DecodeLimits, Problem, RawBatch, decode};

/// What a control batch says, and about whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// What it says.
    pub kind: ControlType,
    /// The producer whose transaction it ends.
    pub producer_id: i64,
}

/// The type of a control record (Java's `ControlRecordType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlType {
    /// The transaction's records are valid.
    Commit,
    /// The transaction's records must not be seen.
    Abort,
    /// Nothing about a transaction, or a marker that compaction has emptied.
    Other,
}

impl RawBatch {
    /// What a control batch says; `None` for a batch of data.
    ///
    /// # Errors
    /// If the batch or the key of its record, two numbers of 16 bits, can't be read.
    pub fn control(&self) -> Result<Option<Control>, BatchError> {
        if !self.is_control() {
            return Ok(None);
        }
        let records = decode(self, DecodeLimits::default())?;
        let kind = match records.first() {
            None => ControlType::Other,
            Some(record) => record
                .key
                .as_ref()
                .ok_or(Problem::Truncated("control record"))
                .and_then(|key| {
                    let mut key = Reader::new(key);
                    let _version: [u8; 2] = key.fixed("control record")?;
                    Ok(match i16::from_be_bytes(key.fixed("control record")?) {
                        0 => ControlType::Abort,
                        1 => ControlType::Commit,
                        _ => ControlType::Other,
                    })
                })
                .map_err(|problem| problem.at(self.header().base_offset, 0))?,
        };
        let producer_id = self.header().producer_id;
        Ok(Some(Control { kind, producer_id }))
    }
}
