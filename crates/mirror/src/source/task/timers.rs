//! What a task does later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tokio::time::Instant;

use super::entry::EntryId;

/// Something to do at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// Store positions.
    Flush,
    /// Publish a snapshot.
    Publish,
    /// Notice what stands still.
    Watch,
    /// Tell of partitions that fail.
    Tell,
    /// See whether a broker of the target still owes an answer.
    Silence(i32),
    /// Try a paused partition again.
    Recheck(EntryId),
    /// Go on with a partition that had to wait.
    Touch(EntryId),
    /// See what can be started.
    Wake,
}

/// Timers by their time.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Timer)>>,
    is_publishing: bool,
}

impl Timers {
    pub fn set(&mut self, at: Instant, timer: Timer) {
        self.is_publishing |= timer == Timer::Publish;
        self.heap.push(Reverse((at, timer)));
    }

    /// Whether a snapshot is going to be published.
    pub fn is_publishing(&self) -> bool {
        self.is_publishing
    }

    /// When something is to be done next.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, timer)) = self.heap.pop()?;
        self.is_publishing &= timer != Timer::Publish;
        Some(timer)
    }
}
