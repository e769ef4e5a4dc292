//! Counting records beyond a mark by the headers of their batches, when log end and sequence
//! numbers alone do not tell.

use super::{Sequence, TargetMark};
use crate::ids::DownstreamOffset;

/// Whose records lie beyond a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TailCount {
    /// Under our producer id.
    pub ours: i64,
    /// Under others', control records included.
    pub foreign: i64,
}

/// A batch under our producer id is not the one that follows: records of ours are missing before
/// it, or are in the log twice. A broker takes such a batch only if it has forgotten our producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sequence {found} stands at offset {offset} where {due} was due", found = .found.get(), due = .due.get())]
pub struct OutOfSequence {
    /// Where the batch lies.
    pub offset: DownstreamOffset,
    /// The number of its first record.
    pub found: Sequence,
    /// The number that follows the records before it.
    pub due: Sequence,
}

/// Counts the batches of a log, one by one.
#[derive(Debug)]
pub struct TailCounter {
    /// Where the next batch may begin, and the number of our next record.
    at: TargetMark,
    /// Offsets without records since the last batch of ours: compaction may have taken some.
    holes: i64,
    count: TailCount,
}

impl TailCounter {
    /// Counts from `mark` on.
    pub fn new(mark: TargetMark) -> Self {
        TailCounter {
            at: mark,
            holes: 0,
            count: TailCount::default(),
        }
    }

    /// The offset behind the last batch.
    pub fn at(&self) -> DownstreamOffset {
        self.at.downstream
    }

    /// What was counted; offsets without records, of which nobody knows, among the others'.
    pub fn count(&self) -> TailCount {
        TailCount {
            ours: self.count.ours,
            foreign: self.count.foreign + self.holes,
        }
    }

    /// Takes the next batch, which holds the offsets `base..next`; `sequence` is that of its first
    /// record if it is ours.
    ///
    /// # Errors
    /// [`OutOfSequence`].
    pub fn add(
        &mut self,
        base: DownstreamOffset,
        next: DownstreamOffset,
        sequence: Option<Sequence>,
    ) -> Result<(), OutOfSequence> {
        let at = self.at.downstream;
        if next <= at {
            return Ok(());
        }
        let (cut, hole) = ((at.0 - base.0).max(0), (base.0 - at.0).max(0));
        let records = next.0 - base.0 - cut;
        self.holes += hole;
        self.at = self.at.shifted(hole + records);
        let Some(first) = sequence else {
            self.count.foreign += records;
            return Ok(());
        };
        let (found, due) = (first.plus(cut), self.at.sequence);
        let removed = found.since(due);
        if removed > self.holes {
            let offset = base.plus(cut);
            return Err(OutOfSequence { offset, found, due });
        }
        self.count.ours += removed + records;
        self.count.foreign += self.holes - removed;
        self.holes = 0;
        self.at.sequence = found.plus(records);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts batches of `(base, next, sequence)`, a negative sequence for others', from offset 100
    /// and the last sequence before it turns.
    fn counted(batches: &[(i64, i64, i32)]) -> Result<(i64, i64, i64), OutOfSequence> {
        let mark = TargetMark {
            downstream: DownstreamOffset(100),
            sequence: Sequence::new(i32::MAX).unwrap(),
        };
        let mut counter = TailCounter::new(mark);
        for (base, next, sequence) in batches {
            let (base, next) = (DownstreamOffset(*base), DownstreamOffset(*next));
            counter.add(base, next, Sequence::new(*sequence))?;
        }
        let TailCount { ours, foreign } = counter.count();
        Ok((ours, foreign, counter.at().0))
    }

    #[test]
    fn batches_that_follow_on_are_counted_across_those_of_others() {
        let log = [
            (98, 102, i32::MAX - 2),
            (102, 107, -1),
            (107, 110, 1),
            (110, 111, -1),
        ];

        assert_eq!(counted(&log), Ok((5, 6, 111)));
        assert_eq!(counted(&[]), Ok((0, 0, 100)));
    }

    #[test]
    fn a_batch_in_the_place_of_another_is_noticed() {
        let behind_a_lost_one = counted(&[(100, 103, 7)]).unwrap_err();
        let twice = counted(&[(100, 103, i32::MAX), (103, 106, i32::MAX)]).unwrap_err();

        assert_eq!(behind_a_lost_one.offset, DownstreamOffset(100));
        assert_eq!(
            twice.to_string(),
            "sequence 2147483647 stands at offset 103 where 2 was due"
        );
    }

    #[test]
    fn what_compaction_took_is_known_by_the_sequence_that_goes_on() {
        assert_eq!(
            counted(&[(100, 102, i32::MAX), (105, 107, 4)]),
            Ok((7, 0, 107))
        );
        assert_eq!(
            counted(&[(100, 102, i32::MAX), (105, 107, 1)]),
            Ok((4, 3, 107))
        );
        assert!(counted(&[(100, 102, i32::MAX), (105, 107, 5)]).is_err());
    }
}
