//! Questions about logs: gathered by the broker that must answer, one request under way at each, so
//! that a broker that is away delays nobody else's. Those that fail are asked again.

use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::TopicPartition;
use twinlog_core::offsets::TargetTail;
use twinlog_kafka::admin::Results;
use twinlog_kafka::error::{Error, Result};
use twinlog_kafka::retry::is_told;

use super::entry::{Entry, EntryId, Start};
use super::failing::TELL_AFTER;
use super::leaders::Side;
use super::reading::described;
use super::timers::Timer;
use super::{Event, Task};
use crate::pipeline::lane::Wanted;
use crate::source::logs::{self, LogEnds};
use crate::status::PauseReason;
use crate::verdict::{Refused, Verdict, verdict};

/// Failures of one partition that are not worth a line.
const QUIET_FAILURES: u32 = 5;
/// Partitions in one question.
pub const ASKED_MAX: usize = 1_000;

/// Partitions that are to be asked about within so long are asked about together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Where source logs begin and end.
pub struct Located {
    pub broker: i32,
    pub results: Vec<(EntryId, Result<LogEnds>)>,
}

/// How target logs end.
pub struct Looked {
    pub broker: i32,
    pub results: Vec<(EntryId, Result<TargetTail>)>,
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
                entry.asked_leader = Some(leader);
                self.source_broker(leader.broker).locate.push(id);
            }
            Side::Target => {
                let Some(leader) = entry.target_leader else {
                    return;
                };
                entry.is_asked = true;
                self.target_broker(leader.broker).look.push(id);
            }
        }
    }

    pub(super) fn dispatch_asking(&mut self) {
        let brokers: Vec<i32> = self.sources.keys().copied().collect();
        for id in brokers {
            let broker = self.source_broker(id);
            if broker.is_locating || broker.locate.is_empty() {
                continue;
            }
            broker.is_locating = true;
            let asked = first(&mut broker.locate);
            let asked = self.named(asked, |entry| &entry.spec.source);
            let epochs = asked.iter().filter_map(|(id, partition)| {
                let epoch = self.entries.get(*id)?.epoch_in_doubt()?;
                Some((partition.clone(), epoch))
            });
            let epochs: Vec<_> = epochs.collect();
            let client = self.context.source.clone();
            let isolation = self.config.fetch.isolation;
            self.push(async move {
                let partitions = asked.iter().map(|(_, partition)| partition.clone());
                let ends = logs::ends(&client, partitions.collect(), isolation, epochs).await;
                let results = answered(asked, ends);
                Event::Located(Located {
                    broker: id,
                    results,
                })
            });
        }
        let brokers: Vec<i32> = self.targets.keys().copied().collect();
        for id in brokers {
            let broker = self.target_broker(id);
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

    pub(super) fn on_question_failed(
        &mut self,
        id: EntryId,
        side: Side,
        action: &str,
        error: &Error,
    ) {
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

    /// Tries again later, and says so, together with others that fail likewise.
    pub(super) fn back_off(&mut self, id: EntryId, action: &str, error: &Error) {
        if let Some(entry) = self.entries.get(id) {
            let failures = entry.failures.saturating_add(1);
            // A leader that moved is no news for each of its partitions.
            if failures > QUIET_FAILURES && is_told(failures) {
                let partition = &entry.spec.source;
                if self.failing.add(partition, action, error, failures) {
                    self.timers.set(Instant::now() + TELL_AFTER, Timer::Tell);
                }
            } else {
                let _span = entry.span().entered();
                let error = error as &dyn std::error::Error;
                tracing::debug!(action, error, "trying again");
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
        let pause = self.config.backoff.pause(entry.failures, &mut self.random);
        let at = together(self.started, Instant::now() + pause);
        entry.failures = entry.failures.saturating_add(1);
        entry.not_before = Some(at);
        self.timers.set(at, Timer::Touch(id));
        self.touch(id);
    }
}

/// The end of the stretch of time that `at` lies in: those that wait alike ask in one request.
fn together(started: Instant, at: Instant) -> Instant {
    let stretches = (at - started).as_micros() / TOGETHER.as_micros() + 1;
    started + TOGETHER.saturating_mul(u32::try_from(stretches).unwrap_or(u32::MAX))
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
