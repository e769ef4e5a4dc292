//! Snappy: raw, as librdkafka writes it, or in the framing of xerial's `SnappyOutputStream`, as
//! Java does.
//!
//! ```text
//! 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version i32 | compatible version i32 | { size i32, raw snappy }*
//! ```

use std::cell::RefCell;

use super::{Failure, first_capacity};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const CHUNK_LEN: usize = 32 * 1024;
/// No snappy element makes more than 64 bytes, and none takes less than one.
const EXPANSION_MOST: usize = 64;

thread_local! {
    static ENCODER: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
}

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(first_capacity(packed, limit));
    let Some(framed) = packed.strip_prefix(&MAGIC) else {
        append_chunk(packed, limit, &mut out)?;
        return Ok(out);
    };
    let mut rest = framed
        .get(VERSIONS.len()..)
        .ok_or_else(|| Failure::malformed("header ends early"))?;
    while !rest.is_empty() {
        let (size, tail) = rest
            .split_first_chunk()
            .ok_or_else(|| Failure::malformed("chunk size ends early"))?;
        let chunk = usize::try_from(i32::from_be_bytes(*size))
            .ok()
            .and_then(|size| tail.get(..size));
        let chunk = chunk.ok_or_else(|| Failure::malformed("chunk ends early"))?;
        append_chunk(chunk, limit, &mut out)?;
        rest = &tail[chunk.len()..];
    }
    Ok(out)
}

fn append_chunk(chunk: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let claimed = snap::raw::decompress_len(chunk).map_err(Failure::malformed)?;
    if claimed > limit - out.len() {
        return Err(Failure::OverLimit);
    }
    if claimed > chunk.len() * EXPANSION_MOST {
        return Err(Failure::malformed("a chunk claims more than it can hold"));
    }
    let start = out.len();
    out.resize(start + claimed, 0);
    let written = snap::raw::Decoder::new()
        .decompress(chunk, &mut out[start..])
        .map_err(Failure::malformed)?;
    out.truncate(start + written);
    Ok(())
}

pub(super) fn compress(content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
    ENCODER.with_borrow_mut(|encoder| {
        for chunk in content.chunks(CHUNK_LEN) {
            let size_at = out.len();
            let start = size_at + 4;
            out.resize(start + snap::raw::max_compress_len(chunk.len()), 0);
            let written = encoder
                .compress(chunk, &mut out[start..])
                .expect("the room is what the codec asks for");
            out[size_at..start].copy_from_slice(&(written as u32).to_be_bytes());
            out.truncate(start + written);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_not_made_for_what_a_few_bytes_claim() {
        let a_gigabyte = [0x80, 0x80, 0x80, 0x80, 0x04, 0];

        let failure = decompress(&a_gigabyte, usize::MAX).unwrap_err();

        assert_eq!(
            failure,
            Failure::malformed("a chunk claims more than it can hold")
        );
    }
}
