//! gzip through `flate2`.

use std::io::{Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{Failure, first_capacity};

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(first_capacity(packed, limit));
    // One byte more than the limit tells a full buffer from an overflow.
    let mut bounded = MultiGzDecoder::new(packed).take(limit as u64 + 1);
    bounded.read_to_end(&mut out).map_err(Failure::malformed)?;
    if out.len() > limit {
        return Err(Failure::OverLimit);
    }
    Ok(out)
}

pub(super) fn compress(content: &[u8], out: &mut Vec<u8>) {
    let mut encoder = GzEncoder::new(out, flate2::Compression::new(6));
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all that is written");
}
