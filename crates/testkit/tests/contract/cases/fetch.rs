//! Fetch: limits, long polls, offsets out of range, epochs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchTopic;
use testkit::wire::Wire;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::batch::{Batch, read};
use crate::lab::{Ask, FETCH, Lab, expect, produce_request};

super::cases! {
    a_fetch_inside_a_batch_gets_all_of_it,
    the_last_batch_is_cut_at_the_partitions_limit,
    the_first_batch_is_whole_whatever_the_limit,
    partitions_share_the_requests_limit,
    offsets_out_of_range_are_refused,
    a_long_poll_ends_when_records_arrive,
    a_long_poll_ends_after_its_time,
    a_long_poll_waits_for_min_bytes,
    another_epoch_is_fenced,
    a_diverging_epoch_is_told,
    topics_are_named_by_id_since_version_13,
    a_broker_without_a_replica_refuses,
}

async fn a_fetch_inside_a_batch_gets_all_of_it(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(5), Batch::of(2)]).await?;

    let data = bench.fetch(Ask::from(3)).await?;

    let (batches, _) = read(&data.records.unwrap_or_default());
    let bases: Vec<_> = batches
        .iter()
        .map(|batch| (batch.base_offset, batch.count))
        .collect();
    expect("batches", bases, vec![(0, 5), (5, 2)])?;
    expect("high watermark", data.high_watermark, 7)?;
    expect("log start", data.log_start_offset, 0)
}

async fn the_last_batch_is_cut_at_the_partitions_limit(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let batch = Batch::sized(1_000);
    let size = batch.bytes().len();
    bench.fill(&[batch.clone(), batch.clone(), batch]).await?;

    let limit = (size + size / 2) as i32;
    let data = bench
        .fetch(Ask {
            partition_max_bytes: limit,
            ..Ask::from(0)
        })
        .await?;

    let records = data.records.unwrap_or_default();
    expect("bytes", records.len(), limit as usize)?;
    let (batches, cut) = read(&records);
    expect(
        "whole batches and cut bytes",
        (batches.len(), cut),
        (1, size / 2),
    )
}

async fn the_first_batch_is_whole_whatever_the_limit(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let batch = Batch::sized(5_000);
    let size = batch.bytes().len();
    bench.fill(&[batch.clone(), batch]).await?;

    for ask in [
        Ask {
            partition_max_bytes: 1,
            ..Ask::from(0)
        },
        Ask {
            max_bytes: 1,
            ..Ask::from(0)
        },
        Ask {
            partition_max_bytes: 0,
            ..Ask::from(0)
        },
    ] {
        let records = bench.fetch(ask).await?.records.unwrap_or_default();
        expect("bytes", records.len(), size)?;
    }
    Ok(())
}

async fn partitions_share_the_requests_limit(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(1).await?;
    let mut second = lab.bench_on_one_broker(1).await?;
    let batch = Batch::sized(1_000);
    let size = batch.bytes().len() as i32;
    bench.fill(&[batch.clone(), batch.clone()]).await?;
    second.fill(&[batch.clone(), batch]).await?;
    let topic = |bench: &crate::lab::Bench| {
        FetchTopic::default()
            .with_topic(bench.topic.clone())
            .with_partitions(vec![Ask::from(0).partition(0)])
    };
    let mut fetch = async |max_bytes| -> Result<Vec<usize>> {
        let ask = Ask {
            max_bytes,
            ..Ask::from(0)
        };
        let topics = vec![topic(&bench), topic(&second)];
        let response = bench
            .wire
            .call(&ask.request().with_topics(topics), FETCH)
            .await?;
        let parts = response
            .responses
            .iter()
            .flat_map(|topic| &topic.partitions);
        Ok(parts
            .map(|part| part.records.as_ref().map_or(0, bytes::Bytes::len))
            .collect())
    };

    let sizes = fetch(2 * size).await?;
    let (most, rest): (usize, usize) =
        (sizes.iter().copied().max().unwrap_or(0), sizes.iter().sum());

    expect("all of the limit", rest, 2 * size as usize)?;
    expect("one partition takes it", most, 2 * size as usize)?;
    expect(
        "room for all",
        fetch(10 * size).await?.iter().sum::<usize>(),
        4 * size as usize,
    )
}

async fn offsets_out_of_range_are_refused(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(3)]).await?;

    for (offset, expected) in [(-1, 1), (0, 0), (3, 0), (4, 1)] {
        let data = bench.fetch(Ask::from(offset)).await?;
        ensure!(
            data.error_code == expected,
            "offset {offset}: {}",
            data.error_code
        );
        let refused = expected != 0;
        ensure!(
            !refused || data.high_watermark == -1,
            "no levels with an error: {data:?}"
        );
    }
    let at_end = bench.fetch(Ask::from(3)).await?;
    expect(
        "records at the end",
        at_end.records.unwrap_or_default().len(),
        0,
    )
}

async fn a_long_poll_ends_when_records_arrive(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut other = Wire::connect(&bench.leader_address).await?;
    let request = produce_request(&bench.topic, Some(Batch::of(1).bytes()));
    let ask = Ask {
        min_bytes: 1,
        max_wait_ms: 30_000,
        ..Ask::from(0)
    };

    let produce = async { other.call(&request, 9).await };
    let both = async { tokio::join!(bench.fetch(ask), produce) };
    let (fetched, produced) = timeout(Duration::from_secs(15), both)
        .await
        .context("waits on")?;

    produced?;
    ensure!(
        !fetched?.records.unwrap_or_default().is_empty(),
        "the record is there"
    );
    Ok(())
}

async fn a_long_poll_ends_after_its_time(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let started = Instant::now();

    let data = bench
        .fetch(Ask {
            min_bytes: 1,
            max_wait_ms: 300,
            ..Ask::from(0)
        })
        .await?;

    ensure!(
        started.elapsed() >= Duration::from_millis(290),
        "it waited {:?}",
        started.elapsed()
    );
    expect("code", data.error_code, 0)?;
    expect("records", data.records.unwrap_or_default().len(), 0)
}

async fn a_long_poll_waits_for_min_bytes(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(1)]).await?;
    let started = Instant::now();

    let ask = Ask {
        min_bytes: 100_000,
        max_wait_ms: 300,
        ..Ask::from(0)
    };
    let data = bench.fetch(ask).await?;

    ensure!(
        started.elapsed() >= Duration::from_millis(290),
        "it waited {:?}",
        started.elapsed()
    );
    ensure!(
        !data.records.unwrap_or_default().is_empty(),
        "it answers what there is"
    );
    Ok(())
}

async fn another_epoch_is_fenced(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(1)]).await?;

    for (leader_epoch, expected) in [(-1, 0), (0, 0), (1, 75)] {
        let data = bench
            .fetch(Ask {
                leader_epoch,
                ..Ask::from(0)
            })
            .await?;
        ensure!(
            data.error_code == expected,
            "epoch {leader_epoch}: {}",
            data.error_code
        );
    }
    Ok(())
}

async fn a_diverging_epoch_is_told(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(2)]).await?;

    let same = bench
        .fetch(Ask {
            last_fetched_epoch: 0,
            ..Ask::from(2)
        })
        .await?;
    let beyond = bench
        .fetch(Ask {
            last_fetched_epoch: 0,
            ..Ask::from(3)
        })
        .await?;

    expect(
        "same epoch",
        (same.error_code, same.diverging_epoch.end_offset),
        (0, -1),
    )?;
    let diverging = (
        beyond.diverging_epoch.epoch,
        beyond.diverging_epoch.end_offset,
    );
    expect(
        "beyond the epoch's end",
        (beyond.error_code, diverging),
        (0, (0, 2)),
    )
}

async fn topics_are_named_by_id_since_version_13(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(1)]).await?;
    let request = |id: Uuid| -> FetchRequest {
        let topic = FetchTopic::default()
            .with_topic_id(id)
            .with_partitions(vec![Ask::from(0).partition(0)]);
        Ask::from(0).request().with_topics(vec![topic])
    };

    let known = bench.wire.call(&request(bench.id), 13).await?;
    let unknown = bench.wire.call(&request(Uuid::from_u128(42)), 13).await?;

    let part = &known.responses[0].partitions[0];
    expect(
        "known id",
        (known.responses[0].topic_id, part.error_code),
        (bench.id, 0),
    )?;
    ensure!(
        part.records
            .as_ref()
            .is_some_and(|records| !records.is_empty()),
        "records"
    );
    expect(
        "unknown id",
        unknown.responses[0].partitions[0].error_code,
        100,
    )
}

async fn a_broker_without_a_replica_refuses(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut other = lab.other_broker(&bench).await?;
    let topic = FetchTopic::default()
        .with_topic(bench.topic.clone())
        .with_partitions(vec![Ask::from(0).partition(0)]);

    let old = other
        .call(&Ask::from(0).request().with_topics(vec![topic]), FETCH)
        .await?;
    let topic = FetchTopic::default()
        .with_topic_id(bench.id)
        .with_partitions(vec![Ask::from(0).partition(0)]);
    let new = other
        .call(&Ask::from(0).request().with_topics(vec![topic]), 16)
        .await?;

    let part = &old.responses[0].partitions[0];
    expect(
        "code and leader before 16",
        (part.error_code, part.current_leader.leader_id.0),
        (6, -1),
    )?;
    let part = &new.responses[0].partitions[0];
    let told = (part.error_code, part.current_leader.leader_id.0);
    expect("code and leader since 16", told, (6, bench.leader_id))?;
    let endpoint = new.node_endpoints.first().context("the leader's address")?;
    let address = format!("{}:{}", &*endpoint.host, endpoint.port);
    expect("the leader's address", address, bench.leader_address)
}
