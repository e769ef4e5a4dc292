//! What changes under the mirror is noticed, told and counted, and nothing that is there is missing
//! afterwards.

use anyhow::{Context as _, Result, ensure};
use testkit::{RealKafka, TopicSpec, eventually};

use crate::flow::{Flow, PATIENCE};
use crate::status::{Watched, number};

/// Waits until the newest status line counts this.
fn expect_counted(twinlog: &mut impl Watched, name: &str, count: u64) -> Result<()> {
    twinlog.log_eventually(|log| {
        let line = log.lines().rev().find(|line| line.contains(" mirroring "));
        let counted = number(line.context("no status yet")?, name)?;
        ensure!(counted == count, "{name}{counted}");
        Ok(())
    })
}

#[test]
fn a_copy_that_is_deleted_is_made_again_and_filled_from_the_earliest_record() -> Result<()> {
    let flow = Flow::new("emptied")?.with("refresh.topics.interval.seconds = 1");
    let (source, target) = (flow.at_source()?, flow.at_target()?);
    let (topic, other) = (flow.topic("deleted"), flow.topic("other"));
    flow.create_topic(&topic, 1)?;
    flow.create_topic(&other, 1)?;
    source.write(&topic, 0, &["a", "b", "c"])?;
    source.delete_before(&topic, 0, 1)?;
    let empty = "the target topic is empty: filling it again";
    let mut twinlog = flow.twinlog_with_status()?.expecting(empty);
    target.expect(&flow.remote(&topic), 0, &["b", "c"])?;

    flow.target().delete_topics(&[flow.remote(&topic)])?;
    source.write(&other, 0, &["goes on"])?;

    target.expect(&flow.remote(&other), 0, &["goes on"])?;
    target.expect(&flow.remote(&topic), 0, &["b", "c"])?;
    expect_counted(&mut twinlog, "copies_refilled=", 1)?;
    let told = twinlog.process().log().matches(empty).count();
    ensure!(told == 1, "told {told} times");
    twinlog.stop()
}

#[test]
fn records_deleted_before_they_were_copied_are_told_and_counted() -> Result<()> {
    let flow = Flow::new("shortened")?;
    let (source, target) = (flow.at_source()?, flow.at_target()?);
    let topic = flow.topic("orders");
    flow.create_topic(&topic, 1)?;
    source.write(&topic, 0, &["a"])?;
    let twinlog = flow.twinlog()?;
    target.expect(&flow.remote(&topic), 0, &["a"])?;
    twinlog.stop()?;
    source.write(&topic, 0, &["b", "c"])?;
    source.write(&topic, 0, &["d"])?;
    source.delete_before(&topic, 0, 3)?;

    let deleted = "the source deleted records before they were copied";
    let mut twinlog = flow.twinlog_with_status()?.expecting(deleted);

    target.expect(&flow.remote(&topic), 0, &["a", "d"])?;
    expect_counted(&mut twinlog, "lost_records=", 2)?;
    let log = twinlog.process().log();
    let told = log.lines().filter(|line| line.contains(deleted));
    let told: Vec<_> = told.collect();
    ensure!(
        told.len() == 1 && told[0].contains("position=1 log_start=3 lost=2"),
        "{told:?}"
    );
    twinlog.stop()
}

#[test]
fn a_source_topic_made_anew_is_copied_from_its_earliest_record() -> Result<()> {
    let flow = Flow::new("anew")?.with("refresh.topics.interval.seconds = 1");
    let (source, target) = (flow.at_source()?, flow.at_target()?);
    let topic = flow.topic("orders");
    flow.create_topic(&topic, 1)?;
    source.write(&topic, 0, &["a", "b"])?;
    let mut twinlog = flow
        .twinlog_with_status()?
        .expecting("made anew")
        .expecting("not mirrored any more");
    target.expect(&flow.remote(&topic), 0, &["a", "b"])?;

    flow.source().delete_topics(std::slice::from_ref(&topic))?;
    eventually(PATIENCE, || flow.create_topic(&topic, 1))?;
    source.write(&topic, 0, &["c", "d", "e"])?;

    target.expect(&flow.remote(&topic), 0, &["a", "b", "c", "d", "e"])?;
    expect_counted(&mut twinlog, "sources_made_anew=", 1)?;
    ensure!(twinlog.process().log().contains("made anew"), "not told");
    twinlog.stop()
}

#[test]
fn a_source_log_that_an_unclean_election_cut_is_copied_on_from_the_cut() -> Result<()> {
    let mut two = RealKafka::builder()
        .brokers(2)
        .quick_failover()
        .property("unclean.leader.election.enable", "true")
        .property("unclean.leader.election.interval.ms", "1000")
        .start()?;
    let flow = Flow::new("cut")?.from(&two.bootstrap());
    let target = flow.at_target()?;
    let topic = flow.topic("orders");
    let both = TopicSpec::new(&topic, 1).replicas(2);
    two.admin().create_topic(&both)?;
    flow.at_source()?.write(&topic, 0, &["a", "b"])?;
    let cut = "the source's log was cut behind what was copied";
    let mut twinlog = flow
        .twinlog_with_status()?
        .expecting(cut)
        .expecting("no broker of this cluster answers")
        .expecting("trying again");
    target.expect(&flow.remote(&topic), 0, &["a", "b"])?;

    let leader = usize::try_from(two.admin().leaders(&topic)?[0])?;
    let other = 3 - leader;
    two.stop(other)?;
    let written = || flow.at_source()?.write(&topic, 0, &["c", "d"]);
    eventually(PATIENCE, written)?;
    target.expect(&flow.remote(&topic), 0, &["a", "b", "c", "d"])?;
    two.kill(leader)?;
    two.restart(other)?;
    eventually(PATIENCE, || {
        let leaders = two.admin().leaders(&topic)?;
        ensure!(leaders == [other as i32], "led by {leaders:?}");
        Ok(())
    })?;
    eventually(PATIENCE, || {
        flow.at_source()?.write(&topic, 0, &["e", "f", "g"])
    })?;

    let all = ["a", "b", "c", "d", "e", "f", "g"];
    target.expect(&flow.remote(&topic), 0, &all)?;
    expect_counted(&mut twinlog, "sources_cut=", 1)?;
    let log = twinlog.process().log();
    let told: Vec<_> = log.lines().filter(|line| line.contains(cut)).collect();
    ensure!(
        told.len() == 1 && told[0].contains("position=4 cut=2 replaced=2"),
        "{told:?}"
    );
    twinlog.stop()
}

#[test]
fn a_frozen_target_broker_holds_back_its_own_partitions_only() -> Result<()> {
    let mut two = RealKafka::builder().brokers(2).start()?;
    let flow = Flow::new("frozen")?.to(&two.bootstrap());
    let source = flow.at_source()?;
    let topic = flow.topic("orders");
    flow.create_topic(&topic, 2)?;
    let copy = TopicSpec::new(&flow.remote(&topic), 2);
    two.admin().create_topic(&copy)?;
    let leaders = two.admin().leaders(&flow.remote(&topic))?;
    ensure!(leaders[0] != leaders[1], "both copies are on {leaders:?}");
    let frozen = leaders.iter().position(|leader| *leader == 2);
    let frozen = i32::try_from(frozen.context("broker 2 leads nothing")?)?;
    let (going, target) = (1 - frozen, flow.at_target()?);
    for partition in [0, 1] {
        source.write(&topic, partition, &["before"])?;
    }
    let mut twinlog = flow
        .twinlog_with_status()?
        .expecting("still failing, trying again")
        .expecting("no broker of this cluster answers");
    for partition in [0, 1] {
        target.expect(&flow.remote(&topic), partition, &["before"])?;
    }

    two.freeze(2)?;
    source.write(&topic, frozen, &["held back"])?;
    for number in 0..20 {
        source.write(&topic, going, &[&number.to_string()])?;
        target.expect_count(&flow.remote(&topic), going, number + 2)?;
    }
    twinlog.log_eventually(|log| {
        let told = log.contains("a broker of the target does not answer: its partitions wait");
        ensure!(told, "it does not say that a broker does not answer");
        Ok(())
    })?;
    two.thaw(2)?;

    target.expect(&flow.remote(&topic), frozen, &["before", "held back"])?;
    let log = twinlog.process().log();
    ensure!(
        log.contains("a broker of the target answers again"),
        "it does not say that the broker answers again"
    );
    twinlog.stop()
}
