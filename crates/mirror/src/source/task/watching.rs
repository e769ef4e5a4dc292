//! Notices partitions that stand still though nothing is known to keep them.

use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::{TopicPartition, UpstreamOffset};

use super::asking::ASKED_MAX;
use super::entry::{Entry, EntryId, Reading};
use super::{Event, Task};
use crate::source::logs;

/// How often partitions are looked at.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(30);
/// A partition that has more to copy and did not move for so long is worth a line.
const STILL_MAX: Duration = Duration::from_secs(60);

/// Since when a partition is where it is.
#[derive(Debug, Default)]
pub struct Progress {
    last: Option<(Option<UpstreamOffset>, Instant)>,
    is_told: bool,
}

/// Whether a partition moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    /// It does, or has nothing to do, or not for long.
    Moves,
    /// It stopped, which was not told yet.
    Stopped,
    /// It still stands still.
    Still,
}

impl Progress {
    /// Judges by where the partition is now; `is_done` says that it has nothing to do there.
    pub fn look(&mut self, at: Option<UpstreamOffset>, is_done: bool, now: Instant) -> Motion {
        match self.last {
            Some((before, since)) if before == at && !is_done => {
                let is_still = now.duration_since(since) >= STILL_MAX;
                match (is_still, std::mem::replace(&mut self.is_told, is_still)) {
                    (false, _) => Motion::Moves,
                    (true, false) => Motion::Stopped,
                    (true, true) => Motion::Still,
                }
            }
            _ => {
                *self = Progress {
                    last: Some((at, now)),
                    is_told: false,
                };
                Motion::Moves
            }
        }
    }
}

impl Task {
    /// Says once which partitions stand still, and has a look whether they could go on.
    pub(super) fn watch_progress(&mut self, now: Instant) {
        let mut stopped = Vec::new();
        let ids = self.entries.ids();
        let still: Vec<EntryId> = ids
            .into_iter()
            .filter(|id| {
                let Some(entry) = self.entries.get_mut(*id) else {
                    return false;
                };
                let (at, is_done) = (entry.frontier().map(|f| f.upstream), entry.is_done());
                let motion = entry.progress.look(at, is_done, now);
                if motion == Motion::Stopped {
                    stopped.push(entry.spec.source.clone());
                }
                motion != Motion::Moves
            })
            .collect();
        if let Some(first) = stopped.first() {
            tracing::warn!(
                partitions = stopped.len(),
                for_example = %first,
                "partitions have not moved for a minute though there is more to copy"
            );
        }
        for id in still {
            self.touch(id);
        }
    }

    /// Asks how far the logs of those have grown that nothing is fetched from: their answers do not
    /// tell, and what stands still for long is to be seen.
    pub(super) fn ask_lags(&mut self) {
        let unread = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.lane.is_some() && !matches!(entry.reading, Reading::In(_)));
        let asked: Vec<(EntryId, TopicPartition)> = unread
            .map(|(id, entry)| (id, entry.spec.source.clone()))
            .collect();
        if asked.is_empty() || self.is_asking_lags {
            return;
        }
        self.is_asking_lags = true;
        let client = self.context.source.clone();
        let isolation = self.config.fetch.isolation;
        self.push(async move {
            let mut grown = Vec::new();
            for asked in asked.chunks(ASKED_MAX) {
                let partitions = asked.iter().map(|(_, partition)| partition.clone());
                let ends = logs::ends(&client, partitions.collect(), isolation, Vec::new());
                let mut ends = ends.await;
                grown.extend(asked.iter().filter_map(|(id, partition)| {
                    let ends = ends.remove(partition)?.ok()?;
                    Some((*id, ends.readable_end))
                }));
            }
            Event::Grown(grown)
        });
    }

    pub(super) fn on_grown(&mut self, grown: Vec<(EntryId, UpstreamOffset)>) {
        self.is_asking_lags = false;
        for (id, end) in grown {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.log_end = entry.log_end.max(Some(end.0));
            }
        }
    }
}

impl Entry {
    /// Whether it has nothing to do, as far as is known; a pause has said why it does nothing.
    fn is_done(&self) -> bool {
        let is_read = matches!(self.reading, Reading::In(_));
        let is_empty = self.lane.as_ref().is_some_and(|lane| lane.bytes() == 0);
        self.pause.is_some() || (is_read && is_empty && self.lag().unwrap_or(0) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_stands_still_with_something_to_do_is_told_once_until_it_moves() {
        let start = Instant::now();
        let mut progress = Progress::default();
        let mut look = |seconds, at, is_done| {
            let now = start + Duration::from_secs(seconds);
            progress.look(Some(UpstreamOffset(at)), is_done, now)
        };

        assert_eq!(look(0, 7, true), Motion::Moves);
        assert_eq!(look(600, 7, true), Motion::Moves);
        assert_eq!(look(630, 7, false), Motion::Moves);
        assert_eq!(look(660, 7, false), Motion::Stopped);
        assert_eq!(look(690, 7, false), Motion::Still);
        assert_eq!(look(720, 8, false), Motion::Moves);
        assert_eq!(look(780, 8, false), Motion::Stopped);
    }
}
