//! The admin calls against one broker.

use std::collections::BTreeMap;

use anyhow::Result;
use testkit::shared_pair;
use twinlog_core::ids::{Topic, TopicId, TopicPartition};
use twinlog_kafka::admin::{
    ConfigChange, ConfigResource, ConfigSource, NewTopic, OffsetQuery, View, create_partitions,
    create_topics, delete_records, delete_topics, describe_cluster, describe_configs,
    describe_producers, end_offsets_for_epochs, incremental_alter_configs, init_producer_id,
    list_offsets, validate_topics,
};
use twinlog_kafka::error::{Class, Error, ErrorCode};
use twinlog_kafka::fetch::Isolation;
use twinlog_kafka::metadata::Topics;
use twinlog_kafka::retry::while_retriable;
use twinlog_kafka::topic_log::append;

use super::{client, make_topic, retry};

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_made_grown_and_deleted_as_asked() -> Result<()> {
    let client = client(&shared_pair()?.source);
    let topic = Topic::from("admin-life");
    let new = NewTopic {
        name: topic.clone(),
        partitions: 2,
        replication_factor: -1,
        configs: BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]),
    };
    let bad = NewTopic {
        name: "admin life".into(),
        ..new.clone()
    };

    validate_topics(&client, std::slice::from_ref(&new)).await?[&topic]
        .as_ref()
        .unwrap();
    let after_validation = client
        .refresh(&Topics::All)
        .await?
        .topics
        .contains_key(&topic);
    let made = create_topics(&client, &[new.clone(), bad.clone()]).await?;
    let again = create_topics(&client, &[new]).await?;
    create_partitions(&client, [(topic.clone(), 5)]).await?[&topic]
        .as_ref()
        .unwrap();
    let shrunk = create_partitions(&client, [(topic.clone(), 3)]).await?;
    let grown = client.refresh(&Topics::All).await?.topics[&topic]
        .partitions
        .len();
    delete_topics(&client, [topic.clone()]).await?[&topic]
        .as_ref()
        .unwrap();
    let deleted_twice = delete_topics(&client, [topic.clone()]).await?;

    assert!(!after_validation, "validation made the topic");
    assert_ne!(made[&topic].as_ref().unwrap().id, TopicId::ZERO);
    let code = |result: &Result<_, Error>| result.as_ref().err().and_then(Error::code);
    assert_eq!(
        made[&bad.name].as_ref().unwrap_err().code(),
        Some(ErrorCode::INVALID_TOPIC_EXCEPTION)
    );
    assert_eq!(
        again[&topic].as_ref().unwrap_err().code(),
        Some(ErrorCode::TOPIC_ALREADY_EXISTS)
    );
    assert_eq!(code(&shrunk[&topic]), Some(ErrorCode::INVALID_PARTITIONS));
    assert_eq!(grown, 5);
    assert_eq!(
        code(&deleted_twice[&topic]),
        Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_with_their_origin_and_changed_one_by_one() -> Result<()> {
    let client = client(&shared_pair()?.source);
    let topic = make_topic(&client, "admin-settings", 1, 1).await;
    let resource = ConfigResource::Topic(topic);
    let set = |name: &str, value: &str| ConfigChange::Set(name.to_owned(), value.to_owned());
    let read = async |name: &str| -> Result<_> {
        let all = describe_configs(&client, std::slice::from_ref(&resource)).await?;
        let entries = all[&resource].as_ref().unwrap();
        let entry = entries.iter().find(|entry| entry.name == name).unwrap();
        Ok((entry.value.clone().unwrap(), entry.source))
    };

    let changes = vec![
        set("retention.ms", "1234"),
        set("max.message.bytes", "5000000"),
    ];
    incremental_alter_configs(&client, [(resource.clone(), changes)]).await?[&resource]
        .as_ref()
        .unwrap();
    let changed = read("retention.ms").await?;
    let back = vec![ConfigChange::Delete("retention.ms".to_owned())];
    incremental_alter_configs(&client, [(resource.clone(), back)]).await?[&resource]
        .as_ref()
        .unwrap();
    let (after, other) = (
        read("retention.ms").await?,
        read("max.message.bytes").await?,
    );
    let wrong = vec![set("retention.ms", "soon")];
    let refused = incremental_alter_configs(&client, [(resource.clone(), wrong)]).await?;
    let broker = ConfigResource::Broker(1);
    let of_broker = describe_configs(&client, std::slice::from_ref(&broker)).await?;

    assert_eq!(changed, ("1234".to_owned(), ConfigSource::Topic));
    assert_ne!(after.1, ConfigSource::Topic);
    assert_eq!(other, ("5000000".to_owned(), ConfigSource::Topic));
    let Err(Error::Broker { code, message, .. }) = &refused[&resource] else {
        panic!("{refused:?}");
    };
    assert_eq!(*code, ErrorCode::INVALID_CONFIG);
    assert!(
        message
            .as_ref()
            .is_some_and(|words| words.contains("retention.ms")),
        "{message:?}"
    );
    let entries = of_broker[&broker].as_ref().unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| entry.name == "message.max.bytes" && entry.value.is_some())
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_partition_has_its_own_offsets_and_its_own_error() -> Result<()> {
    let client = client(&shared_pair()?.source);
    let topic = make_topic(&client, "admin-offsets", 1, 1).await;
    let records: Vec<_> = (0..10).map(|n| (format!("key-{n}").into(), None)).collect();
    append(
        &client,
        &topic,
        &records,
        1_700_000_000_000,
        &mut retry(),
        while_retriable,
    )
    .await?;
    let there = TopicPartition::new(topic.clone(), 0);
    let missing = TopicPartition::new("admin-no-such-topic", 0);
    let ask = async |query, view| {
        let queries = [(there.clone(), query), (missing.clone(), query)];
        let mut listed = list_offsets(&client, queries, view).await;
        assert!(matches!(listed[&missing], Err(Error::UnknownTopic { .. })));
        listed.remove(&there).unwrap().map(|listed| listed.offset)
    };
    let consumer = View::Consumer(Isolation::ReadCommitted);

    let cut = delete_records(&client, [(there.clone(), 4)]).await;
    let ends = end_offsets_for_epochs(&client, [(there.clone(), 0)]).await;

    assert_eq!(cut[&there].as_ref().unwrap(), &4);
    assert_eq!(ask(OffsetQuery::Earliest, consumer).await?, Some(4));
    assert_eq!(ask(OffsetQuery::Latest, consumer).await?, Some(10));
    assert_eq!(ask(OffsetQuery::Latest, View::Leader).await?, Some(10));
    assert_eq!(
        ask(OffsetQuery::AtOrAfter(1_700_000_000_000), consumer).await?,
        Some(4)
    );
    assert_eq!(
        ask(OffsetQuery::AtOrAfter(1_700_000_000_001), consumer).await?,
        None
    );
    assert_eq!(ends[&there].as_ref().unwrap().end_offset, 10);
    assert_eq!(
        describe_producers(&client, [there.clone()]).await[&there]
            .as_ref()
            .unwrap(),
        &[]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_for_a_topic_does_not_make_it() -> Result<()> {
    let cluster = &shared_pair()?.source;
    let client = client(cluster);
    let topic = Topic::from("admin-only-asked-for");

    let named = Topics::Named([topic.clone()].into());
    let metadata = client.refresh(&named).await?;
    let failed = client.leader(&TopicPartition::new(topic.clone(), 0)).await;

    assert!(!metadata.topics.contains_key(&topic));
    assert_eq!(failed.unwrap_err().class(), Class::RefreshMetadata);
    assert!(!cluster.admin().topics()?.contains(&topic.to_string()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_an_id_and_gives_out_producer_ids() -> Result<()> {
    let pair = shared_pair()?;
    let (source, target) = (client(&pair.source), client(&pair.target));

    let ids = (
        describe_cluster(&source).await?.cluster_id,
        describe_cluster(&target).await?.cluster_id,
    );
    let first = retry()
        .run("get an id", while_retriable, || init_producer_id(&source))
        .await?;
    let second = init_producer_id(&source).await?;

    assert!(ids.0.is_some() && ids.0 != ids.1, "{ids:?}");
    assert!(
        first.id != second.id && first.epoch == 0,
        "{first:?} {second:?}"
    );
    Ok(())
}
