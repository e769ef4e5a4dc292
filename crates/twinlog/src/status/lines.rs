//! Where no table can be shown: one log line per flow, now and then, and one for each of the first
//! few things that stand still.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::Flow;
use twinlog_mirror::flow::FlowWatch;
use twinlog_mirror::status::{Away, FlowState, FlowStatus};

use super::meter::Meter;
use super::numbers;
use super::view::{self, Partitions, Trouble};

/// The first line comes this soon, so that whoever starts the process sees that it works.
pub const FIRST_AFTER: Duration = Duration::from_secs(10);

/// How many things that stand still have a line of their own each time; each was logged when it
/// began to.
const STILL_MAX: usize = 10;

/// Logs how a flow stands, over and over; for as long as it is polled.
pub async fn keep_logging(flows: &[FlowWatch], every: Duration) -> Infallible {
    let mut meters: Vec<_> = flows.iter().map(|_| Meter::since_last()).collect();
    for (watch, meter) in flows.iter().zip(&mut meters) {
        meter.read(Instant::now(), &watch.status());
    }
    let first = Instant::now() + FIRST_AFTER.min(every);
    let mut ticks = tokio::time::interval_at(first, every);
    loop {
        ticks.tick().await;
        for (watch, meter) in flows.iter().zip(&mut meters) {
            log(watch.flow(), &watch.status(), meter);
        }
    }
}

fn log(flow: &Flow, status: &FlowStatus, meter: &mut Meter) {
    let traffic = meter.read(Instant::now(), status);
    match &status.state {
        FlowState::Running => {
            let Partitions {
                starting,
                running,
                settling,
                paused,
            } = Partitions::of(status);
            let troubles = view::troubles(status);
            let counters = status.counters();
            let behind = view::behind(status);
            let behind = behind.map(|far| format!("{}:{}", far.partition, far.records));
            tracing::info!(
                %flow,
                records_per_s = traffic.records_per_second.round() as u64,
                mb_per_s = (traffic.bytes_per_second / 1e3).round() / 1e3,
                lag_records = traffic.lag_records,
                behind,
                topics = status.topics,
                running,
                starting = some(starting),
                settling = some(settling),
                paused = some(paused),
                source_away = away(status.source_away.as_ref()),
                target_away = away(status.target_away.as_ref()),
                still = by_kind(&troubles),
                retries = counted(counters.retries),
                lost_records = counted(counters.lost_records),
                doubled_records = counted(counters.doubled_records),
                foreign_records = counted(counters.foreign_records),
                sources_made_anew = counted(counters.sources_made_anew),
                sources_cut = counted(counters.sources_cut),
                copies_refilled = counted(counters.copies_refilled),
                "mirroring"
            );
            log_still(flow, &troubles);
        }
        FlowState::Connecting { trouble } => tracing::info!(%flow, trouble, "connecting"),
        FlowState::Blocked { reason, remedy } => {
            tracing::info!(%flow, reason, remedy, "blocked");
        }
        FlowState::Refused { reason } => tracing::info!(%flow, reason, "refused"),
        FlowState::Stopped => {}
    }
}

/// Zeros are the usual thing and stay out of the line.
fn some(number: usize) -> Option<u64> {
    (number > 0).then_some(number as u64)
}

fn counted(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn away(away: Option<&Away>) -> Option<String> {
    away.map(|away| format!("{}: {}", numbers::duration(away.since), away.reason))
}

/// How many stand still for which kind of reason: `2 record-too-large, 1 topic`.
fn by_kind(troubles: &[Trouble]) -> Option<String> {
    let mut kinds = BTreeMap::new();
    for trouble in troubles {
        *kinds.entry(trouble.kind).or_insert(0_usize) += 1;
    }
    let texts: Vec<_> = kinds
        .iter()
        .map(|(kind, number)| format!("{number} {kind}"))
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn log_still(flow: &Flow, troubles: &[Trouble]) {
    for trouble in troubles.iter().take(STILL_MAX) {
        tracing::info!(
            %flow,
            what = trouble.what,
            since = trouble.since.map(numbers::duration),
            kind = trouble.kind,
            reason = trouble.reason,
            remedy = trouble.remedy,
            "stands still"
        );
    }
    if troubles.len() > STILL_MAX {
        let more = troubles.len() - STILL_MAX;
        tracing::info!(%flow, more, "more stand still");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_still_is_counted_by_kind() {
        let trouble = |kind| Trouble {
            what: "orders-0".to_owned(),
            kind,
            since: None,
            reason: "no".to_owned(),
            remedy: None,
        };

        assert_eq!(by_kind(&[]), None);
        assert_eq!(
            by_kind(&["topic", "refused", "topic"].map(trouble)).as_deref(),
            Some("1 refused, 2 topic")
        );
    }
}
