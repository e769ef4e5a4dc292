//! One partition's way from the source to the target: what was fetched is planned, rebuilt where it
//! must be, and handed to the writer, in order. It does no I/O.
//!
//! ```text
//! fetch ── planner ──> planned ──┬─ forward ──────────┬──> writer ──> target
//!                                └─ rebuild (a job) ──┘
//! ```
//!
//! Jobs on large batches are given away to be done on another thread; what comes after them waits.

use std::collections::VecDeque;

use bytes::Bytes;
use twinlog_core::ids::{DownstreamOffset, UpstreamOffset};

use super::overlap::{There, Unmet};
use super::planner::{
    Aborted, Data, Fill, FillReason, How, Item, Original, RebuildReason, Rules, Trouble, plan,
};
use super::rebuild::{Job, Rebuilt, Stopped, rebuild};
use super::writer::{Frontier, Piece, Writer};
use crate::status::Counters;

/// Batches up to this size are rebuilt on the spot: it takes less time than to hand them over.
const ON_THE_SPOT_BYTES_MAX: usize = 16 << 10;

/// A job for another thread, with what it takes to recognise its result.
#[derive(Debug)]
pub struct Order {
    /// What to do.
    pub job: Job,
    /// To be handed back with the result.
    pub round: u64,
}

/// One partition's way.
#[derive(Debug)]
pub struct Lane {
    /// What was pushed and what became of it.
    pub writer: Writer,
    rules: Rules,
    next_read: UpstreamOffset,
    planned: VecDeque<Item>,
    planned_bytes: usize,
    /// The end of the batch that another thread works on, and its size.
    rebuilding: Option<(UpstreamOffset, usize)>,
    /// Rises when everything read is forgotten, so that late results are recognised.
    round: u64,
    stopped: Option<Stopped>,
    unmet: Option<Unmet>,
}

/// What must be found out before a lane goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Where the source's log ends now, as far as it may be read: see [`Lane::on_source_end`].
    SourceEnd,
    /// The records on the target that are passed over: see [`Lane::on_prints`].
    Prints {
        /// Where they begin.
        from: DownstreamOffset,
        /// The offset behind them.
        to: DownstreamOffset,
        /// To be handed back with them.
        round: u64,
    },
}

impl Lane {
    /// A lane that goes on from `frontier`.
    pub fn new(producer_id: i64, frontier: Frontier, rules: Rules) -> Self {
        Lane {
            writer: Writer::new(producer_id, frontier),
            rules,
            next_read: frontier.upstream,
            planned: VecDeque::new(),
            planned_bytes: 0,
            rebuilding: None,
            round: 0,
            stopped: None,
            unmet: None,
        }
    }

    /// The source offset to fetch from.
    pub fn next_read(&self) -> UpstreamOffset {
        self.next_read
    }

    /// Bytes fetched and not yet acknowledged.
    pub fn bytes(&self) -> usize {
        self.planned_bytes + self.rebuilding.map_or(0, |(_, size)| size) + self.writer.bytes()
    }

    /// Whether everything read is written.
    pub fn is_drained(&self) -> bool {
        self.planned.is_empty() && self.rebuilding.is_none() && self.writer.is_idle()
    }

    /// What keeps the next batch from being written, once everything before it is on its way.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// What the target takes.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Goes by other rules; what was read is read again.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        self.reread();
    }

    /// Plans what a fetch from [`Lane::next_read`] brought.
    pub fn on_fetched(&mut self, records: Bytes, aborted: &[Aborted]) -> Result<(), Trouble> {
        let plan = plan(self.next_read, records, aborted, &self.rules);
        self.next_read = plan.next;
        self.planned_bytes += plan.items.iter().map(Item::bytes).sum::<usize>();
        self.planned.extend(plan.items);
        plan.trouble.map_or(Ok(()), Err)
    }

    /// Hands what is planned to the writer, up to the next large job, which it gives away.
    pub fn feed(&mut self, counters: &mut Counters) -> Option<Order> {
        while self.may_feed() {
            self.end_at_source_end();
            let Some(item) = self.planned.pop_front() else {
                // Room for batches of a partition that has none: see `Writer::give_back_room`.
                self.planned = VecDeque::new();
                return None;
            };
            self.planned_bytes -= item.bytes();
            match item {
                Item::Fill(fill) => self.pass_over(fill, counters),
                Item::Data(data) => {
                    let Some((job, reason)) = self.forward_or_job(data, counters) else {
                        continue;
                    };
                    counters.batches_rebuilt[reason.index()] += 1;
                    if job.size() > ON_THE_SPOT_BYTES_MAX {
                        self.rebuilding = Some((job.end, job.size()));
                        let round = self.round;
                        return Some(Order { job, round });
                    }
                    let end = job.end;
                    self.push_rebuilt(rebuild(&job), end);
                }
            }
        }
        None
    }

    /// In doubt the log may hold more than the writer knows of, and even a gap must not be passed
    /// over: the records behind the mark may have stood there.
    fn may_feed(&self) -> bool {
        self.rebuilding.is_none()
            && self.stopped.is_none()
            && !self.writer.is_in_doubt()
            && self.wanted().is_none()
    }

    /// Takes the result of an [`Order`]. One that was given before everything was forgotten is
    /// dropped.
    pub fn on_rebuilt(&mut self, round: u64, rebuilt: Rebuilt) {
        if round != self.round {
            return;
        }
        if let Some((end, _)) = self.rebuilding.take() {
            self.push_rebuilt(rebuilt, end);
        }
    }

    /// Has the batch that comes next sent again as the batches of the source it was made of, if it
    /// was made of several: the target refuses one of them.
    pub fn unjoin(&mut self) -> bool {
        let was_joined = self.writer.unjoin();
        if was_joined {
            self.reread();
        }
        was_joined
    }

    /// Forgets everything that was not sent, to read it again.
    pub fn reread(&mut self) {
        self.round += 1;
        self.planned = VecDeque::new();
        self.planned_bytes = 0;
        self.rebuilding = None;
        self.stopped = None;
        self.next_read = self.writer.drop_unsent();
    }

    /// Reads on from `position`, which lies further on, because the source no longer has what comes
    /// before it. To be called when [`Lane::is_drained`]. It gives back how many offsets were passed
    /// that may have held records which are not on the target.
    pub fn jump_to(&mut self, position: UpstreamOffset) -> u64 {
        let passed = (position.0 - self.next_read.0).max(0);
        self.round += 1;
        self.stopped = None;
        self.next_read = position;
        let lost = self.writer.on_already_there(passed, position);
        self.writer.pass_over(position);
        lost.unsigned_abs()
    }

    /// What must be found out before anything more is fed.
    pub fn wanted(&self) -> Option<Wanted> {
        let overlap = self.writer.overlap()?;
        if overlap.source_end.is_none() {
            return Some(Wanted::SourceEnd);
        }
        let is_unclear = self.planned.front().is_some_and(Item::shows_gaps);
        let may_ask = self.rebuilding.is_none() && self.stopped.is_none();
        if !is_unclear || !may_ask || !overlap.can_compare() {
            return None;
        }
        let from = self.writer.frontier().mark.downstream;
        Some(Wanted::Prints {
            from,
            to: from.plus(overlap.total + overlap.foreign),
            round: self.round,
        })
    }

    /// Takes where the source's log ended at some time after the target's was looked at.
    pub fn on_source_end(&mut self, end: UpstreamOffset) {
        if let Some(overlap) = self.writer.overlap_mut() {
            overlap.source_end.get_or_insert(end);
        }
    }

    /// Takes the prints of the records that [`Wanted::Prints`] asked for.
    pub fn on_prints(&mut self, round: u64, prints: Vec<u64>) {
        let Some(overlap) = self.writer.overlap_mut().filter(|_| round == self.round) else {
            return;
        };
        // If some are missing, the target has compacted them: which, nobody knows.
        if prints.len() as i64 == overlap.total {
            overlap.prints = Some(prints.into());
        } else {
            self.end_overlap(false);
        }
    }

    /// How the last overlap ended, if that is worth telling, once.
    pub fn take_unmet(&mut self) -> Option<Unmet> {
        self.unmet.take()
    }

    fn end_overlap(&mut self, at_end: bool) {
        self.unmet = self.writer.overlap().map(|overlap| Unmet {
            from: overlap.reached,
            records: overlap.left,
            at_end,
        });
        self.writer.end_overlap();
    }

    /// What was copied before lies before where the source's log ended since.
    fn end_at_source_end(&mut self) {
        let end = self.writer.overlap().and_then(|overlap| overlap.source_end);
        let next = match self.planned.front() {
            Some(Item::Data(data)) => data.base,
            Some(Item::Fill(fill)) => fill.base,
            None => self.next_read,
        };
        if end.is_some_and(|end| next >= end) {
            self.end_overlap(true);
        }
    }

    fn pass_over(&mut self, fill: Fill, counters: &mut Counters) {
        let offsets = fill.end.0 - fill.base.0;
        counters.offsets_passed_over[fill.why.index()] += offsets.unsigned_abs();
        let is_counted = self
            .writer
            .overlap()
            .is_some_and(|overlap| overlap.prints.is_none());
        if is_counted && fill.why.may_have_held_records() {
            self.writer.on_already_there(offsets, fill.end);
        }
        self.writer.pass_over(fill.end);
    }

    /// Gives a batch to the writer, or says what must be done to it first.
    fn forward_or_job(
        &mut self,
        data: Data,
        counters: &mut Counters,
    ) -> Option<(Job, RebuildReason)> {
        let overlap = self.writer.overlap();
        let there = overlap.map(|overlap| overlap.there(data.base, !self.rules.target_stamps));
        let (original, reason) = match (data.how, &there) {
            (How::Rebuild(original, reason), _) => (original, reason),
            (How::Forward(batch), None) => {
                counters.batches_forwarded += 1;
                let end = data.end;
                self.writer.push(Piece::new(batch, end));
                return None;
            }
            (How::Forward(batch), Some(There::Offsets(offsets)))
                if *offsets >= i64::from(batch.header().record_count) =>
            {
                let records = i64::from(batch.header().record_count);
                self.writer.on_already_there(records, data.end);
                return None;
            }
            (How::Forward(batch), Some(_)) => {
                (Original::Batch(batch), RebuildReason::CutAtPosition)
            }
        };
        let job = Job {
            from: data.base,
            end: data.end,
            original,
            rules: self.rules,
            there: there.unwrap_or(There::Offsets(0)),
        };
        Some((job, reason))
    }

    fn push_rebuilt(&mut self, rebuilt: Rebuilt, end: UpstreamOffset) {
        if let Some((records, end)) = rebuilt.already_there {
            self.writer.on_already_there(records, end);
        }
        if !rebuilt.pieces.is_empty() && self.writer.overlap().is_some() {
            self.end_overlap(false);
        }
        for piece in rebuilt.pieces {
            self.writer.push(piece);
        }
        match rebuilt.stopped {
            None => self.writer.pass_over(end),
            Some(stopped) => self.stopped = Some(stopped),
        }
    }
}

impl Item {
    /// Whether records are missing that may have been there when others of it were copied.
    fn shows_gaps(&self) -> bool {
        match self {
            Item::Fill(fill) => fill.why.may_have_held_records(),
            Item::Data(Data { how, .. }) => {
                matches!(how, How::Rebuild(_, RebuildReason::CompactionGaps))
            }
        }
    }

    /// The size of the batch in bytes.
    fn bytes(&self) -> usize {
        match self {
            Item::Fill(_) => 0,
            Item::Data(Data { how, .. }) => match how {
                How::Forward(batch) => batch.size(),
                How::Rebuild(original, _) => original.size(),
            },
        }
    }
}

impl RebuildReason {
    fn index(self) -> usize {
        Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .unwrap_or(0)
    }
}

impl FillReason {
    /// Whether there may have been records to copy, once.
    fn may_have_held_records(self) -> bool {
        match self {
            FillReason::Control | FillReason::Aborted => false,
            FillReason::Emptied | FillReason::Hole => true,
        }
    }

    fn index(self) -> usize {
        Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use twinlog_core::offsets::{Expects, Sequence, TargetMark, TargetTail};
    use twinlog_kafka::memory::MemoryBudget;

    use super::*;
    use crate::pipeline::joining::Joining;
    use crate::pipeline::testing::data;

    #[test]
    fn a_lane_that_is_drained_keeps_no_room_for_batches() {
        let log_end = DownstreamOffset(0);
        let frontier = Frontier {
            upstream: UpstreamOffset(0),
            mark: TargetMark {
                downstream: log_end,
                sequence: Sequence::ZERO,
            },
        };
        let rules = Rules {
            batch_bytes_max: 1 << 20,
            recompress: None,
            target_stamps: false,
        };
        let mut lane = Lane::new(1 << 60, frontier, rules);
        let expects = Expects::Anything;
        lane.writer.on_tail(TargetTail { log_end, expects });

        lane.on_fetched(data(0, 3), &[]).unwrap();
        lane.feed(&mut Counters::default());
        let outgoing = lane.writer.send(&Joining {
            size_max: 1 << 20,
            round_trip: Duration::ZERO,
            budget: &MemoryBudget::new(1 << 20),
        });
        let while_sent = lane.writer.room();
        lane.writer.on_ack(outgoing.unwrap().ticket, 0);

        assert!(lane.is_drained());
        assert!(while_sent > 0);
        assert_eq!((lane.planned.capacity(), lane.writer.room()), (0, 0));
    }
}
