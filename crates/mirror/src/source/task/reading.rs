//! The source half of a task: one fetch session and at most one fetch under way per line to a
//! broker; near ones have one line.
//!
//! A partition is in a session of its leader, or of the replica the leader names, while it may
//! take more. One whose queue is full leaves the session; while there are such, fetches wait only
//! briefly, so that it comes back as soon as it has drained.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::UpstreamOffset;
use twinlog_kafka::client::Purpose;
use twinlog_kafka::connection::{CallOptions, Connection};
use twinlog_kafka::error::{Class, Error, ErrorCode, Result};
use twinlog_kafka::fetch::{FetchPosition, FetchedPartition, Isolation};
use twinlog_kafka::wire::{FetchRequest, FetchResponse};

use super::entry::{Entry, EntryId, Locate, Reading, Start};
use super::leaders::Side;
use super::lines::Line;
use super::sizes::Answer;
use super::timers::Timer;
use super::{Connected, Event, Task, log_failure, sizes};
use crate::pipeline::lane::Order;
use crate::pipeline::overlap::Unmet;
use crate::pipeline::planner::{Aborted, Trouble, check_places};
use crate::pipeline::rebuild::{Rebuilt, Stopped, rebuild};
use crate::status::PauseReason;
use crate::verdict::{Refused, Verdict, verdict};

/// How long a fetch may wait for records while partitions wait to come back.
const BRIEF_WAIT: Duration = Duration::from_millis(10);
/// A fetch that brings few bytes is not followed by the next one sooner than this after it began:
/// each costs both brokers and us a round, for however few records.
const FETCH_INTERVAL: Duration = Duration::from_millis(2);
/// So many bytes are few.
const FETCH_BYTES_FEW: usize = 16 << 10;
/// How often damaged bytes are fetched again before the partition is paused.
const DAMAGED_ATTEMPTS_MAX: u32 = 3;

/// Large batches that are taken apart at once: each may take many times its size while that lasts.
const REBUILDS_MAX: usize = 2;

/// Batches that are, or are to be, rebuilt on other threads.
#[derive(Debug, Default)]
pub struct Rebuilding {
    waiting: VecDeque<(EntryId, Order)>,
    under_way: usize,
}

/// A fetch that has ended.
pub struct FetchDone {
    line: Line,
    since: Instant,
    asked_bytes: usize,
    result: Result<FetchResponse>,
}

impl Task {
    /// How far away a partition's brokers are: the source's, and the one further off.
    fn distances(&self, entry: &Entry) -> (Duration, Duration) {
        let source = entry.source_leader.and_then(|leader| {
            let broker = entry.preferred_replica.unwrap_or(leader.broker);
            self.sources.get(&broker)
        });
        let target = entry
            .target_leader
            .and_then(|leader| self.targets.get(&leader.broker));
        let source = source.map_or(Duration::ZERO, |broker| broker.spread.distance);
        let target = target.map_or(Duration::ZERO, |broker| broker.spread.distance);
        (source, source.max(target))
    }

    /// Puts a partition into the session it belongs to now, at its position.
    pub(super) fn schedule_reading(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get(id) else {
            return;
        };
        let now = Instant::now();
        let may_read = self.stop_by.is_none()
            && !self.is_target_silent(id)
            && entry.pause.is_none()
            && entry.not_before.is_none_or(|at| at <= now)
            && !matches!(entry.start, Start::Locate(_));
        let lane = entry.lane.as_ref().filter(|_| may_read);
        let lane = lane.filter(|lane| lane.stopped().is_none() && !lane.writer.is_in_doubt());
        let reading = match (lane, entry.source_leader) {
            (Some(lane), Some(leader)) => {
                let broker = entry.preferred_replica.unwrap_or(leader.broker);
                let line = self.line_from(entry, broker);
                let (_, distance) = self.distances(entry);
                match lane.bytes() < sizes::lane_bytes(distance, self.context.budget.limit()) {
                    true => Reading::In(line),
                    false => Reading::Held(line),
                }
            }
            _ => Reading::Out,
        };
        self.set_reading(id, reading);
    }

    pub(super) fn set_reading(&mut self, id: EntryId, reading: Reading) {
        let Some(entry) = self.entries.get(id) else {
            return;
        };
        let (distance, _) = self.distances(entry);
        let default = self.config.fetch.partition_max_bytes;
        let max_bytes = sizes::partition_bytes(default, distance, self.context.budget.limit());
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let partition = entry.spec.source.clone();
        let position = entry
            .lane
            .as_ref()
            .zip(entry.source_leader)
            .map(|(lane, leader)| FetchPosition {
                topic_id: leader.topic_id,
                offset: lane.next_read().0,
                leader_epoch: leader.epoch,
                max_bytes,
            });
        let before = std::mem::replace(&mut entry.reading, reading);
        match before {
            Reading::In(line) if before != reading => {
                self.source_line(line).session.remove(&partition);
            }
            Reading::Held(line) if before != reading => self.source_line(line).held -= 1,
            Reading::Out | Reading::In(_) | Reading::Held(_) => {}
        }
        match (reading, position) {
            (Reading::In(line), Some(position)) => {
                self.source_line(line).session.set(&partition, position);
            }
            (Reading::Held(line), _) if before != reading => self.source_line(line).held += 1,
            _ => {}
        }
    }

    /// The leader changed: the copy goes on at the new one, unless the topic is another one by the
    /// same name.
    pub(super) fn on_source_leader(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(leader) = entry.source_leader else {
            return;
        };
        entry.on_later_epoch(leader.epoch);
        if !leader.topic_id.is_known() {
            return;
        }
        if !entry.spec.topic_id.is_known() {
            entry.spec.topic_id = leader.topic_id;
            let stored = entry.spec.stored.filter(|_| entry.lane.is_none());
            if !stored.is_some_and(|position| entry.spec.is_of_another_topic(&position)) {
                return;
            }
        } else if entry.spec.topic_id == leader.topic_id {
            return;
        }
        // Its id is taken over when it begins: until then the frontier is one in the old topic.
        let another = Start::Locate(Locate::AnotherTopic);
        if entry.start != another {
            let _span = entry.span().entered();
            tracing::warn!("the source topic was made anew: going on with its earliest record");
            entry.start = another;
        }
    }

    pub(super) fn dispatch_reading(&mut self) {
        let now = Instant::now();
        let due = self.sources.iter().filter(|(_, it)| it.health.is_due(now));
        let lines = due.flat_map(|(broker, it)| {
            let lines = it.lines.iter().enumerate();
            lines.filter_map(|(number, line)| {
                let is_due = line.next_fetch.is_none_or(|at| at <= now);
                let is_busy = line.is_fetching || line.is_connecting || line.session.is_empty();
                (is_due && !is_busy).then_some(Line {
                    broker: *broker,
                    number,
                })
            })
        });
        for line in lines.collect::<Vec<Line>>() {
            match self.source_line(line).open() {
                Some(connection) => self.start_fetch(line, connection),
                None => {
                    self.source_line(line).is_connecting = true;
                    let purpose = Purpose::Fetch(line.purpose(self.config.index));
                    self.connect(Side::Source, line, purpose);
                }
            }
        }
    }

    pub(super) fn on_source_connected(&mut self, connected: Connected) {
        let Connected {
            line,
            since,
            result,
        } = connected;
        self.source_line(line).is_connecting = false;
        match result {
            Ok(connection) => {
                self.source_line(line).connection = Some(connection);
                self.source_broker(line.broker).measure();
            }
            Err(error) => self.on_source_line_failed(line, since, &error),
        }
    }

    fn start_fetch(&mut self, id: Line, connection: Connection) {
        let budget = self.context.budget.clone();
        let fetch_bytes_max = self.config.fetch_bytes_max;
        let since = Instant::now();
        let least = self.source_bytes_min();
        let line = self.source_line(id);
        let version_max = Some(line.session.version_max());
        let version = match connection.version_of::<FetchRequest>(version_max) {
            Ok(version) => version,
            Err(error) => return self.on_source_line_failed(id, since, &error),
        };
        let asked_bytes = line
            .fetch_bytes
            .max(least)
            .min(budget.limit() / 2)
            .min(fetch_bytes_max);
        let spare_bytes = sizes::spare_bytes(budget.limit());
        let bytes = i32::try_from(asked_bytes).unwrap_or(i32::MAX);
        let mut request = line.session.build(version, bytes);
        if line.held > 0 {
            request.max_wait_ms = request.max_wait_ms.min(BRIEF_WAIT.as_millis() as i32);
        }
        line.is_fetching = true;
        self.push(async move {
            let mut share = budget.reserve(asked_bytes + spare_bytes).await;
            share.resize(asked_bytes);
            let options = CallOptions {
                version_max: Some(version),
                timeout: None,
                share: Some(share),
            };
            let result = connection.call_with(&request, options).await;
            Event::Fetched(FetchDone {
                line: id,
                since,
                asked_bytes,
                result,
            })
        });
    }

    pub(super) fn on_fetched(&mut self, done: FetchDone) {
        let line = self.source_line(done.line);
        line.is_fetching = false;
        let fetched = match done.result {
            Ok(response) => line.session.interpret(response),
            Err(error) => {
                line.session.reset();
                Err(error)
            }
        };
        match fetched {
            Ok(fetched) => {
                let next = done.since + FETCH_INTERVAL;
                let is_soon = next > Instant::now() && fetched.bytes() < FETCH_BYTES_FEW;
                line.next_fetch = is_soon.then_some(next);
                if is_soon {
                    self.timers.set(next, Timer::Wake);
                }
                let answer = Answer {
                    most: done.asked_bytes,
                    bytes: fetched.bytes(),
                    took: done.since.elapsed(),
                };
                self.on_source_answered(done.line, answer);
                for partition in fetched.partitions {
                    self.on_fetched_partition(done.line, partition);
                }
                self.spread_line(done.line);
            }
            // The session was reset already; the next request opens a new one.
            Err(error) if error.class() == Class::ResetFetchSession => {}
            Err(error) => self.on_source_line_failed(done.line, done.since, &error),
        }
    }

    /// Adapts what is asked for, and the number of lines.
    fn on_source_answered(&mut self, id: Line, answer: Answer) {
        let (budget, brokers) = (self.context.budget.limit(), self.sources.len());
        let least = self.source_bytes_min();
        let broker = self.source_broker(id.broker);
        broker.health.failures = 0;
        broker.on_carried(
            answer.bytes,
            sizes::lines_max(broker.spread.distance, budget, brokers),
        );
        let distance = broker.spread.distance;
        let most = sizes::fetch_bytes_max(distance) / broker.lines_used().max(1);
        self.source_line(id).fetch_bytes = sizes::next_bytes(answer, distance, least..=most);
    }

    /// Moves the partitions of a line on which nothing is under way to those that they belong on, if
    /// the number of lines has changed.
    fn spread_line(&mut self, line: Line) {
        let lines = self.source_broker(line.broker).spread.lines();
        let before = std::mem::replace(&mut self.source_line(line).lines, lines);
        if before != lines {
            for id in self.read_on(|reading| *reading == line) {
                self.touch(id);
            }
        }
    }

    /// The partitions that are read on some lines.
    fn read_on(&self, is_one: impl Fn(&Line) -> bool) -> Vec<EntryId> {
        let read = self
            .entries
            .iter()
            .filter(|(_, entry)| match &entry.reading {
                Reading::In(line) => is_one(line),
                Reading::Out | Reading::Held(_) => false,
            });
        read.map(|(id, _)| id).collect()
    }

    /// Something begun at `since` failed.
    fn on_source_line_failed(&mut self, id: Line, since: Instant, error: &Error) {
        let failures = self.source_broker(id.broker).health.failures;
        let pause = self.config.backoff.pause(failures, &mut self.random);
        let not_before = Instant::now() + pause;
        self.timers.set(not_before, Timer::Wake);
        let line = self.source_line(id);
        line.connection = None;
        // It may have been too much to come in time.
        line.fetch_bytes = 0;
        let health = &mut self.source_broker(id.broker).health;
        let Some(told) = health.on_failed(since, not_before) else {
            return;
        };
        log_failure("fetch from the source", error, told);
        self.counters.retries += 1;
        for led in self.read_on(|line| line.broker == id.broker) {
            if let Some(entry) = self.entries.get_mut(led) {
                entry.preferred_replica = None;
            }
            self.on_stale_leader(led, Side::Source);
            self.touch(led);
        }
    }

    fn on_fetched_partition(&mut self, line: Line, fetched: FetchedPartition) {
        let Some(id) = self.entries.by_source(&fetched.partition) else {
            return;
        };
        let isolation = self.config.fetch.isolation;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if entry.reading != Reading::In(line) {
            return;
        }
        if fetched.error != ErrorCode::NONE {
            return self.on_fetch_error(id, &fetched);
        }
        entry.log_end = fetched.readable_end(isolation).or(entry.log_end);
        if let Some(replica) = fetched.preferred_read_replica {
            entry.preferred_replica = Some(replica);
        }
        let Some(lane) = &mut entry.lane else {
            return;
        };
        if lane.writer.is_idle() {
            entry.failures = 0;
        }
        if fetched.fetch_offset == lane.next_read().0 && !fetched.records.is_empty() {
            let epoch = entry.source_leader.map(|leader| leader.epoch);
            entry.read_epoch = epoch.filter(|epoch| *epoch >= 0);
            let aborted: Vec<Aborted> = fetched
                .aborted
                .iter()
                .map(|transaction| Aborted {
                    producer_id: transaction.producer_id,
                    first_offset: transaction.first_offset,
                })
                .collect();
            let end = UpstreamOffset(fetched.high_watermark);
            let planned = check_places(lane.next_read(), &fetched.records, end)
                .and_then(|()| lane.on_fetched(fetched.records, &aborted));
            if let Err(trouble) = planned {
                self.on_damaged(id, &trouble);
            }
        }
        self.touch(id);
    }

    fn on_fetch_error(&mut self, id: EntryId, fetched: &FetchedPartition) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let error = Error::Broker {
            action: format!(
                "fetch {} at offset {}",
                fetched.partition, fetched.fetch_offset
            ),
            code: fetched.error,
            message: None,
        };
        entry.preferred_replica = None;
        match verdict(&error) {
            Verdict::Reposition => {
                entry.start =
                    Start::Locate(Locate::OutOfRange(UpstreamOffset(fetched.fetch_offset)));
                self.touch(id);
            }
            Verdict::Pause(Refused::Permission) => {
                let message = error.to_string();
                self.pause(id, PauseReason::Permission { message });
            }
            // A topic made anew answers with an id the broker does not know; metadata tells.
            Verdict::RefreshAndRetry => {
                self.on_stale_leader(id, Side::Source);
                self.back_off(id, "fetch", &error);
            }
            _ => self.back_off(id, "fetch", &error),
        }
    }

    fn on_damaged(&mut self, id: EntryId, trouble: &Trouble) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(lane) = &entry.lane else {
            return;
        };
        entry.strikes += 1;
        if entry.strikes >= DAMAGED_ATTEMPTS_MAX {
            let offset = lane.next_read();
            let message = described(trouble);
            return self.pause(id, PauseReason::Damaged { offset, message });
        }
        self.wait(id);
    }

    /// Hands what was fetched to the writer; large batches are rebuilt on another thread.
    pub(super) fn feed(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(lane) = entry.lane.as_mut().filter(|_| entry.pause.is_none()) else {
            return;
        };
        if let Some(order) = lane.feed(&mut self.counters) {
            self.rebuilding.waiting.push_back((id, order));
        }
        let unmet = lane.take_unmet();
        if lane.writer.take_overlap_ended() {
            entry.stored = None;
            entry.beginnings += 1;
        }
        if let Some(unmet) = unmet {
            let _span = entry.span().entered();
            log_unmet(unmet);
        }
        self.check_stopped(id);
    }

    pub(super) fn dispatch_rebuilding(&mut self) {
        while self.rebuilding.under_way < REBUILDS_MAX
            && let Some((id, order)) = self.rebuilding.waiting.pop_front()
        {
            self.rebuilding.under_way += 1;
            let heavy_work = self.context.heavy_work;
            self.push(async move {
                let round = order.round;
                let rebuilt = heavy_work.run(move || rebuild(&order.job)).await;
                Event::Rebuilt(id, round, rebuilt)
            });
        }
    }

    pub(super) fn on_rebuilt(&mut self, id: EntryId, round: u64, rebuilt: Rebuilt) {
        self.rebuilding.under_way -= 1;
        if let Some(lane) = self
            .entries
            .get_mut(id)
            .and_then(|entry| entry.lane.as_mut())
        {
            lane.on_rebuilt(round, rebuilt);
        }
        self.touch(id);
    }

    /// Pauses a partition that has come to a batch that cannot be rebuilt, once all before it is
    /// written.
    fn check_stopped(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(lane) = entry.lane.as_mut().filter(|lane| lane.writer.is_idle()) else {
            return;
        };
        let reason = match lane.stopped() {
            None => return,
            Some(Stopped::TooLarge(too_large)) => PauseReason::RecordTooLarge {
                offset: UpstreamOffset(too_large.offset),
                size: too_large.size,
                limit: too_large.limit,
            },
            Some(damaged @ Stopped::Damaged(_)) => {
                let (offset, message) = (lane.writer.frontier().upstream, described(damaged));
                entry.strikes += 1;
                if entry.strikes < DAMAGED_ATTEMPTS_MAX {
                    lane.reread();
                    return self.wait(id);
                }
                PauseReason::Damaged { offset, message }
            }
        };
        self.pause(id, reason);
    }
}

/// Says that the target holds records which the source does not show again.
fn log_unmet(unmet: Unmet) {
    let Unmet {
        from,
        records,
        at_end,
    } = unmet;
    if at_end {
        tracing::info!(%from, records, "the source has lost records since they were copied: going on behind them");
    } else {
        tracing::warn!(%from, "the source's log has changed since it was copied, by compaction or retention: copying again from here on, so that nothing is lost");
    }
}

/// How far a partition may be read, as far as an answer tells.
trait ReadableEnd {
    fn readable_end(&self, isolation: Isolation) -> Option<i64>;
}

impl ReadableEnd for FetchedPartition {
    fn readable_end(&self, isolation: Isolation) -> Option<i64> {
        let end = match isolation {
            Isolation::ReadCommitted => self.last_stable_offset,
            Isolation::ReadUncommitted => self.high_watermark,
        };
        Some(end).filter(|end| *end >= 0)
    }
}

/// An error with its causes in one line, for a reason that is shown long after it was logged.
pub(super) fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
