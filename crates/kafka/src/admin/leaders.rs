//! Asking the leader of each partition, all leaders at once.

use std::collections::BTreeMap;
use std::future::Future;

use tokio::task::JoinSet;
use twinlog_core::ids::{Topic, TopicPartition};

use super::Results;
use crate::client::{Client, Purpose};
use crate::connection::Connection;
use crate::error::{Class, Error, Result};
use crate::metadata::{Leader, Topics};

/// One partition with what is asked of it.
pub(super) struct Asked<I> {
    pub(super) partition: TopicPartition,
    pub(super) leader: Leader,
    pub(super) item: I,
}

/// What one broker answered.
pub(super) type Answered<V> = Vec<(TopicPartition, Result<V>)>;

/// Groups `items` by leader, lets `ask` send one request to each, and gathers a result for every
/// partition.
pub(super) async fn ask_leaders<I, V, F, A>(
    client: &Client,
    items: impl IntoIterator<Item = (TopicPartition, I)>,
    ask: F,
) -> Results<TopicPartition, V>
where
    V: Send + 'static,
    F: Fn(Connection, Vec<Asked<I>>) -> A,
    A: Future<Output = Result<Answered<V>>> + Send + 'static,
{
    let mut results = BTreeMap::new();
    let mut leaders: BTreeMap<i32, Vec<Asked<I>>> = BTreeMap::new();
    let items: Vec<_> = items.into_iter().collect();
    let topics = items
        .iter()
        .map(|(partition, _)| partition.topic.clone())
        .collect();
    if let Err(error) = client.current(&Topics::Named(topics)).await {
        let failed = items
            .into_iter()
            .map(|(partition, _)| (partition, Err(error.clone())));
        return failed.collect();
    }
    for (partition, item) in items {
        match client.leader(&partition).await {
            Ok(leader) => leaders.entry(leader.broker).or_default().push(Asked {
                partition,
                leader,
                item,
            }),
            Err(error) => {
                results.insert(partition, Err(error));
            }
        }
    }
    let mut brokers = JoinSet::new();
    for (broker, asked) in leaders {
        let partitions: Vec<_> = asked.iter().map(|asked| asked.partition.clone()).collect();
        match client.connection(broker, Purpose::General).await {
            Ok(connection) => {
                let answer = ask(connection, asked);
                brokers.spawn(async move { (partitions, answer.await) });
            }
            Err(error) => fail_all(&mut results, partitions, &error),
        }
    }
    while let Some(joined) = brokers.join_next().await {
        match joined {
            Ok((partitions, Ok(answered))) => take(&mut results, partitions, answered),
            Ok((partitions, Err(error))) => fail_all(&mut results, partitions, &error),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
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

fn fail_all<V>(
    results: &mut Results<TopicPartition, V>,
    partitions: Vec<TopicPartition>,
    error: &Error,
) {
    for partition in partitions {
        results.insert(partition, Err(error.clone()));
    }
}

/// A partition that the broker left out gets an error of its own: silence must not read as success.
fn take<V>(
    results: &mut Results<TopicPartition, V>,
    partitions: Vec<TopicPartition>,
    answered: Answered<V>,
) {
    let mut answered: BTreeMap<_, _> = answered.into_iter().collect();
    for partition in partitions {
        let result = answered.remove(&partition).unwrap_or_else(|| {
            Err(Error::Unanswered {
                item: partition.to_string(),
            })
        });
        results.insert(partition, result);
    }
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
