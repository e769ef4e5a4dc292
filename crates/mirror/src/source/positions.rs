//! Positions in Connect's offsets topic on the target.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use twinlog_core::config::flow::InternalTopic;
use twinlog_core::ids::{ClusterAlias, Flow, Topic, TopicPartition};
use twinlog_core::records::connect_offset::{Key, Position};
use twinlog_kafka::client::Client;
use twinlog_kafka::error::{Error, ErrorCode, Result};
use twinlog_kafka::retry::{Backoff, Retry, Verdict};
use twinlog_kafka::topic_log::{KeyValue, append, read_to_end};

use super::offsets_topic::{self, Readiness};

/// The time in milliseconds since 1970, from whoever may know it.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Where one connector's positions are kept.
#[derive(Clone)]
pub struct PositionStore {
    client: Client,
    topic: InternalTopic,
    /// The cluster that holds it.
    holder: ClusterAlias,
    connector: Arc<str>,
    cluster: Arc<str>,
    wall_clock: WallClock,
}

/// Where positions were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Where earlier ones are.
    InSameTopic,
    /// In a topic that was missing and was made again: those stored before are gone.
    InNewTopic,
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::UnknownTopic { .. })
        || error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

impl PositionStore {
    /// Keeps the positions of `connector` for a flow in `topic`, in the flow's target.
    pub fn new(
        client: Client,
        topic: InternalTopic,
        connector: &str,
        flow: &Flow,
        wall_clock: WallClock,
    ) -> Self {
        PositionStore {
            client,
            topic,
            holder: flow.target.clone(),
            connector: connector.into(),
            cluster: flow.source.as_str().into(),
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

    /// Makes sure that the topic is there.
    ///
    /// # Errors
    /// As [`offsets_topic::ensure`].
    pub async fn ensure(&self) -> Result<Readiness> {
        offsets_topic::ensure(&self.client, &self.holder, &self.topic).await
    }

    /// The topic.
    pub fn topic(&self) -> &Topic {
        &self.topic.name
    }

    /// Writes records, once. A topic that is gone is made again: then all positions are to be
    /// written.
    ///
    /// # Errors
    /// Those of reaching the topic; some of the records may have been written then.
    pub async fn write(&self, records: Vec<(Bytes, Bytes)>) -> Result<Written> {
        let records: Vec<_> = records
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
        match self.write_once(&records).await {
            Err(error) if is_missing(&error) => {
                self.make_again(error).await?;
                self.write_once(&records).await?;
                Ok(Written::InNewTopic)
            }
            result => result.map(|()| Written::InSameTopic),
        }
    }

    async fn make_again(&self, missing: Error) -> Result<()> {
        match self.ensure().await? {
            Readiness::Ready => Ok(()),
            Readiness::Refused(_) | Readiness::Blocked(_) => Err(missing),
        }
    }

    async fn write_once(&self, records: &[KeyValue]) -> Result<()> {
        let mut once = Retry::new(Backoff::default(), CancellationToken::new(), 0);
        let give_up = |_: &_| Verdict::GiveUp;
        append(
            &self.client,
            self.topic(),
            records,
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
    /// Those of reading the topic, once. One that is gone is made again.
    pub async fn read(&self) -> Result<HashMap<TopicPartition, Position>> {
        match self.read_once().await {
            Err(error) if is_missing(&error) => {
                self.make_again(error).await?;
                self.read_once().await
            }
            result => result,
        }
    }

    async fn read_once(&self) -> Result<HashMap<TopicPartition, Position>> {
        let mut once = Retry::new(Backoff::default(), CancellationToken::new(), 0);
        let records =
            read_to_end(&self.client, self.topic(), &mut once, |_| Verdict::GiveUp).await?;
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
            self.connector, self.cluster, self.topic.name
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
