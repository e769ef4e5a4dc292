//! Source topics that are deleted and made again by the same name: what they held before says
//! nothing of what they hold now.

use std::time::Duration;

use anyhow::Result;

use crate::support::{Clusters, expect_status, stop};

#[tokio::test(start_paused = true)]
async fn a_topic_made_anew_while_nobody_looked_is_copied_from_its_first_record() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;
    stop(flow).await;

    clusters.source.delete_topic("orders");
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["c", "d", "e"]).await?;
    let flow = clusters.mirror("")?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c", "d", "e"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_left_and_was_made_anew_is_copied_from_its_first_record() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    let flow = clusters.mirror("refresh.topics.interval.seconds = 1")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    clusters.source.delete_topic("orders");
    expect_status(&flow, "without topics", |status| status.topics == 0).await?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["c", "d", "e"]).await?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c", "d", "e"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_a_topic_was_made_anew_loses_nothing_of_the_new_one() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b", "c"]).await?;
    let flow = clusters.mirror("refresh.topics.interval.seconds = 1")?;
    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c"])
        .await?;
    clusters.source.delete_topic("orders");
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["d", "e"]).await?;
    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c", "d", "e"])
        .await?;

    drop(flow);
    tokio::time::sleep(Duration::from_secs(1)).await;
    clusters.produce("orders", 0, &["f"]).await?;
    let flow = clusters.mirror("")?;

    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c", "d", "e", "f"])
        .await?;
    stop(flow).await;
    Ok(())
}
