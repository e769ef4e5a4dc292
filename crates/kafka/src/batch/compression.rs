//! The five codecs, as Java's clients write them and as all clients' bytes must be read.
//!
//! Contexts are kept per thread: making one costs more than a small batch. What comes out is
//! bounded by the caller.

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

/// The room to begin with: what text usually needs. It follows the size of what is there, not a
/// number in it.
fn first_capacity(packed: &[u8], limit: usize) -> usize {
    packed.len().saturating_mul(4).min(limit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

    use super::*;

    fn content() -> Vec<u8> {
        (0..300_000u32)
            .map(|i| ((i >> 6) * (i % 5)) as u8)
            .collect()
    }

    #[track_caller]
    fn check(codec: Compression, packed: Vec<u8>, content: &[u8]) {
        let unpacked = codec.decompress(&packed.into(), content.len()).unwrap();

        assert!(
            unpacked == content,
            "{codec} reads something else than was written"
        );
    }

    #[test]
    fn snappy_without_framing_is_read() {
        let content = content();

        let packed = snap::raw::Encoder::new().compress_vec(&content).unwrap();

        check(Compression::Snappy, packed, &content);
    }

    #[test]
    fn lz4_frames_of_all_kinds_are_read() {
        let content = content();
        for (mode, size, checksums, content_size) in [
            (BlockMode::Independent, BlockSize::Max4MB, true, None),
            (
                BlockMode::Linked,
                BlockSize::Max64KB,
                false,
                Some(content.len() as u64),
            ),
            (BlockMode::Linked, BlockSize::Max256KB, true, None),
        ] {
            let info = FrameInfo::new()
                .block_mode(mode)
                .block_size(size)
                .block_checksums(checksums)
                .content_checksum(checksums)
                .content_size(content_size);
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&content).unwrap();

            check(Compression::Lz4, encoder.finish().unwrap(), &content);
        }
    }

    #[test]
    fn content_in_several_parts_is_read() {
        let content = content();
        for codec in [Compression::Gzip, Compression::Zstd] {
            let (head, tail) = content.split_at(1000);
            let mut packed = Vec::new();
            codec.compress(head, &mut packed);
            codec.compress(tail, &mut packed);

            check(codec, packed, &content);
        }
    }

    #[test]
    fn a_stream_that_ends_early_is_malformed_and_spoils_nothing_after_it() {
        let content = content();
        for codec in [
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            let mut packed = Vec::new();
            codec.compress(&content, &mut packed);
            let cut = Bytes::copy_from_slice(&packed[..packed.len() - 1]);

            let problem = codec.decompress(&cut, content.len()).unwrap_err();

            assert!(
                matches!(problem, Problem::Compressed { .. }),
                "{codec}: {problem}"
            );
            check(codec, packed, &content);
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let content = content();
        for codec in [
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            let mut packed = Vec::new();
            codec.compress(&content, &mut packed);
            let limit = content.len() - 1;

            let problem = codec.decompress(&packed.into(), limit).unwrap_err();

            assert_eq!(problem, Problem::OverLimit { limit }, "{codec}");
        }
    }
}
