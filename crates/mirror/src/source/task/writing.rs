//! The target half of a task: up to five produce requests under way per broker, many partitions in
//! each, one batch per partition, sent at once.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

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
use super::silence::{Silence, request_bytes_max};
use super::timers::Timer;
use super::{Event, FailureRow, Task, log_failure};
use crate::pipeline::joining::Joining;
use crate::pipeline::writer::{Acked, IN_FLIGHT_MAX};
use crate::source::logs;
use crate::verdict::{Verdict, verdict};

/// Batches older than this the broker may forget while they are sent: half of the time after which
/// it does so as a rule (`producer.id.expiration.ms`).
const YOUNG_MS: i64 = 12 * 3_600_000;

/// One broker of the target.
#[derive(Default)]
pub struct TargetBroker {
    pub connection: Option<Connection>,
    pub is_connecting: bool,
    /// Produce requests under way.
    pub in_flight: usize,
    /// Whether it owes an answer.
    pub silence: Silence,
    /// Partitions that may send.
    pub ready: VecDeque<EntryId>,
    /// Partitions whose logs are to be looked at.
    pub look: Vec<EntryId>,
    pub is_looking: bool,
    pub not_before: Option<Instant>,
    pub failures: u32,
    pub told: FailureRow,
}

/// Records that stand before a batch of ours and were not expected there.
pub struct Gap {
    id: EntryId,
    records: i64,
    result: Result<TailCount>,
}

/// Of more records in a gap only the first are looked at.
const GAP_MAX: i64 = 100_000;

/// A produce request that has ended.
pub struct ProduceDone {
    broker: i32,
    sent: Vec<(EntryId, u64)>,
    result: Result<Vec<Produced>>,
}

impl Task {
    /// Puts a partition that may send into its broker's queue.
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
        entry.is_ready = true;
        self.targets
            .entry(leader.broker)
            .or_default()
            .ready
            .push_back(id);
    }

    pub(super) fn dispatch_writing(&mut self) {
        let now = Instant::now();
        let brokers: Vec<i32> = self.targets.keys().copied().collect();
        for id in brokers {
            let broker = self.targets.entry(id).or_default();
            let is_due = broker.not_before.is_none_or(|at| at <= now);
            if broker.ready.is_empty() || broker.is_connecting || !is_due {
                continue;
            }
            match broker
                .connection
                .clone()
                .filter(|connection| !connection.is_closed())
            {
                Some(connection) => self.start_produce(id, &connection),
                None => {
                    broker.is_connecting = true;
                    self.on_target_asked(id);
                    let (target, purpose) = (
                        self.context.target.clone(),
                        Purpose::Produce(self.config.index),
                    );
                    self.push(async move {
                        Event::Connected(Side::Target, id, target.connection(id, purpose).await)
                    });
                }
            }
        }
    }

    pub(super) fn on_target_connected(&mut self, id: i32, result: Result<Connection>) {
        let broker = self.targets.entry(id).or_default();
        broker.is_connecting = false;
        match result {
            Ok(connection) => broker.connection = Some(connection),
            Err(error) => self.on_target_broker_failed(id, &error),
        }
        self.on_target_answered(id);
    }

    /// Sends as many requests as may be under way.
    fn start_produce(&mut self, id: i32, connection: &Connection) {
        loop {
            let broker = self.targets.entry(id).or_default();
            if broker.in_flight >= IN_FLIGHT_MAX {
                return;
            }
            let (items, sent) = self.gather(id, connection.round_trip());
            if items.is_empty() {
                return;
            }
            self.targets.entry(id).or_default().in_flight += 1;
            self.on_target_asked(id);
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
                    broker: id,
                    result: result.await,
                    sent,
                })
            });
        }
    }

    /// Takes one batch of each ready partition, in turn, until the request is full.
    fn gather(&mut self, id: i32, round_trip: Duration) -> (Vec<ProduceItem>, Vec<(EntryId, u64)>) {
        let (mut items, mut sent, mut bytes) = (Vec::new(), Vec::new(), 0);
        let request = self.next_request;
        self.next_request += 1;
        let bytes_max = request_bytes_max(self.context.budget.limit(), self.targets.len());
        let broker = self.targets.entry(id).or_default();
        for _ in 0..broker.ready.len() {
            if bytes >= bytes_max {
                break;
            }
            let Some(ready) = broker.ready.pop_front() else {
                break;
            };
            let Some(entry) = self.entries.get_mut(ready) else {
                continue;
            };
            if entry.last_request == request {
                broker.ready.push_back(ready);
                continue;
            }
            let joining = Joining {
                size_max: entry.spec.rules.batch_bytes_max,
                round_trip,
                budget: &self.context.budget,
            };
            let Some((item, ticket)) = entry.next_batch(id, &joining) else {
                continue;
            };
            entry.last_request = request;
            bytes += item.body.len();
            items.push(item);
            sent.push((ready, ticket));
            if entry.is_ready {
                broker.ready.push_back(ready);
            }
        }
        (items, sent)
    }

    pub(super) fn on_produced(&mut self, done: ProduceDone) {
        let broker_id = done.broker;
        self.targets.entry(broker_id).or_default().in_flight -= 1;
        match done.result {
            Err(error) => {
                for (id, ticket) in &done.sent {
                    if let Some(lane) = self
                        .entries
                        .get_mut(*id)
                        .and_then(|entry| entry.lane.as_mut())
                    {
                        lane.writer.on_doubt(*ticket);
                    }
                }
                self.on_target_broker_failed(done.broker, &error);
                let not_before = self.targets.entry(done.broker).or_default().not_before;
                for (id, _) in done.sent {
                    self.on_stale_leader(id, Side::Target);
                    self.hold_back(id, not_before);
                    self.touch(id);
                }
            }
            Ok(answers) => {
                self.targets.entry(done.broker).or_default().failures = 0;
                let mut unanswered: BTreeMap<EntryId, u64> = done.sent.into_iter().collect();
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

    fn on_target_broker_failed(&mut self, id: i32, error: &Error) {
        let broker = self.targets.entry(id).or_default();
        let is_known =
            broker.connection.is_none() && broker.not_before.is_some_and(|at| at > Instant::now());
        if is_known {
            // All that was under way on a connection fails with it.
            return;
        }
        let failures = broker.failures;
        let pause = self.config.backoff.pause(failures, &mut self.random);
        broker.failures = failures.saturating_add(1);
        broker.connection = None;
        let not_before = Some(Instant::now() + pause);
        broker.not_before = not_before;
        self.counters.retries += 1;
        self.timers.set(Instant::now() + pause, Timer::Wake);
        log_failure("write to the target", error, broker.told.next());
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
    /// Takes the next batch for a broker out of the writer, unless the partition has moved or been
    /// paused since it was put into that broker's queue. It stays ready if there is another.
    fn next_batch(&mut self, broker: i32, joining: &Joining<'_>) -> Option<(ProduceItem, u64)> {
        let leader = self
            .target_leader
            .filter(|leader| leader.broker == broker)?;
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
