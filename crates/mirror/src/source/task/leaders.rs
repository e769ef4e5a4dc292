//! Who leads what: each partition's leader on both sides, looked up again when one denies it or is
//! gone.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use twinlog_core::ids::Topic;
use twinlog_kafka::client::Client;
use twinlog_kafka::error::Result;
use twinlog_kafka::metadata::{Metadata, Topics};

use super::entry::EntryId;
use super::timers::Timer;
use super::{Event, Task, log_failure};

/// What the task knows of one cluster's leaders.
pub struct View {
    pub metadata: watch::Receiver<Arc<Metadata>>,
    /// Topics of partitions without a leader, or with one that denies it.
    pub stale: HashSet<Topic>,
    is_refreshing: bool,
    failures: u32,
    not_before: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

impl View {
    pub fn new(client: &Client) -> Self {
        View {
            metadata: client.subscribe(),
            stale: HashSet::new(),
            is_refreshing: false,
            failures: 0,
            not_before: None,
        }
    }
}

impl Task {
    fn view(&mut self, side: Side) -> &mut View {
        match side {
            Side::Source => &mut self.source_view,
            Side::Target => &mut self.target_view,
        }
    }

    /// Takes note of leaders that changed, whoever asked for them.
    pub(super) fn follow_metadata(&mut self, side: Side) {
        if self.view(side).metadata.has_changed().unwrap_or(false) {
            self.view(side).metadata.mark_unchanged();
            for id in self.entries.ids() {
                if self.assign_leader(id, side) {
                    self.touch(id);
                }
            }
        }
    }

    /// Looks a partition's leader up; whether it is another one than before.
    pub(super) fn assign_leader(&mut self, id: EntryId, side: Side) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        let (view, partition, known) = match side {
            Side::Source => (
                &mut self.source_view,
                &entry.spec.source,
                &mut entry.source_leader,
            ),
            Side::Target => (
                &mut self.target_view,
                &entry.spec.target,
                &mut entry.target_leader,
            ),
        };
        let found = view.metadata.borrow().leader(partition);
        if found.is_none() {
            view.stale.insert(partition.topic.clone());
        }
        let before = std::mem::replace(known, found);
        if before == found {
            return false;
        }
        let came = found.filter(|now| before.is_none_or(|then| then.broker != now.broker));
        match side {
            Side::Source => {
                entry.preferred_replica = None;
                if let Some(leader) = came {
                    entry.source_rank =
                        self.sources.entry(leader.broker).or_default().spread.rank();
                }
                self.on_source_leader(id);
            }
            Side::Target => {
                entry.is_ready = false;
                if let Some(leader) = came {
                    entry.target_rank =
                        self.targets.entry(leader.broker).or_default().spread.rank();
                }
            }
        }
        true
    }

    /// Forgets a leader that denies it, or that is gone, and asks for the one there is now.
    pub(super) fn on_stale_leader(&mut self, id: EntryId, side: Side) {
        let Some(entry) = self.entries.get(id) else {
            return;
        };
        let topic = match side {
            Side::Source => entry.spec.source.topic.clone(),
            Side::Target => entry.spec.target.topic.clone(),
        };
        self.view(side).stale.insert(topic);
    }

    pub(super) fn dispatch_refresh(&mut self, side: Side) {
        let now = Instant::now();
        let client = match side {
            Side::Source => self.context.source.clone(),
            Side::Target => self.context.target.clone(),
        };
        let view = self.view(side);
        let is_due = view.not_before.is_none_or(|at| at <= now);
        if view.stale.is_empty() || view.is_refreshing || !is_due {
            return;
        }
        view.is_refreshing = true;
        let topics = Topics::Named(view.stale.drain().collect());
        self.push(async move {
            let refreshed = client.refresh(&topics).await;
            Event::Refreshed(side, refreshed.map(drop))
        });
    }

    pub(super) fn on_refreshed(&mut self, side: Side, result: Result<()>) {
        let now = Instant::now();
        let failures = self.view(side).failures;
        let pause = self.config.backoff.pause(failures, &mut self.random);
        let view = self.view(side);
        view.is_refreshing = false;
        // Elections take a moment: even a good answer is not asked for again at once.
        view.not_before = Some(now + pause);
        view.failures = failures.saturating_add(1);
        self.timers.set(now + pause, Timer::Wake);
        let failed = result.is_err();
        if let Err(error) = result {
            log_failure("look for leaders", &error, failures);
        }
        self.follow_metadata(side);
        for id in self.entries.ids() {
            let Some(entry) = self.entries.get(id) else {
                continue;
            };
            let leader = match side {
                Side::Source => entry.source_leader,
                Side::Target => entry.target_leader,
            };
            if leader.is_none() {
                self.on_stale_leader(id, side);
            }
        }
        if !failed && self.view(side).stale.is_empty() {
            self.view(side).failures = 0;
        }
    }
}
