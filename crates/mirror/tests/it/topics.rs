//! Topics on the target follow those of the source, without disturbing what runs.

use anyhow::Result;
use mini_kafka::Versions;
use twinlog_core::config::flow::ReplicationFactor;
use twinlog_mirror::status::FlowState;

use crate::support::{Clusters, expect_status, stop};

#[tokio::test(start_paused = true)]
async fn new_topics_and_partitions_reach_the_running_task() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("first", 1, 1);
    let flow = clusters.mirror("")?;
    clusters.produce("first", 0, &["a"]).await?;
    clusters.expect_copied("us.first", 0, &["a"]).await?;

    clusters.source.create_topic("second", 3, 1);
    clusters.produce("second", 2, &["b"]).await?;
    clusters.expect_copied("us.second", 2, &["b"]).await?;
    clusters.produce("first", 0, &["c"]).await?;
    clusters.expect_copied("us.first", 0, &["a", "c"]).await?;

    let status = stop(flow).await;
    assert_eq!(status.topics, 2);
    assert_eq!(status.tasks.len(), 1);
    assert_eq!(status.tasks[0].generation, 1);
    assert_eq!(status.counters().settlings, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn partitions_are_spread_over_tasks() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 5, 1);

    let flow = clusters.mirror("tasks.max = 2")?;
    let status = expect_status(&flow, "running everywhere", |status| {
        status
            .tasks
            .iter()
            .map(|task| task.running + task.starting)
            .sum::<usize>()
            == 5
    })
    .await?;

    assert_eq!(status.tasks.len(), 2);
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_new_topic_has_its_final_settings_before_its_first_record() -> Result<()> {
    let clusters = Clusters::start(1)?;
    let settings = [
        ("cleanup.policy", "compact"),
        ("max.message.bytes", "5000000"),
    ];
    clusters.source.create_topic_with("state", 1, 1, &settings);

    let flow = clusters.mirror("")?;
    expect_status(&flow, "mirroring", |status| status.topics == 1).await?;

    let client = testkit::InMemory::client_config(&clusters.target)?;
    let client = twinlog_kafka::client::Client::new(client);
    let topic = twinlog_kafka::admin::ConfigResource::Topic("us.state".into());
    let described =
        twinlog_kafka::admin::describe_configs(&client, std::slice::from_ref(&topic)).await?;
    let entries = described[&topic].as_ref().expect("they can be read");
    for (name, value) in settings {
        let entry = entries.iter().find(|entry| entry.name == name);
        assert_eq!(entry.and_then(|entry| entry.value.as_deref()), Some(value));
    }
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn topics_of_no_interest_and_topics_that_came_from_the_target_stay() -> Result<()> {
    let clusters = Clusters::start(1)?;
    for topic in [
        "orders",
        "secret",
        "eu.orders",
        "mm2-offsets.x.internal",
        "__own",
    ] {
        clusters.source.create_topic(topic, 1, 1);
    }

    let flow = clusters.mirror("us->eu.topics.exclude = secret, .*internal")?;
    let status = expect_status(&flow, "mirroring", |status| status.topics > 0).await?;

    assert_eq!(status.topics, 1);
    assert!(clusters.target.partition("us.orders", 0).is_some());
    assert!(clusters.target.partition("us.secret", 0).is_none());
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_topic_that_cannot_be_made_does_not_keep_others() -> Result<()> {
    let clusters = Clusters::start(1)?;
    let long = "n".repeat(249);
    clusters.source.create_topic(&long, 1, 1);
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;

    let flow = clusters.mirror("")?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    let status = expect_status(&flow, "reported", |status| !status.troubles.is_empty()).await?;
    assert_eq!(status.troubles[0].topic.as_str(), long);
    assert!(status.troubles[0].reason.contains("252 characters"));
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_flow_from_a_cluster_to_itself_is_refused() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    let mut config = clusters.config("")?;
    config.target.admin = config.source.admin.clone();

    let flow = clusters.mirror_as(config);
    let refused = |state: &FlowState| matches!(state, FlowState::Refused { reason } if reason.contains("one cluster"));
    expect_status(&flow, "refused", |status| refused(&status.state)).await?;

    assert!(clusters.source.partition("us.orders", 0).is_none());
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_offsets_topic_that_would_forget_positions_is_refused() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters
        .target
        .create_topic("mm2-offsets.us.internal", 25, 1);

    let flow = clusters.mirror("")?;

    let refused = |state: &FlowState| matches!(state, FlowState::Refused { reason } if reason.contains("cleanup.policy=delete"));
    expect_status(&flow, "refused", |status| refused(&status.state)).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_quiet_topic_that_is_deleted_on_the_target_is_filled_again() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a", "b"]).await?;
    let flow = clusters.mirror("refresh.topics.interval.seconds = 5")?;
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    // Made again by the mirror itself.
    clusters.target.delete_topic("us.orders");
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    // Made again by somebody else before the mirror has noticed.
    clusters.target.delete_topic("us.orders");
    clusters.target.create_topic("us.orders", 1, 1);
    clusters.expect_copied("us.orders", 0, &["a", "b"]).await?;

    clusters.produce("orders", 0, &["c"]).await?;
    clusters
        .expect_copied("us.orders", 0, &["a", "b", "c"])
        .await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_topic_without_an_id_that_is_deleted_on_the_target_is_filled_again() -> Result<()> {
    let (source, target) = (Versions::kafka_4_3(), Versions::kafka_1_1());
    let clusters = Clusters::of_versions(1, source, target)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;
    let flow = clusters.mirror("refresh.topics.interval.seconds = 5")?;
    clusters.expect_copied("us.orders", 0, &["a"]).await?;

    clusters.target.delete_topic("us.orders");

    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn too_few_brokers_for_the_offsets_topic_block_a_flow_until_somebody_acts() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);
    clusters.produce("orders", 0, &["a"]).await?;

    let mut config = clusters.config("")?;
    config.worker.offsets_topic.replication_factor = ReplicationFactor::Copies(3);
    let flow = clusters.mirror_as(config);
    let blocked = |state: &FlowState| {
        matches!(state, FlowState::Blocked { reason, remedy }
            if reason.contains("has 1 broker and offset.storage.replication.factor is 3")
                && remedy.contains("eu.offset.storage.replication.factor"))
    };
    expect_status(&flow, "blocked", |status| blocked(&status.state)).await?;

    let compact = [("cleanup.policy", "compact")];
    let offsets = "mm2-offsets.us.internal";
    clusters.target.create_topic_with(offsets, 25, 1, &compact);
    clusters.expect_copied("us.orders", 0, &["a"]).await?;
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn too_few_brokers_for_a_topic_are_told_with_the_key_to_set() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 1, 1);

    let flow = clusters.mirror("us->eu.replication.factor = 2")?;
    let status = expect_status(&flow, "reported", |status| !status.troubles.is_empty()).await?;

    let trouble = &status.troubles[0];
    assert!(
        trouble.reason.contains("replication.factor is 2"),
        "{trouble:?}"
    );
    let remedy = trouble.remedy.as_deref().unwrap_or_default();
    assert!(
        remedy.starts_with("set replication.factor = 1"),
        "{trouble:?}"
    );
    stop(flow).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_partition_without_records_runs() -> Result<()> {
    let clusters = Clusters::start(1)?;
    clusters.source.create_topic("orders", 3, 1);
    clusters.produce("orders", 0, &["a"]).await?;

    let flow = clusters.mirror("")?;
    expect_status(&flow, "running everywhere", |status| {
        status.tasks.iter().map(|task| task.running).sum::<usize>() == 3
    })
    .await?;

    stop(flow).await;
    Ok(())
}
