//! Control batches: the ends of transactions, as far as a reader needs to know (KIP-98).

use super::wire::Reader;
use super::{BatchError, DecodeLimits, Problem, RawBatch, Record, decode};

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
        let kind = records.first().map_or(Ok(ControlType::Other), read_type);
        Ok(Some(Control {
            kind: kind.map_err(|problem| problem.at(self.header().base_offset, 0))?,
            producer_id: self.header().producer_id,
        }))
    }
}

fn read_type(record: &Record) -> Result<ControlType, Problem> {
    let missing = Problem::Truncated("control record key");
    let mut key = Reader::new(record.key.as_ref().ok_or(missing)?);
    let _version: [u8; 2] = key.fixed("control record key")?;
    let code = i16::from_be_bytes(key.fixed("control record key")?);
    Ok(match code {
        0 => ControlType::Abort,
        1 => ControlType::Commit,
        _ => ControlType::Other,
    })
}
