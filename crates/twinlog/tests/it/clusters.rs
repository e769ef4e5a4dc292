//! Two clusters in memory that listen on TCP ports, for a binary that runs beside the test.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use mini_kafka::{MiniKafka, Options};
use serde_json::Value;
use testkit::eventually_async;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::Topic;
use twinlog_kafka::client::Client;
use twinlog_kafka::config::ClientConfig;
use twinlog_kafka::retry::{Backoff, Retry, while_retriable};
use twinlog_kafka::topic_log;

/// More than anything here takes; it only bounds how long a failure takes to show.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A source with topic `orders` of one partition, and an empty target.
pub struct Clusters {
    pub source: MiniKafka,
    pub target: MiniKafka,
}

impl Clusters {
    pub async fn start() -> Result<Clusters> {
        Self::with_ids("source", "target").await
    }

    /// The same, with cluster ids of the caller's choice.
    pub async fn with_ids(source: &str, target: &str) -> Result<Clusters> {
        let start = |id: &str| {
            MiniKafka::start(Options {
                cluster_id: id.to_owned(),
                wall_clock_ms: now_ms(),
                ..Options::default()
            })
        };
        let (source, target) = (start(source), start(target));
        source.listen_tcp(&[]).await?;
        target.listen_tcp(&[]).await?;
        source.create_topic("orders", 1, 1);
        Ok(Clusters { source, target })
    }

    /// The file that mirrors one to the other.
    pub fn properties(&self) -> String {
        format!(
            "clusters = us, eu\n\
             us.bootstrap.servers = {}\n\
             eu.bootstrap.servers = {}\n\
             us->eu.enabled = true\n\
             replication.factor = 1\n\
             offset.storage.replication.factor = 1\n",
            self.source.bootstrap().join(","),
            self.target.bootstrap().join(",")
        )
    }

    /// Writes `count` records to `orders`.
    pub async fn write(&self, count: usize) -> Result<()> {
        let client = client(&self.source)?;
        let records: Vec<_> = (0..count)
            .map(|number| {
                (
                    Bytes::from(number.to_string()),
                    Some(Bytes::from_static(b"order")),
                )
            })
            .collect();
        let topic = Topic::from("orders");
        topic_log::append(
            &client,
            &topic,
            &records,
            now_ms(),
            &mut retry(),
            while_retriable,
        )
        .await?;
        Ok(())
    }

    /// The stored positions of `orders`, oldest first, as the numbers that Java reads.
    pub async fn positions(&self) -> Result<Vec<i64>> {
        let client = client(&self.target)?;
        let topic = Topic::from("mm2-offsets.us.internal");
        let records =
            topic_log::read_to_end(&client, &topic, &mut retry(), while_retriable).await?;
        let key = br#"["MirrorSourceConnector",{"cluster":"us","partition":0,"topic":"orders"}]"#;
        let ours = records
            .into_iter()
            .filter(|record| record.key.as_deref() == Some(key));
        let offset = |value: Bytes| {
            let value: Value = serde_json::from_slice(&value)?;
            value["offset"].as_i64().context("no offset")
        };
        ours.filter_map(|record| record.value).map(offset).collect()
    }

    /// Waits until the target has exactly `count` records of `orders`.
    pub async fn wait_for_mirrored(&self, count: i64) -> Result<()> {
        eventually_async(PATIENCE, async || {
            let remote = self
                .target
                .partition("us.orders", 0)
                .context("no us.orders yet")?;
            ensure!(
                remote.log_end == count,
                "{} of {count} records",
                remote.log_end
            );
            Ok(())
        })
        .await
    }
}

fn client(cluster: &MiniKafka) -> Result<Client> {
    let bootstrap = cluster.bootstrap();
    let addresses: Result<_, _> = bootstrap.iter().map(|address| address.parse()).collect();
    Ok(Client::new(ClientConfig::new(addresses?)))
}

fn retry() -> Retry {
    Retry::new(Backoff::default(), CancellationToken::new(), 1)
}

/// The binary stamps records with the time of day, and clusters of another time would refuse them.
#[expect(
    clippy::disallowed_methods,
    reason = "clusters and binary share the time of day"
)]
fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.expect("it is after 1970").as_millis() as i64
}
