//! The five codecs of a batch's body, framed as Kafka frames them.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use bytes::{Buf, BufMut};

/// Names as `compression.type` has them; the position is the number in a batch's attributes.
pub(crate) const NAMES: [&str; 5] = ["uncompressed", "gzip", "snappy", "lz4", "zstd"];

/// No honest batch inflates to more.
const DECOMPRESSED_BYTES_MAX: u64 = 1 << 30;
/// What Java's `SnappyOutputStream` puts before its blocks.
const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

/// The records' bytes of a body packed with `codec`.
pub(crate) fn decompress(codec: u8, body: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let mut out = Vec::new();
    match codec {
        0 => return Ok(Cow::Borrowed(body)),
        1 => read_limited(flate2::read::MultiGzDecoder::new(body), &mut out)?,
        2 => unpack_snappy(body, &mut out)?,
        3 => read_limited(lz4_flex::frame::FrameDecoder::new(body), &mut out)?,
        4 => read_limited(zstd::stream::read::Decoder::new(body)?, &mut out)?,
        _ => return Err(invalid("unknown compression codec")),
    }
    Ok(Cow::Owned(out))
}

/// `records` packed with `codec`.
pub(crate) fn compress(codec: u8, records: &[u8]) -> io::Result<Vec<u8>> {
    match codec {
        0 => Ok(records.to_vec()),
        1 => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(records)?;
            encoder.finish()
        }
        2 => pack_snappy(records),
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(records)?;
            encoder.finish().map_err(io::Error::other)
        }
        4 => zstd::stream::encode_all(records, 3),
        _ => Err(invalid("unknown compression codec")),
    }
}

fn read_limited(from: impl Read, out: &mut Vec<u8>) -> io::Result<()> {
    let mut limited = from.take(DECOMPRESSED_BYTES_MAX);
    limited.read_to_end(out)?;
    if limited.limit() == 0 {
        Err(invalid("body inflates beyond the limit"))
    } else {
        Ok(())
    }
}

fn unpack_snappy(body: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = snap::raw::Decoder::new();
    // The magic's last eight bytes are version numbers, which readers do not check.
    if body.len() < XERIAL_MAGIC.len() || body[..8] != XERIAL_MAGIC[..8] {
        out.extend(decoder.decompress_vec(body)?);
        return Ok(());
    }
    let mut blocks = &body[XERIAL_MAGIC.len()..];
    while !blocks.is_empty() {
        let length = blocks
            .try_get_u32()
            .map_err(|_| invalid("cut snappy block"))? as usize;
        let (block, after) = blocks
            .split_at_checked(length)
            .ok_or_else(|| invalid("cut snappy block"))?;
        out.extend(decoder.decompress_vec(block)?);
        blocks = after;
    }
    Ok(())
}

fn pack_snappy(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = snap::raw::Encoder::new();
    let mut out = XERIAL_MAGIC.to_vec();
    for block in records.chunks(XERIAL_BLOCK_BYTES) {
        let packed = encoder.compress_vec(block)?;
        out.put_u32(packed.len() as u32);
        out.extend(packed);
    }
    Ok(out)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_gives_back_what_it_packed() {
        let records: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| (n / 7).to_be_bytes())
            .collect();
        for codec in 0..5 {
            let packed = compress(codec, &records).unwrap();
            assert_eq!(
                decompress(codec, &packed).unwrap(),
                records,
                "{}",
                NAMES[codec as usize]
            );
        }
    }

    #[test]
    fn garbage_is_an_error_for_every_codec() {
        for codec in 1..8 {
            assert!(decompress(codec, &[0xff; 40]).is_err(), "codec {codec}");
        }
    }
}
