//! From fetched batches to what must be written: a gapless list of data and fills.
//!
//! ```text
//! source log   │ 0─99 │ 100─149 aborted │ 150 ctl │ 151─180, 3 left │      │ 200─240 │
//! items        │ data │ fill            │ fill    │ data, rebuild   │ fill │ data    │
//! ```
//!
//! The planner looks at headers only and decompresses nothing. A *fill* stands for offsets that
//! hold nothing to write; today they are passed over, with identical offsets they are filled. A:
//! items are in order, B: each begins where the one before ended, the first at the position asked
//! for, C: the last ends at [`Plan::next`].

use std::collections::HashSet;

use bytes::Bytes;
use twinlog_core::ids::UpstreamOffset;
use twinlog_kafka::batch::{
    BatchError, Compression, ControlType, Cut, Entry, LegacyMessage, RawBatch, walk,
};

/// What a planner is told about the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The largest batch the target topic takes (`max.message.bytes`).
    pub batch_bytes_max: usize,
    /// The codec that the user wants everything in; none leaves each batch as it is.
    pub recompress: Option<Compression>,
    /// The target stamps records itself (`message.timestamp.type=LogAppendTime`).
    pub target_stamps: bool,
}

/// What to write for one fetch of one partition.
#[derive(Debug)]
pub struct Plan {
    /// The items, without a gap between them.
    pub items: Vec<Item>,
    /// Where to fetch next.
    pub next: UpstreamOffset,
    /// What ended the walk early. The items before it are good.
    pub trouble: Option<Trouble>,
}

/// Why a fetch could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Bytes that are no batch.
    #[error("the source's answer is damaged")]
    Damaged(#[from] BatchError),
    /// The fetch held nothing but the beginning of a batch. Brokers send a first batch whole
    /// however large it is (KIP-74).
    #[error("the source cut the first batch of its answer after {} bytes", .0.present)]
    OnlyCut(Cut),
    /// A batch lies where none can be: before the end of the one before it, or far behind the high
    /// watermark, which comes second.
    #[error("a batch claims to begin at offset {0}, in a log that ends at {1}")]
    Misplaced(UpstreamOffset, UpstreamOffset),
}

/// A stretch of the source's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Records to write.
    Data(Data),
    /// Offsets that hold nothing to write.
    Fill(Fill),
}

/// A batch with records to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// The first offset it stands for.
    pub base: UpstreamOffset,
    /// The offset behind it.
    pub end: UpstreamOffset,
    /// How it gets to the target.
    pub how: How,
}

/// How a batch gets to the target.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// As it is, under a new header.
    Forward(RawBatch),
    /// Decoded and encoded again, leaving out records before the item's base.
    Rebuild(Original, RebuildReason),
}

/// What is decoded for a rebuild.
#[derive(Debug, Clone, PartialEq)]
pub enum Original {
    /// A batch of today's format.
    Batch(RawBatch),
    /// Messages of the formats before Kafka 0.11.
    Legacy(Vec<LegacyMessage>),
}

/// Why a batch cannot be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RebuildReason {
    /// It begins before the position.
    CutAtPosition,
    /// Compaction left fewer records than offsets, which brokers refuse from producers.
    CompactionGaps,
    /// Its records carry the time of their append, which is in the header and would be lost with
    /// it.
    AppendTime,
    /// The user wants another codec.
    Codec,
    /// It is larger than the target takes and must be split.
    TooLarge,
    /// Its format is from before Kafka 0.11.
    Legacy,
}

impl RebuildReason {
    /// All reasons, in the order in which they are counted.
    pub const ALL: [RebuildReason; 6] = [
        RebuildReason::CutAtPosition,
        RebuildReason::CompactionGaps,
        RebuildReason::AppendTime,
        RebuildReason::Codec,
        RebuildReason::TooLarge,
        RebuildReason::Legacy,
    ];
}

/// Offsets that hold nothing to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The first of them.
    pub base: UpstreamOffset,
    /// The offset behind them.
    pub end: UpstreamOffset,
    /// Why they hold nothing.
    pub why: FillReason,
}

/// Why offsets hold nothing to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FillReason {
    /// A control batch: the end of a transaction.
    Control,
    /// Records of an aborted transaction.
    Aborted,
    /// A batch that compaction emptied.
    Emptied,
    /// There is no batch: compaction or deletion removed it.
    Hole,
}

impl FillReason {
    /// All reasons, in the order in which they are counted.
    pub const ALL: [FillReason; 4] = [
        FillReason::Control,
        FillReason::Aborted,
        FillReason::Emptied,
        FillReason::Hole,
    ];
}

/// A transaction that was aborted, as a fetch of committed records lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted {
    /// Whose.
    pub producer_id: i64,
    /// Where it began, which may be before the fetch.
    pub first_offset: i64,
}

/// Plans the records of one fetch from `position` on.
///
/// `aborted` is the list of this very fetch: the broker names every aborted transaction that
/// reaches into the answer, also one that began long before, so that nothing has to be remembered
/// from fetch to fetch (`AbortedTxn`, `ConsumerRecords`). It is empty for a reader of uncommitted
/// records.
pub fn plan(position: UpstreamOffset, records: Bytes, aborted: &[Aborted], rules: &Rules) -> Plan {
    let mut planner = Planner {
        items: Vec::new(),
        next: position,
        aborted: AbortedSet::new(aborted),
        rules,
    };
    let empty = records.is_empty();
    let mut entries = walk(records);
    let mut trouble = None;
    for entry in &mut entries {
        let planned = match entry {
            Ok(Entry::Batch(batch)) => planner.add(batch),
            Ok(Entry::Legacy(message)) => {
                planner.add_legacy(message);
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = planned {
            trouble = Some(Trouble::Damaged(error));
            break;
        }
    }
    let cut = entries.cut().filter(|cut| cut.position == 0 && !empty);
    Plan {
        trouble: trouble.or(cut.map(Trouble::OnlyCut)),
        items: planner.items,
        next: planner.next,
    }
}

/// Whether batches lie where a log can have them: none before the end of the one before it, none
/// behind a hole that reaches beyond `end`, the high watermark of the same answer. (Records that
/// follow on may lie beyond it: brokers look at it before they read.) Where a batch lies is not
/// under its checksum: believed blindly, a damaged offset would pass over records.
///
/// # Errors
/// [`Trouble::Misplaced`]. Bytes that are no batch are left to [`plan`].
pub fn check_places(
    position: UpstreamOffset,
    records: &Bytes,
    end: UpstreamOffset,
) -> Result<(), Trouble> {
    let mut before = None;
    for entry in walk(records.clone()).map_while(Result::ok) {
        let (base, next) = match entry {
            Entry::Batch(batch) => (batch.header().base_offset, batch.next_offset()),
            Entry::Legacy(message) => (message.next_offset() - 1, message.next_offset()),
        };
        let due = before.unwrap_or(position.0.max(0));
        let is_late = base > due && base > end.0;
        if is_late || before.is_some_and(|before| base < before) {
            return Err(Trouble::Misplaced(UpstreamOffset(base), end));
        }
        before = Some(next);
    }
    Ok(())
}

struct Planner<'a> {
    items: Vec<Item>,
    next: UpstreamOffset,
    aborted: AbortedSet,
    rules: &'a Rules,
}

impl Planner<'_> {
    fn add(&mut self, batch: RawBatch) -> Result<(), BatchError> {
        let is_aborted = self.aborted.on_batch(&batch)?;
        let (base, end) = (
            UpstreamOffset(batch.header().base_offset),
            UpstreamOffset(batch.next_offset()),
        );
        // A fetch answers whole batches: the first may begin, or even end, before the position.
        if end <= self.next {
            return Ok(());
        }
        self.fill_to(base, FillReason::Hole);
        if batch.is_control() {
            self.fill_to(end, FillReason::Control);
        } else if is_aborted {
            self.fill_to(end, FillReason::Aborted);
        } else if batch.header().record_count == 0 {
            self.fill_to(end, FillReason::Emptied);
        } else {
            let how = match self.rebuild_reason(base, &batch) {
                None => How::Forward(batch),
                Some(reason) => How::Rebuild(Original::Batch(batch), reason),
            };
            self.push_data(end, how);
        }
        Ok(())
    }

    fn rebuild_reason(&self, base: UpstreamOffset, batch: &RawBatch) -> Option<RebuildReason> {
        let rules = self.rules;
        if base < self.next {
            Some(RebuildReason::CutAtPosition)
        } else if !batch.is_contiguous() {
            Some(RebuildReason::CompactionGaps)
        } else if batch.header().attributes.is_append_time() && !rules.target_stamps {
            Some(RebuildReason::AppendTime)
        } else if rules
            .recompress
            .is_some_and(|codec| codec != batch.compression())
        {
            Some(RebuildReason::Codec)
        } else if batch.size() > rules.batch_bytes_max {
            Some(RebuildReason::TooLarge)
        } else {
            None
        }
    }

    /// Joins neighbouring messages: one record a batch would cost the target dearly. The offset of
    /// a compressed one is its last, so that holes before it are not seen here; they belong to
    /// the item.
    fn add_legacy(&mut self, message: LegacyMessage) {
        let end = UpstreamOffset(message.next_offset());
        if end <= self.next {
            return;
        }
        if let Some(Item::Data(Data {
            end: last,
            how: How::Rebuild(Original::Legacy(messages), _),
            ..
        })) = self.items.last_mut()
        {
            messages.push(message);
            *last = end;
            self.next = end;
            return;
        }
        self.push_data(
            end,
            How::Rebuild(Original::Legacy(vec![message]), RebuildReason::Legacy),
        );
    }

    fn push_data(&mut self, end: UpstreamOffset, how: How) {
        self.items.push(Item::Data(Data {
            base: self.next,
            end,
            how,
        }));
        self.next = end;
    }

    fn fill_to(&mut self, end: UpstreamOffset, why: FillReason) {
        if end > self.next {
            let base = std::mem::replace(&mut self.next, end);
            self.items.push(Item::Fill(Fill { base, end, why }));
        }
    }
}

/// Which producers' batches are to be dropped at the place the walk has reached (`CompletedFetch`
/// in Java's consumer).
struct AbortedSet {
    /// Transactions that begin further on, the nearest last.
    ahead: Vec<Aborted>,
    open: HashSet<i64>,
}

impl AbortedSet {
    fn new(aborted: &[Aborted]) -> Self {
        let mut ahead = aborted.to_vec();
        ahead.sort_unstable_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        AbortedSet {
            ahead,
            open: HashSet::new(),
        }
    }

    /// Whether `batch` belongs to an aborted transaction. Must see all batches in order.
    fn on_batch(&mut self, batch: &RawBatch) -> Result<bool, BatchError> {
        while let Some(transaction) = self.ahead.last() {
            if transaction.first_offset > batch.last_offset() {
                break;
            }
            self.open.insert(transaction.producer_id);
            self.ahead.pop();
        }
        if self.open.is_empty() {
            return Ok(false);
        }
        if let Some(control) = batch.control()? {
            if control.kind == ControlType::Abort {
                self.open.remove(&control.producer_id);
            }
            return Ok(false);
        }
        Ok(batch.is_transactional() && self.open.contains(&batch.header().producer_id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{APPEND_TIME, TRANSACTIONAL, batch, batch_from, data, marker};
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        batch_bytes_max: 1 << 20,
        recompress: None,
        target_stamps: false,
    };

    /// What was planned, as text: `0-3 forward, 3-4 Control`.
    fn shown(plan: &Plan) -> String {
        let show = |item: &Item| match item {
            Item::Fill(fill) => format!("{}-{} {:?}", fill.base, fill.end, fill.why),
            Item::Data(data) => match &data.how {
                How::Forward(_) => format!("{}-{} forward", data.base, data.end),
                How::Rebuild(_, reason) => format!("{}-{} {reason:?}", data.base, data.end),
            },
        };
        plan.items.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    fn check(position: i64, log: &[Bytes], aborted: &[(i64, i64)], rules: &Rules, expected: &str) {
        let aborted: Vec<Aborted> = aborted
            .iter()
            .map(|(producer_id, first_offset)| Aborted {
                producer_id: *producer_id,
                first_offset: *first_offset,
            })
            .collect();
        let plan = plan(
            UpstreamOffset(position),
            log.concat().into(),
            &aborted,
            rules,
        );
        assert_eq!(shown(&plan), expected);
        assert_eq!(plan.trouble, None);
    }

    #[test]
    fn batches_are_forwarded_and_holes_are_filled() {
        for (position, log, expected) in [
            (0, vec![], ""),
            (0, vec![data(0, 3), data(3, 9)], "0-3 forward, 3-9 forward"),
            (
                2,
                vec![data(5, 6), data(8, 9)],
                "2-5 Hole, 5-6 forward, 6-8 Hole, 8-9 forward",
            ),
            (4, vec![data(0, 3), data(3, 6)], "4-6 CutAtPosition"),
            (6, vec![data(0, 3), data(3, 6)], ""),
            (0, vec![batch(&[0, 2], 5, 0, -1)], "0-5 CompactionGaps"),
            (0, vec![batch_from(0, &[3], 4, 0, -1)], "0-4 CompactionGaps"),
            (3, vec![batch_from(3, &[], 5, 0, -1)], "3-5 Emptied"),
            (
                0,
                vec![marker(0, 7, true), data(1, 2)],
                "0-1 Control, 1-2 forward",
            ),
            (0, vec![batch(&[0], 1, APPEND_TIME, -1)], "0-1 AppendTime"),
        ] {
            check(position, &log, &[], &RULES, expected);
        }
    }

    #[test]
    fn the_target_decides_over_times_sizes_and_the_user_over_codecs() {
        let stamps = Rules {
            target_stamps: true,
            ..RULES
        };
        check(
            0,
            &[batch(&[0], 1, APPEND_TIME, -1)],
            &[],
            &stamps,
            "0-1 forward",
        );

        let size = data(0, 3).len();
        let fits = Rules {
            batch_bytes_max: size,
            ..RULES
        };
        let does_not = Rules {
            batch_bytes_max: size - 1,
            ..RULES
        };
        check(0, &[data(0, 3)], &[], &fits, "0-3 forward");
        check(0, &[data(0, 3)], &[], &does_not, "0-3 TooLarge");

        let zstd = Rules {
            recompress: Some(Compression::Zstd),
            ..RULES
        };
        let none = Rules {
            recompress: Some(Compression::None),
            ..RULES
        };
        check(0, &[data(0, 3)], &[], &zstd, "0-3 Codec");
        check(0, &[data(0, 3)], &[], &none, "0-3 forward");
    }

    #[test]
    fn aborted_records_are_dropped_between_their_beginning_and_their_marker() {
        let log = [
            batch(&[0], 1, TRANSACTIONAL, 7),
            batch(&[1], 2, TRANSACTIONAL, 8),
            data(2, 3),
            batch(&[3], 4, TRANSACTIONAL, 7),
            marker(4, 7, false),
            marker(5, 8, true),
            batch(&[6], 7, TRANSACTIONAL, 7),
            marker(7, 7, true),
        ];

        let expected = "0-1 Aborted, 1-2 forward, 2-3 forward, 3-4 Aborted, 4-5 Control, \
                        5-6 Control, 6-7 forward, 7-8 Control";
        check(0, &log, &[(7, 0)], &RULES, expected);
        let read_uncommitted = "0-1 forward, 1-2 forward, 2-3 forward, 3-4 forward, 4-5 Control, \
                                5-6 Control, 6-7 forward, 7-8 Control";
        check(0, &log, &[], &RULES, read_uncommitted);
    }

    #[test]
    fn a_transaction_that_began_before_the_fetch_is_named_by_the_fetch() {
        let log = [batch(&[10], 11, TRANSACTIONAL, 7), marker(11, 7, false)];

        check(10, &log, &[(7, 2)], &RULES, "10-11 Aborted, 11-12 Control");
    }

    #[test]
    fn the_same_producer_may_abort_twice_in_one_fetch() {
        let log = [
            batch(&[0], 1, TRANSACTIONAL, 7),
            marker(1, 7, false),
            batch(&[2], 3, TRANSACTIONAL, 7),
            marker(3, 7, true),
            batch(&[4], 5, TRANSACTIONAL, 7),
            marker(5, 7, false),
        ];

        let expected =
            "0-1 Aborted, 1-2 Control, 2-3 forward, 3-4 Control, 4-5 Aborted, 5-6 Control";
        check(0, &log, &[(7, 4), (7, 0)], &RULES, expected);
    }

    #[test]
    fn a_cut_batch_is_left_for_the_next_fetch_unless_it_is_all_there_is() {
        let cut = data(3, 9).slice(..70);
        let both = [data(0, 3), cut.clone()].concat().into();

        let planned = plan(UpstreamOffset(0), both, &[], &RULES);
        assert_eq!((planned.next, planned.trouble), (UpstreamOffset(3), None));
        let only = plan(UpstreamOffset(3), cut, &[], &RULES);
        assert!(matches!(only.trouble, Some(Trouble::OnlyCut(_))));
    }

    #[test]
    fn what_comes_before_damaged_bytes_is_still_good() {
        let mut damaged = data(3, 9).to_vec();
        damaged[16] = 9;
        let log = [data(0, 3).to_vec(), damaged].concat().into();

        let planned = plan(UpstreamOffset(0), log, &[], &RULES);

        assert_eq!(shown(&planned), "0-3 forward");
        assert!(matches!(planned.trouble, Some(Trouble::Damaged(_))));
    }

    #[test]
    fn a_batch_where_none_can_be_is_not_believed() {
        let check = |second: i64, end| {
            let log = [data(0, 3), data(second, second + 6), data(20, 21)].concat();
            check_places(UpstreamOffset(1), &log.into(), UpstreamOffset(end))
        };

        assert_eq!(check(3, 21), Ok(()));
        assert_eq!(check(8, 21), Ok(()));
        assert_eq!(
            check(14, 3),
            Err(Trouble::Misplaced(UpstreamOffset(14), UpstreamOffset(3)))
        );
        for damaged in [0, 2, 15, 3 ^ 1 << 33] {
            assert!(check(damaged, 21).is_err(), "{damaged}");
        }
    }

    #[test]
    fn records_that_follow_on_may_lie_beyond_the_high_watermark() {
        let log = [data(0, 3), data(3, 9)].concat().into();

        assert_eq!(
            check_places(UpstreamOffset(1), &log, UpstreamOffset(2)),
            Ok(())
        );
    }

    proptest! {
        /// Whatever a log holds and wherever reading begins, items are gapless from the position to its end.
        #[test]
        fn items_are_gapless(
            pieces in prop::collection::vec((0..4i64, 1..9i64, 0..6u8), 1..12),
            position in 0..60i64,
        ) {
            let (mut log, mut at) = (Vec::new(), 0);
            for (hole, length, kind) in pieces {
                at += hole;
                let end = at + length;
                log.push(match kind {
                    0 => data(at, end),
                    1 => batch_from(at, &[], end, 0, -1),
                    2 => batch_from(at, &[at], end, 0, -1),
                    3 => { at = end - 1; marker(at, 7, false) }
                    4 => batch(&(at..end).collect::<Vec<_>>(), end, TRANSACTIONAL, 7),
                    _ => batch(&(at..end).collect::<Vec<_>>(), end, TRANSACTIONAL, 8),
                });
                at = end;
            }
            let aborted = [Aborted { producer_id: 7, first_offset: 0 }];

            let planned = plan(UpstreamOffset(position), log.concat().into(), &aborted, &RULES);

            let mut next = UpstreamOffset(position);
            for item in &planned.items {
                let (base, end) = match item {
                    Item::Data(data) => (data.base, data.end),
                    Item::Fill(fill) => (fill.base, fill.end),
                };
                prop_assert_eq!(base, next);
                prop_assert!(end > base);
                next = end;
            }
            prop_assert_eq!(planned.next, next);
            prop_assert_eq!(next.0, at.max(position));
        }
    }
}
