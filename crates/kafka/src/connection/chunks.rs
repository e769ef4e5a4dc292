//! A request as the list of slices it is made of, so that records are written from where they lie.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// A queue of slices that reads as one buffer and can be written with one vectored write.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: VecDeque<Bytes>,
    remaining: usize,
}

impl Chunks {
    pub(super) fn extend(&mut self, chunks: Vec<Bytes>) {
        for chunk in chunks.into_iter().filter(|chunk| !chunk.is_empty()) {
            self.remaining += chunk.len();
            self.chunks.push_back(chunk);
        }
    }
}

impl From<Vec<Bytes>> for Chunks {
    fn from(chunks: Vec<Bytes>) -> Self {
        let mut all = Chunks::default();
        all.extend(chunks);
        all
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.len().min(self.chunks.len());
        for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slice = IoSlice::new(chunk);
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced past the end");
        self.remaining -= count;
        while count > 0 {
            let front = &mut self.chunks[0];
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_read_as_one_buffer_however_it_is_advanced() {
        for step in 1..=9 {
            let parts = ["ab", "", "cdef", "g", "hi"];
            let mut chunks = Chunks::from(
                parts
                    .map(|part| Bytes::from_static(part.as_bytes()))
                    .to_vec(),
            );
            let mut read = Vec::new();

            while chunks.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 2];
                let filled = chunks.chunks_vectored(&mut slices);
                let seen: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
                let taken = step.min(seen.len());
                read.extend_from_slice(&seen[..taken]);
                chunks.advance(taken);
            }

            assert_eq!(read, b"abcdefghi", "steps of {step}");
        }
    }
}
