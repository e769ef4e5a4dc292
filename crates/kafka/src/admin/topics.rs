//! Making, growing and deleting topics.

use std::collections::BTreeMap;

use twinlog_core::ids::{Topic, TopicId};

use super::Results;
use crate::client::Client;
use crate::error::{Class, Error, Result};
use crate::wire::create_partitions_request::CreatePartitionsTopic;
use crate::wire::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use crate::wire::delete_topics_request::DeleteTopicState;
use crate::wire::{self, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};

/// A topic to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: Topic,
    /// How many partitions; -1 for the broker's default (2.4 and later).
    pub partitions: i32,
    /// How many copies; -1 for the broker's default (2.4 and later).
    pub replication_factor: i16,
    /// Its settings, as far as they differ from the broker's.
    pub configs: BTreeMap<String, String>,
}

/// A topic that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its id, [`TopicId::ZERO`] from brokers before 2.8.
    pub id: TopicId,
}

/// Makes topics. One that exists is
/// [`ErrorCode::TOPIC_ALREADY_EXISTS`](crate::error::ErrorCode::TOPIC_ALREADY_EXISTS).
///
/// # Errors
/// Those of reaching the controller; each topic has its own besides.
pub async fn create_topics(
    client: &Client,
    topics: &[NewTopic],
) -> Result<Results<Topic, CreatedTopic>> {
    send_create(client, topics, false).await
}

/// Asks whether [`create_topics`] would succeed, without making anything.
///
/// # Errors
/// As [`create_topics`].
pub async fn validate_topics(
    client: &Client,
    topics: &[NewTopic],
) -> Result<Results<Topic, CreatedTopic>> {
    send_create(client, topics, true).await
}

async fn send_create(
    client: &Client,
    topics: &[NewTopic],
    validate_only: bool,
) -> Result<Results<Topic, CreatedTopic>> {
    let config = |(name, value): (&String, &String)| {
        CreatableTopicConfig::default()
            .with_name(wire::text(name))
            .with_value(Some(wire::text(value)))
    };
    let topics = topics.iter().map(|topic| {
        CreatableTopic::default()
            .with_name(wire::topic_name(&topic.name))
            .with_num_partitions(topic.partitions)
            .with_replication_factor(topic.replication_factor)
            .with_configs(topic.configs.iter().map(config).collect())
    });
    let request = CreateTopicsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(timeout_ms(client))
        .with_validate_only(validate_only);
    let connection = client.controller().await?;
    let response = connection.call(&request).await?;
    let results = response.topics.iter().map(|answer| {
        let name = Topic::from(answer.name.as_str());
        let message = answer.error_message.as_deref();
        let checked = Error::check(answer.error_code, message, || {
            format!("create topic {name}")
        });
        let id = wire::topic_id(answer.topic_id);
        (name, checked.map(|()| CreatedTopic { id }))
    });
    Ok(noted(client, results.collect()))
}

/// Grows topics to a total number of partitions.
///
/// # Errors
/// As [`create_topics`].
pub async fn create_partitions(
    client: &Client,
    totals: impl IntoIterator<Item = (Topic, i32)>,
) -> Result<Results<Topic, ()>> {
    let topics = totals.into_iter().map(|(topic, total)| {
        CreatePartitionsTopic::default()
            .with_name(wire::topic_name(&topic))
            .with_count(total)
            .with_assignments(None)
    });
    let request = CreatePartitionsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(timeout_ms(client));
    let connection = client.controller().await?;
    let response = connection.call(&request).await?;
    let results = response.results.iter().map(|answer| {
        let name = Topic::from(answer.name.as_str());
        let message = answer.error_message.as_deref();
        let checked = Error::check(answer.error_code, message, || {
            format!("add partitions to topic {name}")
        });
        (name, checked)
    });
    Ok(noted(client, results.collect()))
}

/// Deletes topics, by name.
///
/// # Errors
/// As [`create_topics`].
pub async fn delete_topics(
    client: &Client,
    topics: impl IntoIterator<Item = Topic>,
) -> Result<Results<Topic, ()>> {
    let connection = client.controller().await?;
    let names: Vec<_> = topics
        .into_iter()
        .map(|topic| wire::topic_name(&topic))
        .collect();
    let mut request = DeleteTopicsRequest::default().with_timeout_ms(timeout_ms(client));
    if connection.version_of::<DeleteTopicsRequest>(None)? >= 6 {
        let state = |name| DeleteTopicState::default().with_name(Some(name));
        request.topics = names.into_iter().map(state).collect();
    } else {
        request.topic_names = names;
    }
    let response = connection.call(&request).await?;
    let results = response.responses.iter().filter_map(|answer| {
        let name = Topic::from(answer.name.as_ref()?.as_str());
        let message = answer.error_message.as_deref();
        let checked = Error::check(answer.error_code, message, || {
            format!("delete topic {name}")
        });
        Some((name, checked))
    });
    Ok(noted(client, results.collect()))
}

/// How long the broker may take: less than the client waits, so that its answer comes before the
/// client gives up on the connection.
pub(super) fn timeout_ms(client: &Client) -> i32 {
    let patience = client.config().request_timeout * 2 / 3;
    i32::try_from(patience.as_millis()).unwrap_or(i32::MAX)
}

/// Passes results on, and remembers if they show that the controller moved.
fn noted<V>(client: &Client, results: Results<Topic, V>) -> Results<Topic, V> {
    let errors = results.values().filter_map(|result| result.as_ref().err());
    if errors
        .map(Error::class)
        .any(|class| class == Class::RefreshMetadata)
    {
        client.mark_stale();
    }
    results
}
