//! Records arrive as they were, and positions let the next process go on.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use testkit::eventually_async;
use twinlog_kafka::batch::Record;

use crate::support::{
    Clusters, WITHIN, expect_status, numbers, records, stop, stored_positions, texts,
};

#[tokio::test(start_paused = true)]
async fn records_arrive_unchanged_in_the_same_partition() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 2, 1);
    let bytes = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
    let sent = [
        Record {
            timestamp: 7,
            key: bytes("k"),
            value: bytes("v"),
            headers: vec![
                (Bytes::from("h"), bytes("1")),
                (Bytes::from("h"), None),
                (Bytes::from("h"), bytes("")),
            ],
            ..Record::default()
        },
        Record {
            offset: 1,
            timestamp: 5,
            key: bytes(""),
            value: None,
            ..Record::default()
        },
    ];
    clusters.produce_records("orders", 1, &sent).await?;

    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a", "b"]).await?;

    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    clusters.expect_copied("us.orders", 1, &["v", ""]).await?;
    assert_eq!(records(&clusters.target, "us.orders", 1)?, sent);
    let status = stop(flow).await;
    assert_eq!(status.counters().records, 4);
    assert_eq!(status.counters().batches_forwarded, 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stopped_mirror_goes_on_where_it_was() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let all = numbers(0..40);

    for (round, part) in all.chunks(10).enumerate() {
        let flow = clusters.mirror("")?;
        clusters.produce("orders", 0, &texts(part)).await?;
        clusters
            .expect_copied("us.orders", 0, &texts(&all[..(round + 1) * 10]))
            .await?;
        let status = stop(flow).await;
        assert_eq!(status.counters().records, 10);
    }

    let expected = "[\"MirrorSourceConnector\",{\"cluster\":\"us\",\"partition\":0,\"topic\":\"orders\"}] \
                    {\"offset\":39,\"downstream\":40,\"sequence\":40,";
    let stored = stored_positions(&clusters.target)?;
    assert!(stored.starts_with(expected), "{stored}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_crashed_doubles_and_loses_nothing() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let all = numbers(0..30);
    clusters.produce("orders", 0, &texts(&all[..10])).await?;
    let flow = clusters.mirror("")?;
    clusters
        .expect_copied("us.orders", 0, &texts(&all[..10]))
        .await?;

    // Only the place before the first record was stored.
    drop(flow);
    clusters.produce("orders", 0, &texts(&all[10..20])).await?;
    let flow = clusters.mirror("")?;
    clusters
        .expect_copied("us.orders", 0, &texts(&all[..20]))
        .await?;
    clusters.produce("orders", 0, &texts(&all[20..])).await?;

    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn positions_are_stored_at_intervals() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;

    let flow = clusters.mirror("eu.offset.flush.interval.ms = 1000")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    testkit::eventually_async(crate::support::WITHIN, async || {
        let stored = stored_positions(&clusters.target)?;
        anyhow::ensure!(stored.contains("\"offset\":1,"), "{stored}");
        Ok(())
    })
    .await?;
    drop(flow);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn java_positions_are_taken_as_they_are() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["0", "1", "2", "3"]).await?;
    let flow = clusters.mirror("")?;
    clusters
        .expect_copied("us.orders", 0, &["0", "1", "2", "3"])
        .await?;
    stop(flow).await;

    // Java drops what it does not know when it writes.
    let client = testkit::InMemory::client_config(&clusters.target)?;
    let client = twinlog_kafka::client::Client::new(client);
    let key =
        "[\"MirrorSourceConnector\",{\"cluster\":\"us\",\"partition\":0,\"topic\":\"orders\"}]";
    let record = (Bytes::from(key), Some(Bytes::from("{\"offset\":3}")));
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut retry = twinlog_kafka::retry::Retry::new(Default::default(), cancel, 1);
    let verdict = twinlog_kafka::retry::while_retriable;
    twinlog_kafka::topic_log::append(
        &client,
        &"mm2-offsets.us.internal".into(),
        &[record],
        1,
        &mut retry,
        verdict,
    )
    .await?;
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["4"]).await?;

    clusters
        .expect_copied("us.orders", 0, &["0", "1", "2", "3", "4"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_source_has_no_lag() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b", "c"]).await?;

    let flow = clusters.mirror("")?;
    let status = expect_status(&flow, "caught up", |status| {
        status.counters().records == 3 && status.lag_records() == 0
    })
    .await?;

    assert_eq!((status.topics, status.tasks.len()), (1, 1));
    assert_eq!(status.tasks[0].running, 1);
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn thousands_of_partitions_are_copied_by_few_requests() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("wide", 2_000, 1);
    let flow = clusters.mirror("")?;
    expect_status(&flow, "assigned", |status| {
        status
            .tasks
            .first()
            .is_some_and(|task| task.running + task.starting == 2_000)
    })
    .await?;
    for partition in (0..2_000).step_by(100) {
        clusters.produce("wide", partition, &["a"]).await?;
    }

    for partition in (0..2_000).step_by(100) {
        clusters.expect_copied("us.wide", partition, &["a"]).await?;
    }
    let before = clusters.source.requests(mini_kafka::ApiKey::Fetch);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let idle = clusters.source.requests(mini_kafka::ApiKey::Fetch) - before;
    assert!(idle <= 25, "{idle} fetches in ten idle seconds");
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_offsets_topic_that_was_deleted_is_made_again_and_holds_all_positions() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 2, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    clusters.produce("orders", 1, &["c"]).await?;
    let flow = clusters.mirror("refresh.topics.interval.seconds = 30")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    clusters.expect_copied("us.orders", 1, &["c"]).await?;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let stored = stored_positions(&clusters.target)?;

    // While nothing moves.
    clusters.target.delete_topic("mm2-offsets.us.internal");
    eventually_async(WITHIN, async || {
        let now = stored_positions(&clusters.target)?;
        ensure!(now == stored, "{now}");
        Ok(())
    })
    .await?;

    // While records are copied.
    clusters.target.delete_topic("mm2-offsets.us.internal");
    clusters.produce("orders", 1, &["d"]).await?;
    clusters.expect_copied("us.orders", 1, &["c", "d"]).await?;
    eventually_async(WITHIN, async || {
        let now = stored_positions(&clusters.target)?;
        ensure!(now.lines().count() == 2, "{now}");
        Ok(())
    })
    .await?;
    stop(flow).await;
    Ok(())
}
