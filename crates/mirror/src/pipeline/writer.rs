//! What is written to one target partition, and what became of it: the state machine behind the
//! promise that nothing is lost and nothing doubled. It does no I/O and knows no clock.
//!
//! ```text
//!          push ─> queue ─> send ─> window (at most 5) ─> ack ─> frontier
//!                    ^                   │
//!                    └── settle <── doubt┘
//! ```
//!
//! Everything goes out under one fixed producer id and an epoch that is never bumped, so that the
//! broker's sequence check is a compare-and-swap on the log: a batch is appended at its place or
//! not at all, whoever sends it and however often. After any doubt - an unexpected answer, a lost
//! connection - nothing more is sent until all that is on its way is answered or lost. Then the log
//! is asked what it holds, [`settle`] compares, and the rest is sent again.
//!
//! Where more batches wait than may be under way, and they are small, several go out as one: see
//! [`Joining`].
//!
//! Invariants: A: the window is contiguous in sequence and begins at the frontier's mark; B: queue
//! and window hold, in order, everything pushed and not yet acknowledged; C: the frontier never
//! passes a record that is not in the log.

use std::collections::VecDeque;

use twinlog_core::ids::UpstreamOffset;
use twinlog_core::offsets::{
    Expects, Sequence, Settled, TargetMark, TargetTail, settle, settle_counted,
};
use twinlog_kafka::batch::{ProducerStamp, RawBatch, join};

use super::joining::Joining;
use super::overlap::Overlap;

/// More than this a broker does not remember, and would not recognise as a duplicate
/// (`ProducerStateEntry`).
pub const IN_FLIGHT_MAX: usize = 5;

/// More records than this nobody else writes between two of our batches: a number that says so is
/// damaged.
pub const FOREIGN_MAX: i64 = 1 << 40;

/// How far a partition is mirrored: everything before `upstream` is in the target's log before
/// `mark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frontier {
    /// The first source offset that is not done.
    pub upstream: UpstreamOffset,
    /// Where the record that follows goes.
    pub mark: TargetMark,
}

/// A batch ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The batch; its producer fields are set when it is sent.
    pub batch: RawBatch,
    /// The source offset behind it and everything that is passed over after it.
    pub end: UpstreamOffset,
    is_joined: bool,
}

impl Piece {
    /// A batch that holds everything up to `end` that is to be written.
    pub fn new(batch: RawBatch, end: UpstreamOffset) -> Self {
        Piece {
            batch,
            end,
            is_joined: false,
        }
    }

    fn records(&self) -> i64 {
        i64::from(self.batch.header().record_count)
    }
}

/// A batch on its way out.
#[derive(Debug)]
pub struct Outgoing {
    /// Names it in the answer.
    pub ticket: u64,
    /// The batch.
    pub batch: RawBatch,
    /// What its header must say.
    pub stamp: ProducerStamp,
}

/// What an acknowledgement told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acked {
    /// The batch is where it belongs.
    InPlace {
        /// Its records.
        records: i64,
        /// Its bytes.
        bytes: usize,
        /// Records of others that came in before it.
        foreign: i64,
    },
    /// The answer does not fit; the log must be asked.
    Doubt,
    /// It was settled in the meantime.
    Stale,
}

/// How a doubt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// Sending goes on with what was not appended.
    Continues {
        /// Batches found in the log.
        appended: usize,
        /// Records of others that came in.
        foreign: i64,
    },
    /// The log holds records of ours that end elsewhere than our batches do. Everything pushed is
    /// forgotten; push from [`Writer::frontier`] on again, and what is there is passed over.
    Replays {
        /// Records of ours in the log beyond the frontier.
        records: i64,
        /// Records of others beyond it.
        foreign: i64,
    },
    /// Nothing changed: count our records in the log beyond the mark, then call
    /// [`Writer::on_counted`].
    LookCloser,
    /// Nothing changed: acknowledged records are gone from the log.
    Truncated {
        /// How many.
        records: i64,
    },
}

/// The writer of one partition.
#[derive(Debug)]
pub struct Writer {
    producer_id: i64,
    frontier: Frontier,
    /// Where the next batch to be sent goes.
    next: TargetMark,
    queue: VecDeque<Piece>,
    window: VecDeque<Sent>,
    queued_bytes: usize,
    /// So many of the queue were sent before. They go out again as they were, so that the broker
    /// recognises those that it has.
    returned: usize,
    /// Before this nothing is joined.
    singly_until: UpstreamOffset,
    next_ticket: u64,
    /// The broker's entry of our producer is young: it will not forget us while more is sent.
    is_remembered: bool,
    /// Batches that end before this (Unix, ms) are old: it may forget us by them.
    old_before: i64,
    /// The next batch was sent before, and was not in the log when that was looked at.
    is_resending: bool,
    /// The frontier stays until it is over: between its records may lie those of others, so that
    /// no place in their midst is known.
    overlap: Option<Overlap>,
    overlap_ended: bool,
    in_doubt: bool,
}

#[derive(Debug)]
struct Sent {
    ticket: u64,
    piece: Piece,
    base: TargetMark,
    waiting: bool,
}

impl Writer {
    /// A writer that goes on from `frontier`; it is in doubt until the log was looked at.
    pub fn new(producer_id: i64, frontier: Frontier) -> Self {
        Writer {
            producer_id,
            frontier,
            next: frontier.mark,
            queue: VecDeque::new(),
            window: VecDeque::new(),
            queued_bytes: 0,
            returned: 0,
            singly_until: UpstreamOffset(i64::MIN),
            next_ticket: 0,
            is_remembered: false,
            old_before: i64::MIN,
            is_resending: false,
            overlap: None,
            overlap_ended: false,
            in_doubt: true,
        }
    }

    /// How far everything is acknowledged.
    pub fn frontier(&self) -> Frontier {
        self.frontier
    }

    /// Bytes pushed and not yet acknowledged.
    pub fn bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Whether nothing is waiting to be sent or acknowledged.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.window.is_empty()
    }

    /// Whether the log must be looked at before anything more is sent.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether an answer is outstanding.
    pub fn is_waiting(&self) -> bool {
        self.window.iter().any(|sent| sent.waiting)
    }

    /// What comes next and is not to be pushed, because the log holds it already.
    pub fn overlap(&self) -> Option<&Overlap> {
        self.overlap.as_ref()
    }

    /// As [`Writer::overlap`], to be told more about it.
    pub fn overlap_mut(&mut self) -> Option<&mut Overlap> {
        self.overlap.as_mut()
    }

    /// Passes over up to `records` that the log holds already; `end` is the source offset behind
    /// them. Those that it does not hold come back.
    pub fn on_already_there(&mut self, records: i64, end: UpstreamOffset) -> i64 {
        let Some(overlap) = &mut self.overlap else {
            return records;
        };
        let others = overlap.pass(records, end);
        if overlap.left == 0 {
            self.end_overlap();
        }
        others
    }

    /// Goes on behind what was passed over, whether or not all was met that the log holds.
    pub fn end_overlap(&mut self) {
        let Some(overlap) = self.overlap.take() else {
            return;
        };
        self.frontier = Frontier {
            upstream: overlap.reached,
            mark: self
                .frontier
                .mark
                .plus(overlap.total)
                .shifted(overlap.foreign),
        };
        self.next = self.frontier.mark;
        self.overlap_ended = true;
    }

    /// Whether an overlap has ended, once. Then the frontier must be stored before anything is sent:
    /// some records may be sent a second time, and counted from the stored place after another
    /// crash, both copies would be taken for records of the source.
    pub fn take_overlap_ended(&mut self) -> bool {
        std::mem::take(&mut self.overlap_ended)
    }

    /// Appends a piece to what is to be written.
    pub fn push(&mut self, piece: Piece) {
        debug_assert!(
            self.overlap.is_none(),
            "what the log holds must not be sent"
        );
        self.queued_bytes += piece.batch.size();
        self.queue.push_back(piece);
    }

    /// Passes over source offsets up to `end`, which hold nothing to write, after everything pushed
    /// so far.
    pub fn pass_over(&mut self, end: UpstreamOffset) {
        let last = self
            .queue
            .back_mut()
            .or(self.window.back_mut().map(|sent| &mut sent.piece));
        match (last, &mut self.overlap) {
            (Some(piece), _) => piece.end = end,
            (None, Some(overlap)) => overlap.reached = end,
            (None, None) => self.frontier.upstream = end,
        }
    }

    /// Whether [`Writer::send`] would give a batch.
    pub fn can_send(&self) -> bool {
        let Some(next) = self.queue.front().filter(|_| !self.in_doubt) else {
            return false;
        };
        let has_room = self.is_remembered
            && self.window.len() < IN_FLIGHT_MAX
            && !self.is_old(next)
            && !self.window.iter().any(|sent| self.is_old(&sent.piece));
        self.window.is_empty() || has_room
    }

    fn is_old(&self, piece: &Piece) -> bool {
        piece.batch.header().max_timestamp < self.old_before
    }

    /// Whether a batch that was sent may still arrive, and the broker may have forgotten by then
    /// that it took it again: an old one. It is to be sent again right after the log was looked at.
    pub fn may_be_doubled(&self) -> bool {
        let sent = self.window.front().map(|sent| &sent.piece);
        let next = self.queue.front().filter(|_| self.is_resending);
        sent.or(next).is_some_and(|piece| self.is_old(piece))
    }

    /// Tells which batches are old (Unix, ms). A broker keeps our producer's entry, and with it the
    /// check that makes a batch go to its place or nowhere, for a time (`producer.id.expiration.ms`)
    /// that it counts from the *records'* time. Where there is no entry any first sequence passes:
    /// were the first of several batches refused, the second would be taken in its place. So an old
    /// batch goes alone, as does the one behind it, and the first after a doubt.
    pub fn set_old_before(&mut self, old_before: i64) {
        self.old_before = old_before;
    }

    /// Whether the checksum of the batch that comes next is right, which only its source can say.
    pub fn is_next_whole(&self) -> bool {
        let next = self.queue.front();
        next.is_some_and(|piece| piece.batch.verify_crc().is_ok())
    }

    /// The next batch to send, if one may be sent now: several in one, if more wait than may be
    /// under way.
    pub fn send(&mut self, joining: &Joining<'_>) -> Option<Outgoing> {
        if !self.can_send() {
            return None;
        }
        self.join_next(joining);
        let piece = self.queue.pop_front()?;
        self.returned = self.returned.saturating_sub(1);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let base = self.next;
        self.next = base.plus(piece.records());
        let batch = piece.batch.clone();
        self.window.push_back(Sent {
            ticket,
            piece,
            base,
            waiting: true,
        });
        Some(Outgoing {
            ticket,
            batch,
            stamp: ProducerStamp {
                producer_id: self.producer_id,
                producer_epoch: 0,
                base_sequence: base.sequence.get(),
            },
        })
    }

    fn join_next(&mut self, joining: &Joining<'_>) {
        let slots = IN_FLIGHT_MAX.saturating_sub(self.window.len()).max(1);
        if self.returned > 0 || self.queue.len() <= slots {
            return;
        }
        let on_the_way: usize = self.window.iter().map(|s| s.piece.batch.size()).sum();
        let waiting = self.queued_bytes - on_the_way;
        let next = self.queue.iter().take_while(|piece| {
            let is_alone = piece.end <= self.singly_until;
            !is_alone
        });
        let count = joining.count(next.map(|piece| &piece.batch), waiting / slots);
        let batches = self.queue.iter().take(count).map(|piece| &piece.batch);
        let Some(joined) = join(batches, joining.size_max, joining.budget) else {
            return;
        };
        let mut end = self.frontier.upstream;
        for piece in self.queue.drain(..joined.count) {
            self.queued_bytes -= piece.batch.size();
            end = piece.end;
        }
        self.queued_bytes += joined.batch.size();
        self.queue.push_front(Piece {
            batch: joined.batch,
            end,
            is_joined: true,
        });
    }

    /// Whether the batch that comes next was made of several. Then it, and all behind it, is
    /// forgotten, and up to its end the source's batches will go one by one: the target refuses one
    /// of them, and those before it are good.
    pub fn unjoin(&mut self) -> bool {
        let Some(joined) = self.queue.front().filter(|piece| piece.is_joined) else {
            return false;
        };
        self.singly_until = joined.end;
        true
    }

    /// The broker says that the batch lies at `base`.
    pub fn on_ack(&mut self, ticket: u64, base: i64) -> Acked {
        let Some(at) = self.window.iter().position(|sent| sent.ticket == ticket) else {
            return Acked::Stale;
        };
        let expected = self.window[at].base.downstream.0;
        // Answers come in the order of sending. One that overtakes another stands behind a failure,
        // a batch that lies before its place is not where it belongs, and one that lies far behind
        // it was damaged on the way: in any case the log must be asked.
        if at != 0 || base < expected || base - expected > FOREIGN_MAX {
            self.on_doubt(ticket);
            return Acked::Doubt;
        }
        let foreign = base - expected;
        let Some(sent) = self.window.pop_front() else {
            return Acked::Stale;
        };
        let (records, bytes) = (sent.piece.records(), sent.piece.batch.size());
        self.queued_bytes -= bytes;
        self.frontier = Frontier {
            upstream: sent.piece.end,
            mark: sent.base.plus(records).shifted(foreign),
        };
        if foreign > 0 {
            self.renumber();
        }
        self.is_remembered = !self.is_old(&sent.piece);
        self.is_resending = false;
        if self.is_idle() {
            self.give_back_room();
        }
        Acked::InPlace {
            records,
            bytes,
            foreign,
        }
    }

    /// Of thousands of partitions most are quiet most of the time, and the room for their batches would
    /// be more than all else that is kept of them.
    fn give_back_room(&mut self) {
        self.queue = VecDeque::new();
        self.window = VecDeque::new();
    }

    /// For how many batches there is room.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.queue.capacity() + self.window.capacity()
    }

    /// Nobody knows, or the broker denies, that the batch was appended. Nothing is sent until that
    /// is settled.
    pub fn on_doubt(&mut self, ticket: u64) {
        if let Some(sent) = self.window.iter_mut().find(|sent| sent.ticket == ticket) {
            sent.waiting = false;
            self.in_doubt = true;
        }
    }

    /// Stops sending until the log was looked at, though no batch gave cause for it.
    pub fn suspect(&mut self) {
        self.in_doubt = true;
    }

    /// Whether the log must be looked at, and can be, because nothing is on its way any more.
    pub fn wants_settling(&self) -> bool {
        self.in_doubt && !self.is_waiting()
    }

    /// Ends a doubt by what the log holds. To be called when [`Writer::wants_settling`].
    pub fn on_tail(&mut self, tail: TargetTail) -> Resumed {
        let settled = settle(self.frontier.mark, &self.counts(), tail);
        self.on_settled(settled, tail.expects)
    }

    /// Ends a doubt by a count of the records beyond the frontier's mark: ours and others'.
    pub fn on_counted(&mut self, records: i64, foreign: i64, expects: Expects) -> Resumed {
        let settled = settle_counted(&self.counts(), records, foreign);
        self.on_settled(settled, expects)
    }

    fn on_settled(&mut self, settled: Settled, expects: Expects) -> Resumed {
        match settled {
            Settled::Appended { batches, foreign } => {
                self.overlap = None;
                self.take_appended(batches, foreign);
                self.resume(expects);
                Resumed::Continues {
                    appended: batches,
                    foreign,
                }
            }
            Settled::Beyond { records, foreign } => {
                self.window.clear();
                self.drop_unsent();
                self.overlap = Some(Overlap::new(self.frontier.upstream, records, foreign));
                self.resume(expects);
                Resumed::Replays { records, foreign }
            }
            Settled::LookCloser => Resumed::LookCloser,
            Settled::Truncated { records } => Resumed::Truncated { records },
        }
    }

    fn counts(&self) -> Vec<i64> {
        self.window
            .iter()
            .map(|sent| sent.piece.records())
            .collect()
    }

    /// Forgets what was not sent yet. It gives back the source offset to read again from, which is
    /// the end of what stays.
    pub fn drop_unsent(&mut self) -> UpstreamOffset {
        self.queue = VecDeque::new();
        self.returned = 0;
        if let Some(overlap) = &mut self.overlap {
            overlap.rewind(self.frontier.upstream);
        }
        self.queued_bytes = self.window.iter().map(|s| s.piece.batch.size()).sum();
        self.window
            .back()
            .map_or(self.frontier.upstream, |sent| sent.piece.end)
    }

    /// Starts over from `frontier`, in doubt: for a log that lost what was acknowledged, or was
    /// made anew.
    pub fn restart(&mut self, frontier: Frontier) {
        *self = Writer {
            next_ticket: self.next_ticket,
            old_before: self.old_before,
            ..Writer::new(self.producer_id, frontier)
        };
    }

    fn take_appended(&mut self, batches: usize, foreign: i64) {
        self.frontier.mark = self.frontier.mark.shifted(foreign);
        self.is_resending &= batches == 0;
        for sent in self.window.drain(..batches) {
            self.queued_bytes -= sent.piece.batch.size();
            self.frontier.mark = self.frontier.mark.plus(sent.piece.records());
            self.frontier.upstream = sent.piece.end;
        }
        self.is_resending |= !self.window.is_empty();
        self.returned += self.window.len();
        for sent in self.window.drain(..).rev() {
            self.queue.push_front(sent.piece);
        }
        self.next = self.frontier.mark;
    }

    fn resume(&mut self, expects: Expects) {
        let sequence = match expects {
            Expects::Exactly(sequence) => Some(sequence),
            Expects::Restart => Some(Sequence::ZERO),
            Expects::Anything => None,
        };
        if let Some(sequence) = sequence {
            let there = self.overlap.as_ref().map_or(0, |overlap| overlap.total);
            // What is there already is counted up before anything is sent.
            self.frontier.mark.sequence = sequence.plus(-there);
        }
        self.next = self.frontier.mark;
        self.is_remembered = false;
        self.in_doubt = false;
    }

    /// Expects what is on its way behind the frontier's new mark.
    fn renumber(&mut self) {
        let mut mark = self.frontier.mark;
        for sent in &mut self.window {
            sent.base = mark;
            mark = mark.plus(sent.piece.records());
        }
        self.next = mark;
    }
}
