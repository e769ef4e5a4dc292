//! The five codecs, as Java's clients write them and as all clients' bytes must be read.
//!
//! Contexts are kept per thread: making one costs more than a small batch. What comes out is bounded by the caller.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use bytes::Bytes;

use super::Problem;

/// How the records of a batch are compressed (Java's `CompressionType`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, level 6.
    Gzip,
    /// Snappy in xerial's framing; without framing it is read too.
    Snappy,
    /// An LZ4 frame of independent 64 KiB blocks; all frames but those with dictionaries are read.
    Lz4,
    /// Zstandard, level 3 (KIP-110; needs Produce v7 and Fetch v10).
    Zstd,
}

impl Compression {
    /// All five.
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// The number in a batch's attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The codec of a number, if it has one.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The name, as in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The content of `packed`, which may take `limit` bytes at most.
    pub(super) fn decompress(self, packed: &Bytes, limit: usize) -> Result<Bytes, Problem> {
        let unpacked = match self {
            Compression::None => return Ok(packed.clone()),
            Compression::Gzip => gzip::decompress(packed, limit),
            Compression::Snappy => snappy::decompress(packed, limit),
            Compression::Lz4 => lz4::decompress(packed, limit),
            Compression::Zstd => zstd::decompress(packed, limit),
        };
        unpacked.map(Bytes::from).map_err(|failure| match failure {
            Failure::OverLimit => Problem::OverLimit { limit },
            Failure::Malformed(reason) => Problem::Compressed {
                codec: self,
                reason,
            },
        })
    }

    /// Appends `content`, compressed, to `out`.
    pub(super) fn compress(self, content: &[u8], out: &mut Vec<u8>) {
        match self {
            Compression::None => out.extend_from_slice(content),
            Compression::Gzip => gzip::compress(content, out),
            Compression::Snappy => snappy::compress(content, out),
            Compression::Lz4 => lz4::compress(content, out),
            Compression::Zstd => zstd::compress(content, out),
        }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why something can't be decompressed.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    OverLimit,
    Malformed(String),
}

impl Failure {
    fn malformed(reason: impl std::fmt::Display) -> Self {
        Failure::Malformed(reason.to_string())
    }
}

/// The room to begin with: what text usually needs. It follows the size of what is there, not a number in it.
fn first_capacity(packed: &[u8], limit: usize) -> usize {
    packed.len().saturating_mul(4).min(limit)
}
