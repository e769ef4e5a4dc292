//! twinlog goes on where Java MirrorMaker 2 stopped, with the same file, and Java where twinlog
//! stopped.

use anyhow::{Result, ensure};
use testkit::{Corpus, JavaMirrorMaker, Load, ManagedProcess, TwinlogProcess};

use crate::flow::{Flow, StoredPositions};

/// About the records of a partition that each turn brings.
const SIZE: usize = 40;

/// Who mirrors.
#[derive(Debug, Clone, Copy)]
enum Who {
    Java,
    Twinlog,
}

/// One of them at work.
enum Mirror {
    Java(JavaMirrorMaker),
    Twinlog(TwinlogProcess),
}

impl Mirror {
    fn start(who: Who, flow: &Flow) -> Result<Mirror> {
        Ok(match who {
            Who::Java => Mirror::Java(flow.java()?),
            Who::Twinlog => Mirror::Twinlog(flow.twinlog()?),
        })
    }

    fn process(&mut self) -> &mut ManagedProcess {
        match self {
            Mirror::Java(java) => java.process(),
            Mirror::Twinlog(twinlog) => twinlog.process(),
        }
    }

    fn stop(self) -> Result<()> {
        match self {
            Mirror::Java(java) => java.stop(),
            Mirror::Twinlog(twinlog) => twinlog.stop(),
        }
    }
}

/// Topics of every kind that grow from turn to turn, and two that records flow into all the time.
struct Relay {
    flow: Flow,
    corpus: Corpus,
    /// With the topics they go to.
    loads: Vec<(String, Load)>,
}

impl Relay {
    fn start(flow: Flow) -> Result<Relay> {
        let flow = flow.for_java_too();
        let corpus = Corpus::produce(&flow.source_bootstrap(), &flow.topic(""), SIZE)?;
        let mut loads = Vec::new();
        for (kind, transaction) in [("steady", None), ("steady-transactions", Some(20))] {
            let topic = flow.topic(kind);
            flow.create_topic(&topic, 3)?;
            let load = flow.load(&topic, |load| {
                load.rate = Some(300);
                load.transaction = transaction;
            })?;
            loads.push((topic, load));
        }
        Ok(Relay {
            flow,
            corpus,
            loads,
        })
    }

    /// One mirrors all that is there and some of what comes, and is stopped in the middle of it.
    fn turn(&self, who: Who) -> Result<StoredPositions> {
        let mut mirror = Mirror::start(who, &self.flow)?;
        self.flow.comparison().corpus(&self.corpus).run()?;
        for (topic, _) in &self.loads {
            self.flow.wait_for_more(mirror.process(), topic)?;
        }
        mirror.stop()?;
        let stored = self.flow.stored_positions()?;
        self.check_positions(&stored, &self.corpus.topics)?;
        Ok(stored)
    }

    /// twinlog goes on, and crashes before it stored more than where it began.
    fn crash(&self) -> Result<()> {
        let mut twinlog = self.flow.twinlog()?;
        for (topic, _) in &self.loads {
            self.flow.wait_for_more(twinlog.process(), topic)?;
        }
        twinlog.kill()
    }

    /// The position of each partition is that of its last record, or of what no reader sees behind
    /// it.
    fn check_positions(&self, stored: &StoredPositions, topics: &[String]) -> Result<()> {
        for topic in topics {
            let has_markers = topic.contains("transactions") || topic.ends_with("marker-last");
            let ends = self.flow.source().end_offsets(topic)?;
            for (partition, end) in ends.into_iter().enumerate().filter(|(_, end)| *end > 0) {
                let offset = stored.offset(&self.flow.position_key(topic, partition))?;
                ensure!(
                    offset < end && (has_markers || offset == end - 1),
                    "{topic}-{partition} ends at {end}, its position is {offset}"
                );
            }
        }
        Ok(())
    }

    /// One mirrors what is left, and all of it is compared.
    fn finish(mut self, who: Who) -> Result<()> {
        let mut comparison = self.flow.comparison().corpus(&self.corpus);
        let mut topics = self.corpus.topics.clone();
        for (topic, load) in std::mem::take(&mut self.loads) {
            load.stop()?;
            comparison = comparison.numbered(&topic);
            topics.push(topic);
        }
        let mirror = Mirror::start(who, &self.flow)?;
        comparison.run()?;
        mirror.stop()?;
        self.check_positions(&self.flow.stored_positions()?, &topics)
    }
}

#[test]
fn twinlog_goes_on_where_java_stopped_and_java_where_twinlog_stopped() -> Result<()> {
    let mut relay = Relay::start(Flow::new("java-first")?)?;

    let by_java = relay.turn(Who::Java)?;
    relay.corpus.produce_more(SIZE)?;
    relay.crash()?;
    let by_twinlog = relay.turn(Who::Twinlog)?;
    relay.corpus.produce_more(SIZE)?;

    // The keys are Java's, and where Java puts them: compaction keeps one position of each
    // partition.
    assert_eq!(by_twinlog.placement, by_java.placement);
    relay.finish(Who::Java)
}

#[test]
fn java_goes_on_with_what_twinlog_made_and_twinlog_after_it() -> Result<()> {
    let own_names = Flow::new("twinlog-first")?.identity();
    let mut relay = Relay::start(own_names)?;

    let by_twinlog = relay.turn(Who::Twinlog)?;
    relay.corpus.produce_more(SIZE)?;
    let by_java = relay.turn(Who::Java)?;
    relay.corpus.produce_more(SIZE)?;

    relay.crash()?;

    assert_eq!(by_java.placement, by_twinlog.placement);
    relay.finish(Who::Twinlog)
}
