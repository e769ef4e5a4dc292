//! Zstandard through the C library.

use std::cell::RefCell;

use zstd::bulk::Compressor;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::compress_bound;

use super::{Failure, first_capacity};

/// What Java's `zstd-jni` and librdkafka use by default.
const LEVEL: i32 = 3;
/// The least room the decoder is given when its output is full.
const GROWTH_LEAST: usize = 4 * 1024;

thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(LEVEL).expect("level 3 exists"));
    static DECODER: RefCell<Decoder<'static>> =
        RefCell::new(Decoder::new().expect("memory for a context is there"));
}

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    DECODER.with_borrow_mut(|decoder| {
        // Whatever the last batch left unfinished must not come out of this one.
        decoder.reinit().map_err(Failure::malformed)?;
        let mut input = InBuffer::around(packed);
        let mut out = Vec::with_capacity(first_capacity(packed, limit));
        loop {
            let start = out.len();
            let mut output = OutBuffer::around_pos(&mut out, start);
            let expected = decoder
                .run(&mut input, &mut output)
                .map_err(Failure::malformed)?;
            let input_done = input.pos() == packed.len();
            if out.len() > limit {
                return Err(Failure::OverLimit);
            }
            if expected == 0 && input_done {
                return Ok(out);
            }
            if out.len() < out.capacity() && input_done {
                return Err(Failure::malformed("the frame ends early"));
            }
            if out.len() == out.capacity() {
                out.reserve(out.len().max(GROWTH_LEAST));
            }
        }
    })
}

pub(super) fn compress(content: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + compress_bound(content.len()), 0);
    let written = COMPRESSOR.with_borrow_mut(|compressor| {
        compressor
            .compress_to_buffer(content, &mut out[start..])
            .expect("the room is what the codec asks for")
    });
    out.truncate(start + written);
}
