//! Where no table can be shown: one log line per flow, now and then.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_core::ids::Flow;
use twinlog_mirror::flow::FlowWatch;
use twinlog_mirror::status::{FlowState, FlowStatus};

use super::meter::Meter;
use super::view::{self, Partitions, Trouble};

/// The first line comes this soon, so that whoever starts the process sees that it works.
pub const FIRST_AFTER: Duration = Duration::from_secs(10);

/// How many paused partitions a line tells the reasons of; each was logged when it paused.
const REASONS_MAX: usize = 3;

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
            let reasons = reasons(&view::troubles(status));
            tracing::info!(
                %flow,
                records_per_s = traffic.records_per_second.round() as u64,
                mb_per_s = (traffic.bytes_per_second / 1e3).round() / 1e3,
                lag_records = traffic.lag_records,
                topics = status.topics,
                running,
                starting = some(starting),
                settling = some(settling),
                paused = some(paused),
                reasons,
                "mirroring"
            );
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

fn reasons(troubles: &[Trouble]) -> Option<String> {
    let told = |trouble: &Trouble| format!("{}: {}", trouble.what, trouble.reason);
    let mut texts: Vec<_> = troubles.iter().take(REASONS_MAX).map(told).collect();
    if troubles.len() > REASONS_MAX {
        texts.push(format!("and {} more", troubles.len() - REASONS_MAX));
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}
