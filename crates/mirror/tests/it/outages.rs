//! Clusters that are away, and positions that may not be stored: states with a reason, told once.

use std::time::Duration;

use anyhow::Result;
use mini_kafka::{ApiKey, Fault, ResponseError, Unflushed};
use tokio::time::Instant;
use twinlog_mirror::status::{FlowStatus, Unfinished};

use crate::log::Log;
use crate::support::{Clusters, expect_status, stop};

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_away_is_a_state_with_one_line_at_its_beginning_and_one_at_its_end()
-> Result<()> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    for (cluster, away) in [
        (&clusters.source, (true, false)),
        (&clusters.target, (false, true)),
    ] {
        let is = |status: &FlowStatus| (status.source_away.is_some(), status.target_away.is_some());
        cluster.crash(1, Unflushed::Kept);
        expect_status(&flow, "away", |status| is(status) == away).await?;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let status = expect_status(&flow, "away", |status| is(status) == away).await?;
        let outage = status.source_away.or(status.target_away);
        assert!(
            outage
                .as_ref()
                .is_some_and(|away| away.since >= Duration::from_secs(60)
                    && away.reason.contains("no broker answered")),
            "{outage:?}"
        );
        cluster.restart(1).await?;
        expect_status(&flow, "back", |status| is(status) == (false, false)).await?;
    }

    clusters.produce("orders", 0, &["b"]).await?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    stop(flow).await;
    let log = log.text();
    for cluster in ["us", "eu"] {
        let begins = format!("no broker of this cluster answers: waiting for it cluster={cluster}");
        let ends = format!("the cluster answers again cluster={cluster}");
        assert_eq!(log.matches(&begins).count(), 1, "{log}");
        assert_eq!(log.matches(&ends).count(), 1, "{log}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn positions_that_may_not_be_stored_are_told_once_with_what_to_grant() -> Result<()> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("eu.offset.flush.interval.ms = 1000")?;
    clusters.produce("orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    let write = clusters.target.on(ApiKey::Produce);
    let denied = Fault::Error(ResponseError::TopicAuthorizationFailed);
    write.topic("mm2-offsets.us.internal").always(denied);
    clusters.produce("orders", 0, &["b"]).await?;
    let trouble = |status: &FlowStatus| {
        let mut tasks = status.tasks.iter();
        tasks.find_map(|task| task.storing_trouble.clone())
    };
    let status = expect_status(&flow, "told", |status| trouble(status).is_some()).await?;
    let told = trouble(&status).expect("it was there");
    assert!(told.remedy.contains("grant READ, WRITE"), "{told:?}");
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    clusters.target.clear_faults();

    expect_status(&flow, "stored", |status| trouble(status).is_none()).await?;
    stop(flow).await;
    let log = log.text();
    assert_eq!(log.matches("positions are not stored").count(), 1, "{log}");
    assert_eq!(
        log.matches("positions are stored again").count(),
        1,
        "{log}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn partitions_that_fail_for_one_reason_are_told_of_together() -> Result<()> {
    let log = Log::default();
    let _logging = log.listen();
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 300, 1);
    let look = clusters.target.on(ApiKey::ListOffsets).topic("us.orders");
    look.always(Fault::Error(ResponseError::NotLeaderOrFollower));

    let flow = clusters.mirror("")?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let questions = clusters.target.requests(ApiKey::ListOffsets);
    assert!(questions < 3_000, "{questions} questions in a minute");
    clusters.target.clear_faults();
    expect_status(&flow, "running", |status| {
        status.tasks.iter().map(|task| task.running).sum::<usize>() == 300
    })
    .await?;

    stop(flow).await;
    let log = log.text();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("still failing"))
        .collect();
    assert!((1..=10).contains(&told.len()), "{told:#?}");
    assert!(
        told.iter().any(|line| line.contains("partitions=300")),
        "{told:#?}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_cut_short_says_what_was_left() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 2, 1);
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    let produce = clusters.target.on(ApiKey::Produce);
    produce.always(Fault::Silence);
    clusters.produce("orders", 0, &["b"]).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let status = flow.shutdown(Instant::now() + Duration::from_secs(5)).await;

    let left = Unfinished {
        unanswered: 1,
        unstored: 1,
    };
    assert_eq!(status.unfinished(), left);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn positions_are_stored_at_a_stop_though_their_leader_has_just_moved() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let flow = clusters.mirror("")?;
    clusters.produce("orders", 0, &["a"]).await?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    let write = clusters.target.on(ApiKey::Produce);
    let moved = Fault::Error(ResponseError::NotLeaderOrFollower);
    write.topic("mm2-offsets.us.internal").once(moved);
    let status = stop(flow).await;

    assert_eq!(status.unfinished(), Unfinished::default());
    Ok(())
}
