//! Small batches made into a larger one, because a broker takes one batch of a partition per
//! request and a few requests at a time: where batches are small, round trips set the rate.
//!
//! ```text
//! [header│r0 r1] [header│r0] [header│r0 r1 r2]  ->  [header│r0 r1 r2 r3 r4 r5]
//! ```
//!
//! Of each record three numbers are read and written anew, those that are relative to its batch;
//! keys, values and headers are copied as they are. Compressed batches are decompressed for it, and
//! the whole is compressed again with the same codec.

use super::encode::{Sealed, seal};
use super::header::HEADER_LEN;
use super::wire::{Reader, not_negative, put_varint, put_varlong, varint_len, varlong_len};
use super::{BatchError, Compression, Problem, RawBatch};
use crate::memory::MemoryBudget;

/// The decompressed content of one joined batch, in bytes: what bounds the time it takes.
const CONTENT_BYTES_MAX: usize = 4 << 20;

/// A batch made of several.
#[derive(Debug)]
pub struct Joined {
    /// It holds the records of the batches it was made of, in order. Offsets count from 0, there is
    /// no producer, and times are create times, as with [`encode`](super::encode).
    pub batch: RawBatch,
    /// Of how many it was made.
    pub count: usize,
}

/// Joins the first of `batches`, as many as go into `size_max` bytes with header; none if fewer than
/// two do.
///
/// A batch ends the row that has another codec or no records, is a control batch, has fewer records
/// than offsets, or is damaged: it is for the target to refuse that, and for it to be able to, the
/// damage must not get a new checksum. The result occupies memory of `budget`; where that has no
/// room, nothing is joined.
pub fn join<'a>(
    batches: impl IntoIterator<Item = &'a RawBatch>,
    size_max: usize,
    budget: &MemoryBudget,
) -> Option<Joined> {
    let mut batches = batches.into_iter().peekable();
    let first = *batches.peek()?;
    let compression = first.compression();
    let (mut room, mut records, mut sources) = (HEADER_LEN, 0usize, Vec::new());
    for batch in batches {
        let size = batch.size() - HEADER_LEN;
        let is_alike = batch.compression() == compression && is_joinable(batch);
        if !is_alike || room + size > size_max || batch.verify_crc().is_err() {
            break;
        }
        room += size;
        records += batch.header().record_count.unsigned_abs() as usize;
        sources.push(batch);
    }
    if sources.len() < 2 {
        return None;
    }
    // Numbers relative to a batch that began earlier are a few bytes longer.
    let room = room.saturating_add(4 * records).min(size_max);
    let mut frame = budget.try_take(room)?.into_buffer(room);
    frame.buffer.resize(HEADER_LEN, 0);
    let mut content = Content::new(first);
    let (sealed, count) = match compression {
        Compression::None => {
            content.fill(&mut frame.buffer, &sources, size_max);
            (content.sealed(compression), content.batches)
        }
        _ => {
            let mut plain = Vec::with_capacity(4 * room);
            content.fill(&mut plain, &sources, CONTENT_BYTES_MAX);
            compression.compress(&plain, &mut frame.buffer);
            (content.sealed(compression), content.batches)
        }
    };
    if count < 2 || frame.buffer.len() > size_max {
        return None;
    }
    let header = seal(&mut frame.buffer, &sealed);
    Some(Joined {
        batch: RawBatch::from_parts(header, frame.freeze()),
        count,
    })
}

fn is_joinable(batch: &RawBatch) -> bool {
    batch.is_contiguous() && !batch.is_control() && batch.header().record_count > 0
}

/// The records of the new batch while they are gathered.
struct Content {
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    records: i32,
    batches: usize,
}

impl Content {
    fn new(first: &RawBatch) -> Self {
        Content {
            base_timestamp: None,
            max_timestamp: first.header().max_timestamp,
            records: 0,
            batches: 0,
        }
    }

    /// Appends the records of as many batches as make `bytes_max` with what is there.
    fn fill(&mut self, out: &mut Vec<u8>, batches: &[&RawBatch], bytes_max: usize) {
        for batch in batches {
            let (end, records, base) = (out.len(), self.records, self.base_timestamp);
            let added = self.add(out, batch, bytes_max);
            if added.is_err() || out.len() > bytes_max {
                out.truncate(end);
                (self.records, self.base_timestamp) = (records, base);
                return;
            }
            self.max_timestamp = self.max_timestamp.max(batch.header().max_timestamp);
            self.batches += 1;
        }
    }

    fn add(
        &mut self,
        out: &mut Vec<u8>,
        batch: &RawBatch,
        bytes_max: usize,
    ) -> Result<(), BatchError> {
        let header = batch.header();
        let room = bytes_max.saturating_sub(out.len());
        let body = batch.compression().decompress(&batch.body(), room);
        let body = body.map_err(|problem| problem.at(header.base_offset, 0))?;
        let mut reader = Reader::new(&body);
        for delta in 0..header.record_count {
            self.add_record(out, batch, &mut reader, delta)
                .map_err(|problem| reader.error(header.base_offset, problem))?;
        }
        match reader.remaining() {
            0 => Ok(()),
            left => Err(reader.error(header.base_offset, Problem::Trailing(left))),
        }
    }

    fn add_record(
        &mut self,
        out: &mut Vec<u8>,
        batch: &RawBatch,
        reader: &mut Reader<'_>,
        due: i32,
    ) -> Result<(), Problem> {
        let header = batch.header();
        let length = not_negative("record length", reader.varint("record length")?)?;
        let mut record = reader.part(length, "record")?;
        let attributes = record.byte("record attributes")?;
        let delta = record.varlong("timestamp delta")?;
        let timestamp = match header.attributes.is_append_time() {
            true => header.max_timestamp,
            false => header.base_timestamp.wrapping_add(delta),
        };
        let offset = record.varint("offset delta")?;
        if offset != due {
            return Err(Problem::OffsetOrder {
                offset: offset.into(),
                previous: i64::from(due) - 1,
                last: header.last_offset_delta.into(),
            });
        }
        let base_timestamp = *self.base_timestamp.get_or_insert(timestamp);
        let delta = timestamp.wrapping_sub(base_timestamp);
        let rest = record.rest();
        let length = 1 + varlong_len(delta) + varint_len(self.records) + rest.len();
        put_varint(out, i32::try_from(length).map_err(|_| Problem::Varint)?);
        out.push(attributes);
        put_varlong(out, delta);
        put_varint(out, self.records);
        out.extend_from_slice(rest);
        self.records = self.records.checked_add(1).ok_or(Problem::OffsetOverflow)?;
        Ok(())
    }

    fn sealed(&self, compression: Compression) -> Sealed {
        Sealed {
            compression,
            records: self.records,
            base_timestamp: self.base_timestamp.unwrap_or(-1),
            max_timestamp: self.max_timestamp,
        }
    }
}
