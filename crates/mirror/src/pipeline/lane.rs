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
use twinlog_core::ids::UpstreamOffset;

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
        while self.rebuilding.is_none() && self.stopped.is_none() {
            let item = self.planned.pop_front()?;
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

    /// Forgets everything that was not sent, to read it again.
    pub fn reread(&mut self) {
        self.round += 1;
        self.planned.clear();
        self.planned_bytes = 0;
        self.rebuilding = None;
        self.stopped = None;
        self.next_read = self.writer.drop_unsent();
    }

    /// Reads on from `position` because the source no longer has what comes before it.
    pub fn jump_to(&mut self, position: UpstreamOffset) {
        self.reread();
        self.writer.pass_over(position);
        self.next_read = position;
    }

    fn pass_over(&mut self, fill: Fill, counters: &mut Counters) {
        counters.offsets_passed_over[fill.why.index()] += (fill.end.0 - fill.base.0) as u64;
        self.writer.pass_over(fill.end);
    }

    /// Gives a batch to the writer, or says what must be done to it first.
    fn forward_or_job(
        &mut self,
        data: Data,
        counters: &mut Counters,
    ) -> Option<(Job, RebuildReason)> {
        let already_there = self.writer.already_there();
        let (original, reason) = match data.how {
            How::Rebuild(original, reason) => (original, reason),
            How::Forward(batch) => {
                let records = i64::from(batch.header().record_count);
                if already_there == 0 {
                    counters.batches_forwarded += 1;
                    let end = data.end;
                    self.writer.push(Piece { batch, end });
                    return None;
                }
                if already_there >= records {
                    self.writer.on_already_there(records, data.end);
                    return None;
                }
                (Original::Batch(batch), RebuildReason::CutAtPosition)
            }
        };
        let job = Job {
            from: data.base,
            end: data.end,
            original,
            rules: self.rules,
            already_there,
        };
        Some((job, reason))
    }

    fn push_rebuilt(&mut self, rebuilt: Rebuilt, end: UpstreamOffset) {
        if let Some((records, end)) = rebuilt.already_there {
            self.writer.on_already_there(records, end);
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
    fn index(self) -> usize {
        Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .unwrap_or(0)
    }
}
