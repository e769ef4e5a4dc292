//! Brokers that die, freeze and come back.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::{RealKafka, eventually_async};
use twinlog_core::ids::TopicPartition;
use twinlog_kafka::client::Client;
use twinlog_kafka::error::Error;
use twinlog_kafka::metadata::Topics;
use twinlog_kafka::retry::while_retriable;
use twinlog_kafka::topic_log::{KeyValue, append, read_to_end};

use super::{client, config, leader, make_topic, retry};

/// Long enough for a cluster on a busy machine to elect.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn writing_and_reading_go_on_after_the_leader_was_killed() -> Result<()> {
    let mut cluster = RealKafka::builder().brokers(3).quick_failover().start()?;
    let client = client(&cluster);
    let topic = make_topic(&client, "led", 1, 3).await;
    let partition = TopicPartition::new(topic.clone(), 0);
    let record = |n: usize| -> KeyValue { (format!("key-{n}").into(), Some("v".into())) };
    append(
        &client,
        &topic,
        &[record(0)],
        1,
        &mut retry(),
        while_retriable,
    )
    .await?;
    let before = leader(&client, &partition).await;

    cluster.kill(usize::try_from(before.broker)?)?;
    let mut retry_after = retry();
    let rest = [record(1), record(2)];
    let appended = append(&client, &topic, &rest, 2, &mut retry_after, while_retriable);
    tokio::time::timeout(PATIENCE, appended).await??;
    let read = read_to_end(&client, &topic, &mut retry(), while_retriable).await?;
    let after = leader(&client, &partition).await;

    let keys: BTreeSet<_> = read.into_iter().filter_map(|record| record.key).collect();
    assert_eq!(keys.len(), 3);
    assert_ne!(after.broker, before.broker);
    assert!(after.epoch > before.epoch, "{before:?} {after:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_costs_a_timeout_and_is_used_again_when_it_wakes() -> Result<()> {
    let mut cluster = RealKafka::start()?;
    let mut config = config(&cluster);
    config.request_timeout = Duration::from_secs(2);
    let client = Client::new(config);
    client.refresh(&Topics::None).await?;

    cluster.freeze(1)?;
    let frozen = client.refresh(&Topics::None).await;
    cluster.thaw(1)?;

    let Err(Error::NoBroker { cause, .. }) = frozen else {
        panic!("{frozen:?}");
    };
    assert!(
        matches!(cause.as_deref(), Some(Error::TimedOut { .. })),
        "{cause:?}"
    );
    eventually_async(PATIENCE, async || {
        client.refresh(&Topics::None).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_away_is_found_again() -> Result<()> {
    let mut cluster = RealKafka::start()?;
    let client = client(&cluster);
    client.refresh(&Topics::None).await?;

    cluster.kill(1)?;
    let away = client.refresh(&Topics::None).await;
    cluster.restart(1)?;

    ensure!(
        away.is_err_and(|error| error.is_retriable()),
        "a dead cluster answered"
    );
    eventually_async(PATIENCE, async || {
        client.refresh(&Topics::None).await?;
        Ok(())
    })
    .await
}
