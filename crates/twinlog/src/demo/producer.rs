//! Writes to the source cluster at a steady rate, as an application would.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_kafka::batch::{self, Compression, Record};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::error::Error;
use twinlog_kafka::produce::{self, ProduceItem, ProduceOptions};
use twinlog_kafka::topic_log::partition_of_key;

use super::topics::TOPICS;
use crate::clock::wall_clock_ms;

/// Time between two rounds, each of one batch per partition.
const ROUND: Duration = Duration::from_millis(50);

/// Records of a round, by where they go.
type Round = BTreeMap<TopicPartition, (Compression, Vec<Record>)>;

/// Writes `rate` records per second until `stop`, and answers how many they were.
///
/// # Errors
/// When a cluster does not take a record. Nothing is tried again: the clusters are in this process.
pub async fn write_until(
    client: &Client,
    rate: u32,
    stop: &CancellationToken,
) -> anyhow::Result<u64> {
    let mut ticks = interval(ROUND);
    let (mut written, mut owed) = (0, 0.0);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        owed += f64::from(rate) * ROUND.as_secs_f64();
        let count = owed as u64;
        owed -= count as f64;
        send(client, round(written, count, wall_clock_ms()))
            .await
            .context("write to the source")?;
        written += count;
    }
    Ok(written)
}

/// Records number `first` and on.
fn round(first: u64, count: u64, now_ms: i64) -> Round {
    let mut round = Round::new();
    for number in first..first + count {
        let mut slot = number % 10;
        let topic = TOPICS.iter().find(|topic| {
            let found = slot < topic.share;
            slot = slot.saturating_sub(topic.share);
            found
        });
        let Some(topic) = topic else { continue };
        let record = Record {
            timestamp: now_ms,
            ..(topic.record)(number)
        };
        let partition = match &record.key {
            Some(key) => partition_of_key(key, topic.partitions as usize),
            None => (number / 10 % topic.partitions as u64) as i32,
        };
        let partition = TopicPartition::new(Topic::from(topic.name), partition);
        round
            .entry(partition)
            .or_insert((topic.compression, Vec::new()))
            .1
            .push(record);
    }
    round
}

async fn send(client: &Client, round: Round) -> anyhow::Result<()> {
    let mut items: BTreeMap<i32, Vec<ProduceItem>> = BTreeMap::new();
    for (partition, (compression, records)) in round {
        let leader = client.leader(&partition).await?;
        let Some(batch) = batch::encode(&records, compression)? else {
            continue;
        };
        let header = batch
            .bytes()
            .first_chunk()
            .context("a batch without header")?;
        items.entry(leader.broker).or_default().push(ProduceItem {
            topic: partition.topic,
            topic_id: leader.topic_id,
            partition: partition.partition,
            header: *header,
            body: batch.body(),
        });
    }
    let mut replies = Vec::new();
    for (broker, items) in items {
        let connection = client.connection(broker, Purpose::Produce(0)).await?;
        replies.push(produce::send(&connection, &ProduceOptions::default(), items).await?);
    }
    for reply in replies {
        for produced in reply.results().await? {
            let action = || format!("write to {}", produced.partition);
            Error::check(produced.error.0, produced.message.as_deref(), action)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_records_are_shared_out_over_all_topics() {
        let round = round(20, 10, 1);

        for topic in &TOPICS {
            let records: usize = round
                .iter()
                .filter(|(partition, _)| partition.topic.as_str() == topic.name)
                .map(|(_, (_, records))| records.len())
                .sum();
            assert_eq!(records as u64, topic.share, "{}", topic.name);
        }
    }
}
