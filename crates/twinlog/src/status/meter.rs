//! Rates from counters.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_mirror::status::FlowStatus;

use super::view::Traffic;

/// Measures one flow: counters as they were a while ago, against counters now.
pub struct Meter {
    over: Duration,
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    records: u64,
    bytes: u64,
}

impl Meter {
    /// Rates over the time `over`, or since the first reading while that is shorter.
    pub fn new(over: Duration) -> Self {
        Meter {
            over,
            samples: VecDeque::new(),
        }
    }

    /// Rates since the reading before, however long ago that is.
    pub fn since_last() -> Self {
        Meter::new(Duration::ZERO)
    }

    /// What flows, now that the flow stands at `status`.
    pub fn read(&mut self, now: Instant, status: &FlowStatus) -> Traffic {
        let counters = status.counters();
        let sample = Sample {
            at: now,
            records: counters.records,
            bytes: counters.bytes,
        };
        // Kept is one sample that is at least `over` old, and all after it.
        while self
            .samples
            .get(1)
            .is_some_and(|second| now - second.at >= self.over)
        {
            self.samples.pop_front();
        }
        let first = self.samples.front().copied().unwrap_or(sample);
        self.samples.push_back(sample);
        let seconds = (now - first.at).as_secs_f64();
        let rate = |new: u64, old: u64| match seconds > 0.0 {
            // A task that was started anew counts from zero again.
            true => new.saturating_sub(old) as f64 / seconds,
            false => 0.0,
        };
        Traffic {
            records_per_second: rate(sample.records, first.records),
            bytes_per_second: rate(sample.bytes, first.bytes),
            lag_records: status.lag_records(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_mirror::status::{Counters, FlowState, TaskStatus};

    fn status(records: u64) -> FlowStatus {
        let counters = Counters {
            records,
            bytes: records * 10,
            ..Counters::default()
        };
        let task = TaskStatus {
            counters,
            lag_records: 7,
            ..TaskStatus::default()
        };
        FlowStatus {
            state: FlowState::Running,
            topics: 1,
            troubles: vec![],
            source_away: None,
            target_away: None,
            tasks_cut_off: 0,
            tasks: vec![task],
        }
    }

    #[test]
    fn a_rate_is_taken_over_the_last_while_and_not_since_the_start() {
        let start = Instant::now();
        let mut meter = Meter::new(Duration::from_secs(2));
        let mut rates = Vec::new();

        for (second, records) in [0, 100, 200, 300, 300, 300].into_iter().enumerate() {
            let now = start + Duration::from_secs(second as u64);
            let traffic = meter.read(now, &status(records));
            assert_eq!(traffic.bytes_per_second, traffic.records_per_second * 10.0);
            assert_eq!(traffic.lag_records, 7);
            rates.push(traffic.records_per_second);
        }

        assert_eq!(rates, [0.0, 100.0, 100.0, 100.0, 50.0, 0.0]);
    }

    #[test]
    fn a_rate_since_the_last_reading_knows_nothing_of_those_before() {
        let start = Instant::now();
        let mut meter = Meter::since_last();

        // Ticks are a little early or late.
        let rates = [(0, 0), (3_001, 300), (6_000, 300), (9_000, 600)].map(|(ms, records)| {
            let traffic = meter.read(start + Duration::from_millis(ms), &status(records));
            traffic.records_per_second.round()
        });

        assert_eq!(rates, [0.0, 100.0, 0.0, 100.0]);
    }

    #[test]
    fn a_counter_that_begins_anew_is_no_rate() {
        let start = Instant::now();
        let mut meter = Meter::new(Duration::from_secs(2));

        meter.read(start, &status(100));
        let traffic = meter.read(start + Duration::from_secs(1), &status(5));

        assert_eq!(traffic.records_per_second, 0.0);
    }
}
