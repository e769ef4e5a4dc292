//! Looking at logs: where a partition begins on the source, and what its copy holds.
//!
//! Questions are gathered by the broker that must answer, one request under way at each, so that a
//! broker that is away delays nobody else's.

use std::collections::HashSet;
use std::ops::Range;

use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::config::flow::OffsetReset;
use twinlog_core::ids::{DownstreamOffset, Topic, TopicPartition, UpstreamOffset};
use twinlog_core::offsets::{Expects, OutOfSequence, Sequence, TailCount, TargetMark, TargetTail};
use twinlog_kafka::admin::Results;
use twinlog_kafka::error::{Error, Result};

use super::entry::{Entry, EntryId, Locate, Objection, Start};
use super::leaders::Side;
use super::reading::described;
use super::timers::Timer;
use super::{Event, Task, log_failure};
use crate::pipeline::lane::{Lane, Wanted};
use crate::pipeline::writer::{FOREIGN_MAX, Frontier, Resumed};
use crate::source::logs::{self, LogEnds};
use crate::status::PauseReason;
use crate::verdict::{Refused, Verdict, verdict};

/// Failures of one partition that are not worth a line.
const QUIET_FAILURES: u32 = 5;
/// Partitions in one question.
const ASKED_MAX: usize = 1_000;
/// How often the same batch may be refused for a reason we act on before the partition is paused.
const ATTEMPTS_MAX: u32 = 3;

/// How long a log must not have changed before what is not in it is taken for lost, if the broker
/// would not recognise it.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Where source logs begin and end.
pub struct Located {
    broker: i32,
    results: Vec<(EntryId, Result<LogEnds>)>,
}

/// How target logs end.
pub struct Looked {
    broker: i32,
    results: Vec<(EntryId, Result<TargetTail>)>,
}

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
    /// Puts a partition that does not know where it stands into the queue of the broker that does.
    pub(super) fn schedule_asking(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let is_due = entry.not_before.is_none_or(|at| at <= Instant::now());
        if entry.is_asked || entry.pause.is_some() || !is_due || self.stop_by.is_some() {
            return;
        }
        let side = match (&entry.start, &entry.lane) {
            (_, Some(lane)) if lane.writer.wants_settling() => Side::Target,
            // Whatever was read is written first: it may be gone from the source.
            (Start::Locate(_), Some(lane)) if !lane.is_drained() => return,
            (Start::Locate(_), _) => Side::Source,
            (Start::Place { .. }, None) => Side::Target,
            (Start::Place { .. }, Some(lane)) => match lane.wanted() {
                Some(Wanted::SourceEnd) => Side::Source,
                Some(Wanted::Prints { from, to, round }) => {
                    return self.read_prints(id, from..to, round);
                }
                None => return,
            },
        };
        match side {
            Side::Source => {
                let Some(leader) = entry.source_leader else {
                    return;
                };
                entry.is_asked = true;
                entry.asked_topic = Some(leader.topic_id);
                self.source_broker(leader.broker).locate.push(id);
            }
            Side::Target => {
                let Some(leader) = entry.target_leader else {
                    return;
                };
                entry.is_asked = true;
                self.targets.entry(leader.broker).or_default().look.push(id);
            }
        }
    }

    /// Asks the logs of target topics that were made anew, whether or not there is something to
    /// write.
    pub(super) fn on_target_made_anew(&mut self, topics: HashSet<Topic>) {
        for id in self.entries.ids() {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            if !topics.contains(&entry.spec.target.topic) {
                continue;
            }
            entry.pause = None;
            if let Some(lane) = &mut entry.lane {
                lane.writer.suspect();
            }
            self.touch(id);
        }
        for topic in &topics {
            self.ask_rules(topic.clone());
        }
        self.target_view.stale.extend(topics);
    }

    pub(super) fn dispatch_settling(&mut self) {
        let brokers: Vec<i32> = self.sources.keys().copied().collect();
        for id in brokers {
            let broker = self.source_broker(id);
            if broker.is_locating || broker.locate.is_empty() {
                continue;
            }
            broker.is_locating = true;
            let asked = first(&mut broker.locate);
            let asked = self.named(asked, |entry| &entry.spec.source);
            let client = self.context.source.clone();
            let isolation = self.config.fetch.isolation;
            self.push(async move {
                let partitions = asked.iter().map(|(_, partition)| partition.clone());
                let ends = logs::ends(&client, partitions.collect(), isolation).await;
                let results = answered(asked, ends);
                Event::Located(Located {
                    broker: id,
                    results,
                })
            });
        }
        let brokers: Vec<i32> = self.targets.keys().copied().collect();
        for id in brokers {
            let broker = self.targets.entry(id).or_default();
            if broker.is_looking || broker.look.is_empty() {
                continue;
            }
            broker.is_looking = true;
            let asked = first(&mut broker.look);
            let asked = self.named(asked, |entry| &entry.spec.target);
            let (client, producer_id) = (self.context.target.clone(), self.config.producer_id);
            self.push(async move {
                let partitions = asked.iter().map(|(_, partition)| partition.clone());
                let tails = logs::tails(&client, partitions.collect(), producer_id).await;
                let results = answered(asked, tails);
                Event::Looked(Looked {
                    broker: id,
                    results,
                })
            });
        }
    }

    fn named(
        &self,
        ids: Vec<EntryId>,
        name: impl Fn(&Entry) -> &TopicPartition,
    ) -> Vec<(EntryId, TopicPartition)> {
        let named = ids
            .into_iter()
            .filter_map(|id| Some((id, name(self.entries.get(id)?).clone())));
        named.collect()
    }

    pub(super) fn on_located(&mut self, located: Located) {
        self.source_broker(located.broker).is_locating = false;
        for (id, result) in located.results {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            entry.is_asked = false;
            let topic = entry.source_leader.map(|leader| leader.topic_id);
            match result {
                Ok(_) if topic != entry.asked_topic => self.touch(id),
                Ok(ends) => self.begin(id, ends),
                Err(error) => {
                    self.on_question_failed(id, Side::Source, "ask for the ends of a log", &error);
                }
            }
        }
    }

    /// Chooses where to read, now that the log's ends are known.
    fn begin(&mut self, id: EntryId, ends: LogEnds) {
        let reset = self.config.auto_offset_reset;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Start::Locate(why) = entry.start else {
            if let Some(lane) = &mut entry.lane {
                lane.on_source_end(ends.readable_end);
            }
            return self.touch(id);
        };
        if entry.lane.as_ref().is_some_and(|lane| !lane.is_drained()) {
            return self.touch(id);
        }
        // Since it was found out of range, it may have moved back to the frontier.
        let position = entry.lane.as_ref().map(Lane::next_read);
        let why = match (why, position) {
            (Locate::OutOfRange(_), Some(position)) => Locate::OutOfRange(position),
            (why, _) => why,
        };
        let span = entry.span().entered();
        let by_reset = match reset {
            OffsetReset::Earliest => Some(ends.start),
            OffsetReset::Latest => Some(ends.end),
            OffsetReset::None => None,
        };
        let begin = match why {
            Locate::Anew => Some(ends.start),
            // Whatever the old one's log start was.
            Locate::AnotherTopic => Some(UpstreamOffset(0)),
            Locate::NoPosition => by_reset,
            Locate::OutOfRange(position) if (ends.start..=ends.end).contains(&position) => {
                Some(position)
            }
            Locate::OutOfRange(position) if position < ends.start => by_reset,
            Locate::OutOfRange(position) => {
                tracing::warn!(%position, log_end = %ends.end, "the source's log ends before the position: it was cut or made anew");
                by_reset
            }
        };
        let Some(upstream) = begin else {
            drop(span);
            let offset = match why {
                Locate::OutOfRange(position) => position,
                Locate::NoPosition | Locate::Anew | Locate::AnotherTopic => ends.start,
            };
            return self.pause(id, PauseReason::NoPosition { offset });
        };
        match why {
            Locate::AnotherTopic => entry.begin_another_topic(),
            // Another log, of which no position tells.
            Locate::OutOfRange(position) if upstream < position => {
                entry.begin_another_topic();
                entry.is_confirmed = true;
            }
            Locate::OutOfRange(_) | Locate::NoPosition | Locate::Anew => {}
        }
        let mark = entry.frontier().map(|frontier| frontier.mark);
        entry.start = Start::Place { upstream, mark };
        if let Some(lane) = &mut entry.lane {
            let position = lane.next_read();
            let lost = lane.jump_to(upstream);
            if lost > 0 {
                self.counters.lost_records += lost;
                tracing::warn!(%position, log_start = %ends.start, lost, "the source deleted records before they were copied");
                // A crash is bounded by this place better than by one before the gap.
                self.storing.flush();
            }
        }
        drop(span);
        self.touch(id);
    }

    pub(super) fn on_looked(&mut self, looked: Looked) {
        self.targets.entry(looked.broker).or_default().is_looking = false;
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
    fn read_prints(&mut self, id: EntryId, stretch: Range<DownstreamOffset>, round: u64) {
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

    fn on_question_failed(&mut self, id: EntryId, side: Side, action: &str, error: &Error) {
        match verdict(error) {
            Verdict::Pause(Refused::Permission) => {
                let message = described(error);
                self.pause(id, PauseReason::Permission { message });
            }
            _ => {
                self.on_stale_leader(id, side);
                self.back_off(id, action, error);
            }
        }
    }

    /// Tries again later, and says so.
    pub(super) fn back_off(&mut self, id: EntryId, action: &str, error: &Error) {
        if let Some(entry) = self.entries.get(id) {
            let _span = entry.span().entered();
            // A leader that moved is no news for each of its partitions.
            if entry.failures < QUIET_FAILURES {
                tracing::debug!(
                    action,
                    error = error as &dyn std::error::Error,
                    "trying again"
                );
            } else {
                log_failure(action, error, entry.failures);
            }
        }
        self.counters.retries += 1;
        self.wait(id);
    }

    /// Leaves a partition alone for a moment, a longer one with each failure.
    pub(super) fn wait(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let at = Instant::now() + self.config.backoff.pause(entry.failures, &mut self.random);
        entry.failures = entry.failures.saturating_add(1);
        entry.not_before = Some(at);
        self.timers.set(at, Timer::Touch(id));
        self.touch(id);
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

    /// Leaves the old topic behind. The new one is anchored before its first record is sent, so that
    /// after a crash nothing of the old one is taken for a record of this one.
    fn begin_another_topic(&mut self) {
        if let Some(leader) = self
            .source_leader
            .filter(|leader| leader.topic_id.is_known())
        {
            self.spec.topic_id = leader.topic_id;
        }
        self.is_anew = true;
        self.is_confirmed = false;
        self.lane = None;
        self.stored = None;
        self.beginnings += 1;
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

fn first(queue: &mut Vec<EntryId>) -> Vec<EntryId> {
    queue.drain(..queue.len().min(ASKED_MAX)).collect()
}

fn answered<V>(
    asked: Vec<(EntryId, TopicPartition)>,
    mut results: Results<TopicPartition, V>,
) -> Vec<(EntryId, Result<V>)> {
    let answered = asked.into_iter().map(|(id, partition)| {
        let missing = || Error::Unanswered {
            item: partition.to_string(),
        };
        let result = results.remove(&partition).unwrap_or_else(|| Err(missing()));
        (id, result)
    });
    answered.collect()
}
