//! What can be wrong with a batch, and where.

use super::Compression;

/// Bytes that are not the batch or message they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the batch at offset {base_offset}, byte {position}")]
pub struct BatchError {
    /// The base offset of the batch (the offset of a legacy message), -1 if it was not read.
    pub base_offset: i64,
    /// Where the trouble is: in the record set for [`walk`](super::walk), in the decompressed body
    /// for the decoders.
    pub position: usize,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The length field says less than the fixed fields take.
    #[error("length {length} is below the least possible, {least}")]
    Length {
        /// The length as it stands there.
        length: i32,
        /// The least that is possible.
        least: i32,
    },
    /// A format that is newer than we know, or an inner message of another format than its wrapper.
    #[error("magic {0} is not expected here")]
    Magic(i8),
    /// Codecs 5 to 7 are not assigned.
    #[error("compression codec {0} is unknown")]
    Codec(u8),
    /// A field that counts something is negative.
    #[error("{field} is {value}")]
    Negative {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// An offset beyond what 64 bits hold.
    #[error("an offset is out of range")]
    OffsetOverflow,
    /// The checksum of the content is not the stored one: damaged on disk or on the way.
    #[error("checksum is {computed:#010x} where {stored:#010x} is stored")]
    Crc {
        /// What the batch says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// Something ends before its last byte.
    #[error("{0} ends early")]
    Truncated(&'static str),
    /// A variable-length number that is longer, or greater, than its type allows.
    #[error("a variable-length number is out of range")]
    Varint,
    /// Offsets must rise, and stay within the batch.
    #[error("offset {offset} follows {previous} where {last} is the last")]
    OffsetOrder {
        /// The offset as it stands there, relative in all formats but magic 0.
        offset: i64,
        /// The one of the record before, -1 for the first record.
        previous: i64,
        /// The greatest that is possible.
        last: i64,
    },
    /// A record whose fields do not end where its length says.
    #[error("a record of {length} bytes has fields of another length")]
    RecordLength {
        /// The length as it stands there.
        length: usize,
    },
    /// Bytes that no record accounts for.
    #[error("{0} bytes are left over")]
    Trailing(usize),
    /// The compressed content can't be read.
    #[error("{codec} content is malformed: {reason}")]
    Compressed {
        /// The codec.
        codec: Compression,
        /// What its library says.
        reason: String,
    },
    /// The decoded form would take more memory than the caller allows.
    #[error("decoded content takes more than {limit} bytes")]
    OverLimit {
        /// The caller's limit.
        limit: usize,
    },
    /// A compressed message whose content is missing, empty or itself compressed.
    #[error("a compressed message must hold plain messages")]
    Wrapper,
}

impl Problem {
    /// Says where the problem is.
    pub(super) fn at(self, base_offset: i64, position: usize) -> BatchError {
        BatchError {
            base_offset,
            position,
            problem: self,
        }
    }
}
