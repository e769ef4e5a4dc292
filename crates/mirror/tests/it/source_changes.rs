//! The source changes while a crashed mirror is down: what the target holds already is passed over,
//! but nothing that is new.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use mini_kafka::Compaction;
use testkit::eventually_async;
use twinlog_kafka::batch::Record;

use crate::support::{Clusters, WITHIN, numbers, read, stop, texts};

/// Clusters with the values `0..count` copied, in batches of ten, by a mirror that crashed before
/// it stored how far it was.
async fn crashed_after(count: u32) -> Result<Clusters> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("")?;
    let all = numbers(0..count);
    for values in all.chunks(10) {
        clusters.produce("orders", 0, &texts(values)).await?;
    }
    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    drop(flow);
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(clusters)
}

async fn produce(clusters: &Clusters, range: std::ops::Range<u32>) -> Result<()> {
    for values in numbers(range).chunks(10) {
        clusters.produce("orders", 0, &texts(values)).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn records_deleted_after_they_were_copied_make_no_later_ones_vanish() -> Result<()> {
    for deleted in [60, 65, 100] {
        let clusters = crashed_after(100).await?;
        clusters.source.delete_records("orders", 0, deleted);
        produce(&clusters, 100..200).await?;

        let flow = clusters.mirror("")?;

        clusters
            .expect_copied("us.orders", 0, &texts(&numbers(0..200)))
            .await?;
        assert_eq!(stop(flow).await.counters().lost_records, 0);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn only_records_that_were_not_copied_count_as_lost() -> Result<()> {
    let clusters = crashed_after(100).await?;
    produce(&clusters, 100..200).await?;
    clusters.source.delete_records("orders", 0, 130);

    let flow = clusters.mirror("")?;

    let expected: Vec<String> = numbers(0..100)
        .into_iter()
        .chain(numbers(130..200))
        .collect();
    clusters
        .expect_copied("us.orders", 0, &texts(&expected))
        .await?;
    assert_eq!(stop(flow).await.counters().lost_records, 30);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_source_log_that_was_cut_is_copied_on_from_the_cut_though_it_has_grown_again()
-> Result<()> {
    for (cut, more) in [(2, ["e", "f", "g"].as_slice()), (1, &["e"]), (4, &["e"])] {
        let clusters = Clusters::start(1)?;
        clusters.source.create_topic("orders", 1, 1);
        let flow = clusters.mirror("")?;
        let mut expected = vec!["a", "b", "c", "d"];
        for value in &expected {
            clusters.produce("orders", 0, &[value]).await?;
        }
        clusters.expect_copied("us.orders", 0, &expected).await?;

        clusters.source.truncate("orders", 0, cut);
        for value in more {
            clusters.produce("orders", 0, &[value]).await?;
        }

        expected.extend(more);
        clusters.expect_copied("us.orders", 0, &expected).await?;
        let is_cut = u64::from(cut < 4);
        let counters = stop(flow).await.counters();
        assert_eq!((counters.sources_cut, counters.lost_records), (is_cut, 0));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn leaders_that_move_cut_nothing() -> Result<()> {
    let clusters = Clusters::start(2)?;
    clusters.source.create_topic("orders", 1, 2);
    let flow = clusters.mirror("")?;
    let all = numbers(0..40);
    for (round, value) in all.iter().enumerate() {
        clusters.produce("orders", 0, &[value]).await?;
        clusters
            .source
            .move_leader("orders", 0, (round % 2) as i32 + 1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    assert_eq!(stop(flow).await.counters().sources_cut, 0);
    Ok(())
}

/// Writes values under keys that repeat, so that compaction leaves the last ten.
async fn produce_keyed(clusters: &Clusters, range: std::ops::Range<u32>) -> Result<()> {
    let record = |value: u32| Record {
        timestamp: 1_000,
        key: Some(Bytes::from((value % 10).to_string())),
        value: Some(Bytes::from(value.to_string())),
        ..Record::default()
    };
    let records: Vec<Record> = range.map(record).collect();
    for records in records.chunks(7) {
        clusters.produce_records("state", 0, records).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_topic_compacted_before_it_was_copied_is_not_copied_twice() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("state", 1, 1);
    produce_keyed(&clusters, 0..95).await?;
    clusters.source.compact("state", 0, Compaction::default());
    let flow = clusters.mirror("")?;
    produce_keyed(&clusters, 95..100).await?;
    let mut expected: Vec<String> = numbers(85..100);
    clusters
        .expect_copied("us.state", 0, &texts(&expected))
        .await?;
    drop(flow);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let flow = clusters.mirror("")?;
    produce_keyed(&clusters, 100..110).await?;

    expected.extend(numbers(100..110));
    clusters
        .expect_copied("us.state", 0, &texts(&expected))
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_topic_compacted_after_it_was_copied_loses_no_later_record() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("state", 1, 1);
    let flow = clusters.mirror("")?;
    produce_keyed(&clusters, 0..100).await?;
    clusters
        .expect_copied("us.state", 0, &texts(&numbers(0..100)))
        .await?;
    drop(flow);
    tokio::time::sleep(Duration::from_secs(1)).await;
    clusters.source.compact("state", 0, Compaction::default());

    let flow = clusters.mirror("")?;
    produce_keyed(&clusters, 100..200).await?;

    eventually_async(WITHIN, async || {
        let copied = read(&clusters.target, "us.state", 0)?;
        ensure!(copied.ends_with(&numbers(100..200)), "{copied:?}");
        ensure!(copied.starts_with(&numbers(0..100)), "{copied:?}");
        Ok(())
    })
    .await?;
    stop(flow).await;
    Ok(())
}
