//! How much is asked for, and how much a partition may hold: as much as is on its way on a line of
//! that length, so that waiting for answers does not set the rate, and no more than the memory
//! there is allows.
//!
//! What is fetched from a partition is asked for only when what came before has come: at 1 MiB and
//! 100 ms that makes 10 MB/s. And of what is written the target's answer tells only a round trip
//! later.

use std::time::Duration;

/// Near brokers: of one partition. More was slower (page faults).
const NEAR_BYTES: usize = 1 << 20;
/// Of a partition, for each millisecond to the broker and back: 64 MB/s.
const BYTES_A_MS: usize = 64 << 10;
/// Of a partition, however long the line.
const BYTES_MAX: usize = 8 << 20;

/// Near brokers: of a whole fetch. Larger ones are slower: their memory is cold before it is
/// written.
const FETCH_NEAR_BYTES: usize = 8 << 20;
/// Of a whole fetch, for each millisecond to the broker and back: 160 MB/s.
const FETCH_BYTES_A_MS: usize = 160 << 10;
/// Of a whole fetch, however long the line.
const FETCH_BYTES_MAX: usize = 16 << 20;

/// A partition with this much fetched and not acknowledged is not fetched from, if its brokers are
/// so far away and all partitions together may hold `budget` bytes.
pub fn lane_bytes(distance: Duration, budget: usize) -> usize {
    let wanted = scaled(BYTES_A_MS, distance).min(BYTES_MAX).min(budget / 8);
    // In whole steps, so that it changes rarely: each change is told to the broker.
    (wanted / NEAR_BYTES * NEAR_BYTES).max(NEAR_BYTES)
}

/// What a fetch asks for of one partition, if that is more than `default`. A default below Kafka's
/// was chosen to be a limit.
pub fn partition_bytes(default: i32, distance: Duration, budget: usize) -> Option<i32> {
    let wanted = i32::try_from(lane_bytes(distance, budget)).ok()?;
    (wanted > default && default >= NEAR_BYTES as i32).then_some(wanted)
}

/// The most that one fetch asks for.
pub fn fetch_bytes_max(distance: Duration) -> usize {
    scaled(FETCH_BYTES_A_MS, distance).clamp(FETCH_NEAR_BYTES, FETCH_BYTES_MAX)
}

/// What fetches leave of the budget, for batches that are joined: those let go of more.
pub fn spare_bytes(budget: usize) -> usize {
    budget / 8
}

fn scaled(bytes_a_ms: usize, distance: Duration) -> usize {
    let micros = usize::try_from(distance.as_micros()).unwrap_or(usize::MAX);
    bytes_a_ms.saturating_mul(micros) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn sizes_grow_with_the_line_and_stay_within_the_memory() {
        for (ms, budget, lane, fetch) in [
            (0, 64, 1, 8),
            (1, 64, 1, 8),
            (40, 64, 2, 8),
            (100, 64, 6, 15),
            (500, 64, 8, 16),
            (100, 16, 2, 15),
            (100, 4, 1, 15),
        ] {
            let distance = Duration::from_millis(ms);

            let sizes = (
                lane_bytes(distance, budget * MIB) / MIB,
                fetch_bytes_max(distance) / MIB,
            );

            assert_eq!(sizes, (lane, fetch), "{ms} ms, {budget} MiB");
        }
    }

    #[test]
    fn a_default_below_kafkas_is_a_limit() {
        let of = |default| partition_bytes(default, Duration::from_millis(100), 64 * MIB);

        assert_eq!(of(1 << 20), Some(6 << 20));
        assert_eq!((of(100_000), of(16 << 20)), (None, None));
        assert_eq!(partition_bytes(1 << 20, Duration::ZERO, 64 * MIB), None);
    }
}
