//! Leaders that move while no broker ends, and clusters that are away when the mirror starts: it
//! follows, or says what it waits for and begins by itself.

use anyhow::{Result, ensure};
use testkit::{RealKafka, TopicSpec};

use crate::flow::Flow;
use crate::status::Watched as _;

/// Which end of the flow a cluster is.
#[derive(Debug, Clone, Copy)]
enum End {
    Source,
    Target,
}

impl End {
    fn of(self, flow: Flow, cluster: &RealKafka) -> Flow {
        match self {
            End::Source => flow.from(&cluster.bootstrap()),
            End::Target => flow.to(&cluster.bootstrap()),
        }
    }
}

/// Each partition is led by one broker after the other.
fn leaders_move(alias: &'static str, end: End) -> Result<()> {
    let three = RealKafka::builder().brokers(3).start()?;
    let flow = end.of(Flow::new(alias)?, &three);
    let topic = flow.topic("orders");
    let moved = match end {
        End::Source => topic.clone(),
        End::Target => {
            flow.create_topic(&topic, 3)?;
            flow.remote(&topic)
        }
    };
    let on_all = TopicSpec::new(&moved, 3).replicas(3);
    three.admin().create_topic(&on_all)?;
    let load = flow.load(&topic, |load| load.rate = Some(600))?;
    let mut twinlog = flow.twinlog()?;
    flow.wait_for_more(twinlog.process(), &topic)?;

    for replicas in [[1, 2, 3], [2, 3, 1], [3, 1, 2]] {
        for partition in 0..3 {
            three.admin().move_leader(&moved, partition, &replicas)?;
        }
        flow.wait_for_more(twinlog.process(), &topic)?;
    }

    load.stop()?;
    flow.comparison().numbered(&topic).run()?;
    twinlog.stop()
}

#[test]
fn leaders_that_move_on_the_target_are_followed() -> Result<()> {
    leaders_move("target-led", End::Target)
}

#[test]
fn leaders_that_move_on_the_source_are_followed() -> Result<()> {
    leaders_move("source-led", End::Source)
}

/// It starts while no broker of one end is there, says so, and begins when they are.
fn away_at_start(alias: &'static str, end: End) -> Result<()> {
    let mut one = RealKafka::start()?;
    let flow = end.of(Flow::new(alias)?, &one);
    let topic = flow.topic("orders");
    flow.create_topic(&topic, 1)?;
    flow.at_source()?.write(&topic, 0, &["a", "b"])?;
    one.kill(1)?;

    let waits = "waiting for the clusters";
    let mut twinlog = flow.twinlog_with_status()?.expecting(waits);
    twinlog.log_eventually(|log| {
        let is_told = log.contains(waits) && log.contains(" connecting ");
        ensure!(is_told, "log or status does not say that it waits");
        Ok(())
    })?;
    one.restart(1)?;

    let target = flow.at_target()?;
    target.expect(&flow.remote(&topic), 0, &["a", "b"])?;
    flow.comparison().topic(&topic).run()?;
    twinlog.stop()
}

#[test]
fn a_source_that_is_away_at_the_start_is_told_and_waited_for() -> Result<()> {
    away_at_start("source-away", End::Source)
}

#[test]
fn a_target_that_is_away_at_the_start_is_told_and_waited_for() -> Result<()> {
    away_at_start("target-away", End::Target)
}
