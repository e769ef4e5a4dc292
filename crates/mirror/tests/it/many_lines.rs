//! Where a connection carries a window per round trip, partitions go on several. The clock is
//! paused: what passes is waiting and nothing else.

use std::time::Duration;

use anyhow::{Result, ensure};
use mini_kafka::{ApiKey, Fault, Unflushed};
use testkit::eventually_async;
use tokio::time::{Instant, sleep};
use twinlog_mirror::status::FlowStatus;

use crate::log::Log;
use crate::support::{Clusters, WITHIN, expect_status, read, stop};

const ROUND_TRIP: Duration = Duration::from_millis(100);
/// As brokers have it by default (`socket.send.buffer.bytes`).
const WINDOW: usize = 100 << 10;
const PARTITIONS: i32 = 16;

/// Clusters so far from the mirror.
fn far(brokers: i32, lines: [Duration; 2]) -> Result<Clusters> {
    let mut clusters = Clusters::start(brokers)?;
    clusters.lines = lines;
    clusters.window = WINDOW;
    let replicas = brokers as i16;
    clusters.source.create_topic("orders", PARTITIONS, replicas);
    Ok(clusters)
}

/// Values of a partition, beginning with a number.
fn values(partition: i32, count: usize, size: usize) -> Vec<String> {
    let value = |n| format!("{n} {partition} {}", "x".repeat(size));
    (0..count).map(value).collect()
}

/// Writes each as a batch.
async fn write(clusters: &Clusters, partition: i32, values: &[String]) -> Result<()> {
    for value in values {
        clusters.produce("orders", partition, &[value]).await?;
    }
    Ok(())
}

/// Waits until each partition's copy has as many records as `sent`, and expects them to be the same.
async fn expect_copied(clusters: &Clusters, sent: &[Vec<String>]) -> Result<()> {
    eventually_async(WITHIN, async || {
        for (partition, sent) in sent.iter().enumerate() {
            let seen = clusters.target.partition("us.orders", partition as i32);
            let (end, all) = (seen.map_or(0, |seen| seen.log_end), sent.len());
            ensure!(end >= all as i64, "{partition}: {end} of {all}");
        }
        Ok(())
    })
    .await?;
    for (partition, sent) in sent.iter().enumerate() {
        let copied = read(&clusters.target, "us.orders", partition as i32)?;
        let same = copied.iter().zip(sent).take_while(|(a, b)| a == b).count();
        ensure!(
            copied.len() == sent.len() && same == sent.len(),
            "partition {partition}: {} of {}, the same up to {same}",
            copied.len(),
            sent.len()
        );
    }
    Ok(())
}

/// Copies so many times 50 KiB of each of so many partitions, without a request that is given up and
/// without a doubt about what was written. It gives back how long it took.
async fn time_to_copy(lines: [Duration; 2], partitions: i32, count: usize) -> Result<Duration> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = far(1, lines)?;
    let mut sent = Vec::new();
    for partition in 0..partitions {
        let values = values(partition, count, 50 << 10);
        write(&clusters, partition, &values).await?;
        sent.push(values);
    }

    let before = Instant::now();
    let flow = clusters.mirror("")?;
    expect_copied(&clusters, &sent).await?;
    let took = before.elapsed();

    assert_eq!(stop(flow).await.counters().settlings, 0);
    for trouble in ["from the source", "to the target", "does not answer"] {
        assert!(!log.text().contains(trouble), "{}", log.text());
    }
    Ok(took)
}

#[tokio::test(start_paused = true)]
async fn a_far_broker_is_read_and_written_on_many_lines() -> Result<()> {
    for lines in [[ROUND_TRIP, Duration::ZERO], [Duration::ZERO, ROUND_TRIP]] {
        let one = time_to_copy(lines, 1, 40).await?;
        let sixteen = time_to_copy(lines, PARTITIONS, 40).await?;

        // Twenty windows; what is more for sixteen is mostly the time to find out.
        assert!(one > 20 * ROUND_TRIP, "{one:?}");
        assert!(
            sixteen < 3 * one,
            "{one:?} for one, {sixteen:?} for sixteen"
        );
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_slow_for_its_length_is_not_given_more_than_comes_in_time() -> Result<()> {
    const FAR: Duration = Duration::from_millis(500);
    for lines in [[FAR, Duration::ZERO], [Duration::ZERO, FAR]] {
        // 16 MiB in one answer, or under way at once, would take longer than a request is waited for.
        for (partitions, count) in [(1, 300), (PARTITIONS, 40)] {
            time_to_copy(lines, partitions, count).await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_record_is_copied_once_and_in_order_while_lines_come_and_go_and_leaders_move()
-> Result<()> {
    const BROKERS: i32 = 3;
    let clusters = far(BROKERS, [ROUND_TRIP; 2])?;
    let mut random =
        fastrand::Rng::with_seed(std::env::var("LSEED").map_or(1, |s| s.parse().unwrap()));
    let mut chance = random.fork();
    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.decide(move |_| match chance.u32(0..40) {
        0 => Fault::ApplyThenDisconnect,
        1 => Fault::Disconnect,
        2 => Fault::Duplicate,
        _ => Fault::Pass,
    });
    let flow = clusters.mirror("")?;
    let mut sent = vec![Vec::new(); PARTITIONS as usize];

    for round in 0..40 {
        // Loud and quiet by turns.
        let (count, size) = match round % 20 < 10 {
            true => (4, 50 << 10),
            false => (1, 10),
        };
        for (partition, sent) in sent.iter_mut().enumerate() {
            let partition = partition as i32;
            let values = values(partition, count, size);
            write(&clusters, partition, &values).await?;
            sent.extend(values);
        }
        for cluster in [&clusters.source, &clusters.target] {
            let name = match std::ptr::eq(cluster, &clusters.source) {
                true => "orders",
                false => "us.orders",
            };
            let (partition, broker) = (random.i32(0..PARTITIONS), random.i32(1..=BROKERS));
            cluster.move_leader(name, partition, broker);
        }
        sleep(Duration::from_millis(random.u64(200..1_500))).await;
    }
    clusters.target.clear_faults();

    expect_copied(&clusters, &sent).await?;
    stop(flow).await;
    for cluster in [&clusters.source, &clusters.target] {
        let connections = cluster.requests(ApiKey::ApiVersions);
        assert!(connections > 12, "{connections} connections");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn lines_cost_nothing_when_it_is_quiet() -> Result<()> {
    let clusters = far(1, [ROUND_TRIP; 2])?;
    let flow = clusters.mirror("")?;
    let mut sent = Vec::new();
    for partition in 0..PARTITIONS {
        let values = values(partition, 20, 50 << 10);
        write(&clusters, partition, &values).await?;
        sent.push(values);
    }
    expect_copied(&clusters, &sent).await?;
    let connections = clusters.source.requests(ApiKey::ApiVersions);
    assert!(connections > 8, "{connections} connections");
    sleep(Duration::from_secs(15)).await;

    let before = clusters.source.requests(ApiKey::Fetch);
    sleep(Duration::from_secs(60)).await;
    let fetches = clusters.source.requests(ApiKey::Fetch) - before;

    // Of one line: each waits for half a second, and a round trip.
    assert!((90..110).contains(&fetches), "{fetches} fetches a minute");
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_goes_away_is_told_of_once_however_many_lines_lead_to_it() -> Result<()> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = far(1, [ROUND_TRIP; 2])?;
    let flow = clusters.mirror("")?;
    let mut sent = Vec::new();
    for partition in 0..PARTITIONS {
        let values = values(partition, 60, 50 << 10);
        write(&clusters, partition, &values).await?;
        sent.push(values);
    }
    for (cluster, told) in [
        (&clusters.source, "fetch from the source"),
        (&clusters.target, "write to the target"),
    ] {
        let away =
            |status: &FlowStatus| status.source_away.is_some() || status.target_away.is_some();
        eventually_async(WITHIN, async || {
            let connections = cluster.requests(ApiKey::ApiVersions);
            ensure!(connections > 12, "{connections} connections");
            Ok(())
        })
        .await?;

        cluster.crash(1, Unflushed::Kept);
        // A second failure, after the first pause, is one more.
        sleep(Duration::from_millis(250)).await;
        let lines = log.text().matches(told).count();
        assert!((1..=2).contains(&lines), "{lines}: {}", log.text());

        cluster.restart(1).await?;
        expect_status(&flow, "back", |status| !away(status)).await?;
    }
    expect_copied(&clusters, &sent).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn idle_fetches_from_many_brokers_leave_memory_for_those_that_bring_something() -> Result<()>
{
    const BROKERS: i32 = 100;
    let clusters = Clusters::start(BROKERS)?;
    clusters.source.create_topic("orders", BROKERS, 1);
    let flow = clusters.mirror("")?;
    expect_status(&flow, "running", |status| {
        status.tasks.iter().map(|task| task.running).sum::<usize>() == BROKERS as usize
    })
    .await?;
    sleep(Duration::from_secs(10)).await;

    let used = clusters.budget.used();

    assert!(used <= clusters.budget.limit() / 3, "{used} bytes");
    stop(flow).await;
    Ok(())
}
