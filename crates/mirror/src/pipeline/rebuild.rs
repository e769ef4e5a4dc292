//! From a batch that cannot be forwarded to batches that can.

use twinlog_core::ids::UpstreamOffset;
use twinlog_kafka::batch::{
    BatchError, Compression, DecodeLimits, RawBatch, Record, TooLarge, decode, decode_legacy,
    encode_split,
};

use super::overlap::There;
use super::planner::{Original, Rules};
use super::writer::Piece;

/// A batch to be taken apart.
#[derive(Debug)]
pub struct Job {
    /// Records before it are left out.
    pub from: UpstreamOffset,
    /// The source offset behind the batch.
    pub end: UpstreamOffset,
    /// The batch.
    pub original: Original,
    /// What the target takes.
    pub rules: Rules,
    /// What the target's log holds already.
    pub there: There,
}

impl Job {
    /// Its size in bytes, compressed as it is: what the work is judged by.
    pub fn size(&self) -> usize {
        self.original.size()
    }
}

/// What came of a [`Job`].
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// How many records were left out because the target's log holds them - or offsets, if those
    /// count - and the source offset behind them.
    pub already_there: Option<(i64, UpstreamOffset)>,
    /// The new batches, in order. Each ends behind its last record.
    pub pieces: Vec<Piece>,
    /// Why the rest is missing.
    pub stopped: Option<Stopped>,
}

/// Why a batch could not be rebuilt to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// It cannot be read.
    #[error("decode a batch of the source")]
    Damaged(#[from] BatchError),
    /// One of its records does not fit, however it is sent. Those before it are among the pieces.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// Does the work. It takes time in proportion to the decompressed size.
pub fn rebuild(job: &Job) -> Rebuilt {
    let mut records = match job.original.records() {
        Ok(records) => records,
        Err(error) => {
            return Rebuilt {
                stopped: Some(error.into()),
                ..Rebuilt::default()
            };
        }
    };
    records.retain(|record| record.offset >= job.from.0);

    let left_out = job.there.count(job.from, &records);
    let already: Vec<Record> = records.drain(..left_out).collect();
    let already_there = match job.there {
        There::Offsets(0) => None,
        There::Offsets(offsets) => {
            let offsets = offsets.min(job.end.0 - job.from.0);
            Some((offsets, UpstreamOffset(job.from.0 + offsets)))
        }
        There::Same { .. } => already.last().map(|last| {
            let end = UpstreamOffset(last.offset + 1);
            (already.len() as i64, end)
        }),
    };
    let compression = job.rules.recompress.unwrap_or(job.original.compression());
    let (batches, stopped) = encode_fitting(&records, compression, job.rules.batch_bytes_max);
    Rebuilt {
        already_there,
        pieces: pieces(batches, &records),
        stopped: stopped.map(Stopped::TooLarge),
    }
}

/// Encodes all records, or those before the first that fits no batch.
fn encode_fitting(
    records: &[Record],
    compression: Compression,
    size_max: usize,
) -> (Vec<RawBatch>, Option<TooLarge>) {
    let error = match encode_split(records, compression, size_max) {
        Ok(batches) => return (batches, None),
        Err(error) => error,
    };
    let fitting = records.partition_point(|record| record.offset < error.offset);
    match encode_split(&records[..fitting], compression, size_max) {
        Ok(batches) => (batches, Some(error)),
        Err(earlier) => (Vec::new(), Some(earlier)),
    }
}

/// Says of each batch up to which source offset it reaches: the one behind its last record.
fn pieces(batches: Vec<RawBatch>, mut records: &[Record]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(batches.len());
    for batch in batches {
        let count = batch.header().record_count.unsigned_abs() as usize;
        let (own, rest) = records.split_at(count.min(records.len()));
        records = rest;
        if let Some(last) = own.last() {
            let end = UpstreamOffset(last.offset + 1);
            pieces.push(Piece::new(batch, end));
        }
    }
    pieces
}

impl Original {
    /// The size in bytes, compressed as it is.
    pub fn size(&self) -> usize {
        match self {
            Original::Batch(batch) => batch.size(),
            Original::Legacy(messages) => messages.iter().map(|m| m.bytes().len()).sum(),
        }
    }

    /// The codec to encode with where the user has no wish.
    fn compression(&self) -> Compression {
        match self {
            Original::Batch(batch) => batch.compression(),
            // Their logs are old and large; what they were compressed with is not worth finding
            // out.
            Original::Legacy(_) => Compression::None,
        }
    }

    fn records(&self) -> Result<Vec<Record>, BatchError> {
        let limits = DecodeLimits::default();
        match self {
            Original::Batch(batch) => decode(batch, limits),
            Original::Legacy(messages) => {
                let mut records = Vec::new();
                for message in messages {
                    records.extend(decode_legacy(message, limits)?);
                }
                Ok(records)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{APPEND_TIME, batch, data, large, raw, values};
    use super::*;

    fn job(bytes: bytes::Bytes, from: i64, already_there: i64, size_max: usize) -> Job {
        let original = raw(bytes);
        Job {
            from: UpstreamOffset(from),
            end: UpstreamOffset(original.next_offset()),
            original: Original::Batch(original),
            rules: Rules {
                batch_bytes_max: size_max,
                recompress: None,
                target_stamps: false,
            },
            there: There::Offsets(already_there),
        }
    }

    fn shown(rebuilt: &Rebuilt) -> Vec<(Vec<i64>, i64)> {
        let pieces = rebuilt.pieces.iter();
        pieces
            .map(|piece| (values(&piece.batch), piece.end.0))
            .collect()
    }

    #[test]
    fn records_before_the_position_and_those_already_there_are_left_out() {
        let rebuilt = rebuild(&job(batch(&[2, 4, 5, 7], 9, 0, -1), 4, 1, 1 << 20));

        assert_eq!(rebuilt.already_there, Some((1, UpstreamOffset(5))));
        assert_eq!(shown(&rebuilt), [(vec![5, 7], 8)]);
        assert!(rebuilt.pieces[0].batch.is_contiguous());
    }

    #[test]
    fn each_part_of_a_split_batch_ends_behind_its_last_record() {
        let rebuilt = rebuild(&job(data(10, 30), 10, 0, 150));

        let shown = shown(&rebuilt);
        let records: Vec<i64> = shown
            .iter()
            .flat_map(|(records, _)| records.clone())
            .collect();
        assert!(shown.len() > 1);
        assert_eq!(records, (10..30).collect::<Vec<_>>());
        for (records, end) in &shown {
            assert_eq!(records.last().map(|last| last + 1), Some(*end));
        }
    }

    #[test]
    fn the_append_time_becomes_the_time_of_every_record() {
        let rebuilt = rebuild(&job(batch(&[0, 1], 2, APPEND_TIME, -1), 0, 0, 1 << 20));

        let records = decode(&rebuilt.pieces[0].batch, DecodeLimits::default()).unwrap();
        assert_eq!(
            records.iter().map(|r| r.timestamp).collect::<Vec<_>>(),
            [2_000, 2_000]
        );
    }

    #[test]
    fn a_record_that_fits_no_batch_is_named() {
        let rebuilt = rebuild(&job(large(3, 500), 0, 0, 400));

        let Some(Stopped::TooLarge(too_large)) = rebuilt.stopped else {
            panic!("{rebuilt:?}");
        };
        assert_eq!((too_large.offset, too_large.limit), (3, 400));
        assert!(too_large.size > 500);
    }
}
