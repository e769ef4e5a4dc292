//! The topic that positions are kept in: made if it is missing, refused if it would lose them.

use std::collections::BTreeMap;

use twinlog_core::config::flow::InternalTopic;
use twinlog_core::ids::ClusterAlias;
use twinlog_kafka::admin::{ConfigResource, NewTopic, create_topics, describe_configs};
use twinlog_kafka::client::Client;
use twinlog_kafka::error::{Class, Error, ErrorCode, Result};
use twinlog_kafka::metadata::Topics;

use super::copies::{Copies, Shortage};

/// Whether positions can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// They can.
    Ready,
    /// They must not be, for this reason.
    Refused(String),
    /// They cannot be until somebody acts.
    Blocked(Shortage),
}

/// Makes sure that the topic is there, in the cluster of this alias. It must not be used without
/// compaction: its records, positions among them, would be deleted by age
/// (`KafkaTopicBasedBackingStore.verifyTopicCleanupPolicyOnlyCompact`).
///
/// # Errors
/// Those of reaching the cluster, and of making the topic where trying again may help.
pub async fn ensure(
    client: &Client,
    alias: &ClusterAlias,
    topic: &InternalTopic,
) -> Result<Readiness> {
    let named = Topics::Named([topic.name.clone()].into());
    let metadata = client.refresh(&named).await?;
    let exists = metadata
        .topic(&topic.name)
        .is_some_and(|topic| !topic.partitions.is_empty());
    if exists {
        return check_policy(client, topic).await;
    }
    let new = NewTopic {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX)),
        replication_factor: topic.replication_factor.as_i16(),
        configs: BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]),
    };
    let mut results = create_topics(client, std::slice::from_ref(&new)).await?;
    match results.remove(&topic.name) {
        Some(Ok(_)) => tracing::info!(topic = %topic.name, "offsets topic created"),
        Some(Err(error)) if error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) => {}
        Some(Err(error)) => {
            let brokers = client.metadata().brokers.len();
            return blocked(error, alias, topic, brokers).map(Readiness::Blocked);
        }
        None => {
            let item = topic.name.to_string();
            return Err(Error::Unanswered { item });
        }
    }
    client.refresh(&named).await?;
    Ok(Readiness::Ready)
}

/// What a person must do so that the topic can be made; the error itself if waiting may do.
fn blocked(
    error: Error,
    alias: &ClusterAlias,
    topic: &InternalTopic,
    brokers: usize,
) -> Result<Shortage> {
    let copies = Copies {
        factor: topic.replication_factor,
        key: "offset.storage.replication.factor",
        scope: alias.to_string(),
    };
    if let Some(shortage) = copies.shortage(&error, brokers) {
        return Ok(shortage);
    }
    match error.class() {
        Class::Refused | Class::Authorization => Ok(Shortage {
            reason: error.to_string(),
            remedy: format!(
                "let topic {} be created, or create it with cleanup.policy=compact; it is tried again",
                topic.name
            ),
        }),
        _ => Err(error),
    }
}

async fn check_policy(client: &Client, topic: &InternalTopic) -> Result<Readiness> {
    let resource = ConfigResource::Topic(topic.name.clone());
    let mut described = describe_configs(client, std::slice::from_ref(&resource)).await?;
    let settings = match described.remove(&resource) {
        Some(Ok(settings)) => settings,
        // Whoever may not look must trust.
        Some(Err(error)) if error.class() == Class::Authorization => return Ok(Readiness::Ready),
        Some(Err(error)) => return Err(error),
        None => return Ok(Readiness::Ready),
    };
    let policy = settings
        .iter()
        .find(|setting| setting.name == "cleanup.policy");
    let policy = policy
        .and_then(|setting| setting.value.as_deref())
        .unwrap_or("delete");
    if policy == "compact" {
        return Ok(Readiness::Ready);
    }
    Ok(Readiness::Refused(format!(
        "topic {} on the target has cleanup.policy={policy}, which would delete stored positions: \
         set it to compact, or name another topic in offset.storage.topic",
        topic.name
    )))
}
