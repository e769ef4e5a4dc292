//! A broker of the target that leaves what it was asked unanswered for a while holds no memory that
//! partitions of others need: what was fetched for it and not sent is forgotten, to be fetched again,
//! and nothing more is fetched for it until it answers. What is on its way to it is bounded apart.

use std::time::Duration;

use tokio::time::Instant;
use twinlog_kafka::retry::is_told;

use super::entry::EntryId;
use super::lines::TargetBroker;
use super::timers::Timer;
use super::{FailureRow, Task};
use crate::pipeline::writer::IN_FLIGHT_MAX;

/// An answer that takes longer is more than a slow disk.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// And more than what is under way at least on a line that carries 100 KiB in a round trip.
const ROUND_TRIPS: u32 = 10;
/// Larger requests are not needed to fill a line.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Since when a broker owes an answer.
#[derive(Debug, Default)]
pub struct Silence {
    since: Option<Instant>,
    is_watched: bool,
    is_long: bool,
    /// Long silences, for the log.
    row: FailureRow,
    is_told: bool,
}

/// What a produce request may hold: half of the memory may be on its way, over all lines.
pub fn request_bytes_max(budget: usize, lines: usize) -> usize {
    (budget / 2 / lines.max(1) / IN_FLIGHT_MAX).min(REQUEST_BYTES_MAX)
}

impl Task {
    /// Whether a partition's copy is led by a broker that does not answer.
    pub(super) fn is_target_silent(&self, id: EntryId) -> bool {
        let leader = self.entries.get(id).and_then(|entry| entry.target_leader);
        let broker = leader.and_then(|leader| self.targets.get(&leader.broker));
        broker.is_some_and(|broker| broker.silence.is_long)
    }

    /// Takes note that a broker owes an answer.
    pub(super) fn on_target_asked(&mut self, id: i32) {
        let broker = self.target_broker(id);
        let patience = broker.patience();
        let silence = &mut broker.silence;
        let since = *silence.since.get_or_insert_with(Instant::now);
        if !std::mem::replace(&mut silence.is_watched, true) {
            self.timers.set(since + patience, Timer::Silence(id));
        }
    }

    /// Takes note that a broker has answered, or that one of its requests is given up.
    pub(super) fn on_target_answered(&mut self, id: i32) {
        let broker = self.target_broker(id);
        let is_asked = broker.is_asked();
        broker.silence.since = None;
        let was_long = std::mem::take(&mut broker.silence.is_long);
        let was_told = std::mem::take(&mut broker.silence.is_told);
        if is_asked {
            self.on_target_asked(id);
        }
        if was_told {
            tracing::info!(broker = id, "a broker of the target answers again");
        }
        if was_long {
            for led in self.led_by_target(id) {
                self.touch(led);
            }
        }
    }

    pub(super) fn watch_silence(&mut self, id: i32, now: Instant) {
        let broker = self.target_broker(id);
        let (last_taken, patience) = (broker.last_taken(), broker.patience());
        let silence = &mut broker.silence;
        silence.is_watched = false;
        let Some(since) = &mut silence.since else {
            return;
        };
        // On a slow line an answer takes long, but what it is to follow moves.
        *since = last_taken.map_or(*since, |taken| taken.max(*since));
        if now < *since + patience {
            return self.on_target_asked(id);
        }
        silence.is_long = true;
        silence.is_told = is_told(silence.row.next().saturating_add(1));
        if silence.is_told {
            let what = "a broker of the target does not answer: its partitions wait";
            tracing::info!(broker = id, "{what}");
        }
        for led in self.led_by_target(id) {
            let entry = self.entries.get_mut(led);
            if let Some(lane) = entry.and_then(|entry| entry.lane.as_mut()) {
                lane.reread();
            }
            self.touch(led);
        }
    }

    fn led_by_target(&self, broker: i32) -> Vec<EntryId> {
        let led = self.entries.iter().filter(|(_, entry)| {
            let leader = entry.target_leader;
            leader.is_some_and(|leader| leader.broker == broker)
        });
        led.map(|(id, _)| id).collect()
    }
}

impl TargetBroker {
    /// How long it may owe an answer.
    fn patience(&self) -> Duration {
        SILENT_AFTER + self.spread.distance * ROUND_TRIPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_half_of_the_memory_at_most() {
        for (budget, lines, expected) in [
            (64 << 20, 1, 4 << 20),
            (64 << 20, 4, (8 << 20) / 5),
            (4 << 20, 2, (1 << 20) / 5),
        ] {
            assert_eq!(request_bytes_max(budget, lines), expected);
        }
    }
}
