//! After a doubt: which of our batches does the target's log hold?

use super::{Sequence, TargetMark};
use crate::ids::DownstreamOffset;

/// The state of a target partition, read when nothing of ours is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetTail {
    /// The leader's log end (ListOffsets with replica id -2), not the high watermark, which lags
    /// behind it.
    pub log_end: DownstreamOffset,
    /// What the leader will take from our producer id.
    pub expects: Expects,
}

/// The first sequence number that a broker accepts from our producer id, as DescribeProducers
/// tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// No entry: never written, or expired. Entries expire by *record timestamp*, so that copying
    /// old data loses its protection within minutes. Any first number is accepted.
    Anything,
    /// An entry that only a transaction marker made (last sequence -1): it wants 0 and tells
    /// nothing of our records.
    Restart,
    /// An entry with records of ours: this number and no other.
    Exactly(Sequence),
}

/// What the log says about the batches in doubt. `foreign` counts records of others that came in
/// between: they shift our downstream offsets, nothing is lost by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The first `batches` are there, whole; the others are not.
    Appended {
        /// How many of the batches in doubt.
        batches: usize,
        /// Records of others since the mark.
        foreign: i64,
    },
    /// `records` of ours are there, but they end inside one of the batches or beyond them: another
    /// process of ours, or one before a crash, has gone on from the mark with batches cut
    /// differently.
    Beyond {
        /// Records under our id since the mark.
        records: i64,
        /// Records of others since the mark.
        foreign: i64,
    },
    /// Log end and sequence numbers do not tell: the headers of the batches since the mark must be
    /// looked at.
    LookCloser,
    /// The log ends before the mark: what was acknowledged has vanished, as after an unclean leader
    /// election.
    Truncated {
        /// Acknowledged records that are gone.
        records: i64,
    },
}

/// Compares the log with `mark`, where the first batch in doubt was to go, and with the record
/// counts of those batches.
pub fn settle(mark: TargetMark, in_doubt: &[i64], tail: TargetTail) -> Settled {
    let grown = tail.log_end.0 - mark.downstream.0;
    if grown < 0 {
        return Settled::Truncated { records: -grown };
    }
    match tail.expects {
        // A number from before the mark reads as a huge distance.
        Expects::Exactly(next) if next.since(mark.sequence) <= grown => {
            let records = next.since(mark.sequence);
            settle_counted(in_doubt, records, grown - records)
        }
        // Nothing was added, so nothing of ours.
        Expects::Anything | Expects::Restart if grown == 0 => settle_counted(in_doubt, 0, 0),
        // That the log has grown by as much as we sent may be chance where others write too.
        _ => Settled::LookCloser,
    }
}

/// As [`settle`], where the records since the mark have been counted by the headers of their
/// batches: ours, which have our producer id, and those of others.
pub fn settle_counted(in_doubt: &[i64], records: i64, foreign: i64) -> Settled {
    match batches_ending_at(in_doubt, records) {
        Some(batches) => Settled::Appended { batches, foreign },
        None => Settled::Beyond { records, foreign },
    }
}

/// How many of the first batches hold exactly `records` together.
fn batches_ending_at(in_doubt: &[i64], records: i64) -> Option<usize> {
    let mut end = 0;
    let ends = std::iter::once(0).chain(in_doubt.iter().map(|count| {
        end += count;
        end
    }));
    ends.enumerate()
        .find(|(_, end)| *end == records)
        .map(|(batches, _)| batches)
}

#[cfg(test)]
mod tests {
    use super::Settled::*;
    use super::*;
    use proptest::prelude::*;

    const MARK: TargetMark = TargetMark {
        downstream: DownstreamOffset(100),
        sequence: Sequence(i32::MAX - 1),
    };

    fn seen(log_end: i64, expects: Expects) -> Settled {
        let tail = TargetTail {
            log_end: DownstreamOffset(log_end),
            expects,
        };
        settle(MARK, &[3, 1, 4], tail)
    }

    /// What the broker expects after `records` of ours beyond the mark.
    fn after(records: i64) -> Expects {
        Expects::Exactly(MARK.sequence.plus(records))
    }

    #[test]
    fn sequences_tell_what_was_appended_across_their_wrap() {
        for (records, batches) in [(0, 0), (3, 1), (4, 2), (8, 3)] {
            let none_foreign = Appended {
                batches,
                foreign: 0,
            };
            assert_eq!(seen(100 + records, after(records)), none_foreign);
        }
    }

    #[test]
    fn records_of_others_are_told_from_ours() {
        assert_eq!(
            seen(106, after(4)),
            Appended {
                batches: 2,
                foreign: 2
            }
        );
        assert_eq!(
            seen(102, after(0)),
            Appended {
                batches: 0,
                foreign: 2
            }
        );
    }

    #[test]
    fn an_end_inside_or_beyond_our_batches_is_another_process_of_ours() {
        assert_eq!(
            seen(102, after(2)),
            Beyond {
                records: 2,
                foreign: 0
            }
        );
        assert_eq!(
            seen(120, after(15)),
            Beyond {
                records: 15,
                foreign: 5
            }
        );
    }

    #[test]
    fn without_an_entry_only_a_log_that_has_not_grown_is_understood() {
        for expects in [Expects::Anything, Expects::Restart] {
            let nothing = Appended {
                batches: 0,
                foreign: 0,
            };
            assert_eq!(seen(100, expects), nothing);
            assert_eq!(seen(104, expects), LookCloser);
        }
        let counted = Appended {
            batches: 2,
            foreign: 7,
        };
        assert_eq!(settle_counted(&[3, 1, 4], 4, 7), counted);
    }

    #[test]
    fn a_shorter_log_or_an_older_number_is_never_taken_for_ours() {
        assert_eq!(seen(98, after(0)), Truncated { records: 2 });
        assert_eq!(seen(104, after(-4)), LookCloser);
        assert_eq!(seen(103, after(4)), LookCloser);
    }

    proptest! {
        /// A broker appends a prefix of what we sent, whole batches, with strangers in between.
        #[test]
        fn what_a_broker_did_append_is_found(
            counts in prop::collection::vec(1..1_000i64, 0..5),
            appended in 0..6usize,
            foreign in 0..50i64,
            sequence in 0..=i32::MAX,
            downstream in 0..1i64 << 40,
        ) {
            let appended = appended.min(counts.len());
            let mark = TargetMark {
                downstream: DownstreamOffset(downstream),
                sequence: Sequence(sequence),
            };
            let records: i64 = counts[..appended].iter().sum();
            let tail = TargetTail {
                log_end: DownstreamOffset(downstream + records + foreign),
                expects: Expects::Exactly(mark.sequence.plus(records)),
            };

            prop_assert_eq!(settle(mark, &counts, tail), Appended { batches: appended, foreign });
        }
    }
}
