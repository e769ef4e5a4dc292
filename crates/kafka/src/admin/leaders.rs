//! Asking the leader of each partition, all leaders at once.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};
use twinlog_core::ids::{Topic, TopicPartition};

use super::Results;
use crate::client::{Client, Purpose};
use crate::connection::Connection;
use crate::error::{Class, Error, Result};
use crate::metadata::{Leader, Metadata, Topics};

/// One partition with what is asked of it.
pub(super) struct Asked<I> {
    pub(super) partition: TopicPartition,
    pub(super) leader: Leader,
    pub(super) item: I,
}

/// What one broker answered.
pub(super) type Answered<V> = Vec<(TopicPartition, Result<V>)>;

/// Groups `items` by leader, lets `ask` send one request to each, all at once, and gathers a result
/// for every partition.
pub(super) async fn ask_leaders<I, V, F, A>(
    client: &Client,
    items: impl IntoIterator<Item = (TopicPartition, I)>,
    ask: F,
) -> Results<TopicPartition, V>
where
    I: Send + 'static,
    V: Send + 'static,
    F: Fn(Connection, Vec<Asked<I>>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Answered<V>>> + Send + 'static,
{
    let items: Vec<_> = items.into_iter().collect();
    let metadata = match metadata_of(client, &items).await {
        Ok(metadata) => metadata,
        Err(error) => {
            let failed = |(partition, _)| (partition, Err(error.clone()));
            return items.into_iter().map(failed).collect();
        }
    };
    let mut results = BTreeMap::new();
    let mut leaders: BTreeMap<i32, Vec<Asked<I>>> = BTreeMap::new();
    for (partition, item) in items {
        // Until it is overwritten: silence must not read as success.
        let mut result = Err(Error::Unanswered {
            item: partition.to_string(),
        });
        match metadata.require_leader(&partition) {
            Ok(leader) => leaders.entry(leader.broker).or_default().push(Asked {
                partition: partition.clone(),
                leader,
                item,
            }),
            Err(error) => result = Err(error),
        }
        results.insert(partition, result);
    }
    let mut brokers = JoinSet::new();
    for (broker, asked) in leaders {
        let (client, ask) = (client.clone(), ask.clone());
        brokers.spawn(async move {
            let partitions: Vec<_> = asked.iter().map(|asked| asked.partition.clone()).collect();
            let answered = match client.connection(broker, Purpose::General).await {
                Ok(connection) => ask(connection, asked).await,
                Err(error) => Err(error),
            };
            answered.unwrap_or_else(|error| {
                let failed = |partition| (partition, Err(error.clone()));
                partitions.into_iter().map(failed).collect()
            })
        });
    }
    while let Some(joined) = brokers.join_next().await {
        match joined.map_err(JoinError::try_into_panic) {
            Ok(answered) => results.extend(answered),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this with it.
            Err(Err(_)) => {}
        }
    }
    let moved = |result: &Result<V>| {
        let class = result.as_ref().err().map(Error::class);
        class == Some(Class::RefreshMetadata)
    };
    if results.values().any(moved) {
        client.mark_stale();
    }
    results
}

/// A snapshot that names the leaders, as far as one refresh can bring it about.
async fn metadata_of<I>(client: &Client, items: &[(TopicPartition, I)]) -> Result<Arc<Metadata>> {
    let names = items.iter().map(|(partition, _)| partition.topic.clone());
    let topics = Topics::Named(names.collect());
    let metadata = client.current(&topics).await?;
    let mut partitions = items.iter().map(|(partition, _)| partition);
    if partitions.all(|partition| metadata.leader(partition).is_some()) {
        return Ok(metadata);
    }
    client.refresh(&topics).await
}

/// Groups by topic, as most requests want it.
pub(super) fn by_topic<I>(asked: &[Asked<I>]) -> BTreeMap<&Topic, Vec<&Asked<I>>> {
    let mut topics: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for asked in asked {
        topics
            .entry(&asked.partition.topic)
            .or_default()
            .push(asked);
    }
    topics
}
