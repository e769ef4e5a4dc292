//! The target half of a task: up to five produce requests under way per line to a broker, many
//! partitions in each, one batch per partition, sent at once.

use std::collections::BTreeMap;

use tokio::time::Instant;
use twinlog_core::ids::DownstreamOffset;
use twinlog_core::offsets::TailCount;
use twinlog_kafka::batch::restamp;
use twinlog_kafka::client::Purpose;
use twinlog_kafka::connection::Connection;
use twinlog_kafka::error::{Error, ErrorCode, Result};
use twinlog_kafka::produce::{self, ProduceItem, ProduceOptions, Produced};

use super::entry::{Entry, EntryId, Objection};
use super::leaders::Side;
use super::lines::{Connected, Line};
use super::silence::request_bytes_max;
use super::sizes::Answer;
use super::timers::Timer;
use super::{Event, Task, log_failure, sizes};
use crate::pipeline::joining::Joining;
use crate::pipeline::writer::{Acked, IN_FLIGHT_MAX};
use crate::source::logs;
use crate::verdict::{Verdict, verdict};

/// Batches older than this the broker may forget while they are sent: half of the time after which
/// it does so as a rule (`producer.id.expiration.ms`).
const YOUNG_MS: i64 = 12 * 3_600_000;

/// Records that stand before a batch of ours and were not expected there.
pub struct Gap {
    id: EntryId,
    records: i64,
    result: Result<TailCount>,
}

/// Of more records in a gap only the first are looked at.
const GAP_MAX: i64 = 100_000;

/// What a produce request holds.
#[derive(Default)]
struct Sent {
    tickets: Vec<(EntryId, u64)>,
    bytes: usize,
}

/// A produce request that has ended.
pub struct ProduceDone {
    line: Line,
    since: Instant,
    sent: Sent,
    result: Result<Vec<Produced>>,
}

impl Task {
    /// Puts a partition that may send into the queue of its line.
    pub(super) fn schedule_sending(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let is_due = entry.not_before.is_none_or(|at| at <= Instant::now());
        let old_before = match entry.spec.rules.target_stamps {
            true => i64::MIN,
            false => (self.context.wall_clock)() - YOUNG_MS,
        };
        let can_send = entry.lane.as_mut().is_some_and(|lane| {
            lane.writer.set_old_before(old_before);
            lane.writer.can_send()
        });
        if entry.is_ready || !can_send || entry.pause.is_some() || !is_due {
            return;
        }
        if !entry.is_anchored() {
            return self.storing.anchor(id, entry);
        }
        let Some(leader) = entry.target_leader else {
            return;
        };
        let broker = self.targets.entry(leader.broker).or_default();
        let line = Line {
            broker: leader.broker,
            number: broker.spread.number(entry.target_rank),
        };
        if !entry.may_write_on(line) {
            return;
        }
        entry.writing = Some(line);
        entry.is_ready = true;
        broker.line(line.number).ready.push_back(id);
    }

    pub(super) fn dispatch_writing(&mut self) {
        let now = Instant::now();
        let due = self.targets.iter().filter(|(_, it)| it.health.is_due(now));
        let lines = due.flat_map(|(broker, it)| {
            let lines = it.lines.iter().enumerate();
            let ready = lines.filter(|(_, line)| !line.ready.is_empty() && !line.is_connecting);
            ready.map(|(number, _)| Line {
                broker: *broker,
                number,
            })
        });
        for line in lines.collect::<Vec<Line>>() {
            match self.target_line(line).open() {
                Some(connection) => self.start_produce(line, &connection),
                None => {
                    self.target_line(line).is_connecting = true;
                    self.on_target_asked(line.broker);
                    let purpose = Purpose::Produce(line.purpose(self.config.index));
                    self.connect(Side::Target, line, purpose);
                }
            }
        }
    }

    pub(super) fn on_target_connected(&mut self, connected: Connected) {
        let Connected {
            line,
            since,
            result,
        } = connected;
        self.target_line(line).is_connecting = false;
        match result {
            Ok(connection) => {
                self.target_line(line).connection = Some(connection);
                self.target_broker(line.broker).measure();
            }
            Err(error) => self.on_target_line_failed(line, since, &error),
        }
        self.on_target_answered(line.broker);
    }

    /// Sends as many requests as may be under way.
    fn start_produce(&mut self, line: Line, connection: &Connection) {
        loop {
            let least = self.target_bytes_min();
            let it = self.target_line(line);
            let room = it.under_way_max.max(least).saturating_sub(it.under_way);
            if room == 0 || it.in_flight >= IN_FLIGHT_MAX {
                return;
            }
            let (items, sent) = self.gather(line, room);
            if items.is_empty() {
                return;
            }
            let it = self.target_line(line);
            it.in_flight += 1;
            it.under_way += sent.bytes;
            self.on_target_asked(line.broker);
            let since = Instant::now();
            let connection = connection.clone();
            self.push(async move {
                let result = async {
                    let options = ProduceOptions::default();
                    produce::send(&connection, &options, items)
                        .await?
                        .results()
                        .await
                };
                Event::Produced(ProduceDone {
                    line,
                    since,
                    result: result.await,
                    sent,
                })
            });
        }
    }

    /// Takes one batch of each ready partition, in turn, until the request is full, or there is no
    /// more room.
    fn gather(&mut self, line: Line, room: usize) -> (Vec<ProduceItem>, Sent) {
        let (mut items, mut sent) = (Vec::new(), Sent::default());
        let request = self.next_request;
        self.next_request += 1;
        let bytes_max = request_bytes_max(self.context.budget.limit(), self.target_lines_used());
        let bytes_max = bytes_max.min(room);
        let broker = self.targets.entry(line.broker).or_default();
        let round_trip = broker.spread.distance;
        for _ in 0..broker.line(line.number).ready.len() {
            if sent.bytes >= bytes_max {
                break;
            }
            let Some(ready) = broker.line(line.number).ready.pop_front() else {
                break;
            };
            let Some(entry) = self.entries.get_mut(ready) else {
                continue;
            };
            if entry.last_request == request {
                broker.line(line.number).ready.push_back(ready);
                continue;
            }
            let joining = Joining {
                size_max: entry.spec.rules.batch_bytes_max,
                round_trip,
                budget: &self.context.budget,
            };
            let Some((item, ticket)) = entry.next_batch(line, &joining) else {
                continue;
            };
            entry.last_request = request;
            sent.bytes += item.body.len();
            items.push(item);
            sent.tickets.push((ready, ticket));
            // One that belongs on another line by now goes on there when this one is done with it.
            entry.is_ready &= broker.spread.number(entry.target_rank) == line.number;
            if entry.is_ready {
                broker.line(line.number).ready.push_back(ready);
            }
        }
        (items, sent)
    }

    pub(super) fn on_produced(&mut self, done: ProduceDone) {
        let broker_id = done.line.broker;
        let least = self.target_bytes_min();
        let line = self.target_line(done.line);
        let answer = Answer {
            most: line.under_way_max.max(least),
            bytes: line.under_way,
            took: done.since.elapsed(),
        };
        line.in_flight -= 1;
        line.under_way -= done.sent.bytes;
        match done.result {
            Err(error) => {
                for (id, ticket) in &done.sent.tickets {
                    if let Some(lane) = self
                        .entries
                        .get_mut(*id)
                        .and_then(|entry| entry.lane.as_mut())
                    {
                        lane.writer.on_doubt(*ticket);
                    }
                }
                self.on_target_line_failed(done.line, done.since, &error);
                let not_before = self.target_broker(broker_id).health.not_before;
                for (id, _) in done.sent.tickets {
                    self.on_stale_leader(id, Side::Target);
                    self.hold_back(id, not_before);
                    self.touch(id);
                }
            }
            Ok(answers) => {
                self.on_target_line_answered(done.line, done.sent.bytes, answer);
                let tickets = done.sent.tickets.into_iter();
                let mut unanswered: BTreeMap<EntryId, u64> = tickets.collect();
                for answer in answers {
                    let id = self.entries.by_target(&answer.partition);
                    let sent = id.and_then(|id| unanswered.remove_entry(&id));
                    if let Some((id, ticket)) = sent {
                        self.on_answer(id, ticket, &answer);
                    }
                }
                for (id, ticket) in unanswered {
                    self.on_objection(id, ticket, Objection::Later);
                }
            }
        }
        self.on_target_answered(broker_id);
    }

    /// Adapts what may be under way, and the number of lines.
    fn on_target_line_answered(&mut self, line: Line, bytes: usize, answer: Answer) {
        let (budget, brokers) = (self.context.budget.limit(), self.targets.len());
        let least = self.target_bytes_min();
        let most = sizes::under_way_max(budget, self.target_lines_used());
        let broker = self.target_broker(line.broker);
        broker.health.failures = 0;
        let lines_max = sizes::lines_max(broker.spread.distance, budget, brokers);
        let before = broker.spread.lines();
        broker.on_carried(bytes, lines_max);
        let distance = broker.spread.distance;
        broker.line(line.number).under_way_max = sizes::next_bytes(answer, distance, least..=most);
        if broker.spread.lines() != before {
            self.spread_ready(line.broker);
        }
    }

    /// Puts the partitions that may send into the queues of the lines that they belong on now.
    fn spread_ready(&mut self, broker: i32) {
        for number in 0..self.target_broker(broker).lines.len() {
            let line = Line { broker, number };
            for id in std::mem::take(&mut self.target_line(line).ready) {
                let entry = self.entries.get_mut(id);
                if let Some(entry) = entry.filter(|entry| entry.writing == Some(line)) {
                    entry.is_ready = false;
                    self.schedule_sending(id);
                }
            }
        }
    }

    fn on_answer(&mut self, id: EntryId, ticket: u64, answer: &Produced) {
        if answer.error != ErrorCode::NONE {
            let error = Error::Broker {
                action: format!("produce to {}", answer.partition),
                code: answer.error,
                message: in_its_words(answer),
            };
            return self.on_refused(id, ticket, &error);
        }
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(lane) = &mut entry.lane else {
            return;
        };
        if let Acked::InPlace {
            records,
            bytes,
            foreign,
        } = lane.writer.on_ack(ticket, answer.base_offset)
        {
            entry.failures = 0;
            entry.strikes = 0;
            if entry.last_pause.take().is_some() {
                let _span = entry.span().entered();
                tracing::info!("goes on after a pause");
            }
            self.counters.records += records.unsigned_abs();
            self.counters.bytes += bytes as u64;
            if foreign > 0 {
                self.look_at_gap(id, answer.base_offset, foreign);
            }
        }
        self.touch(id);
    }

    fn on_refused(&mut self, id: EntryId, ticket: u64, error: &Error) {
        let objection = match verdict(error) {
            Verdict::RefreshAndRetry => {
                self.on_stale_leader(id, Side::Target);
                Objection::Later
            }
            Verdict::Refetch => Objection::Damaged(error.to_string()),
            Verdict::Pause(refused) => Objection::Refused(refused, error.to_string()),
            Verdict::Fail => Objection::Refused(crate::verdict::Refused::Other, error.to_string()),
            Verdict::Retry | Verdict::NewSession | Verdict::Reposition | Verdict::Sync => {
                Objection::Later
            }
        };
        tracing::debug!(
            error = error as &dyn std::error::Error,
            "the target did not take a batch"
        );
        self.on_objection(id, ticket, objection);
    }

    fn on_objection(&mut self, id: EntryId, ticket: u64, objection: Objection) {
        self.counters.retries += 1;
        if let Some(entry) = self.entries.get_mut(id)
            && let Some(lane) = &mut entry.lane
        {
            lane.writer.on_doubt(ticket);
            if entry.objection.is_none() {
                // The first is the cause; those behind it are refused for their sequence.
                let is_final = matches!(objection, Objection::Refused(..));
                entry.objection = Some(objection);
                if !is_final {
                    return self.wait(id);
                }
            }
        }
        self.touch(id);
    }

    /// Something begun at `since` failed.
    fn on_target_line_failed(&mut self, line: Line, since: Instant, error: &Error) {
        let id = line.broker;
        let failures = self.target_broker(id).health.failures;
        let pause = self.config.backoff.pause(failures, &mut self.random);
        let not_before = Instant::now() + pause;
        self.timers.set(not_before, Timer::Wake);
        let line = self.target_line(line);
        line.connection = None;
        // It may have been too much to be answered in time.
        line.under_way_max = 0;
        let health = &mut self.target_broker(id).health;
        let Some(told) = health.on_failed(since, not_before) else {
            return;
        };
        let not_before = health.not_before;
        log_failure("write to the target", error, told);
        self.counters.retries += 1;
        let led = self.entries.iter().filter(|(_, entry)| {
            let leader = entry.target_leader.map(|leader| leader.broker);
            leader == Some(id)
                && entry
                    .lane
                    .as_ref()
                    .is_some_and(|lane| !lane.writer.is_idle())
        });
        let led: Vec<EntryId> = led.map(|(id, _)| id).collect();
        for id in led {
            self.on_stale_leader(id, Side::Target);
            let lane = self
                .entries
                .get_mut(id)
                .and_then(|entry| entry.lane.as_mut());
            if let Some(lane) = lane {
                if lane.writer.may_be_doubled() {
                    // What the log held before the pause says too little.
                    lane.writer.suspect();
                }
                // A broker that stays away must not hold memory that others need.
                if failures > 0 {
                    lane.reread();
                }
            }
            self.hold_back(id, not_before);
            self.touch(id);
        }
    }

    /// Has a partition in doubt wait before its log is looked at: what was on its way may arrive
    /// until then, and the sooner something is sent after the look the better.
    fn hold_back(&mut self, id: EntryId, not_before: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let in_doubt = entry
            .lane
            .as_ref()
            .is_some_and(|lane| lane.writer.is_in_doubt());
        if let Some(at) = not_before.filter(|_| in_doubt) {
            entry.not_before = entry.not_before.max(Some(at));
            self.timers.set(at, Timer::Touch(id));
        }
    }

    /// Asks whose records came in before a batch of ours.
    fn look_at_gap(&mut self, id: EntryId, end: i64, records: i64) {
        let Some(entry) = self.entries.get(id) else {
            return;
        };
        let partition = entry.spec.target.clone();
        let (client, producer_id) = (self.context.target.clone(), self.config.producer_id);
        let from = DownstreamOffset(end - records);
        let to = from.plus(records.min(GAP_MAX));
        self.push(async move {
            let result = logs::whose(&client, &partition, from, to, producer_id).await;
            Event::Gap(Gap {
                id,
                records,
                result,
            })
        });
    }

    pub(super) fn on_gap(&mut self, gap: Gap) {
        let ours = match gap.result {
            Ok(count) => count.ours,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "could not see whose records came in");
                0
            }
        };
        if ours > 0 {
            let is_first = self.counters.doubled_records == 0;
            self.counters.doubled_records += ours.unsigned_abs();
            if let Some(entry) = self.entries.get(gap.id)
                && is_first
            {
                let _span = entry.span().entered();
                tracing::error!(
                    records = ours,
                    "records of ours are on the target twice: a request arrived after its broker had forgotten us"
                );
            }
        }
        self.on_foreign(gap.id, gap.records - ours);
    }

    /// Takes note that others wrote into the copy: nothing is lost by it, but it is no copy any
    /// more.
    pub(super) fn on_foreign(&mut self, id: EntryId, records: i64) {
        if records <= 0 {
            return;
        }
        let is_first = self.counters.foreign_records == 0;
        self.counters.foreign_records += records.unsigned_abs();
        if let Some(entry) = self.entries.get(id)
            && is_first
        {
            let _span = entry.span().entered();
            tracing::warn!(
                records,
                "something else writes to the target topic; ours are complete"
            );
        }
    }
}

impl Entry {
    /// Whether a batch may be sent on this line: not while others are under way on another one to the
    /// same broker, which may come in later.
    fn may_write_on(&self, line: Line) -> bool {
        let is_waiting = self
            .lane
            .as_ref()
            .is_some_and(|lane| lane.writer.is_waiting());
        let is_same = |before: Line| before == line || before.broker != line.broker;
        !is_waiting || self.writing.is_none_or(is_same)
    }

    /// Takes the next batch for a line out of the writer, unless the partition has moved or been
    /// paused since it was put into that line's queue. It stays ready if there is another.
    fn next_batch(&mut self, line: Line, joining: &Joining<'_>) -> Option<(ProduceItem, u64)> {
        let leader = self
            .target_leader
            .filter(|leader| leader.broker == line.broker && self.writing == Some(line))?;
        self.is_ready = false;
        if self.pause.is_some() || !self.is_anchored() {
            return None;
        }
        let lane = self.lane.as_mut()?;
        let outgoing = lane.writer.send(joining)?;
        self.is_ready = lane.writer.can_send();
        let item = ProduceItem {
            topic: self.spec.target.topic.clone(),
            topic_id: leader.topic_id,
            partition: self.spec.target.partition,
            header: restamp(&outgoing.batch, outgoing.stamp),
            body: outgoing.batch.body(),
        };
        Some((item, outgoing.ticket))
    }
}

/// What the broker said about a batch, with the first record it minds.
fn in_its_words(answer: &Produced) -> Option<String> {
    let record = answer.record_errors.first();
    let about = record.and_then(|(index, message)| {
        message
            .as_ref()
            .map(|message| format!("record {index}: {message}"))
    });
    match (&answer.message, about) {
        (Some(message), Some(about)) => Some(format!("{message} ({about})")),
        (message, about) => message.clone().or(about),
    }
}
