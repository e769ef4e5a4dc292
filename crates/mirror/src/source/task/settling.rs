//! What a copy holds: its log is looked at when it begins and after any doubt, and what follows
//! from that is done.

use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::DownstreamOffset;
use twinlog_core::offsets::{Expects, OutOfSequence, Sequence, TailCount, TargetMark, TargetTail};
use twinlog_kafka::error::Result;

use super::asking::Looked;
use super::entry::{Entry, EntryId, Locate, Objection, Start};
use super::leaders::Side;
use super::timers::Timer;
use super::{Event, Task};
use crate::pipeline::lane::Lane;
use crate::pipeline::writer::{FOREIGN_MAX, Frontier, Resumed};
use crate::source::logs;
use crate::status::PauseReason;
use crate::verdict::Refused;

/// How often the same batch may be refused for a reason we act on before the partition is paused.
const ATTEMPTS_MAX: u32 = 3;

/// How long a log must not have changed before what is not in it is taken for lost, if the broker
/// would not recognise it.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Whose records a target log holds since the mark.
pub struct Counted {
    id: EntryId,
    expects: Expects,
    result: Result<Result<TailCount, OutOfSequence>>,
}

/// What our records on the target look like.
pub struct Printed {
    id: EntryId,
    round: u64,
    result: Result<Vec<u64>>,
}

/// What target logs were found to hold beyond stored positions, for one line in the log however
/// many partitions.
#[derive(Debug, Default)]
pub struct Replayed {
    partitions: usize,
    records: i64,
}

impl Replayed {
    fn add(&mut self, records: i64) {
        self.partitions += 1;
        self.records += records;
    }

    fn report(&mut self) {
        let Replayed {
            partitions,
            records,
        } = std::mem::take(self);
        if partitions > 0 {
            tracing::info!(
                partitions,
                records,
                "the target holds records beyond the stored positions: passing over them"
            );
        }
    }
}

/// What target logs hold without a position that tells where it came from, as when MirrorMaker 2
/// was killed before its first flush. For one line in the log however many partitions.
#[derive(Debug, Default)]
pub struct Unaccounted {
    partitions: usize,
    records: i64,
}

impl Unaccounted {
    fn report(&mut self) {
        let Unaccounted {
            partitions,
            records,
        } = std::mem::take(self);
        if partitions > 0 {
            tracing::warn!(
                partitions,
                records,
                "the target holds records and no position is stored: beginning as \
                 auto.offset.reset says; records that were copied before may be there twice then"
            );
        }
    }
}

impl Task {
    pub(super) fn on_looked(&mut self, looked: Looked) {
        self.target_broker(looked.broker).is_looking = false;
        for (id, result) in looked.results {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            entry.is_asked = false;
            match result {
                Ok(tail) => self.on_tail(id, tail),
                Err(error) => {
                    self.on_question_failed(id, Side::Target, "ask for the end of a log", &error);
                }
            }
        }
        self.replayed.report();
        self.unaccounted.report();
    }

    fn on_tail(&mut self, id: EntryId, tail: TargetTail) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if entry.lane.is_none() {
            if entry.wants_confirmation(tail) {
                return self.storing.confirm(id);
            }
            if entry.is_without_position && !entry.is_anew {
                self.unaccounted.partitions += 1;
                self.unaccounted.records += tail.log_end.0;
            }
            entry.open_lane(self.config.producer_id, tail);
        } else {
            self.counters.settlings += 1;
        }
        let Some(lane) = entry
            .lane
            .as_mut()
            .filter(|lane| lane.writer.wants_settling())
        else {
            return self.touch(id);
        };
        if tail.log_end.0 - lane.writer.frontier().mark.downstream.0 > FOREIGN_MAX {
            tracing::warn!(log_end = %tail.log_end, "an answer was damaged on its way: asking again");
            return self.wait(id);
        }
        // Where the broker has no entry of ours it takes what arrives late as if it were new.
        let is_unsure = lane.writer.may_be_doubled() && tail.expects == Expects::Anything;
        if is_unsure && entry.first_look.take() != Some(tail) {
            entry.first_look = Some(tail);
            let at = Instant::now() + SECOND_LOOK_AFTER;
            entry.not_before = Some(at);
            return self.timers.set(at, Timer::Touch(id));
        }
        let before = lane.writer.frontier();
        let resumed = lane.writer.on_tail(tail);
        match resumed {
            Resumed::LookCloser => self.count_tail(id, before.mark, tail),
            Resumed::Truncated { records } => self.on_truncated(id, tail, records),
            Resumed::Continues { .. } | Resumed::Replays { .. } => {
                self.on_resumed(id, before, resumed);
            }
        }
    }

    /// Reads the headers of what the target's log holds since the mark: the last resort, and an
    /// exact one.
    fn count_tail(&mut self, id: EntryId, mark: TargetMark, tail: TargetTail) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.is_asked = true;
        let partition = entry.spec.target.clone();
        let (client, producer_id) = (self.context.target.clone(), self.config.producer_id);
        self.push(async move {
            let result = logs::count(&client, &partition, mark, tail.log_end, producer_id);
            Event::Counted(Counted {
                id,
                expects: tail.expects,
                result: result.await,
            })
        });
    }

    pub(super) fn on_counted(&mut self, counted: Counted) {
        let id = counted.id;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.is_asked = false;
        let Some(lane) = entry
            .lane
            .as_mut()
            .filter(|lane| lane.writer.wants_settling())
        else {
            return self.touch(id);
        };
        match counted.result {
            Ok(Err(found)) => {
                let message = found.to_string();
                self.pause(id, PauseReason::OutOfSequence { message });
            }
            Ok(Ok(count)) => {
                let before = lane.writer.frontier();
                let resumed = lane
                    .writer
                    .on_counted(count.ours, count.foreign, counted.expects);
                self.on_resumed(id, before, resumed);
            }
            Err(error) => {
                self.on_question_failed(id, Side::Target, "read the end of a log", &error);
            }
        }
    }

    /// Reads the records of ours that the target holds beyond the frontier: whether the source still
    /// has the same is to be compared.
    pub(super) fn read_prints(
        &mut self,
        id: EntryId,
        stretch: Range<DownstreamOffset>,
        round: u64,
    ) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.is_asked = true;
        let partition = entry.spec.target.clone();
        let with_time = !entry.spec.rules.target_stamps;
        let (client, producer_id) = (self.context.target.clone(), self.config.producer_id);
        self.push(async move {
            let result = logs::prints(&client, &partition, stretch, producer_id, with_time).await;
            Event::Printed(Printed { id, round, result })
        });
    }

    pub(super) fn on_printed(&mut self, printed: Printed) {
        let Printed { id, round, result } = printed;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.is_asked = false;
        match result {
            Ok(prints) => {
                if let Some(lane) = &mut entry.lane {
                    lane.on_prints(round, prints);
                }
                self.touch(id);
            }
            Err(error) => {
                self.on_question_failed(id, Side::Target, "read the end of a log", &error);
            }
        }
    }

    fn on_resumed(&mut self, id: EntryId, before: Frontier, resumed: Resumed) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let span = entry.span().entered();
        let Some(lane) = &mut entry.lane else {
            return;
        };
        let foreign = match resumed {
            Resumed::Continues { appended, foreign } => {
                let moved = lane.writer.frontier().mark.downstream.0 - before.mark.downstream.0;
                self.counters.records += (moved - foreign).max(0).unsigned_abs();
                tracing::debug!(appended, foreign, "the target's log was asked");
                foreign
            }
            Resumed::Replays { records, foreign } => {
                self.replayed.add(records);
                tracing::debug!(from = %before.upstream, records, "the target's log is ahead");
                lane.reread();
                foreign
            }
            Resumed::LookCloser | Resumed::Truncated { .. } => 0,
        };
        drop(span);
        self.on_foreign(id, foreign);
        self.answer_objection(id);
    }

    /// Now that nothing is in doubt: does something about why it was.
    fn answer_objection(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let objection = entry.objection.take();
        let Some(lane) = &mut entry.lane else {
            return;
        };
        let offset = lane.writer.frontier().upstream;
        entry.strikes += u32::from(matches!(
            objection,
            Some(Objection::Damaged(_) | Objection::Refused(..))
        ));
        let attempts = entry.strikes;
        let reason = match objection {
            // What may succeed later has waited before the log was looked at.
            None | Some(Objection::Later) => return self.touch(id),
            Some(Objection::Damaged(message)) => {
                let is_whole = lane.writer.is_next_whole();
                lane.reread();
                if attempts < ATTEMPTS_MAX {
                    return self.touch(id);
                }
                match is_whole {
                    true => PauseReason::DamagedOnTheWay { offset, message },
                    false => PauseReason::Damaged { offset, message },
                }
            }
            // The limit has changed since we read it.
            Some(Objection::Refused(Refused::Size, _)) if attempts < ATTEMPTS_MAX => {
                let topic = entry.spec.target.topic.clone();
                self.ask_rules(topic);
                return self.wait(id);
            }
            // One of the records, which are others' with the rest of a joined batch.
            Some(Objection::Refused(Refused::Timestamp | Refused::Record | Refused::Size, _))
                if lane.unjoin() =>
            {
                return self.touch(id);
            }
            Some(Objection::Refused(refused, message)) => match refused {
                Refused::Timestamp => PauseReason::Timestamp { offset, message },
                Refused::Record => PauseReason::Record { offset, message },
                Refused::Permission => PauseReason::Permission { message },
                Refused::Producer => PauseReason::ForeignWriter { message },
                Refused::Size | Refused::Other => PauseReason::Refused { message },
            },
        };
        self.pause(id, reason);
    }

    fn on_truncated(&mut self, id: EntryId, tail: TargetTail, records: i64) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let span = entry.span().entered();
        if tail.log_end.0 == 0 {
            self.counters.copies_refilled += 1;
            tracing::warn!(
                "the target topic is empty: filling it again from the source's earliest record"
            );
            entry.lane = None;
            entry.stored = None;
            entry.start = Start::Locate(Locate::Anew);
            drop(span);
            return self.touch(id);
        }
        let stored = entry
            .stored
            .filter(|stored| stored.mark.downstream <= tail.log_end);
        if let (Some(stored), Some(lane)) = (stored, &mut entry.lane)
            && stored != lane.writer.frontier()
        {
            tracing::warn!(records, from = %stored.upstream, "the target lost acknowledged records: copying them again");
            lane.writer.restart(stored);
            lane.reread();
            drop(span);
            return self.touch(id);
        }
        drop(span);
        self.pause(id, PauseReason::TargetTruncated { records });
    }
}

impl Entry {
    /// Whether the position must be read again before it is relied on. Before the first record of
    /// ours its place is stored; where a log holds records and the position says nothing of a
    /// place, it may have been read too early, while another process began to copy. (Or Java
    /// wrote it, or the records are somebody else's.)
    fn wants_confirmation(&self, tail: TargetTail) -> bool {
        let is_empty = tail.log_end.0 == 0;
        let Start::Place { mark, .. } = self.start else {
            return false;
        };
        !is_empty && mark.is_none() && !self.is_confirmed
    }

    /// Begins to copy, from the position and at the place that is known, or where the target's log
    /// ends.
    fn open_lane(&mut self, producer_id: i64, tail: TargetTail) {
        let Start::Place { upstream, mark } = self.start else {
            return;
        };
        let end = TargetMark {
            downstream: tail.log_end,
            sequence: match tail.expects {
                Expects::Exactly(sequence) => sequence,
                Expects::Restart | Expects::Anything => Sequence::ZERO,
            },
        };
        let frontier = Frontier {
            upstream,
            mark: mark.unwrap_or(end),
        };
        self.stored = mark.is_some().then_some(frontier);
        self.beginnings += 1;
        self.lane = Some(Lane::new(producer_id, frontier, self.spec.rules));
    }
}
