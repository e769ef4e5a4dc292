//! LZ4 frames, on top of the block codec.
//!
//! The frame is read here rather than by a library because Kafka's old Java clients wrote a wrong
//! header checksum (KAFKA-3160), which readers of that time expect. No checksum of the frame is
//! verified: the batch's CRC vouches for the bytes already.
//!
//! ```text
//! 04 22 4d 18 | flags | block size | [content size u64] | checksum
//! { size u32 | block | [checksum u32] }* | 0 u32 | [checksum u32]
//! ```

use std::cell::RefCell;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, decompress_into_with_dict,
    get_maximum_output_size,
};

use super::{Failure, first_capacity};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Independent blocks of 64 KiB, no other flag; the last byte is the checksum of the two before.
const OUR_HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const OUR_BLOCK_LEN: usize = 64 * 1024;
/// The bit of a block's size that says the block is stored as it is.
const STORED: u32 = 1 << 31;
/// How far back a block may refer into those before it.
const WINDOW_LEN: usize = 64 * 1024;
/// A byte of a block can stand for this many at most (a run of 255s in a match length).
const EXPANSION_MOST: usize = 255;

thread_local! {
    static TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::large());
}

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let (frame, mut rest) = Frame::read(packed)?;
    let mut out = Vec::with_capacity(first_capacity(packed, limit));
    loop {
        let size = take_u32(&mut rest)?;
        if size == 0 {
            break;
        }
        let block = take(&mut rest, (size & !STORED) as usize)?;
        if size & STORED != 0 {
            out.extend_from_slice(block);
        } else {
            frame.append_block(block, &mut out)?;
        }
        if frame.block_checksums {
            take_u32(&mut rest)?;
        }
        if out.len() > limit {
            return Err(Failure::OverLimit);
        }
    }
    if frame.content_checksum {
        take_u32(&mut rest)?;
    }
    if !rest.is_empty() {
        return Err(Failure::malformed("bytes follow the frame"));
    }
    Ok(out)
}

/// What the header of a frame says about its blocks.
struct Frame {
    block_len_max: usize,
    linked_blocks: bool,
    block_checksums: bool,
    content_checksum: bool,
}

impl Frame {
    fn read(packed: &[u8]) -> Result<(Frame, &[u8]), Failure> {
        let mut rest = packed
            .strip_prefix(&MAGIC)
            .ok_or_else(|| Failure::malformed("no frame begins here"))?;
        let fixed = take(&mut rest, 2)?;
        let (flags, block_size) = (fixed[0], fixed[1]);
        let flag = |bit: u8| flags & (1 << bit) != 0;
        if flags >> 6 != 1 {
            return Err(Failure::malformed("the frame's version is not 1"));
        }
        if flag(0) {
            return Err(Failure::malformed("dictionaries are not supported"));
        }
        let content_size_len = if flag(3) { 8 } else { 0 };
        take(&mut rest, content_size_len + 1)?;
        let frame = Frame {
            block_len_max: match (block_size >> 4) & 7 {
                exponent @ 4..=7 => 1 << (8 + 2 * exponent),
                _ => return Err(Failure::malformed("the block size is not assigned")),
            },
            linked_blocks: !flag(5),
            block_checksums: flag(4),
            content_checksum: flag(2),
        };
        Ok((frame, rest))
    }

    fn append_block(&self, block: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        let room = self
            .block_len_max
            .min(block.len().saturating_mul(EXPANSION_MOST));
        out.resize(start + room, 0);
        let (before, target) = out.split_at_mut(start);
        let written = if self.linked_blocks {
            decompress_into_with_dict(block, target, &before[start.saturating_sub(WINDOW_LEN)..])
        } else {
            decompress_into(block, target)
        };
        out.truncate(start + written.map_err(Failure::malformed)?);
        Ok(())
    }
}

pub(super) fn compress(content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&OUR_HEADER);
    TABLE.with_borrow_mut(|table| {
        for block in content.chunks(OUR_BLOCK_LEN) {
            let size_at = out.len();
            let start = size_at + 4;
            out.resize(start + get_maximum_output_size(block.len()), 0);
            let written = compress_into_with_table(block, &mut out[start..], table)
                .expect("the room is what the codec asks for");
            out.truncate(start + written);
            let mut size = written as u32;
            if written >= block.len() {
                out.truncate(start);
                out.extend_from_slice(block);
                size = block.len() as u32 | STORED;
            }
            out[size_at..start].copy_from_slice(&size.to_le_bytes());
        }
    });
    out.extend_from_slice(&0u32.to_le_bytes());
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Failure> {
    let (taken, tail) = rest
        .split_at_checked(length)
        .ok_or_else(|| Failure::malformed("the frame ends early"))?;
    *rest = tail;
    Ok(taken)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Failure> {
    let (bytes, tail) = rest
        .split_first_chunk()
        .ok_or_else(|| Failure::malformed("the frame ends early"))?;
    *rest = tail;
    Ok(u32::from_le_bytes(*bytes))
}
