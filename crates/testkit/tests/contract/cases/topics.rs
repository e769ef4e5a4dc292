//! Metadata, CreateTopics, CreatePartitions, DeleteTopics.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest,
    TopicName,
};
use testkit::wire::{Wire, text};
use uuid::Uuid;

use crate::lab::{Lab, METADATA, creatable, create, describe, expect};

super::cases! {
    a_topic_is_created_with_what_was_asked,
    topics_that_kafka_refuses_are_refused,
    validation_alone_creates_nothing,
    a_topic_named_twice_is_refused,
    partitions_are_assigned_by_hand,
    metadata_names_brokers_leaders_and_ids,
    unknown_topics_are_not_created_by_asking,
    topics_grow,
    topics_are_deleted_by_name_and_by_id,
    a_topic_that_is_made_again_has_another_id,
}

async fn a_topic_is_created_with_what_was_asked(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let name = lab.new_name();
    let settings = [("retention.ms", "1234567"), ("max.message.bytes", "2000")];

    let created = create(&mut wire, creatable(&name, 3, 2, &settings)).await?;

    expect("code", created.error_code, 0)?;
    expect(
        "counts",
        (created.num_partitions, created.replication_factor),
        (3, 2),
    )?;
    ensure!(!created.topic_id.is_nil(), "the topic has an id");
    let configs = created.configs.context("the answer has the settings")?;
    let own = configs
        .iter()
        .find(|config| &*config.name == "retention.ms");
    let own = own.context("retention.ms in the answer")?;
    expect(
        "own setting",
        (own.value.as_deref(), own.config_source),
        (Some("1234567"), 1),
    )?;
    let default = configs
        .iter()
        .find(|config| &*config.name == "cleanup.policy");
    expect(
        "default setting",
        default.context("cleanup.policy")?.config_source,
        5,
    )
}

async fn topics_that_kafka_refuses_are_refused(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let bench = lab.bench(&[]).await?;
    let dashed = lab.new_name().replace('-', "_");
    let dotted = TopicName(text(dashed.replace('_', ".")));
    create(&mut wire, creatable(&dotted, 1, 1, &[])).await?;
    let named = |name: &str| creatable(&TopicName(text(name)), 1, 1, &[]);
    let fresh = || lab.new_name();

    let rows: Vec<(&str, CreatableTopic, i16)> = vec![
        ("exists", creatable(&bench.topic, 1, 1, &[]), 36),
        ("a space in the name", named("a b"), 17),
        ("an empty name", named(""), 17),
        ("a dot", named("."), 17),
        ("two dots", named(".."), 17),
        ("250 letters", named(&"a".repeat(250)), 17),
        (
            "249 letters",
            named(&format!("{:a<249}", &*lab.new_name())),
            0,
        ),
        ("dot against underscore", named(&dashed), 17),
        ("no partitions", creatable(&fresh(), 0, 1, &[]), 37),
        ("-2 partitions", creatable(&fresh(), -2, 1, &[]), 37),
        ("default partitions", creatable(&fresh(), -1, -1, &[]), 0),
        ("no replicas", creatable(&fresh(), 1, 0, &[]), 38),
        (
            "more replicas than brokers",
            creatable(&fresh(), 1, 3, &[]),
            38,
        ),
        (
            "an unknown setting",
            creatable(&fresh(), 1, 1, &[("no.such", "1")]),
            40,
        ),
        (
            "a wrong number",
            creatable(&fresh(), 1, 1, &[("retention.ms", "x")]),
            40,
        ),
        (
            "a wrong policy",
            creatable(&fresh(), 1, 1, &[("cleanup.policy", "x")]),
            40,
        ),
        (
            "a small segment",
            creatable(&fresh(), 1, 1, &[("segment.bytes", "1000")]),
            40,
        ),
        (
            "a wrong codec",
            creatable(&fresh(), 1, 1, &[("compression.type", "rar")]),
            40,
        ),
        (
            "a wrong boolean",
            creatable(&fresh(), 1, 1, &[("preallocate", "yes")]),
            40,
        ),
    ];
    let mut wrong = Vec::new();
    for (what, topic, expected) in rows {
        let result = create(&mut wire, topic).await?;
        if result.error_code != expected {
            let message = result.error_message.as_deref().unwrap_or_default();
            wrong.push(format!(
                "{what}: {} ({message}), not {expected}",
                result.error_code
            ));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

async fn validation_alone_creates_nothing(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let name = lab.new_name();
    let request = CreateTopicsRequest::default()
        .with_topics(vec![creatable(&name, 2, 1, &[])])
        .with_timeout_ms(10_000)
        .with_validate_only(true);

    let response = wire.call(&request, 7).await?;

    expect("code", response.topics[0].error_code, 0)?;
    expect("partitions", response.topics[0].num_partitions, 2)?;
    expect(
        "metadata",
        describe(&mut wire, &name).await?.0.error_code,
        3,
    )
}

async fn a_topic_named_twice_is_refused(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let name = lab.new_name();
    let twice = vec![creatable(&name, 1, 1, &[]), creatable(&name, 2, 1, &[])];

    let request = CreateTopicsRequest::default()
        .with_topics(twice)
        .with_timeout_ms(10_000);
    let response = wire.call(&request, 7).await?;

    let codes = response.topics.iter().map(|topic| topic.error_code);
    ensure!(
        codes.clone().count() > 0 && codes.clone().all(|code| code == 42),
        "{response:?}"
    );
    Ok(())
}

async fn partitions_are_assigned_by_hand(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let assign = |index, brokers: &[i32]| {
        CreatableReplicaAssignment::default()
            .with_partition_index(index)
            .with_broker_ids(brokers.iter().copied().map(BrokerId).collect())
    };
    let topic = |assignments| creatable(&lab.new_name(), -1, -1, &[]).with_assignments(assignments);

    let good = create(
        &mut wire,
        topic(vec![assign(0, &[2, 1]), assign(1, &[1, 2])]),
    )
    .await?;
    let no_such_broker = create(&mut wire, topic(vec![assign(0, &[9])])).await?;
    let hole = create(&mut wire, topic(vec![assign(0, &[1]), assign(2, &[1])])).await?;

    expect("code", good.error_code, 0)?;
    expect(
        "counts",
        (good.num_partitions, good.replication_factor),
        (2, 2),
    )?;
    expect("a broker that is not there", no_such_broker.error_code, 39)?;
    expect("a hole", hole.error_code, 39)
}

async fn metadata_names_brokers_leaders_and_ids(lab: &Lab) -> Result<()> {
    let bench = lab.bench_of(3, 2, &[]).await?;
    let mut wire = lab.wire().await?;

    let (topic, response) = describe(&mut wire, &bench.topic).await?;

    let mut ids: Vec<i32> = response
        .brokers
        .iter()
        .map(|broker| broker.node_id.0)
        .collect();
    ids.sort_unstable();
    expect("brokers", ids, vec![1, 2])?;
    ensure!(
        response.cluster_id.is_some_and(|id| !id.is_empty()),
        "the cluster has an id"
    );
    expect("topic id", topic.topic_id, bench.id)?;
    expect("partitions", topic.partitions.len(), 3)?;
    for partition in &topic.partitions {
        expect("replicas", partition.replica_nodes.len(), 2)?;
        ensure!(
            partition.replica_nodes.contains(&partition.leader_id),
            "{partition:?}"
        );
        expect("epoch", partition.leader_epoch, 0)?;
    }
    let by_id = MetadataRequestTopic::default()
        .with_topic_id(bench.id)
        .with_name(None);
    let unknown = by_id.clone().with_topic_id(Uuid::from_u128(42));
    let request = MetadataRequest::default().with_topics(Some(vec![by_id, unknown]));
    let response = wire.call(&request, METADATA).await?;
    let known = response
        .topics
        .iter()
        .find(|topic| topic.topic_id == bench.id);
    let known = known.context("the topic by its id")?;
    expect(
        "by id",
        (known.error_code, known.name.clone()),
        (0, Some(bench.topic.clone())),
    )?;
    let unknown = response
        .topics
        .iter()
        .find(|topic| topic.topic_id == Uuid::from_u128(42));
    expect(
        "by an unknown id",
        unknown.context("the unknown id")?.error_code,
        100,
    )
}

async fn unknown_topics_are_not_created_by_asking(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let name = lab.new_name();

    expect("unknown", describe(&mut wire, &name).await?.0.error_code, 3)?;
    expect(
        "still unknown",
        describe(&mut wire, &name).await?.0.error_code,
        3,
    )?;
    let illegal = TopicName(text("a b"));
    expect(
        "illegal",
        describe(&mut wire, &illegal).await?.0.error_code,
        17,
    )
}

async fn grow(wire: &mut Wire, topic: &TopicName, count: i32) -> Result<i16> {
    let topic = CreatePartitionsTopic::default()
        .with_name(topic.clone())
        .with_count(count)
        .with_assignments(None);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000);
    Ok(wire.call(&request, 3).await?.results[0].error_code)
}

async fn topics_grow(lab: &Lab) -> Result<()> {
    let bench = lab.bench_of(2, 1, &[]).await?;
    let mut wire = lab.wire().await?;

    expect("fewer", grow(&mut wire, &bench.topic, 1).await?, 37)?;
    expect("as many", grow(&mut wire, &bench.topic, 2).await?, 37)?;
    expect(
        "unknown topic",
        grow(&mut wire, &lab.new_name(), 2).await?,
        3,
    )?;
    expect("more", grow(&mut wire, &bench.topic, 4).await?, 0)?;
    until(async || {
        let (topic, _) = describe(&mut wire, &bench.topic).await?;
        Ok(topic.partitions.len() == 4)
    })
    .await
}

/// Waits until brokers have heard of a change.
async fn until(mut condition: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let mut tries = 0..200;
    while !condition().await? {
        tries.next().context("the change is never seen")?;
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Ok(())
}

async fn delete(wire: &mut Wire, name: Option<&TopicName>, id: Uuid) -> Result<i16> {
    let state = DeleteTopicState::default()
        .with_name(name.cloned())
        .with_topic_id(id);
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(10_000);
    Ok(wire.call(&request, 6).await?.responses[0].error_code)
}

async fn topics_are_deleted_by_name_and_by_id(lab: &Lab) -> Result<()> {
    let (first, second) = (lab.bench(&[]).await?, lab.bench(&[]).await?);
    let mut wire = lab.wire().await?;

    expect(
        "by name",
        delete(&mut wire, Some(&first.topic), Uuid::nil()).await?,
        0,
    )?;
    expect("by id", delete(&mut wire, None, second.id).await?, 0)?;
    for name in [&first.topic, &second.topic] {
        until(async || Ok(describe(&mut wire, name).await?.0.error_code == 3)).await?;
    }
    expect(
        "again by name",
        delete(&mut wire, Some(&first.topic), Uuid::nil()).await?,
        3,
    )?;
    expect(
        "again by id",
        delete(&mut wire, None, second.id).await?,
        100,
    )
}

async fn a_topic_that_is_made_again_has_another_id(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut wire = lab.wire().await?;
    expect(
        "delete",
        delete(&mut wire, Some(&bench.topic), Uuid::nil()).await?,
        0,
    )?;
    until(async || Ok(describe(&mut wire, &bench.topic).await?.0.error_code == 3)).await?;

    let again = create(&mut wire, creatable(&bench.topic, 1, 1, &[])).await?;

    expect("code", again.error_code, 0)?;
    ensure!(again.topic_id != bench.id, "the id is another one");
    Ok(())
}
