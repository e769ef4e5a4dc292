//! Stops and starts under load: nothing is lost, nothing doubled, the order is kept.

use anyhow::{Context as _, Result};
use testkit::{Load, TwinlogProcess};

use crate::flow::Flow;

/// Loads that go on while the mirror comes and goes.
struct Loads<'a> {
    flow: &'a Flow,
    topics: Vec<String>,
    running: Vec<Load>,
}

impl<'a> Loads<'a> {
    /// Plain batches and compressed ones to cut in two, and transactions, of which some are
    /// aborted.
    fn start(flow: &'a Flow) -> Result<Self> {
        let mut loads = Loads {
            flow,
            topics: Vec::new(),
            running: Vec::new(),
        };
        for (kind, codec, transaction) in [
            ("plain", "none", None),
            ("zstd", "zstd", None),
            ("transactions", "lz4", Some(30)),
        ] {
            let topic = flow.topic(kind);
            flow.create_topic(&topic, 3)?;
            loads.running.push(flow.load(&topic, |load| {
                load.codec = codec.to_owned();
                load.transaction = transaction;
            })?);
            loads.topics.push(topic);
        }
        Ok(loads)
    }

    /// Waits until every partition of every copy has records that it had not when this began.
    fn wait_for_more(&self, twinlog: &mut TwinlogProcess) -> Result<()> {
        for topic in &self.topics {
            self.flow.wait_for_more(twinlog.process(), topic)?;
        }
        Ok(())
    }

    /// Ends the loads, lets the mirror catch up, and compares all of it.
    fn finish_and_compare(self) -> Result<()> {
        for load in self.running {
            load.stop()?;
        }
        let twinlog = self.flow.twinlog()?;
        let comparison = self
            .topics
            .iter()
            .fold(self.flow.comparison(), |all, topic| all.numbered(topic));
        comparison.run()?;
        twinlog.stop()
    }
}

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
fn five_crashes_under_load_lose_nothing_and_double_nothing() -> Result<()> {
    let flow = Flow::new("crashes")?.with("tasks.max = 3");
    let loads = Loads::start(&flow)?;

    for time in 1..=5 {
        let mut twinlog = flow.twinlog()?;
        loads.wait_for_more(&mut twinlog)?;
        twinlog.kill().with_context(|| format!("crash {time}"))?;
    }

    loads.finish_and_compare()
}
