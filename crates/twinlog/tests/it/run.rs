//! `twinlog run` as a process: it starts, mirrors, waits, stops, and what it says meanwhile.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use mini_kafka::{ApiKey, Fault, Unflushed};
use testkit::{Signal, TwinlogProcess, eventually_async};

use crate::clusters::{Clusters, PATIENCE};

fn run(properties: &str) -> Result<TwinlogProcess> {
    TwinlogProcess::run(env!("CARGO_BIN_EXE_twinlog"), properties)
}

/// Runs it until it says that it waits for the source.
fn run_without_source(clusters: &Clusters) -> Result<TwinlogProcess> {
    const SAID: &str = "waiting for the clusters";
    let mut process = run(&clusters.properties())?.expecting(SAID);
    wait_until_said(&mut process, SAID)?;
    Ok(process)
}

fn wait_until_said(process: &mut TwinlogProcess, said: &str) -> Result<()> {
    let log = process.process().log_path().to_owned();
    process.process().eventually(PATIENCE, || {
        let log = fs::read_to_string(&log)?;
        ensure!(log.contains(said), "it does not say: {said}");
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_mirrored_and_a_stop_by_sigterm_stores_their_positions() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.write(100).await?;

    let process = run(&clusters.properties())?;
    clusters.wait_for_mirrored(100).await?;
    process.stop()?;

    let last_record = 99;
    assert_eq!(clusters.positions().await?.last(), Some(&last_record));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_it_goes_on_where_it_was() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.write(100).await?;
    let first = run(&clusters.properties())?;
    clusters.wait_for_mirrored(100).await?;
    first.stop()?;
    clusters.write(50).await?;

    let second = run(&clusters.properties())?;
    clusters.wait_for_mirrored(150).await?;
    second.stop()?;

    clusters.wait_for_mirrored(150).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_at_the_start_is_waited_for() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.write(10).await?;
    clusters.source.crash(1, Unflushed::Kept);

    let process = run_without_source(&clusters)?;
    clusters.source.restart(1).await?;
    clusters.wait_for_mirrored(10).await?;
    process.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_source_is_down_is_a_clean_one() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.source.crash(1, Unflushed::Kept);

    run_without_source(&clusters)?.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_leaves_something_undone_fails_and_says_what() -> Result<()> {
    const SAID: &str = "stopped before everything was finished";
    let clusters = Clusters::start().await?;
    clusters.write(1).await?;
    let brief = "eu.task.shutdown.graceful.timeout.ms = 500\neu.offset.flush.timeout.ms = 500\n";
    let mut process =
        run(&format!("{}{brief}", clusters.properties()))?.expecting("the next start asks");
    clusters.wait_for_mirrored(1).await?;
    clusters.target.on(ApiKey::Produce).always(Fault::Silence);
    let asked = clusters.target.requests(ApiKey::Produce);
    clusters.write(1).await?;
    eventually_async(PATIENCE, async || {
        let now = clusters.target.requests(ApiKey::Produce);
        ensure!(now > asked, "nothing is on its way yet");
        Ok(())
    })
    .await?;

    process.process().signal(Signal::TERM)?;
    let status = process.wait(PATIENCE)?;

    let log = process.process().log();
    assert_eq!(status.code(), Some(1), "{log}");
    let told = log.lines().find(|line| line.contains(SAID));
    let told = told.unwrap_or_default();
    assert!(
        told.contains("partitions_unanswered=1 partitions_unstored=1"),
        "{log}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_not_mirrored_any_more_is_named_with_the_reason() -> Result<()> {
    const SAID: &str = "not mirrored any more";
    let clusters = Clusters::start().await?;
    clusters.write(1).await?;
    let mut process = run(&clusters.properties())?.expecting(SAID);
    clusters.wait_for_mirrored(1).await?;

    clusters.source.delete_topic("orders");
    wait_until_said(&mut process, SAID)?;

    let log = process.process().log();
    let line = log
        .lines()
        .find(|line| line.contains(SAID))
        .unwrap_or_default();
    assert!(line.contains("orders"), "{line}");
    assert!(line.contains("it was deleted on the source"), "{line}");
    process.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_on_the_target_without_a_position_are_warned_of() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.write(10).await?;
    let first = run(&clusters.properties())?;
    clusters.wait_for_mirrored(10).await?;
    first.stop()?;
    clusters.target.delete_topic("mm2-offsets.us.internal");

    let second = run(&clusters.properties())?.expecting("no position is stored");
    clusters.wait_for_mirrored(20).await?;

    second.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_no_terminal_has_no_colours() -> Result<()> {
    let clusters = Clusters::start().await?;
    clusters.write(1).await?;

    let mut process = run(&clusters.properties())?;
    clusters.wait_for_mirrored(1).await?;
    process.process().signal(Signal::TERM)?;
    let status = process.wait(PATIENCE)?;

    let log = process.process().log();
    assert!(status.success(), "{log}");
    assert!(log.contains(" INFO ") && !log.contains('\x1b'), "{log:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_only_flow_is_refused_fails_and_says_why() -> Result<()> {
    let clusters = Clusters::with_ids("same", "same").await?;

    let mut process = run(&clusters.properties())?.expecting("one cluster");
    let status = process.wait(PATIENCE)?;

    let log = process.process().log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains(" ERROR [us->eu] "), "{log}");
    assert!(
        log.ends_with("error: not all flows ended well; see the log\n"),
        "{log}"
    );
    Ok(())
}

#[test]
fn a_file_with_errors_is_refused_with_all_of_them() -> Result<()> {
    let mut process = run("clusters = us, eu\nus->eu.enabled = true\nus->eu.topics = (\n")?;

    let status = process.process().wait(Duration::from_secs(10))?;

    let told = process.process().log();
    assert_eq!(status.code(), Some(2), "{told}");
    for part in [
        "us.bootstrap.servers",
        "eu.bootstrap.servers",
        "us->eu.topics",
        "hint: ",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    Ok(())
}
