//! What only mini-kafka can do: faults and accidents that a test stages, in memory and with a
//! paused clock.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, OffsetForLeaderEpochRequest, TopicName};
use mini_kafka::{
    ApiKey, Compaction, Fault, MiniKafka, Options, ResponseError, Unflushed, Versions,
};
use testkit::wire::{Wire, text};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::batch::{Batch, Record};
use crate::lab::{Ask, Bench, describe, expect, produce_request};

const TOPIC: &str = "orders";

/// Two brokers, and a topic of one partition on both; broker 1 leads.
fn start() -> MiniKafka {
    start_with(Options::default())
}

fn start_with(options: Options) -> MiniKafka {
    let wall_clock_ms = crate::now_ms();
    let mini = MiniKafka::start(Options {
        brokers: 2,
        wall_clock_ms,
        ..options
    });
    mini.create_topic(TOPIC, 1, 2);
    mini
}

async fn bench(mini: &MiniKafka, broker: i32) -> Result<Bench> {
    let wire = Wire::over(mini.connect(broker)?).await?;
    let topic = TopicName(text(TOPIC));
    Ok(Bench {
        topic,
        id: Uuid::nil(),
        leader_id: broker,
        leader_address: String::new(),
        wire,
    })
}

fn end(mini: &MiniKafka) -> Result<i64> {
    Ok(mini.partition(TOPIC, 0).context("the partition")?.log_end)
}

#[tokio::test(start_paused = true)]
async fn a_staged_error_hits_once_and_changes_nothing() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce)
        .topic(TOPIC)
        .once(Fault::Error(ResponseError::NotEnoughReplicas));

    let refused = bench.produce(&Batch::of(1)).await?;
    let taken = bench.produce(&Batch::of(1)).await?;

    expect("first", refused, (19, -1))?;
    expect("second", taken, (0, 0))?;
    expect("requests", mini.requests(ApiKey::Produce), 2)
}

#[tokio::test(start_paused = true)]
async fn a_fault_for_another_partition_or_broker_does_not_hit() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce)
        .partition(7)
        .always(Fault::Disconnect);
    mini.on(ApiKey::Produce)
        .topic("others")
        .always(Fault::Disconnect);
    mini.on(ApiKey::Produce).broker(2).always(Fault::Disconnect);

    expect("Produce", bench.produce(&Batch::of(1)).await?, (0, 0))
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_the_records_behind() -> Result<()> {
    let mini = start();
    let mut first = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce).once(Fault::ApplyThenDisconnect);

    ensure!(
        first.produce(&Batch::of(2)).await.is_err(),
        "the connection closes"
    );

    expect("log end", end(&mini)?, 2)
}

#[tokio::test(start_paused = true)]
async fn a_request_can_outlive_its_connection() -> Result<()> {
    let mini = start();
    let mut first = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce)
        .once(Fault::ApplyLate(Duration::from_millis(8)));

    ensure!(
        first.produce(&Batch::of(2)).await.is_err(),
        "the connection closes"
    );
    expect("log end at once", end(&mini)?, 0)?;
    tokio::time::sleep(Duration::from_millis(9)).await;

    expect("log end later", end(&mini)?, 2)
}

#[tokio::test(start_paused = true)]
async fn a_doubled_request_is_stored_once_if_it_is_idempotent() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce).times(2, Fault::Duplicate);

    expect("plain", bench.produce(&Batch::of(1)).await?, (0, 0))?;
    expect(
        "idempotent",
        bench.produce(&Batch::of(1).by((1 << 60, 0), 0)).await?,
        (0, 2),
    )?;

    expect("log end", end(&mini)?, 3)
}

#[tokio::test(start_paused = true)]
async fn delays_and_silence_take_no_real_time() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce)
        .once(Fault::Delay(Duration::from_secs(90)));
    let started = Instant::now();

    bench.produce(&Batch::of(1)).await?;
    let delayed = started.elapsed();
    mini.on_any().once(Fault::Silence);
    let silent = timeout(Duration::from_secs(3_600), bench.produce(&Batch::of(1))).await;

    ensure!(delayed >= Duration::from_secs(90), "delayed by {delayed:?}");
    ensure!(silent.is_err(), "never answered");
    expect("log end", end(&mini)?, 1)
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_decides_by_what_it_sees() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.on(ApiKey::Produce)
        .decide(|seen| match seen.partitions.first() {
            Some((topic, 0)) if topic == TOPIC => {
                Fault::ApplyThenError(ResponseError::RequestTimedOut)
            }
            _ => Fault::Pass,
        });

    expect("code", bench.produce(&Batch::of(1)).await?.0, 7)?;
    mini.clear_faults();
    expect("without it", bench.produce(&Batch::of(1)).await?, (0, 1))
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_fences_old_epochs() -> Result<()> {
    let mini = start();
    let (mut old, mut new) = (bench(&mini, 1).await?, bench(&mini, 2).await?);
    old.fill(&[Batch::of(3)]).await?;

    ensure!(mini.move_leader(TOPIC, 0, 2), "there is such a partition");

    expect("the old leader", old.produce(&Batch::of(1)).await?.0, 6)?;
    expect("the new leader", new.produce(&Batch::of(1)).await?, (0, 3))?;
    expect(
        "the old epoch",
        new.fetch(Ask {
            leader_epoch: 0,
            ..Ask::from(0)
        })
        .await?
        .error_code,
        74,
    )?;
    expect(
        "the new batch's epoch",
        new.batches(3).await?[0].leader_epoch,
        1,
    )?;
    let (metadata, _) = describe(&mut old.wire, &old.topic).await?;
    let leader = (
        metadata.partitions[0].leader_id.0,
        metadata.partitions[0].leader_epoch,
    );
    expect("metadata", leader, (2, 1))
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_connections_and_moves_leaders() -> Result<()> {
    let mini = start();
    let mut first = bench(&mini, 1).await?;
    first.fill(&[Batch::of(2), Batch::of(2)]).await?;

    mini.crash(1, Unflushed::LostBatches(1));

    first.wire.closed().await?;
    ensure!(mini.connect(1).is_err(), "connections are refused");
    let mut second = bench(&mini, 2).await?;
    expect("log end", second.offset(-1).await?.offset, 2)?;
    let (_, response) = describe(&mut second.wire, &second.topic).await?;
    expect("brokers", response.brokers.len(), 1)?;
    mini.restart(1).await?;
    mini.move_leader(TOPIC, 0, 1);
    expect(
        "after the restart",
        bench(&mini, 1).await?.produce(&Batch::of(1)).await?,
        (0, 2),
    )
}

#[tokio::test]
async fn a_restarted_broker_listens_on_its_old_port() -> Result<()> {
    let mini = start();
    let addresses = mini.listen_tcp(&[]).await?;
    let mut wire = Wire::connect(&addresses[0]).await?;

    mini.crash(1, Unflushed::Kept);
    wire.closed().await?;
    mini.restart(1).await?;

    Wire::connect(&addresses[0]).await?;
    expect("addresses", mini.bootstrap(), addresses)?;
    mini.shut_down().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_truncated_log_is_told_by_its_epochs() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    bench.fill(&[Batch::of(2), Batch::of(2)]).await?;

    mini.truncate(TOPIC, 0, 2);
    bench.fill(&[Batch::of(5)]).await?;

    let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(bench.topic.clone())
        .with_partitions(vec![partition.with_leader_epoch(0)]);
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic]);
    let response = bench.wire.call(&request, 4).await?;
    expect(
        "end of epoch 0",
        response.topics[0].partitions[0].end_offset,
        2,
    )?;
    let diverged = bench
        .fetch(Ask {
            last_fetched_epoch: 0,
            ..Ask::from(4)
        })
        .await?;
    expect(
        "a position of the old log",
        diverged.diverging_epoch.end_offset,
        2,
    )
}

#[tokio::test(start_paused = true)]
async fn a_held_high_watermark_makes_acks_all_time_out() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    bench.fill(&[Batch::of(10)]).await?;
    mini.hold_high_watermark(TOPIC, 0, true);

    let timed_out = bench.send(Some(Batch::of(10).bytes())).await?;

    expect("code", timed_out.error_code, 7)?;
    expect("for consumers", bench.offset(-1).await?.offset, 10)?;
    expect(
        "for the debugging replica",
        bench.offset_as(-2, 0, -1).await?.offset,
        20,
    )?;
    expect(
        "a fetch behind it",
        bench.fetch(Ask::from(15)).await?.error_code,
        0,
    )?;
    mini.hold_high_watermark(TOPIC, 0, false);
    expect("after it caught up", bench.offset(-1).await?.offset, 20)
}

#[tokio::test(start_paused = true)]
async fn a_compacted_batch_keeps_its_last_offset() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    let keys = |keys: &[&str]| Batch::with(keys.iter().map(|key| Record::new(key, "v")).collect());
    bench
        .fill(&[keys(&["a", "b", "a"]).codec(3), keys(&["b"])])
        .await?;

    mini.compact(
        TOPIC,
        0,
        Compaction {
            below: Some(3),
            ..Compaction::default()
        },
    );

    let batch = bench.batches(0).await?.remove(0);
    expect(
        "count and last offset delta",
        (batch.count, batch.last_offset_delta),
        (2, 2),
    )?;
    ensure!(batch.crc_fits, "the checksum fits");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_expired_producer_may_store_again() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    let old = Batch::of(1).at(1_000).by((1 << 60, 0), 5);
    bench.fill(std::slice::from_ref(&old)).await?;

    expect("recognised", bench.produce(&old).await?, (0, 0))?;
    mini.expire_producers(Duration::from_secs(86_400));

    expect("stored again", bench.produce(&old).await?, (0, 1))
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_is_told_and_made_to_wait() -> Result<()> {
    let mini = start();
    let mut bench = bench(&mini, 1).await?;
    mini.throttle(ApiKey::Produce, Duration::from_secs(5));
    let request = produce_request(&bench.topic, Some(Batch::of(1).bytes()));

    let response = bench.wire.call(&request, 9).await?;
    let started = Instant::now();
    bench.wire.call(&request, 9).await?;

    expect("the answer", response.throttle_time_ms, 5_000)?;
    ensure!(
        started.elapsed() >= Duration::from_secs(5),
        "waited {:?}",
        started.elapsed()
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn old_brokers_offer_old_versions() -> Result<()> {
    for (versions, fetch, produce, epochs) in [
        (Versions::kafka_1_1(), 7, 5, false),
        (Versions::kafka_2_8(), 12, 9, true),
        (
            Versions::kafka_4_3().limit(ApiKey::Fetch, 0..=4),
            4,
            13,
            true,
        ),
    ] {
        let mini = start_with(Options {
            versions,
            ..Options::default()
        });
        let wire = Wire::over(mini.connect(1)?).await?;
        let newest = |api| wire.versions(api).map(|(_, max)| max);
        expect("Fetch", newest(ApiKey::Fetch), Some(fetch))?;
        expect("Produce", newest(ApiKey::Produce), Some(produce))?;
        expect(
            "epochs",
            newest(ApiKey::OffsetForLeaderEpoch).is_some(),
            epochs,
        )?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_the_ids() -> Result<()> {
    let mut ids = Vec::new();
    for seed in [1, 1, 2] {
        let mini = start_with(Options {
            seed,
            ..Options::default()
        });
        let mut bench = bench(&mini, 1).await?;
        ids.push(describe(&mut bench.wire, &bench.topic).await?.0.topic_id);
    }

    expect("the same seed", ids[0], ids[1])?;
    ensure!(ids[1] != ids[2], "another seed");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_leader_points_to_the_replica_in_the_consumers_rack() -> Result<()> {
    let racks = vec!["a".to_owned(), "b".to_owned()];
    let mini = start_with(Options {
        racks,
        fetch_from_closest_replica: true,
        ..Options::default()
    });
    let (mut leader, mut follower) = (bench(&mini, 1).await?, bench(&mini, 2).await?);
    leader.fill(&[Batch::of(1)]).await?;
    let wanted = kafka_protocol::messages::fetch_request::FetchTopic::default()
        .with_topic(leader.topic.clone())
        .with_partitions(vec![Ask::from(0).partition(0)]);
    let request = Ask::from(0)
        .request()
        .with_topics(vec![wanted])
        .with_rack_id(text("b"));

    let pointed = leader.wire.call(&request, 12).await?;
    let served = follower.wire.call(&request, 12).await?;

    let part = &pointed.responses[0].partitions[0];
    expect("the leader", part.preferred_read_replica.0, 2)?;
    let part = &served.responses[0].partitions[0];
    ensure!(
        part.records
            .as_ref()
            .is_some_and(|records| !records.is_empty()),
        "{part:?}"
    );
    Ok(())
}
