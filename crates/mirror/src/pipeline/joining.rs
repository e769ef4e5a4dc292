//! When small batches are joined before they are sent, and how many of them.
//!
//! Of a partition five batches may be under way, so that it is copied at five batches a round trip
//! at most: with batches of 16 KiB and 100 ms that is 0.8 MB/s. So where more wait than may be sent,
//! batches that would go slower than the line are joined, the more of them the more wait. It costs a
//! copy; of compressed batches it costs decompressing and compressing again, so that those are
//! joined only if they would be slow indeed.

use std::time::Duration;

use twinlog_kafka::batch::{Compression, RawBatch};
use twinlog_kafka::memory::MemoryBudget;

/// What waits is sent as batches of at least this size, if they are joined at all.
const AIM_BYTES_MIN: usize = 64 << 10;
/// And at most this.
const AIM_BYTES_MAX: usize = 1 << 20;
/// Compressed ones: of more, making one would hold up other partitions for too long.
const AIM_COMPRESSED_BYTES_MAX: usize = 128 << 10;

/// How large batches may be to be joined, for each millisecond to the target and back: five of them
/// under way make 80 MB/s, and 20 MB/s compressed.
const SMALL_BYTES_A_MS: usize = 16 << 10;
const SMALL_COMPRESSED_BYTES_A_MS: usize = 4 << 10;
/// Up to these sizes the cost of a request is the greater one however near the target is.
const SMALL_BYTES_MIN: usize = 32 << 10;
const SMALL_COMPRESSED_BYTES_MIN: usize = 2 << 10;

/// What joining goes by.
#[derive(Debug, Clone, Copy)]
pub struct Joining<'a> {
    /// The largest batch the target takes.
    pub size_max: usize,
    /// To the target and back.
    pub round_trip: Duration,
    /// Where the memory of joined batches comes from.
    pub budget: &'a MemoryBudget,
}

impl Joining<'_> {
    /// How many of the first of `batches` are to be joined, if `fair` is what each that may be sent
    /// now must carry for all that waits to be under way.
    pub fn count<'b>(&self, batches: impl Iterator<Item = &'b RawBatch>, fair: usize) -> usize {
        let mut batches = batches.peekable();
        let Some(compression) = batches.peek().map(|first| first.compression()) else {
            return 0;
        };
        let aim = fair.clamp(AIM_BYTES_MIN, aim_max(compression));
        let aim = aim.min(self.size_max);
        let small = self.small(compression).min(aim / 2);
        let mut bytes = 0;
        let joined = batches.take_while(|batch| {
            bytes += batch.size();
            batch.compression() == compression && batch.size() <= small && bytes <= aim
        });
        joined.count()
    }

    /// The size up to which a batch is small.
    fn small(&self, compression: Compression) -> usize {
        let (a_ms, least) = match compression {
            Compression::None => (SMALL_BYTES_A_MS, SMALL_BYTES_MIN),
            _ => (SMALL_COMPRESSED_BYTES_A_MS, SMALL_COMPRESSED_BYTES_MIN),
        };
        let micros = usize::try_from(self.round_trip.as_micros()).unwrap_or(usize::MAX);
        (a_ms.saturating_mul(micros) / 1_000).max(least)
    }
}

fn aim_max(compression: Compression) -> usize {
    match compression {
        Compression::None => AIM_BYTES_MAX,
        _ => AIM_COMPRESSED_BYTES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{large, raw};
    use super::*;
    use twinlog_kafka::batch::{Record, encode};

    fn of_size(size: usize, compression: Compression) -> RawBatch {
        if compression == Compression::None {
            return raw(large(0, size - 70));
        }
        // What is random is not made smaller.
        let mut random = fastrand::Rng::with_seed(1);
        let value = Some((0..size - 100).map(|_| random.u8(..)).collect());
        let record = Record {
            value,
            ..Record::default()
        };
        encode(&[record], compression).unwrap().unwrap()
    }

    fn check(size: usize, compression: Compression, ms: u64, fair: usize, expected: usize) {
        let batches = vec![of_size(size, compression); 20_000 / (size >> 10).max(1)];
        let joining = Joining {
            size_max: 1 << 20,
            round_trip: Duration::from_millis(ms),
            budget: &MemoryBudget::new(1),
        };
        let count = joining.count(batches.iter(), fair);
        let about = expected..=expected + expected / 50;
        assert!(
            about.contains(&count),
            "{size} {compression} {ms} {fair}: {count}, not {expected}"
        );
    }

    #[test]
    fn the_more_waits_and_the_further_it_goes_the_more_is_joined() {
        let (plain, lz4) = (Compression::None, Compression::Lz4);
        for (size, compression, ms, fair, expected) in [
            (1 << 10, plain, 0, 0, 63),
            (1 << 10, plain, 0, 200 << 10, 199),
            (1 << 10, plain, 0, 8 << 20, 1_023),
            (16 << 10, plain, 0, 200 << 10, 12),
            (100 << 10, plain, 0, 500 << 10, 0),
            (100 << 10, plain, 100, 510 << 10, 5),
            (600 << 10, plain, 100, 8 << 20, 0),
            (1 << 10, lz4, 0, 8 << 20, 127),
            (16 << 10, lz4, 0, 8 << 20, 0),
            (16 << 10, lz4, 100, 8 << 20, 8),
        ] {
            check(size, compression, ms, fair, expected);
        }
    }
}
