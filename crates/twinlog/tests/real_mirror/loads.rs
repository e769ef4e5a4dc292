//! Records that flow while the mirror comes and goes.

use anyhow::Result;
use testkit::{Load, TwinlogProcess};

use crate::flow::Flow;

/// Loads that go on while the mirror comes and goes.
pub struct Loads<'a> {
    flow: &'a Flow,
    topics: Vec<String>,
    running: Vec<Load>,
}

impl<'a> Loads<'a> {
    /// Plain batches and compressed ones to cut in two, and transactions, of which some are
    /// aborted.
    pub fn start(flow: &'a Flow) -> Result<Self> {
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
    pub fn wait_for_more(&self, twinlog: &mut TwinlogProcess) -> Result<()> {
        for topic in &self.topics {
            self.flow.wait_for_more(twinlog.process(), topic)?;
        }
        Ok(())
    }

    /// Ends the loads, lets the mirror catch up, and compares all of it.
    pub fn finish_and_compare(self) -> Result<()> {
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
