//! Two processes of one flow at once, of which each takes the other for dead again and again: nothing
//! is lost, nothing doubled, the order is kept.

use std::mem::replace;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Moments, TwinlogProcess};

use crate::flow::Flow;
use crate::loads::Loads;
use crate::status::Watched as _;

/// Enough for either to write among the other's records.
const PEACE_MAX: Duration = Duration::from_secs(1);

#[test]
fn two_processes_of_a_flow_that_hang_wake_and_die_lose_nothing_and_double_nothing() -> Result<()> {
    let flow = Flow::new("fight")?
        .with("tasks.max = 3")
        .with("offset.flush.interval.ms = 200");
    let loads = Loads::start(&flow)?;
    let mut moments = Moments::new();
    let seed = moments.to_string();
    let mut rivals = [flow.twinlog()?, flow.twinlog()?];

    for round in 1..=15 {
        let context = || format!("round {round}, {seed}");
        let hangs = moments.choose(2);
        moments.pass(PEACE_MAX);
        rivals[hangs].freeze().with_context(context)?;
        // The other takes over in the middle of what it had sent, and knows nothing of it.
        let other = &mut rivals[1 - hangs];
        loads.wait_for_more(other).with_context(context)?;
        if round % 5 == 0 {
            let dead = replace(&mut rivals[moments.choose(2)], flow.twinlog()?);
            dead.kill().with_context(context)?;
        }
        // To go on is harmless for one that never hung.
        rivals[hangs].thaw().with_context(context)?;
    }

    // One that has not begun yet doesn't know how to stop.
    let begun = rivals.iter_mut().try_for_each(|rival| {
        rival.log_eventually(|log| {
            ensure!(!log.is_empty(), "it has not begun");
            Ok(())
        })
    });
    begun.with_context(|| seed.clone())?;
    let stopped = rivals.into_iter().try_for_each(TwinlogProcess::stop);
    stopped.with_context(|| seed.clone())?;
    let compared = loads.finish_and_compare();
    compared.with_context(|| format!("after 15 rounds, {seed}"))
}
