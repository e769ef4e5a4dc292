//! What goes wrong on the way is put right: records arrive once and in order, and others are not
//! held up.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use mini_kafka::{ApiKey, Fault, ResponseError, Unflushed, Versions};
use twinlog_kafka::batch::Record;
use twinlog_mirror::status::{FlowStatus, PauseReason};

use crate::log::Log;
use crate::support::{Clusters, expect_status, numbers, read, stop, texts};

/// Writes in small batches while `disturb` is called between them, and expects every record once
/// and in order.
async fn copies_exactly(brokers: i32, disturb: impl Fn(&Clusters, usize)) -> Result<()> {
    copies_exactly_between(Clusters::start(brokers)?, brokers, disturb).await
}

async fn copies_exactly_between(
    clusters: Clusters,
    brokers: i32,
    disturb: impl Fn(&Clusters, usize),
) -> Result<()> {
    clusters.source.create_topic("orders", 1, brokers as i16);
    let flow = clusters.mirror("")?;
    let all = numbers(0..60);
    for (round, values) in all.chunks(3).enumerate() {
        clusters.produce("orders", 0, &texts(values)).await?;
        disturb(&clusters, round);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }

    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    // The answer to the last batch may be lost too: then it is counted when that is settled.
    expect_status(&flow, "settled", |status| status.counters().records >= 60).await?;
    assert_eq!(stop(flow).await.counters().records, 60);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_settled() -> Result<()> {
    copies_exactly(1, |clusters, round| {
        if round % 4 == 1 {
            let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
            produce.once(Fault::ApplyThenDisconnect);
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_arrived_is_sent_again() -> Result<()> {
    copies_exactly(1, |clusters, round| {
        if round % 4 == 1 {
            let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
            produce.once(Fault::Disconnect);
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn brokers_that_cannot_be_asked_for_producers_show_their_last_batch() -> Result<()> {
    for versions in [
        Versions::kafka_2_8().without(ApiKey::DescribeProducers),
        Versions::kafka_1_1(),
    ] {
        let clusters = Clusters::of_versions(1, versions.clone(), versions)?;
        copies_exactly_between(clusters, 1, |clusters, round| {
            let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
            match round % 6 {
                1 => produce.once(Fault::ApplyThenDisconnect),
                3 => produce.once(Fault::Disconnect),
                _ => {}
            }
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn doubled_and_late_requests_change_nothing() -> Result<()> {
    copies_exactly(1, |clusters, round| {
        let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
        match round % 4 {
            1 => produce.once(Fault::Duplicate),
            3 => produce.once(Fault::ApplyLate(Duration::from_millis(200))),
            _ => {}
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_full_partition_goes_on_when_its_broker_could_not_be_reached_for_a_while() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("eu.offset.flush.interval.ms = 500")?;
    clusters.produce("orders", 0, &["first"]).await?;
    clusters.expect_copied("us.orders", 0, &["first"]).await?;
    // So that no position is left to be stored, which would wake the partition.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (a, b) = ("a".repeat(700 << 10), "b".repeat(700 << 10));

    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.once(Fault::Silence);
    clusters.produce("orders", 0, &[&a]).await?;
    clusters.produce("orders", 0, &[&b]).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let connect = clusters.target.on(ApiKey::ApiVersions);
    connect.times(6, Fault::Disconnect);

    clusters
        .expect_copied("us.orders", 0, &["first", &a, &b])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn old_records_are_copied_once_though_batches_are_refused_and_the_broker_forgets_us()
-> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let mut odd = false;
    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.decide(move |_| {
        odd = !odd;
        match odd {
            true => Fault::Error(ResponseError::CorruptMessage),
            false => Fault::Pass,
        }
    });
    let flow = clusters.mirror("")?;
    let all = numbers(0..60);
    for value in &all {
        let record = Record {
            timestamp: 1_000,
            value: Some(Bytes::from(value.clone())),
            ..Record::default()
        };
        clusters.produce_records("orders", 0, &[record]).await?;
        clusters
            .target
            .expire_producers(Duration::from_secs(86_400));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn damage_on_the_way_to_the_target_is_not_put_down_to_the_source() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;
    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.always(Fault::Error(ResponseError::CorruptMessage));
    let flow = clusters.mirror("")?;

    let status = expect_status(&flow, "paused", |status| {
        status.tasks.iter().any(|task| !task.paused.is_empty())
    })
    .await?;
    let reason = &status.tasks[0].paused[0].reason;
    assert!(
        matches!(reason, PauseReason::DamagedOnTheWay { .. }),
        "{reason:?}"
    );
    clusters.target.clear_faults();
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_old_batch_that_arrives_after_its_connection_is_waited_for() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.times(3, Fault::ApplyLate(Duration::from_secs(1)));
    let flow = clusters.mirror("")?;
    let all = numbers(0..10);
    for value in &all {
        let record = Record {
            timestamp: -1,
            value: Some(Bytes::from(value.clone())),
            ..Record::default()
        };
        clusters.produce_records("orders", 0, &[record]).await?;
    }
    for _ in 0..1_000 {
        clusters
            .target
            .expire_producers(Duration::from_secs(86_400));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    clusters.expect_copied("us.orders", 0, &texts(&all)).await?;
    let counters = stop(flow).await.counters();
    assert_eq!((counters.records, counters.doubled_records), (10, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn records_of_ours_that_came_in_twice_are_not_taken_for_those_of_others() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;
    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    clusters.target.expire_producers(Duration::ZERO);
    clusters.write_as_mirror("us.orders", 0, "a", 0).await?;
    clusters.target.expire_producers(Duration::ZERO);
    clusters.produce("orders", 0, &["b"]).await?;

    expect_status(&flow, "told of what is there twice", |status| {
        status.counters().doubled_records == 1
    })
    .await?;
    clusters
        .expect_copied("us.orders", 0, &["a", "a", "b"])
        .await?;
    assert_eq!(stop(flow).await.counters().foreign_records, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn records_of_ours_that_do_not_follow_on_stop_the_partition() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;
    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    stop(flow).await;

    // "b" was refused, and "c" taken in its place.
    clusters.target.expire_producers(Duration::ZERO);
    clusters.write_as_mirror("us.orders", 0, "c", 2).await?;
    clusters.produce("orders", 0, &["b"]).await?;
    clusters.produce("orders", 0, &["c"]).await?;
    let flow = clusters.mirror("")?;

    let status = expect_status(&flow, "paused", |status| {
        status.tasks.iter().any(|task| !task.paused.is_empty())
    })
    .await?;
    let reason = &status.tasks[0].paused[0].reason;
    assert!(
        matches!(reason, PauseReason::OutOfSequence { .. }),
        "{reason:?}"
    );
    stop(flow).await;
    assert_eq!(read(&clusters.target, "us.orders", 0)?, ["a", "c"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn leaders_that_move_on_both_sides_are_followed() -> Result<()> {
    copies_exactly(3, |clusters, round| {
        let broker = (round % 3) as i32 + 1;
        match round % 4 {
            1 => drop(clusters.source.move_leader("orders", 0, broker)),
            3 => drop(clusters.target.move_leader("us.orders", 0, broker)),
            _ => {}
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn transient_refusals_are_waited_out() -> Result<()> {
    copies_exactly(1, |clusters, round| {
        if round == 5 {
            let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
            produce.times(3, Fault::Error(ResponseError::NotEnoughReplicas));
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn brokers_that_crash_and_come_back_are_waited_for() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    clusters.target.crash(1, Unflushed::Kept);
    clusters.produce("orders", 0, &["b"]).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    clusters.target.restart(1).await?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    clusters.source.crash(1, Unflushed::Kept);
    tokio::time::sleep(Duration::from_secs(10)).await;
    clusters.source.restart(1).await?;
    clusters.produce("orders", 0, &["c"]).await?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_record_too_large_pauses_its_partition_until_the_limit_is_raised() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters
        .source
        .create_topic_with("orders", 2, 1, &[("max.message.bytes", "100000")]);
    clusters
        .target
        .create_topic_with("us.orders", 2, 1, &[("max.message.bytes", "1000")]);
    let large = "x".repeat(2_000);
    clusters.produce("orders", 0, &["a", &large, "b"]).await?;
    clusters.produce("orders", 1, &["c"]).await?;

    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 1, &["c"]).await?;
    let status =
        expect_status(&flow, "paused", |status| !status.tasks[0].paused.is_empty()).await?;

    let paused = &status.tasks[0].paused[0];
    assert_eq!(paused.partition.to_string(), "orders-0");
    let PauseReason::RecordTooLarge {
        offset,
        size,
        limit,
    } = paused.reason
    else {
        panic!("{paused:?}");
    };
    assert_eq!((offset.0, limit), (1, 1_000));
    assert!(size > 2_000);

    let client = testkit::InMemory::client_config(&clusters.target)?;
    let client = twinlog_kafka::client::Client::new(client);
    let topic = twinlog_kafka::admin::ConfigResource::Topic("us.orders".into());
    let raised =
        twinlog_kafka::admin::ConfigChange::Set("max.message.bytes".into(), "100000".into());
    twinlog_kafka::admin::incremental_alter_configs(&client, [(topic, vec![raised])]).await?;
    clusters
        .expect_copied("us.orders", 0, &["a", &large, "b"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_comes_behind_a_pause_counts_as_not_mirrored() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let limit = [("max.message.bytes", "1000")];
    clusters.target.create_topic_with("us.orders", 1, 1, &limit);
    let large = "x".repeat(2_000);
    clusters.produce("orders", 0, &[&large]).await?;
    let flow = clusters.mirror("")?;
    let is_paused = |status: &FlowStatus| status.tasks.iter().any(|task| !task.paused.is_empty());
    expect_status(&flow, "paused", is_paused).await?;

    for _ in 0..5 {
        clusters.produce("orders", 0, &["more"]).await?;
    }

    expect_status(&flow, "behind", |status| status.lag_records() == 6).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_record_without_key_pauses_a_compacted_copy_and_nothing_else() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("state", 1, 1);
    clusters.source.create_topic("orders", 1, 1);
    clusters
        .target
        .create_topic_with("us.state", 1, 1, &[("cleanup.policy", "compact")]);
    let keyed = Record {
        key: Some(Bytes::from("k")),
        value: Some(Bytes::from("v")),
        ..Record::default()
    };
    clusters.produce_records("state", 0, &[keyed]).await?;
    clusters.produce("state", 0, &["no key"]).await?;

    let flow = clusters.mirror("")?;
    let status = expect_status(&flow, "paused", |status| {
        status
            .tasks
            .first()
            .is_some_and(|task| !task.paused.is_empty())
    })
    .await?;
    clusters.produce("orders", 0, &["a"]).await?;

    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    clusters.expect_copied("us.state", 0, &["v"]).await?;
    let PauseReason::Record { offset, .. } = status.tasks[0].paused[0].reason else {
        panic!("{status:?}");
    };
    assert_eq!(offset.0, 1);
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn records_deleted_before_they_were_copied_are_counted() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    stop(flow).await;
    clusters.produce("orders", 0, &["c", "d", "e"]).await?;
    clusters.produce("orders", 0, &["f"]).await?;
    clusters.source.delete_records("orders", 0, 5);

    let flow = clusters.mirror("")?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "f"])
        .await?;
    assert_eq!(stop(flow).await.counters().lost_records, 3);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_deleted_is_made_and_filled_again() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    clusters.target.delete_topic("us.orders");
    clusters.produce("orders", 0, &["c"]).await?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_goes_on_after_a_pause_says_so() -> Result<()> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let produce = clusters.target.on(ApiKey::Produce).topic("us.orders");
    produce.always(Fault::Error(ResponseError::TopicAuthorizationFailed));
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a"]).await?;
    let is_paused = |status: &FlowStatus| status.tasks.iter().any(|task| !task.paused.is_empty());
    expect_status(&flow, "paused", is_paused).await?;

    clusters.target.clear_faults();
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    stop(flow).await;

    let log = log.text();
    assert_eq!(log.matches("paused, others go on").count(), 1, "{log}");
    assert_eq!(log.matches("goes on after a pause").count(), 1, "{log}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_record_too_large_that_the_source_deletes_holds_nothing_up_any_longer() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters
        .source
        .create_topic_with("orders", 1, 1, &[("max.message.bytes", "100000")]);
    clusters
        .target
        .create_topic_with("us.orders", 1, 1, &[("max.message.bytes", "1000")]);
    let large = "x".repeat(2_000);
    clusters.produce("orders", 0, &["a", &large, "b"]).await?;
    clusters.produce("orders", 0, &["c"]).await?;
    let flow = clusters.mirror("")?;
    expect_status(&flow, "paused", |status| {
        status
            .tasks
            .first()
            .is_some_and(|task| !task.paused.is_empty())
    })
    .await?;

    clusters.source.delete_records("orders", 0, 3);

    clusters.expect_copied("us.orders", 0, &["a", "c"]).await?;
    let status = expect_status(&flow, "going on", |status| {
        status.tasks[0].paused.is_empty()
    });
    assert_eq!(status.await?.counters().lost_records, 2);
    stop(flow).await;
    Ok(())
}
