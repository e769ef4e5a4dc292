//! How much is asked for, on how many lines, and how much a partition may hold: as much as is on
//! its way on a line of that length, so that waiting for answers does not set the rate, and no more
//! than the memory there is allows.
//!
//! What is fetched from a partition is asked for only when what came before has come: at 1 MiB and
//! 100 ms that makes 10 MB/s. And of what is written the target's answer tells only a round trip
//! later.

use std::ops::RangeInclusive;
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

/// The least that a line asks for, or has under way to the target, before it waits for answers.
const LINE_BYTES_MIN: usize = 1 << 20;
/// The same, however many lines there are: what less would save is little.
const LINE_BYTES_LEAST: usize = 64 << 10;
/// An answer that takes so long is one to enough: with more it may come too late to be waited for.
const SLOW_ANSWER: Duration = Duration::from_secs(1);

/// Lines to one broker at most.
pub const LINES_MAX: usize = 32;
/// There is a line for each so many milliseconds to the broker and back: 50 MB/s, where brokers
/// leave 100 KiB under way on each.
const LINE_MS: u128 = 2;
/// There is a line for so much under way, which is less than any line carries.
const LINE_BYTES: usize = 16 << 10;
/// What fetches on one line hold of the budget at least, for it to be worth while.
const LINE_MEMORY: usize = 256 << 10;

/// How many lines a broker so far away may have, one of so many that share `budget` bytes. All
/// numbers of lines are powers of two, so that when half of them go, the partitions of the others
/// stay where they are.
pub fn lines_max(distance: Duration, budget: usize, brokers: usize) -> usize {
    let by_distance = usize::try_from(distance.as_millis() / LINE_MS).unwrap_or(LINES_MAX);
    let by_memory = budget / 4 / LINE_MEMORY / brokers.max(1);
    let lines = by_distance.min(by_memory).clamp(1, LINES_MAX);
    1 << lines.ilog2()
}

/// How many lines a broker is to have that had `before`, now that so many bytes were under way on
/// average, if it may have `most`. It takes four times less than they are for to take lines away:
/// each change costs those that move a round trip.
pub fn lines(before: usize, under_way: usize, most: usize) -> usize {
    let wanted = under_way.div_ceil(LINE_BYTES).next_power_of_two().min(most);
    let is_quiet = under_way * 4 <= before * LINE_BYTES || most * 4 <= before;
    match is_quiet {
        true => (before / 2).max(1),
        false => before.max(wanted),
    }
}

/// The least that a line asks for, and holds of the budget while nothing comes, where there are so
/// many lines; likewise the least that it may have under way to the target.
pub fn line_bytes_min(budget: usize, lines: usize) -> usize {
    (budget / 4 / lines.max(1)).clamp(LINE_BYTES_LEAST, LINE_BYTES_MIN)
}

/// The most that a line may have under way to the target, where there are so many: half of the
/// memory, over all of them.
pub fn under_way_max(budget: usize, lines: usize) -> usize {
    budget / 2 / lines.max(1)
}

/// What came of a request: a fetch, or what was under way when a produce request was answered.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The bytes there might have been.
    pub most: usize,
    /// The bytes there were.
    pub bytes: usize,
    pub took: Duration,
}

/// How many bytes there may be the next time, within these bounds: more while there are as many as
/// may be, less while there are few.
pub fn next_bytes(answer: Answer, distance: Duration, bounds: RangeInclusive<usize>) -> usize {
    let Answer { most, bytes, took } = answer;
    let is_slow = took >= SLOW_ANSWER.max(distance * 4);
    let next = match bytes {
        full if full >= most / 2 && !is_slow => most * 2,
        few if few < most / 8 => most / 2,
        _ => most,
    };
    next.min(*bounds.end()).max(*bounds.start())
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
    fn a_far_broker_may_have_many_lines_and_the_memory_is_shared() {
        for (ms, budget, brokers, expected) in [
            (0, 64, 1, 1),
            (3, 64, 1, 1),
            (4, 64, 1, 2),
            (40, 64, 1, 16),
            (100, 64, 1, 32),
            (100, 64, 6, 8),
            (100, 64, 100, 1),
            (100, 4, 1, 4),
        ] {
            let most = lines_max(Duration::from_millis(ms), budget * MIB, brokers);

            assert_eq!(most, expected, "{ms} ms, {budget} MiB, {brokers} brokers");
            assert!(line_bytes_min(budget * MIB, most * brokers) * most * brokers <= budget * MIB);
        }
    }

    #[test]
    fn lines_come_with_what_is_carried_and_go_when_it_is_quiet() {
        const KIB: usize = 1 << 10;
        for (before, under_way, most, expected) in [
            (1, 0, 16, 1),
            (1, 16 * KIB, 16, 1),
            // A window.
            (1, 100 * KIB, 16, 8),
            (8, 800 * KIB, 16, 16),
            (1, 800 * KIB, 1, 1),
            // As many as there are for it, or for half of it.
            (16, 256 * KIB, 16, 16),
            (16, 128 * KIB, 16, 16),
            (16, 64 * KIB, 16, 8),
            (2, 0, 16, 1),
            // There are more brokers now.
            (16, 800 * KIB, 4, 8),
        ] {
            let after = lines(before, under_way, most);

            assert_eq!(after, expected, "{before} lines, {under_way} bytes, {most}");
        }
    }

    #[test]
    fn more_is_asked_for_while_answers_are_full_and_soon() {
        let check = |ms, took, bytes, expected| {
            let answer = Answer {
                most: 2 * MIB,
                bytes,
                took: Duration::from_millis(took),
            };
            let next = next_bytes(answer, Duration::from_millis(ms), MIB..=8 * MIB);
            assert_eq!(next, expected * MIB, "{bytes} bytes over {ms} ms in {took}");
        };

        check(0, 10, 2 * MIB, 4);
        check(0, 10, MIB / 2, 2);
        check(0, 10, 0, 1);
        // Twice as much would take twice as long, and requests are given up after some time.
        check(100, 1_000, 2 * MIB, 2);
        check(500, 1_000, 2 * MIB, 4);
    }

    #[test]
    fn a_default_below_kafkas_is_a_limit() {
        let of = |default| partition_bytes(default, Duration::from_millis(100), 64 * MIB);

        assert_eq!(of(1 << 20), Some(6 << 20));
        assert_eq!((of(100_000), of(16 << 20)), (None, None));
        assert_eq!(partition_bytes(1 << 20, Duration::ZERO, 64 * MIB), None);
    }
}
