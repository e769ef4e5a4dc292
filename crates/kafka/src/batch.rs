//! Record batches: looked at by their headers, moved as they are, taken apart only when they must
//! be.
//!
//! The hot path is [`walk`] and [`restamp`]: it reads the 61 bytes of each header, corrects the
//! checksum from the bytes it changes and never looks at a record. [`decode`] and [`encode_split`]
//! are for the batches that can't be forwarded as they are, [`join`] for those that are too small to
//! go alone. Old message sets (magic 0 and 1) can
//! only be decoded.
//!
//! ```text
//! fetched ── walk ─┬─ RawBatch ─┬─ restamp ───────────> 61 new bytes + old body
//!                  │            └─ decode ────────┐
//!                  └─ LegacyMessage ─ decode_legacy ─ [Record] ─ encode_split ─> RawBatch
//! ```
//!
//! Nothing here knows why a batch is forwarded, rebuilt or dropped. Everything takes bytes from the
//! network: whatever they hold, the answer is a [`BatchError`], never a panic, and no allocation is
//! sized by a number read from them.

mod compression;
mod control;
mod crc;
mod decode;
mod encode;
mod error;
mod header;
mod join;
mod legacy;
mod record;
mod restamp;
mod walk;
mod wire;

pub use compression::Compression;
pub use control::{Control, ControlType};
pub use decode::{DecodeLimits, decode};
pub use encode::{TooLarge, encode, encode_split};
pub use error::{BatchError, Problem};
pub use header::{Attributes, BatchHeader, HEADER_LEN};
pub use join::{Joined, join};
pub use legacy::{LegacyMessage, decode_legacy};
pub use record::Record;
pub use restamp::{ProducerStamp, restamp};
pub use walk::{Cut, Entry, RawBatch, Walk, walk};
