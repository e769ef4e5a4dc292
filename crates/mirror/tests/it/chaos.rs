//! Everything at once, by a seed: faults on every request, moved leaders, crashed brokers, mirrors
//! that die, doubled mirrors. Whatever happens, each record is in the copy once and in order.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use fastrand::Rng;
use mini_kafka::{ApiKey, Compaction, Fault, MiniKafka, ResponseError, Unflushed};
use testkit::eventually_async;
use twinlog_kafka::batch::Record;
use twinlog_mirror::flow::FlowHandle;

use crate::support::{Clusters, NOW_MS, WITHIN, read, stop};

const PARTITIONS: i32 = 3;
const BROKERS: i32 = 3;

#[tokio::test(start_paused = true)]
async fn each_record_is_copied_once_whatever_happens() -> Result<()> {
    for_each_seed(run).await
}

#[tokio::test(start_paused = true)]
async fn nothing_that_the_source_still_holds_is_lost_by_a_crash() -> Result<()> {
    for_each_seed(run_with_changes).await
}

async fn for_each_seed(run: impl AsyncFn(u64) -> Result<()>) -> Result<()> {
    let seeds = std::env::var("CHAOS_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    let first = std::env::var("CHAOS_FIRST")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    for seed in first..first + seeds.unwrap_or(10) {
        run(seed).await.with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

async fn run(seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let clusters = Clusters::start(BROKERS)?;
    clusters
        .source
        .create_topic("orders", PARTITIONS, BROKERS as i16);
    let mut sent = vec![Vec::new(); PARTITIONS as usize];
    let mut flows = vec![Some(mirror(&clusters)?), None];
    for (cluster, is_source) in [(&clusters.source, true), (&clusters.target, false)] {
        let mut random = random.fork();
        cluster.on_any().decide(move |seen| match seen.api {
            ApiKey::Produce if is_source => Fault::Pass,
            api => fault(api, &mut random),
        });
    }

    for round in 0..40 {
        let partition = random.i32(0..PARTITIONS);
        let values: Vec<String> = (0..random.u32(1..6))
            .map(|n| format!("{round}.{n}"))
            .collect();
        write(&clusters, partition, &values).await?;
        sent[partition as usize].extend(values);
        disturb(&clusters, &mut flows, &mut random).await?;
        tokio::time::sleep(Duration::from_millis(random.u64(0..200))).await;
    }

    for cluster in [&clusters.source, &clusters.target] {
        cluster.clear_faults();
        restart_all(cluster).await?;
    }
    let mut last = flows.into_iter().flatten();
    let flow = match last.next() {
        Some(flow) => flow,
        None => mirror(&clusters)?,
    };
    // A second one must not be needed.
    last.for_each(drop);
    let caught_up = eventually_async(WITHIN, async || {
        for (partition, sent) in sent.iter().enumerate() {
            let copied = read(&clusters.target, "us.orders", partition as i32)?;
            ensure!(
                copied.len() >= sent.len(),
                "{partition}: {} of {}",
                copied.len(),
                sent.len()
            );
        }
        Ok(())
    });
    caught_up
        .await
        .with_context(|| format!("{:#?}", flow.status()))?;
    stop(flow).await;
    for (partition, sent) in sent.iter().enumerate() {
        let copied = read(&clusters.target, "us.orders", partition as i32)?;
        ensure!(
            copied == *sent,
            "partition {partition}\n copied {copied:?}\n sent   {sent:?}"
        );
    }
    Ok(())
}

/// One mirror at a time crashes again and again. Meanwhile records come, age, are compacted, and
/// the topic is made anew.
async fn run_with_changes(seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let mut flow = mirror(&clusters)?;
    for round in 0..30 {
        let values: Vec<String> = (0..random.u32(1..20))
            .map(|n| format!("{round}.{n}"))
            .collect();
        write_keyed(&clusters, &values).await?;
        tokio::time::sleep(Duration::from_millis(random.u64(0..900))).await;
        let is_crash = random.u32(0..3) > 0;
        if is_crash {
            drop(flow);
            // Requests do not live as long as records.
            tokio::time::sleep(Duration::from_secs(1)).await;
        } else {
            stop(flow).await;
        }
        for _ in 0..random.u32(0..3) {
            change(&clusters, &mut random);
        }
        flow = mirror(&clusters)?;
        if random.u32(0..6) == 0 {
            tokio::time::sleep(Duration::from_millis(random.u64(0..900))).await;
            make_anew(&clusters);
        }
    }
    write_keyed(&clusters, &["last".to_owned()]).await?;

    let left = read(&clusters.source, "orders", 0)?;
    let complete = eventually_async(WITHIN, async || {
        let copied: HashSet<String> = read(&clusters.target, "us.orders", 0)?
            .into_iter()
            .collect();
        let lost: Vec<&String> = left
            .iter()
            .filter(|value| !copied.contains(*value))
            .collect();
        ensure!(lost.is_empty(), "{lost:?} of {left:?}");
        Ok(())
    });
    complete
        .await
        .with_context(|| format!("{:#?}", flow.status()))?;
    stop(flow).await;
    Ok(())
}

/// Writes values under few keys.
async fn write_keyed(clusters: &Clusters, values: &[String]) -> Result<()> {
    let record = |(at, value): (usize, &String)| Record {
        timestamp: 1_000,
        key: Some(Bytes::from((at % 7).to_string())),
        value: Some(Bytes::from(value.clone())),
        ..Record::default()
    };
    let records: Vec<Record> = values.iter().enumerate().map(record).collect();
    eventually_async(WITHIN, async || {
        clusters.produce_records("orders", 0, &records).await
    })
    .await
}

fn change(clusters: &Clusters, random: &mut Rng) {
    match random.u32(0..5) {
        0 | 1 => {
            if let Some(log) = clusters.source.partition("orders", 0) {
                let before = random.i64(log.log_start..=log.log_end);
                clusters.source.delete_records("orders", 0, before);
            }
        }
        2 | 3 => drop(clusters.source.compact("orders", 0, Compaction::default())),
        _ => make_anew(clusters),
    }
}

fn make_anew(clusters: &Clusters) {
    clusters.source.delete_topic("orders");
    clusters.source.create_topic("orders", 1, 1);
}

fn mirror(clusters: &Clusters) -> Result<FlowHandle> {
    clusters.mirror("eu.offset.flush.interval.ms = 700")
}

/// Writes once: what fails here was not appended, because faults spare what is produced to the
/// source.
async fn write(clusters: &Clusters, partition: i32, values: &[String]) -> Result<()> {
    // One partition's records are so old that batches go one by one.
    let timestamp = if partition == 0 { 1_000 } else { NOW_MS };
    let record = |value: &String| Record {
        timestamp,
        value: Some(value.clone().into()),
        ..Record::default()
    };
    let records: Vec<Record> = values.iter().map(record).collect();
    eventually_async(WITHIN, async || {
        clusters
            .produce_records("orders", partition, &records)
            .await
    })
    .await
}

fn fault(api: ApiKey, random: &mut Rng) -> Fault {
    if random.u32(0..100) >= 12 {
        return Fault::Pass;
    }
    let refusal = match api {
        ApiKey::Produce => ResponseError::NotEnoughReplicas,
        ApiKey::Fetch | ApiKey::ListOffsets | ApiKey::DescribeProducers => {
            ResponseError::NotLeaderOrFollower
        }
        _ => return Fault::Disconnect,
    };
    match random.u32(0..9) {
        0 => Fault::Error(refusal),
        1 => Fault::Delay(Duration::from_millis(random.u64(1..300))),
        2 => Fault::Disconnect,
        3 => Fault::ApplyThenDisconnect,
        4 => Fault::ApplyThenError(refusal),
        5 => Fault::ApplyLate(Duration::from_millis(random.u64(1..100))),
        6 => Fault::Duplicate,
        7 => Fault::Silence,
        _ => Fault::ApplyThenSilence,
    }
}

async fn disturb(
    clusters: &Clusters,
    flows: &mut [Option<FlowHandle>],
    random: &mut Rng,
) -> Result<()> {
    let cluster = if random.bool() {
        &clusters.source
    } else {
        &clusters.target
    };
    let topic = if std::ptr::eq(cluster, &clusters.source) {
        "orders"
    } else {
        "us.orders"
    };
    let (broker, who) = (random.i32(1..=BROKERS), random.usize(0..flows.len()));
    match random.u32(0..14) {
        0 | 1 => drop(cluster.move_leader(topic, random.i32(0..PARTITIONS), broker)),
        2 => {
            cluster.crash(broker, Unflushed::Kept);
            tokio::time::sleep(Duration::from_millis(random.u64(0..3_000))).await;
            cluster.restart(broker).await?;
        }
        3 => drop(flows[who].take()),
        4 => {
            if let Some(flow) = flows[who].take() {
                stop(flow).await;
            }
        }
        5 | 6 => flows[who] = Some(mirror(clusters)?),
        _ => {}
    }
    Ok(())
}

async fn restart_all(cluster: &MiniKafka) -> Result<()> {
    for broker in cluster.broker_ids() {
        if cluster.connect(broker).is_err() {
            cluster.restart(broker).await?;
        }
    }
    Ok(())
}
