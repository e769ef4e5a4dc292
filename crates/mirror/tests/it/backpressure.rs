//! Memory is bounded, and shared fairly: neither a busy partition nor a broker that does not answer
//! takes it from others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use mini_kafka::{ApiKey, Fault};
use testkit::eventually_async;
use twinlog_mirror::status::FlowStatus;

use crate::support::{Clusters, expect_status, numbers, read, stop, texts};

/// More than all memory that clusters of these tests have for records.
const ROUNDS: u32 = 400;

/// Which partitions of the copy the target's broker 2 leads, and which not.
fn led_by_2(clusters: &Clusters, partitions: i32) -> (Vec<i32>, Vec<i32>) {
    (0..partitions).partition(|partition| {
        let seen = clusters.target.partition("us.orders", *partition);
        seen.is_some_and(|seen| seen.leader == Some(2))
    })
}

/// Copies many partitions, of which half go to a broker that does not answer; each of those gets
/// `values`, between larger ones of the others.
async fn check_silent_broker(values: &[String]) -> Result<()> {
    const PARTITIONS: i32 = 64;
    let clusters = Clusters::start(2)?;
    clusters.source.create_topic("orders", PARTITIONS, 1);
    let flow = clusters.mirror("")?;
    let is_running = |status: &FlowStatus| {
        let running: usize = status.tasks.iter().map(|task| task.running).sum();
        running == PARTITIONS as usize
    };
    expect_status(&flow, "running", is_running).await?;
    let (silent, going) = led_by_2(&clusters, PARTITIONS);
    assert_eq!((silent.len(), going.len()), (32, 32));
    let produce = clusters.target.on(ApiKey::Produce).broker(2);
    produce.topic("us.orders").always(Fault::Silence);

    let padding = "x".repeat(100 << 10);
    for value in values {
        for partition in &silent {
            clusters.produce("orders", *partition, &[value]).await?;
        }
        clusters.produce("orders", going[0], &[&padding]).await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // Long before requests to the other broker are given up.
    eventually_async(Duration::from_secs(10), async || {
        let copied = read(&clusters.target, "us.orders", going[0])?.len();
        let all = values.len();
        ensure!(copied == all, "{copied} of {all} are copied");
        Ok(())
    })
    .await?;
    clusters.target.clear_faults();
    for partition in silent {
        let expected = texts(values);
        clusters
            .expect_copied("us.orders", partition, &expected)
            .await?;
    }
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn small_batches_for_a_silent_broker_take_no_memory_from_others() -> Result<()> {
    check_silent_broker(&numbers(0..200)).await
}

#[tokio::test(start_paused = true)]
async fn large_batches_for_a_silent_broker_take_no_memory_from_others() -> Result<()> {
    let large = |number| format!("{number} {}", "y".repeat(60 << 10));
    let values: Vec<String> = (0..30).map(large).collect();

    check_silent_broker(&values).await
}

#[tokio::test(start_paused = true)]
async fn a_busy_partition_does_not_keep_a_quiet_one_waiting() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("busy", 1, 1);
    clusters.source.create_topic("quiet", 1, 1);
    let padding = "x".repeat(200 << 10);
    for number in 0..ROUNDS {
        let large = format!("{number} {padding}");
        clusters.produce("busy", 0, &[&large]).await?;
    }
    clusters.produce("quiet", 0, &["first"]).await?;

    let (requests, before_quiet) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (all, first) = (requests.clone(), before_quiet.clone());
    clusters.target.on(ApiKey::Produce).decide(move |seen| {
        let so_far = all.fetch_add(1, Ordering::Relaxed);
        if seen.partitions.iter().any(|(topic, _)| topic == "us.quiet") {
            first.store(so_far, Ordering::Relaxed);
        }
        Fault::Pass
    });

    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.quiet", 0, &["first"]).await?;

    eventually_async(Duration::from_secs(60), async || {
        let copied = read(&clusters.target, "us.busy", 0)?.len();
        ensure!(copied == ROUNDS as usize, "{copied} of {ROUNDS} are copied");
        Ok(())
    })
    .await?;
    stop(flow).await;
    let (before, all) = (
        before_quiet.load(Ordering::Relaxed),
        requests.load(Ordering::Relaxed),
    );
    assert!(
        before < all / 4,
        "{before} of {all} requests came before it"
    );
    Ok(())
}
