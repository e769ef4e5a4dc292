//! Reads both clusters as any consumer would, and compares them record by record.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};
use twinlog_core::config::MirrorConfig;
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_kafka::admin::{OffsetQuery, View, list_offsets};
use twinlog_kafka::batch::{self, DecodeLimits, Entry, Record};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::error::Error;
use twinlog_kafka::fetch::{
    FetchOptions, FetchPosition, FetchSession, FetchedPartition, Isolation,
};
use twinlog_kafka::metadata::Topics;

use super::clusters::Clusters;
use super::topics::TOPICS;

/// How often the target's log ends are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of one fetch.
const FETCH_BYTES_MAX: i32 = 4 << 20;

/// What the comparison found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Partitions that were compared.
    pub partitions: usize,
    /// Records that are equal on both sides.
    pub records: u64,
    /// One text for each partition that differs: its first difference.
    pub differences: Vec<String>,
}

/// Both clusters, seen through clients of their own.
pub struct Sides {
    source: Client,
    target: Client,
    /// Each partition on the source and on the target.
    pairs: Vec<(TopicPartition, TopicPartition)>,
}

impl Sides {
    /// The demo's topics on both sides, under the names that `config` gives them.
    ///
    /// # Errors
    /// When there is no flow, or a cluster can't be reached.
    pub fn of(config: &MirrorConfig, clusters: &Clusters) -> anyhow::Result<Sides> {
        let flow = config.flow("us->eu").context("no flow us->eu")?;
        let pair = |topic: &'static str, partition| {
            let upstream = TopicPartition::new(Topic::from(topic), partition);
            let downstream = TopicPartition::new(flow.remote_topic(topic), partition);
            (upstream, downstream)
        };
        let partitions = TOPICS
            .iter()
            .flat_map(|t| (0..t.partitions).map(|p| (t.name, p)));
        Ok(Sides {
            source: clusters.source_client("demo-comparer")?,
            target: clusters.target_client("demo-comparer")?,
            pairs: partitions
                .map(|(topic, partition)| pair(topic, partition))
                .collect(),
        })
    }

    /// Waits until the target's logs are as long as the source's.
    ///
    /// # Errors
    /// When nothing was added to the target for `patience`.
    pub async fn wait_until_mirrored(&self, patience: Duration) -> anyhow::Result<()> {
        let wanted = self
            .ends(&self.source, |pair| &pair.0)
            .await?
            .iter()
            .sum::<i64>();
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            // Topics that aren't there yet are no failure; they are not mirrored yet.
            let ends = self
                .ends(&self.target, |pair| &pair.1)
                .await
                .unwrap_or_default();
            let mirrored = ends.iter().sum::<i64>();
            if mirrored >= wanted {
                return Ok(());
            }
            if mirrored > seen {
                (seen, since) = (mirrored, Instant::now());
            }
            if since.elapsed() > patience {
                bail!("{mirrored} of {wanted} records were mirrored, and no more for {patience:?}");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Compares everything.
    ///
    /// # Errors
    /// When a cluster can't be read.
    pub async fn compare(&self) -> anyhow::Result<Comparison> {
        let mut comparison = Comparison::default();
        for (upstream, downstream) in &self.pairs {
            let source = read(&self.source, upstream)
                .await
                .context("read the source")?;
            let target = read(&self.target, downstream)
                .await
                .context("read the target")?;
            comparison.partitions += 1;
            match difference(&source, &target) {
                None => comparison.records += source.len() as u64,
                Some(text) => comparison.differences.push(format!("{upstream}: {text}")),
            }
        }
        Ok(comparison)
    }

    async fn ends(
        &self,
        client: &Client,
        side: fn(&(TopicPartition, TopicPartition)) -> &TopicPartition,
    ) -> anyhow::Result<Vec<i64>> {
        let partitions: Vec<_> = self.pairs.iter().map(|pair| side(pair).clone()).collect();
        let topics = partitions.iter().map(|partition| partition.topic.clone());
        client
            .refresh(&Topics::Named(topics.collect::<BTreeSet<_>>()))
            .await?;
        let mut ends = Vec::new();
        for partition in partitions {
            ends.push(offset(client, &partition, OffsetQuery::Latest).await?);
        }
        Ok(ends)
    }
}

async fn offset(
    client: &Client,
    partition: &TopicPartition,
    query: OffsetQuery,
) -> anyhow::Result<i64> {
    let view = View::Consumer(Isolation::ReadCommitted);
    let mut answer = list_offsets(client, [(partition.clone(), query)], view).await;
    let listed = answer.remove(partition).context("no answer")??;
    listed.offset.context("no offset")
}

/// All records of a partition.
async fn read(client: &Client, partition: &TopicPartition) -> anyhow::Result<Vec<Record>> {
    let mut position = offset(client, partition, OffsetQuery::Earliest).await?;
    let end = offset(client, partition, OffsetQuery::Latest).await?;
    let leader = client.leader(partition).await?;
    let connection = client.connection(leader.broker, Purpose::Fetch(0)).await?;
    let options = FetchOptions {
        isolation: Isolation::ReadCommitted,
        ..FetchOptions::default()
    };
    let mut session = FetchSession::new(options);
    let mut records = Vec::new();
    while position < end {
        let place = FetchPosition {
            topic_id: leader.topic_id,
            offset: position,
            leader_epoch: leader.epoch,
            max_bytes: None,
        };
        session.set(partition, place);
        for fetched in session
            .fetch(&connection, FETCH_BYTES_MAX, None)
            .await?
            .partitions
        {
            take(fetched, &mut position, &mut records)?;
        }
    }
    Ok(records)
}

fn take(
    fetched: FetchedPartition,
    position: &mut i64,
    records: &mut Vec<Record>,
) -> anyhow::Result<()> {
    Error::check(fetched.error.0, None, || {
        format!("fetch {}", fetched.partition)
    })?;
    for entry in batch::walk(fetched.records) {
        let Entry::Batch(batch) = entry? else {
            bail!("a batch of an old format")
        };
        let mut decoded = batch::decode(&batch, DecodeLimits::default())?;
        decoded.retain(|record| record.offset >= *position);
        *position = batch.next_offset();
        records.extend(decoded);
    }
    Ok(())
}

/// The first difference, in words. Offsets may differ: a mirror keeps the order, and the records.
fn difference(source: &[Record], target: &[Record]) -> Option<String> {
    let same = |a: &Record, b: &Record| {
        Record {
            offset: b.offset,
            ..a.clone()
        } == *b
    };
    let equal = source
        .iter()
        .zip(target)
        .take_while(|(a, b)| same(a, b))
        .count();
    match (source.get(equal), target.get(equal)) {
        (None, None) => None,
        (Some(a), Some(b)) => {
            let (left, right) = (a.offset, b.offset);
            Some(format!(
                "offset {left} of the source and {right} of the target differ"
            ))
        }
        (Some(a), None) => Some(format!(
            "the target ends before offset {} of the source",
            a.offset
        )),
        (None, Some(b)) => Some(format!("the target goes on at its offset {}", b.offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn record(offset: i64, value: &'static str) -> Record {
        Record {
            offset,
            value: Some(Bytes::from_static(value.as_bytes())),
            ..Record::default()
        }
    }

    #[test]
    fn equal_records_at_other_offsets_are_equal() {
        assert_eq!(difference(&[record(5, "a")], &[record(0, "a")]), None);
    }

    #[test]
    fn what_is_missing_doubled_or_changed_is_told_with_its_offset() {
        let (a, b, c) = (record(5, "a"), record(6, "b"), record(7, "c"));
        let source = [a.clone(), b.clone()];
        for (target, expected) in [
            (
                vec![a.clone()],
                "the target ends before offset 6 of the source",
            ),
            (
                vec![a.clone(), a.clone(), b.clone()],
                "offset 6 of the source and 5 of the target differ",
            ),
            (
                vec![a.clone(), b, c.clone()],
                "the target goes on at its offset 7",
            ),
            (
                vec![a, c],
                "offset 6 of the source and 7 of the target differ",
            ),
        ] {
            assert_eq!(difference(&source, &target).as_deref(), Some(expected));
        }
    }
}
