//! The source task: one actor that owns its partitions from fetch to acknowledgement.
//!
//! ```text
//!             ┌───────────── requests under way ─────────────┐
//!   dispatch ─┤ fetch · produce · look at logs · store · ... ├─> on_event ─┐
//!       ^     └───────────────────────────────────────────────┘            │
//!       └──────────── inbox (reconfigure, stop) ── timers ─────────────────┘
//! ```
//!
//! Everything that happens is an event to one loop: no locks, and no channels on the way of the
//! records. What depends on a broker waits in that broker's queues, so that a round costs what
//! there is to do, not how many partitions there are, and a broker that is away holds up its own
//! partitions only.
//!
//! [`asking`] puts questions about logs, [`beginning`] chooses where to read, [`settling`] finds out
//! what copies hold; [`reading`] fetches, [`writing`] produces, [`storing`] keeps positions,
//! [`leaders`] knows whom to ask, [`lines`] on which connection, [`sizes`] how much; the rules are in
//! [`crate::pipeline`].

mod asking;
mod beginning;
mod entry;
mod failing;
mod leaders;
mod lines;
mod reading;
mod settling;
mod silence;
mod sizes;
mod storing;
mod timers;
mod watching;
mod writing;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use twinlog_core::config::flow::OffsetReset;
use twinlog_core::ids::{Topic, TopicPartition, UpstreamOffset};
use twinlog_kafka::client::Client;
use twinlog_kafka::error::{Error, Result};
use twinlog_kafka::fetch::FetchOptions;
use twinlog_kafka::memory::MemoryBudget;
use twinlog_kafka::retry::{Backoff, is_told};

use self::asking::{Located, Looked};
pub use self::entry::PartitionSpec;
use self::entry::{Entries, Entry, EntryId, Pause};
use self::failing::Failing;
use self::leaders::{Side, View};
use self::lines::{Connected, SourceBroker, TargetBroker};
use self::reading::FetchDone;
use self::settling::{Counted, Printed, Replayed, Unaccounted};
use self::storing::{Confirmed, Stored};
use self::timers::{Timer, Timers};
use self::watching::WATCH_INTERVAL;
use self::writing::{Gap, ProduceDone};
use super::positions::{PositionStore, WallClock};
use crate::heavy_work::HeavyWork;
use crate::pipeline::planner::Rules;
use crate::pipeline::rebuild::Rebuilt;
use crate::status::{
    Behind, Counters, PartitionState, PauseReason, Paused, TaskStatus, Unfinished,
};

/// How often a snapshot is published while something happens.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);
/// How often a paused partition is tried again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How many events are taken in before what they made possible is sent: it fills requests.
const EVENTS_A_ROUND_MAX: usize = 64;

/// What does not change while the task runs.
#[derive(Debug, Clone)]
pub struct TaskConfig {
    /// Tells the tasks of a flow apart.
    pub index: u32,
    /// Rises with every start.
    pub generation: u64,
    /// The id everything is written under.
    pub producer_id: i64,
    /// How the source is read.
    pub fetch: FetchOptions,
    /// The most one fetch may bring (`fetch.max.bytes`), if that is less than we would ask for.
    pub fetch_bytes_max: usize,
    /// Where to begin without a position.
    pub auto_offset_reset: OffsetReset,
    /// How often positions are stored.
    pub flush_interval: Duration,
    /// Pauses between attempts.
    pub backoff: Backoff,
    /// Turns the settings of a target topic into rules.
    pub rules: super::rules::RulesConfig,
}

/// What a task can be told.
#[derive(Debug)]
pub enum Message {
    /// Mirror these partitions from now on. Those that it has already go on undisturbed.
    Reconfigure(Vec<PartitionSpec>),
    /// These topics of the target were deleted and made again: what was written to them is gone.
    TargetMadeAnew(BTreeSet<Topic>),
    /// The offsets topic was made anew: store all positions again.
    StoreAgain,
    /// Finish what is on its way until then, store positions, and end.
    Stop {
        /// When to end in any case.
        deadline: Instant,
    },
}

/// The clusters and what else a task works with.
pub struct TaskContext {
    /// The cluster that is read.
    pub source: Client,
    /// The cluster that is written.
    pub target: Client,
    /// Bounds what fetched records occupy.
    pub budget: MemoryBudget,
    /// Where positions are stored.
    pub positions: PositionStore,
    /// The time that records are compared with, Unix, ms.
    pub wall_clock: WallClock,
    /// Where large batches are rebuilt.
    pub heavy_work: HeavyWork,
    /// What random choices are drawn from.
    pub random: fastrand::Rng,
}

/// The task.
pub struct Task {
    config: Arc<TaskConfig>,
    context: TaskContext,
    entries: Entries,
    sources: BTreeMap<i32, SourceBroker>,
    targets: BTreeMap<i32, TargetBroker>,
    /// Counts produce requests.
    next_request: u64,
    source_view: View,
    target_view: View,
    requests: FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>,
    timers: Timers,
    counters: Counters,
    status: watch::Sender<TaskStatus>,
    is_published: bool,
    inbox: mpsc::Receiver<Message>,
    storing: storing::Storing,
    rebuilding: reading::Rebuilding,
    replayed: Replayed,
    unaccounted: Unaccounted,
    failing: Failing,
    is_asking_lags: bool,
    started: Instant,
    /// Topics whose settings on the target are being read.
    asking_rules: HashSet<Topic>,
    stop_by: Option<Instant>,
    /// What is left undone at the end.
    unfinished: Unfinished,
    random: fastrand::Rng,
}

/// Something that a request led to.
enum Event {
    Connected(Side, Connected),
    Fetched(FetchDone),
    Produced(ProduceDone),
    Rebuilt(EntryId, u64, Rebuilt),
    Located(Located),
    Looked(Looked),
    Counted(Counted),
    Gap(Gap),
    Printed(Printed),
    Grown(Vec<(EntryId, UpstreamOffset)>),
    Stored(Stored),
    Confirmed(Confirmed),
    Rules(Topic, Result<Option<Rules>>),
    Refreshed(Side, Result<()>),
}

impl Task {
    /// A task without partitions; the first [`Message::Reconfigure`] brings them.
    pub fn new(
        config: TaskConfig,
        context: TaskContext,
        inbox: mpsc::Receiver<Message>,
        status: watch::Sender<TaskStatus>,
    ) -> Self {
        let mut timers = Timers::default();
        timers.set(Instant::now() + config.flush_interval, Timer::Flush);
        timers.set(Instant::now() + WATCH_INTERVAL, Timer::Watch);
        Task {
            entries: Entries::default(),
            sources: BTreeMap::new(),
            targets: BTreeMap::new(),
            next_request: 1,
            source_view: View::new(&context.source),
            target_view: View::new(&context.target),
            requests: FuturesUnordered::new(),
            timers,
            counters: Counters::default(),
            status,
            is_published: false,
            inbox,
            storing: storing::Storing::default(),
            rebuilding: reading::Rebuilding::default(),
            replayed: Replayed::default(),
            unaccounted: Unaccounted::default(),
            failing: Failing::default(),
            is_asking_lags: false,
            started: Instant::now(),
            asking_rules: HashSet::new(),
            stop_by: None,
            unfinished: Unfinished::default(),
            random: context.random.clone(),
            config: Arc::new(config),
            context,
        }
    }

    /// Runs until it is told to stop, or whoever could tell it is gone.
    pub async fn run(mut self) {
        loop {
            self.dispatch();
            if self.is_drained() {
                break;
            }
            let wake = self
                .timers
                .next()
                .unwrap_or_else(|| Instant::now() + RECHECK_INTERVAL);
            tokio::select! {
                biased;
                Some(event) = self.requests.next(), if !self.requests.is_empty() => {
                    self.on_event(event);
                    self.take_more_events();
                }
                message = self.inbox.recv(), if self.stop_by.is_none() => self.on_message(message),
                () = sleep_until(wake) => self.on_timers(),
            }
        }
        self.unfinished.unstored = self.store_at_end().await;
        self.publish();
    }

    fn take_more_events(&mut self) {
        for _ in 1..EVENTS_A_ROUND_MAX {
            match self.requests.next().now_or_never().flatten() {
                Some(event) => self.on_event(event),
                None => return,
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        self.is_published = false;
        match event {
            Event::Connected(Side::Source, connected) => self.on_source_connected(connected),
            Event::Connected(Side::Target, connected) => self.on_target_connected(connected),
            Event::Fetched(done) => self.on_fetched(done),
            Event::Produced(done) => self.on_produced(done),
            Event::Rebuilt(id, round, rebuilt) => self.on_rebuilt(id, round, rebuilt),
            Event::Located(located) => self.on_located(located),
            Event::Looked(looked) => self.on_looked(looked),
            Event::Counted(counted) => self.on_counted(counted),
            Event::Gap(gap) => self.on_gap(gap),
            Event::Printed(printed) => self.on_printed(printed),
            Event::Grown(grown) => self.on_grown(grown),
            Event::Stored(stored) => self.on_stored(stored),
            Event::Confirmed(confirmed) => self.on_confirmed(confirmed),
            Event::Rules(topic, result) => self.on_rules(&topic, result),
            Event::Refreshed(side, result) => self.on_refreshed(side, result),
        }
    }

    fn on_message(&mut self, message: Option<Message>) {
        match message {
            Some(Message::Reconfigure(specs)) => self.reconfigure(specs),
            Some(Message::TargetMadeAnew(topics)) => self.on_target_made_anew(topics),
            Some(Message::StoreAgain) => self.storing.store_everything(),
            Some(Message::Stop { deadline }) => self.stop(deadline),
            None => self.stop(Instant::now()),
        }
    }

    fn on_timers(&mut self) {
        let now = Instant::now();
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Flush => {
                    self.flush_positions();
                    self.timers
                        .set(now + self.config.flush_interval, Timer::Flush);
                }
                Timer::Publish => self.publish(),
                Timer::Watch => {
                    self.watch_progress(now);
                    self.ask_lags();
                    self.timers.set(now + WATCH_INTERVAL, Timer::Watch);
                }
                Timer::Tell => self.failing.tell(),
                Timer::Silence(broker) => self.watch_silence(broker, now),
                Timer::Recheck(id) => self.recheck(id),
                Timer::Touch(id) => self.touch(id),
                Timer::Wake => {}
            }
        }
    }

    /// Starts every request that can be started.
    fn dispatch(&mut self) {
        self.follow_metadata(Side::Source);
        self.follow_metadata(Side::Target);
        self.dispatch_refresh(Side::Source);
        self.dispatch_refresh(Side::Target);
        if self.stop_by.is_none() {
            self.dispatch_rebuilding();
            self.dispatch_reading();
            self.dispatch_asking();
        }
        self.dispatch_writing();
        self.dispatch_storing();
        if !self.is_published && !self.timers.is_publishing() {
            self.timers
                .set(Instant::now() + PUBLISH_INTERVAL, Timer::Publish);
        }
    }

    fn push(&mut self, request: impl Future<Output = Event> + Send + 'static) {
        self.requests.push(Box::pin(request));
    }

    fn reconfigure(&mut self, specs: Vec<PartitionSpec>) {
        let wanted: HashSet<&TopicPartition> = specs.iter().map(|spec| &spec.source).collect();
        let gone = self
            .entries
            .iter()
            .filter(|(_, entry)| !wanted.contains(&entry.spec.source));
        let gone: Vec<EntryId> = gone.map(|(id, _)| id).collect();
        let left = gone.len();
        for id in gone {
            self.drop_entry(id);
        }
        let mut joined = 0;
        self.entries.reserve(specs.len());
        for spec in specs {
            if self.entries.by_source(&spec.source).is_none() {
                self.add_entry(spec);
                joined += 1;
            }
        }
        if joined + left > 0 {
            let partitions = self.entries.iter().count();
            tracing::info!(
                task = self.config.index,
                joined,
                left,
                partitions,
                "partitions assigned"
            );
        }
        self.is_published = false;
    }

    fn add_entry(&mut self, spec: PartitionSpec) {
        let id = self.entries.insert(Entry::new(spec));
        self.assign_leader(id, Side::Source);
        self.assign_leader(id, Side::Target);
        self.touch(id);
    }

    /// Lets go of a partition at its frontier, which is stored with the next flush.
    fn drop_entry(&mut self, id: EntryId) {
        self.set_reading(id, entry::Reading::Out);
        if let Some(entry) = self.entries.remove(id) {
            self.storing.on_dropped(&entry);
        }
    }

    /// Does what follows from any change of a partition's state. The one place that decides what it
    /// does next.
    fn touch(&mut self, id: EntryId) {
        self.feed(id);
        self.schedule_asking(id);
        self.schedule_sending(id);
        self.schedule_reading(id);
    }

    fn pause(&mut self, id: EntryId, reason: PauseReason) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if entry.last_pause.as_ref() != Some(&reason) {
            let _span = entry.span().entered();
            let remedy = reason.remedy();
            match reason.is_grave() {
                true => tracing::error!(%reason, remedy, "paused, others go on"),
                false => tracing::warn!(%reason, remedy, "paused, others go on"),
            }
            entry.last_pause = Some(reason.clone());
        }
        if let Some(lane) = &mut entry.lane {
            // Memory is for those that move.
            lane.reread();
        }
        entry.pause = Some(Pause {
            reason,
            since: Instant::now(),
        });
        self.timers
            .set(Instant::now() + RECHECK_INTERVAL, Timer::Recheck(id));
        self.touch(id);
    }

    /// Tries a paused partition again. Its target topic may have other settings now.
    fn recheck(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(pause) = entry.pause.take() else {
            return;
        };
        let topic = entry.spec.target.topic.clone();
        if let Some(lane) = &mut entry.lane {
            lane.writer.suspect();
        }
        if matches!(pause.reason, PauseReason::RecordTooLarge { .. }) {
            // The limit may have changed, and the record may be gone from the source, which a fetch
            // tells.
            self.ask_rules(topic);
        }
        self.touch(id);
    }

    fn stop(&mut self, deadline: Instant) {
        self.stop_by = Some(deadline);
        self.timers.set(deadline, Timer::Wake);
        for id in self.entries.ids() {
            self.set_reading(id, entry::Reading::Out);
            if let Some(lane) = self
                .entries
                .get_mut(id)
                .and_then(|entry| entry.lane.as_mut())
            {
                lane.reread();
            }
        }
    }

    fn is_drained(&mut self) -> bool {
        let Some(deadline) = self.stop_by else {
            return false;
        };
        let waiting = |entry: &Entry| {
            entry
                .lane
                .as_ref()
                .is_some_and(|lane| lane.writer.is_waiting())
        };
        let late = self
            .entries
            .iter()
            .filter(|(_, entry)| waiting(entry))
            .count();
        if Instant::now() < deadline {
            return late == 0 && !self.storing.is_under_way();
        }
        self.unfinished.unanswered = late;
        if late > 0 {
            tracing::warn!(
                partitions = late,
                "stopped before the target answered; the next start asks its log"
            );
        }
        true
    }

    fn publish(&mut self) {
        self.is_published = true;
        let mut status = TaskStatus {
            generation: self.config.generation,
            counters: self.counters.clone(),
            storing_trouble: self.storing.trouble(),
            unfinished: self.unfinished,
            ..TaskStatus::default()
        };
        let mut furthest: Option<(&Entry, u64)> = None;
        for (_, entry) in self.entries.iter() {
            match entry.state() {
                PartitionState::Starting => status.starting += 1,
                PartitionState::Running => status.running += 1,
                PartitionState::Settling => status.settling += 1,
                PartitionState::Paused(reason) => {
                    let since = entry.pause.as_ref().map(|pause| pause.since.elapsed());
                    status.paused.push(Paused {
                        partition: entry.spec.source.clone(),
                        reason,
                        since: since.unwrap_or_default(),
                    });
                }
            }
            let lag = entry.lag().unwrap_or(0);
            status.lag_records += lag;
            if furthest.is_none_or(|(_, most)| lag > most) {
                furthest = Some((entry, lag));
            }
        }
        status.furthest_behind = furthest
            .filter(|(_, lag)| *lag > 0)
            .map(|(entry, records)| {
                let partition = entry.spec.source.clone();
                Behind { partition, records }
            });
        self.status.send_replace(status);
    }

    fn ask_rules(&mut self, topic: Topic) {
        if self.asking_rules.insert(topic.clone()) {
            let target = self.context.target.clone();
            let config = self.config.rules;
            self.push(async move {
                let rules = config.of_topic(&target, &topic).await;
                Event::Rules(topic, rules)
            });
        }
    }

    fn on_rules(&mut self, topic: &Topic, result: Result<Option<Rules>>) {
        self.asking_rules.remove(topic);
        let rules = match result {
            Ok(Some(rules)) => rules,
            Ok(None) => return,
            Err(error) => return log_failure("read the settings of a target topic", &error, 0),
        };
        for id in self.entries.ids() {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            if entry.spec.target.topic != *topic {
                continue;
            }
            entry.spec.rules = rules;
            if let Some(lane) = &mut entry.lane
                && *lane.rules() != rules
            {
                lane.set_rules(rules);
                entry.pause = None;
            }
            self.touch(id);
        }
    }
}

/// Counts failures for the log: those that come within a minute of each other are one row, whatever
/// went well in between, so that a flapping line is not a line each time.
#[derive(Debug, Default)]
struct FailureRow {
    count: u32,
    last: Option<Instant>,
}

impl FailureRow {
    /// How many came before this one, now.
    fn next(&mut self) -> u32 {
        let now = Instant::now();
        let goes_on = |last: Instant| now.duration_since(last) < Duration::from_secs(60);
        if !self.last.replace(now).is_some_and(goes_on) {
            self.count = 0;
        }
        let before = self.count;
        self.count = before.saturating_add(1);
        before
    }
}

/// Logs a failure after `failures` others in a row, met by trying again: early ones are normal
/// while a cluster changes its mind.
fn log_failure(action: &str, error: &Error, failures: u32) {
    let error = error as &dyn std::error::Error;
    if !is_told(failures.saturating_add(1)) {
        tracing::debug!(action, error, failures, "trying again");
    } else if failures < 5 {
        tracing::info!(action, error, "trying again");
    } else {
        tracing::warn!(action, error, failures, "still failing, trying again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_of_a_flapping_line_are_one_row_until_it_is_calm_for_a_minute() {
        let mut row = FailureRow::default();
        let mut after = async |seconds| {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            row.next()
        };

        let flapping = [after(0).await, after(1).await, after(59).await];
        let calm = after(60).await;

        assert_eq!((flapping, calm), ([0, 1, 2], 0));
    }
}
