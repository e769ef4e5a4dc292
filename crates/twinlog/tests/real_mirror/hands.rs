//! Records, settings and deletions by hand, where a test needs them one by one.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use testkit::eventually;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{Topic, TopicId, TopicPartition};
use twinlog_kafka::admin::{
    ConfigChange, ConfigResource, OffsetQuery, View, delete_records, incremental_alter_configs,
    list_offsets,
};
use twinlog_kafka::batch::{Compression, ProducerStamp, Record, encode, restamp};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::config::ClientConfig;
use twinlog_kafka::error::Error;
use twinlog_kafka::fetch::Isolation;
use twinlog_kafka::metadata::Topics;
use twinlog_kafka::produce::{self, ProduceItem, ProduceOptions};
use twinlog_kafka::retry::{Backoff, Retry, while_retriable};
use twinlog_kafka::topic_log::read_to_end;

use crate::flow::PATIENCE;

/// A client of one cluster.
pub struct Hands {
    runtime: Runtime,
    client: Client,
}

impl Hands {
    /// Of the cluster at these addresses.
    pub fn at(bootstrap: &str) -> Result<Hands> {
        let addresses: Result<Vec<_>, _> = bootstrap.split(',').map(str::parse).collect();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(Hands {
            runtime,
            client: Client::new(ClientConfig::new(addresses?)),
        })
    }

    /// Appends values without keys, as one batch.
    pub fn write(&self, topic: &str, partition: i32, values: &[&str]) -> Result<()> {
        let records: Vec<_> = values.iter().map(|value| record(value)).collect();
        self.write_records(topic, partition, &records)
    }

    /// Appends records as one batch.
    pub fn write_records(&self, topic: &str, partition: i32, records: &[Record]) -> Result<()> {
        let batch = encode(records, Compression::None)?.context("there are records")?;
        let at = TopicPartition::new(topic, partition);
        self.runtime.block_on(async {
            let named = Topics::Named([at.topic.clone()].into());
            let metadata = self.client.refresh(&named).await?;
            let leader = metadata.leader(&at).context("it has a leader")?;
            let purpose = Purpose::General;
            let connection = self.client.connection(leader.broker, purpose).await?;
            let item = ProduceItem {
                topic: at.topic.clone(),
                topic_id: TopicId::ZERO,
                partition,
                header: restamp(&batch, ProducerStamp::NONE),
                body: batch.body(),
            };
            let sent = produce::send(&connection, &ProduceOptions::default(), vec![item]).await?;
            for produced in sent.results().await? {
                let message = produced.message.as_deref();
                Error::check(produced.error.0, message, || format!("produce to {at}"))?;
            }
            Ok(())
        })
    }

    /// Waits until a partition holds so many records, without asking the leaders of others.
    pub fn expect_count(&self, topic: &str, partition: i32, count: i64) -> Result<()> {
        let at = TopicPartition::new(topic, partition);
        eventually(PATIENCE, || {
            let latest = [(at.clone(), OffsetQuery::Latest)];
            let view = View::Consumer(Isolation::ReadUncommitted);
            let ends = list_offsets(&self.client, latest, view);
            let mut ends = self.runtime.block_on(ends);
            let end = ends.remove(&at).context("an answer")??.offset_or_end(0);
            ensure!(end == count, "{at} ends at {end}, not {count}");
            Ok(())
        })
    }

    /// The values of a partition.
    pub fn values(&self, topic: &str, partition: i32) -> Result<Vec<String>> {
        let mut retry = Retry::new(Backoff::default(), CancellationToken::new(), 1);
        let topic = Topic::from(topic);
        let read = read_to_end(&self.client, &topic, &mut retry, while_retriable);
        let records = self.runtime.block_on(read)?;
        let own = records
            .into_iter()
            .filter(|record| record.partition == partition);
        let value = |value: Option<Bytes>| {
            let value = value.unwrap_or_default();
            String::from_utf8_lossy(&value).into_owned()
        };
        Ok(own.map(|record| value(record.value)).collect())
    }

    /// Waits until a partition holds exactly these values.
    pub fn expect(&self, topic: &str, partition: i32, values: &[&str]) -> Result<()> {
        eventually(PATIENCE, || {
            let found = self.values(topic, partition)?;
            ensure!(
                found == values,
                "{topic}-{partition} holds {found:.200?}, not {values:.200?}"
            );
            Ok(())
        })
    }

    /// Changes a setting of a topic.
    pub fn set(&self, topic: &str, key: &str, value: &str) -> Result<()> {
        let resource = ConfigResource::Topic(topic.into());
        let change = ConfigChange::Set(key.to_owned(), value.to_owned());
        let changes = [(resource.clone(), vec![change])];
        let altered = incremental_alter_configs(&self.client, changes);
        let mut altered = self.runtime.block_on(altered)?;
        altered.remove(&resource).context("an answer")??;
        Ok(())
    }

    /// Deletes the records of a partition before an offset.
    pub fn delete_before(&self, topic: &str, partition: i32, offset: i64) -> Result<()> {
        let at = TopicPartition::new(topic, partition);
        let deleted = delete_records(&self.client, [(at.clone(), offset)]);
        let mut deleted = self.runtime.block_on(deleted);
        deleted.remove(&at).context("an answer")??;
        Ok(())
    }
}

/// A record of now without a key.
pub fn record(value: &str) -> Record {
    Record {
        timestamp: now_ms(),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        ..Record::default()
    }
}

/// A record of now with a key.
pub fn keyed(key: &str, value: &str) -> Record {
    Record {
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        ..record(value)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "real brokers compare records with the real time"
)]
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
