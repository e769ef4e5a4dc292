//! Positions: stored at intervals, at the end, and once before the first record of a partition that
//! has none, so that a crash right after is bounded too.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{TopicPartition, UpstreamOffset};
use twinlog_core::records::connect_offset::Position;
use twinlog_kafka::error::{Error, Result};
use twinlog_kafka::retry::{Retry, while_retriable};

use super::entry::{Entry, EntryId, Start};
use super::reading::described;
use super::timers::Timer;
use super::{Event, Task, log_failure};
use crate::pipeline::writer::Frontier;
use crate::source::positions::{PositionStore, Written};
use crate::status::StoringTrouble;
use crate::verdict::{Refused, Verdict, verdict};

/// What waits to be stored.
#[derive(Debug, Default)]
pub struct Storing {
    is_under_way: bool,
    is_flush_due: bool,
    /// Also those that have not moved: what was stored is gone.
    is_everything_due: bool,
    /// Whether the write under way is of everything.
    is_storing_everything: bool,
    /// Partitions that must not send before their place is stored.
    anchors: Vec<EntryId>,
    /// Partitions whose positions are to be read again.
    unconfirmed: Vec<EntryId>,
    is_reading: bool,
    /// The last positions of partitions that have left.
    dropped: BTreeMap<TopicPartition, Position>,
    not_before: Option<Instant>,
    failures: u32,
    trouble: Option<Trouble>,
}

/// What keeps positions from being stored until a person acts, and since when.
#[derive(Debug)]
struct Trouble {
    reason: String,
    remedy: String,
    since: Instant,
}

/// A partition's frontier on its way to the offsets topic.
struct Moved {
    id: EntryId,
    frontier: Frontier,
    /// The beginning of the partition that it belongs to.
    beginning: u32,
}

/// A write of positions that has ended.
pub struct Stored {
    entries: Vec<Moved>,
    dropped: BTreeMap<TopicPartition, Position>,
    result: Result<Written>,
}

/// Positions that were read again.
pub struct Confirmed {
    entries: Vec<EntryId>,
    result: Result<HashMap<TopicPartition, Position>>,
}

impl Storing {
    pub fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// What keeps positions from being stored, if a person must act.
    pub fn trouble(&self) -> Option<StoringTrouble> {
        self.trouble.as_ref().map(|trouble| StoringTrouble {
            reason: trouble.reason.clone(),
            remedy: trouble.remedy.clone(),
            since: trouble.since.elapsed(),
        })
    }

    /// Has a partition's place stored as soon as possible.
    pub fn anchor(&mut self, id: EntryId, entry: &mut Entry) {
        if !entry.is_storing {
            entry.is_storing = true;
            self.anchors.push(id);
        }
    }

    /// Has everything stored that has moved.
    pub fn flush(&mut self) {
        self.is_flush_due = true;
    }

    /// Has all positions stored, whether or not they have moved.
    pub fn store_everything(&mut self) {
        self.is_flush_due = true;
        self.is_everything_due = true;
    }

    /// Has a partition's position read again.
    pub fn confirm(&mut self, id: EntryId) {
        self.unconfirmed.push(id);
    }

    pub fn on_dropped(&mut self, entry: &Entry) {
        if let Some(frontier) = entry.unstored() {
            let position = entry.position(frontier);
            self.dropped.insert(entry.spec.source.clone(), position);
            self.is_flush_due = true;
        }
    }
}

impl Task {
    /// Has everything stored that has moved.
    pub(super) fn flush_positions(&mut self) {
        self.storing.flush();
    }

    pub(super) fn dispatch_storing(&mut self) {
        let now = Instant::now();
        self.dispatch_confirming(now);
        let storing = &mut self.storing;
        let is_wanted = storing.is_flush_due || !storing.anchors.is_empty();
        let is_due = storing.not_before.is_none_or(|at| at <= now);
        if storing.is_under_way || !is_wanted || !is_due {
            return;
        }
        let (entries, dropped, records) = self.gather_positions();
        if records.is_empty() {
            return;
        }
        self.storing.is_under_way = true;
        let writer = self.context.positions.clone();
        self.push(async move {
            let result = writer.write(records).await;
            Event::Stored(Stored {
                entries,
                dropped,
                result,
            })
        });
    }

    fn dispatch_confirming(&mut self, now: Instant) {
        let storing = &mut self.storing;
        let is_due = storing.not_before.is_none_or(|at| at <= now);
        if storing.is_reading || storing.unconfirmed.is_empty() || !is_due {
            return;
        }
        storing.is_reading = true;
        let entries = std::mem::take(&mut storing.unconfirmed);
        let store = self.context.positions.clone();
        self.push(async move {
            let result = store.read().await;
            Event::Confirmed(Confirmed { entries, result })
        });
    }

    pub(super) fn on_confirmed(&mut self, confirmed: Confirmed) {
        self.storing.is_reading = false;
        let positions = match confirmed.result {
            Ok(positions) => positions,
            Err(error) => {
                self.storing.unconfirmed.extend(confirmed.entries);
                return self.on_store_failed("read positions", &error);
            }
        };
        for id in confirmed.entries {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.on_confirmed(positions.get(&entry.spec.source).copied());
            }
            self.touch(id);
        }
    }

    /// The records to write, and what they stand for.
    #[expect(
        clippy::type_complexity,
        reason = "three lists that are taken apart at once"
    )]
    fn gather_positions(
        &mut self,
    ) -> (
        Vec<Moved>,
        BTreeMap<TopicPartition, Position>,
        Vec<(Bytes, Bytes)>,
    ) {
        let mut entries = Vec::new();
        for id in std::mem::take(&mut self.storing.anchors) {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            match entry.frontier() {
                Some(frontier) => entries.push(entry.moved(id, frontier)),
                // It begins anew and asks again.
                None => entry.is_storing = false,
            }
        }
        if std::mem::take(&mut self.storing.is_flush_due) {
            let moved = self.entries.iter().filter(|(_, entry)| !entry.is_storing);
            let all = std::mem::take(&mut self.storing.is_everything_due);
            self.storing.is_storing_everything = all;
            entries.extend(moved.filter_map(|(id, entry)| {
                let frontier = if all { entry.known() } else { entry.unstored() };
                Some(entry.moved(id, frontier?))
            }));
        }
        let dropped = std::mem::take(&mut self.storing.dropped);
        let writer: &PositionStore = &self.context.positions;
        let of_entries = entries.iter().filter_map(|moved: &Moved| {
            let entry = self.entries.get(moved.id)?;
            Some(writer.record(&entry.spec.source, &entry.position(moved.frontier)))
        });
        let of_dropped = dropped
            .iter()
            .map(|(partition, position)| writer.record(partition, position));
        let records = of_entries.chain(of_dropped).collect();
        (entries, dropped, records)
    }

    pub(super) fn on_stored(&mut self, stored: Stored) {
        self.storing.is_under_way = false;
        match stored.result {
            Ok(written) => {
                self.storing.failures = 0;
                if self.storing.trouble.take().is_some() {
                    tracing::info!("positions are stored again");
                }
                if written == Written::InNewTopic {
                    tracing::warn!(topic = %self.context.positions.topic(), "the offsets topic was gone and was made again: storing all positions");
                    self.storing.store_everything();
                }
                for moved in stored.entries {
                    if let Some(entry) = self.entries.get_mut(moved.id) {
                        entry.is_storing = false;
                        // What was true of an earlier beginning does not anchor this one.
                        if entry.beginnings == moved.beginning {
                            entry.stored = Some(moved.frontier);
                        }
                    }
                    self.touch(moved.id);
                }
            }
            Err(error) => {
                self.on_store_failed("store positions", &error);
                self.storing.is_everything_due |= self.storing.is_storing_everything;
                self.storing.dropped.extend(stored.dropped);
                self.storing.is_flush_due = true;
                for Moved { id, .. } in stored.entries {
                    if let Some(entry) = self.entries.get_mut(id) {
                        entry.is_storing = false;
                    }
                    self.touch(id);
                }
            }
        }
    }

    fn on_store_failed(&mut self, action: &str, error: &Error) {
        let storing = &mut self.storing;
        let pause = self
            .config
            .backoff
            .pause(storing.failures, &mut self.random);
        match remedy(error, &self.context.positions) {
            Some(remedy) => storing.on_trouble(described(error), remedy),
            None => log_failure(action, error, storing.failures),
        }
        storing.failures = storing.failures.saturating_add(1);
        storing.not_before = Some(Instant::now() + pause);
        self.counters.retries += 1;
        self.timers.set(Instant::now() + pause, Timer::Wake);
    }

    /// Stores what has moved since the last time, before the task ends. It gives back of how many
    /// partitions it could not.
    pub(super) async fn store_at_end(&mut self) -> usize {
        self.flush_positions();
        let (_, _, records) = self.gather_positions();
        if records.is_empty() {
            return 0;
        }
        let partitions = records.len();
        // Positions are worth a little more than the deadline: without them the next start asks the
        // target's log.
        let deadline = self
            .stop_by
            .unwrap_or_else(Instant::now)
            .max(Instant::now() + GRACE);
        // A leader that has just moved is no reason to leave them out.
        let seed = self.random.u64(..);
        let mut retry = Retry::new(self.config.backoff, CancellationToken::new(), seed);
        let store = || self.context.positions.write(records.clone());
        let stored = retry.run("store positions", while_retriable, store);
        match timeout_at(deadline, stored).await {
            Ok(Ok(_)) => {
                tracing::debug!(partitions, "positions stored");
                return 0;
            }
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    partitions,
                    "could not store positions; the next start asks the target's log"
                );
            }
            Err(_) => tracing::warn!(
                partitions,
                "positions could not be stored in time; the next start asks the target's log"
            ),
        }
        partitions
    }
}

impl Storing {
    /// Takes note that nothing is stored until a person acts, and says so once.
    fn on_trouble(&mut self, reason: String, remedy: String) {
        if self
            .trouble
            .as_ref()
            .is_some_and(|known| known.reason == reason)
        {
            return;
        }
        tracing::error!(reason, remedy, "positions are not stored");
        let since = self.trouble.as_ref().map(|known| known.since);
        self.trouble = Some(Trouble {
            reason,
            remedy,
            since: since.unwrap_or_else(Instant::now),
        });
    }
}

/// What a person must do about a failure, if waiting will not help.
fn remedy(error: &Error, positions: &PositionStore) -> Option<String> {
    let topic = positions.topic();
    match verdict(error) {
        Verdict::Pause(Refused::Permission) => Some(format!(
            "grant READ, WRITE and DESCRIBE on topic {topic} of the target; it is tried again"
        )),
        Verdict::Pause(_) | Verdict::Fail => Some(format!(
            "see the target's words on topic {topic}; it is tried again"
        )),
        _ => None,
    }
}

/// The least time for storing positions at the end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(1);

impl Entry {
    /// The frontier, if it is another one than the offsets topic holds.
    fn unstored(&self) -> Option<Frontier> {
        let frontier = self.frontier()?;
        let is_stored = match (self.stored, self.start) {
            (Some(stored), _) => stored == frontier,
            (None, Start::Place { upstream, .. }) => upstream == frontier.upstream,
            (None, Start::Locate(_)) => true,
        };
        (!is_stored).then_some(frontier)
    }

    /// The frontier, or where it will be.
    fn known(&self) -> Option<Frontier> {
        let begun = match self.start {
            Start::Place { upstream, mark } => mark.map(|mark| Frontier { upstream, mark }),
            Start::Locate(_) => None,
        };
        self.frontier().or(begun)
    }

    fn moved(&self, id: EntryId, frontier: Frontier) -> Moved {
        Moved {
            id,
            frontier,
            beginning: self.beginnings,
        }
    }

    fn position(&self, frontier: Frontier) -> Position {
        Position {
            upstream: UpstreamOffset(frontier.upstream.0),
            target: Some(frontier.mark),
            topic_id: self.spec.topic_id.is_known().then_some(self.spec.topic_id),
        }
    }
}
