//! Positions in Connect's offsets topic on the target.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_core::records::connect_offset::{Key, Position};
use twinlog_kafka::client::Client;
use twinlog_kafka::error::Result;
use twinlog_kafka::retry::{Backoff, Retry, Verdict};
use twinlog_kafka::topic_log::{append, read_to_end};

/// The time in milliseconds since 1970, from whoever may know it.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Where one connector's positions are kept.
#[derive(Clone)]
pub struct PositionStore {
    client: Client,
    topic: Topic,
    connector: Arc<str>,
    cluster: Arc<str>,
    wall_clock: WallClock,
}

impl PositionStore {
    /// Keeps the positions of `connector` in the source `cluster` in `topic`.
    pub fn new(
        client: Client,
        topic: Topic,
        connector: &str,
        cluster: &str,
        wall_clock: WallClock,
    ) -> Self {
        PositionStore {
            client,
            topic,
            connector: connector.into(),
            cluster: cluster.into(),
            wall_clock,
        }
    }

    /// The record that says that `partition` stands at `position`.
    pub fn record(&self, partition: &TopicPartition, position: &Position) -> (Bytes, Bytes) {
        let key = Key {
            connector: self.connector.to_string(),
            cluster: self.cluster.to_string(),
            partition: partition.clone(),
        };
        (key.encode(), position.encode())
    }

    /// Writes records, once.
    ///
    /// # Errors
    /// Those of reaching the topic; some of the records may have been written then.
    pub async fn write(&self, records: Vec<(Bytes, Bytes)>) -> Result<()> {
        let records: Vec<_> = records
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
        let mut once = Retry::new(Backoff::default(), CancellationToken::new(), 0);
        let give_up = |_: &_| Verdict::GiveUp;
        append(
            &self.client,
            &self.topic,
            &records,
            (self.wall_clock)(),
            &mut once,
            give_up,
        )
        .await
    }

    /// Reads all positions there are; those of other connectors and clusters in the same topic are
    /// left out.
    ///
    /// # Errors
    /// Those of reading the topic, once.
    pub async fn read(&self) -> Result<HashMap<TopicPartition, Position>> {
        let mut once = Retry::new(Backoff::default(), CancellationToken::new(), 0);
        let records =
            read_to_end(&self.client, &self.topic, &mut once, |_| Verdict::GiveUp).await?;
        let mut positions = HashMap::new();
        for record in records {
            let Some(key) = record.key.as_deref().and_then(Key::decode) else {
                continue;
            };
            if *key.connector != *self.connector || *key.cluster != *self.cluster {
                continue;
            }
            match record.value.as_deref().and_then(Position::decode) {
                Some(position) => positions.insert(key.partition, position),
                // A tombstone resets the position, as Connect's REST interface does (KIP-875).
                None => positions.remove(&key.partition),
            };
        }
        Ok(positions)
    }
}

impl fmt::Debug for PositionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PositionStore({} of {} in {})",
            self.connector, self.cluster, self.topic
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_kafka::topic_log::partition_of_key;

    #[test]
    fn positions_lie_in_the_partition_where_java_puts_them() {
        // Placed by Utils.murmur2 (kafka-clients 4.3.1) over 25 partitions. Elsewhere, a stale
        // value would survive.
        for (connector, cluster, topic, partition, place) in [
            ("MirrorSourceConnector", "A", "t", 0, 7),
            ("MirrorSourceConnector", "A", "t", 1, 1),
            ("us->eu.MirrorSourceConnector", "us", "orders.v1", 12, 1),
            (
                "MirrorSourceConnector",
                "primary",
                "a-very-long.topic_name-with-Everything",
                999,
                3,
            ),
            ("n", "\u{1f600}", "x", 3, 16),
        ] {
            let key = Key {
                connector: connector.into(),
                cluster: cluster.into(),
                partition: TopicPartition::new(topic, partition),
            };

            assert_eq!(partition_of_key(&key.encode(), 25), place, "{key:?}");
        }
    }
}
