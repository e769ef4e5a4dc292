//! Stops and starts under load: nothing is lost, nothing doubled, the order is kept.

use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::Moments;

use crate::flow::Flow;
use crate::loads::Loads;

/// Longer than a start takes, so that some die while they start and some while they copy.
const LIFE_MAX: Duration = Duration::from_secs(2);
/// Short beside a life, so that some die while they store positions.
const FLUSHED_OFTEN: &str = "offset.flush.interval.ms = 200";

#[test]
fn ten_stops_under_load_lose_nothing_and_double_nothing() -> Result<()> {
    let flow = Flow::new("stops")?.with("tasks.max = 3");
    let loads = Loads::start(&flow)?;

    for time in 1..=10 {
        let mut twinlog = flow.twinlog()?;
        loads.wait_for_more(&mut twinlog)?;
        twinlog.stop().with_context(|| format!("stop {time}"))?;
    }

    loads.finish_and_compare()
}

#[test]
fn fifty_kills_at_random_moments_lose_nothing_and_double_nothing() -> Result<()> {
    let flow = Flow::new("kills")?
        .with("tasks.max = 3")
        .with(FLUSHED_OFTEN);
    let loads = Loads::start(&flow)?;
    let mut moments = Moments::new();
    let seed = moments.to_string();

    for time in 1..=50 {
        let context = || format!("kill {time}, {seed}");
        let mut twinlog = flow.twinlog()?;
        // However slow the machine, every third life has copied when it ends.
        if time % 3 == 0 {
            loads.wait_for_more(&mut twinlog).with_context(context)?;
        }
        moments.pass(LIFE_MAX);
        twinlog.kill().with_context(context)?;
    }

    let compared = loads.finish_and_compare();
    compared.with_context(|| format!("after 50 kills, {seed}"))
}
