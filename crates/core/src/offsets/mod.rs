//! The arithmetic of positions: which upstream records a target's log holds, judged by log end and
//! sequence numbers.

mod count;
mod settle;

pub use self::count::{OutOfSequence, TailCount, TailCounter};
pub use self::settle::{Expects, Settled, TargetTail, settle, settle_counted};

use crate::ids::{DownstreamOffset, Flow};

/// The producer id that a flow writes under, in every process and for ever: it makes the sequence
/// numbers in the target's log continue across restarts. Brokers count up from 0 and never give out
/// ids from 2^60 on.
pub fn producer_id(flow: &Flow) -> i64 {
    const FIRST: i64 = 1 << 60;
    // FNV-1a, which is not going to change under us as the standard library's hash may.
    let hash = flow
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    FIRST + (hash >> 4) as i64
}

/// A producer's sequence number. It counts records and goes from 2^31 - 1 back to 0
/// (`DefaultRecordBatch.incrementSequence`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sequence(i32);

impl Sequence {
    /// What a new producer begins with.
    pub const ZERO: Sequence = Sequence(0);
    const MODULUS: i64 = 1 << 31;

    /// The number as brokers write it; `None` for a negative one, which means that there is none.
    pub fn new(number: i32) -> Option<Self> {
        (number >= 0).then_some(Sequence(number))
    }

    /// The number for the wire.
    pub fn get(self) -> i32 {
        self.0
    }

    /// The number of the record `records` further on.
    #[must_use]
    pub fn plus(self, records: i64) -> Self {
        // The remainder is below 2^31.
        Sequence((i64::from(self.0) + records).rem_euclid(Self::MODULUS) as i32)
    }

    /// How many records lie between `earlier` and this one, if it is fewer than 2^31.
    pub fn since(self, earlier: Sequence) -> i64 {
        (i64::from(self.0) - i64::from(earlier.0)).rem_euclid(Self::MODULUS)
    }
}

/// A place in the target's log under our producer id: where the next record goes, and the number it
/// gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetMark {
    /// The offset that the next record gets.
    pub downstream: DownstreamOffset,
    /// The sequence number that the next record gets.
    pub sequence: Sequence,
}

impl TargetMark {
    /// The place after `records` more.
    #[must_use]
    pub fn plus(self, records: i64) -> Self {
        TargetMark {
            downstream: self.downstream.plus(records),
            sequence: self.sequence.plus(records),
        }
    }

    /// The place after `records` of others, which move the log end and not our sequence.
    #[must_use]
    pub fn shifted(self, records: i64) -> Self {
        TargetMark {
            downstream: self.downstream.plus(records),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flows_producer_id_never_changes() {
        // A change would make every running mirror lose what the target's log knows of it.
        assert_eq!(
            producer_id(&Flow::new("us", "eu")),
            1_816_467_997_884_747_554
        );
        assert_ne!(
            producer_id(&Flow::new("us", "eu")),
            producer_id(&Flow::new("eu", "us"))
        );
    }

    #[test]
    fn sequences_wrap_where_kafkas_do() {
        let last = Sequence::new(i32::MAX).unwrap();

        assert_eq!(last.plus(1), Sequence::ZERO);
        assert_eq!(last.plus(3).get(), 2);
        assert_eq!(Sequence::ZERO.plus(2).since(last), 3);
        assert_eq!(Sequence::ZERO.since(Sequence::ZERO), 0);
        assert_eq!(Sequence::new(-1), None);
    }
}
