//! Two in-memory clusters and a mirror between them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use mini_kafka::{MiniKafka, Options, Versions};
use testkit::{InMemory, LongLine, eventually_async};
use tokio::time::Instant;
use twinlog_core::config::MirrorConfig;
use twinlog_core::config::flow::FlowConfig;
use twinlog_core::ids::{Flow, Topic, TopicId};
use twinlog_core::offsets::producer_id;
use twinlog_kafka::batch::{
    Compression, DecodeLimits, Entry, ProducerStamp, Record, decode, encode, restamp, walk,
};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::error::Error;
use twinlog_kafka::memory::MemoryBudget;
use twinlog_kafka::produce::{self, ProduceItem, ProduceOptions};
use twinlog_mirror::flow::{FlowHandle, MirrorContext};
use twinlog_mirror::heavy_work::HeavyWork;
use twinlog_mirror::status::FlowStatus;

/// Long enough for everything, as the clock jumps.
pub const WITHIN: Duration = Duration::from_secs(120);

/// The mirror's time, and that of records unless they say otherwise (Unix, ms).
pub const NOW_MS: i64 = 1_750_000_000_000;

/// A source and a target.
pub struct Clusters {
    pub source: Arc<MiniKafka>,
    pub target: Arc<MiniKafka>,
    source_client: Client,
    pub budget: MemoryBudget,
    /// What the mirror's lines to source and target are longer, there and back.
    pub lines: [Duration; 2],
    /// What each connection carries in a round trip.
    pub window: usize,
}

impl Clusters {
    /// Clusters of so many brokers each.
    pub fn start(brokers: i32) -> Result<Self> {
        Self::of_versions(brokers, Versions::kafka_4_3(), Versions::kafka_4_3())
    }

    /// Clusters of so many brokers each, which pass for these versions.
    pub fn of_versions(brokers: i32, source: Versions, target: Versions) -> Result<Self> {
        // Shown with a test that fails.
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let cluster = |id: &str, seed, versions| {
            Arc::new(MiniKafka::start(Options {
                brokers,
                cluster_id: id.to_owned(),
                seed,
                versions,
                ..Options::default()
            }))
        };
        let source = cluster("source", 1, source);
        Ok(Clusters {
            source_client: Client::new(InMemory::client_config(&source)?),
            source,
            target: cluster("target", 2, target),
            budget: MemoryBudget::new(64 << 20),
            lines: [Duration::ZERO; 2],
            window: usize::MAX,
        })
    }

    /// Mirrors from `us` to `eu` with Kafka's defaults and these lines on top.
    pub fn mirror(&self, more: &str) -> Result<FlowHandle> {
        Ok(self.mirror_as(self.config(more)?))
    }

    /// Mirrors as configured.
    pub fn mirror_as(&self, config: FlowConfig) -> FlowHandle {
        let (source, target) = (self.source.clone(), self.target.clone());
        let [to_source, to_target] = self.lines;
        let window = self.window;
        let context = MirrorContext {
            transport_of: Arc::new(move |config| {
                let host = &config.bootstrap[0].host;
                let is_source = source.bootstrap()[0].starts_with(host);
                let (cluster, line) = match is_source {
                    true => (&source, to_source),
                    false => (&target, to_target),
                };
                let config = InMemory::client_config(cluster).expect("addresses of our own");
                match line {
                    Duration::ZERO => config.transport,
                    line => Arc::new(LongLine::over(config.transport, line).with_window(window)),
                }
            }),
            budget: self.budget.clone(),
            wall_clock: Arc::new(|| NOW_MS),
            seed: 1,
            heavy_work: HeavyWork::OnThreads,
        };
        FlowHandle::start(config, &context)
    }

    /// The configuration of [`Clusters::mirror`].
    pub fn config(&self, more: &str) -> Result<FlowConfig> {
        let text = format!(
            "clusters = us, eu\n\
             us.bootstrap.servers = {}\n\
             eu.bootstrap.servers = {}\n\
             us->eu.enabled = true\n\
             replication.factor = 1\n\
             offset.storage.replication.factor = 1\n\
             {more}\n",
            self.source.bootstrap().join(","),
            self.target.bootstrap().join(","),
        );
        let config = MirrorConfig::parse(&text).map_err(anyhow::Error::msg)?;
        config
            .flow("us->eu")
            .cloned()
            .context("the flow is configured")
    }

    /// Writes values as one batch into a source partition.
    pub async fn produce(&self, topic: &str, partition: i32, values: &[&str]) -> Result<()> {
        let record = |value: &&str| Record {
            timestamp: NOW_MS,
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
            ..Record::default()
        };
        let records: Vec<Record> = values.iter().map(record).collect();
        self.produce_records(topic, partition, &records).await
    }

    /// Writes records as one batch into a source partition.
    pub async fn produce_records(
        &self,
        topic: &str,
        partition: i32,
        records: &[Record],
    ) -> Result<()> {
        write(
            &self.source_client,
            topic,
            partition,
            records,
            ProducerStamp::NONE,
        )
        .await
    }

    /// Writes a value into a copy as the mirror itself would, with this sequence number.
    pub async fn write_as_mirror(
        &self,
        topic: &str,
        partition: i32,
        value: &'static str,
        sequence: i32,
    ) -> Result<()> {
        let record = Record {
            value: Some(Bytes::from_static(value.as_bytes())),
            ..Record::default()
        };
        let stamp = ProducerStamp {
            producer_id: producer_id(&Flow::new("us", "eu")),
            producer_epoch: 0,
            base_sequence: sequence,
        };
        let client = Client::new(InMemory::client_config(&self.target)?);
        write(&client, topic, partition, &[record], stamp).await
    }

    /// Waits until a target partition holds exactly these values.
    pub async fn expect_copied(&self, topic: &str, partition: i32, values: &[&str]) -> Result<()> {
        eventually_async(WITHIN, async || {
            let copied = read(&self.target, topic, partition)?;
            ensure!(
                copied == values,
                "{topic}-{partition} holds {copied:?}, not {values:?}"
            );
            Ok(())
        })
        .await
    }
}

/// Writes records as one batch.
async fn write(
    client: &Client,
    topic: &str,
    partition: i32,
    records: &[Record],
    stamp: ProducerStamp,
) -> Result<()> {
    let batch = encode(records, Compression::None)?.context("there are records")?;
    let named = twinlog_kafka::metadata::Topics::Named([Topic::from(topic)].into());
    let metadata = client.refresh(&named).await?;
    let at = twinlog_core::ids::TopicPartition::new(topic, partition);
    let leader = metadata.leader(&at).context("it has a leader")?;
    let connection = client.connection(leader.broker, Purpose::General).await?;
    let item = ProduceItem {
        topic: at.topic,
        topic_id: TopicId::ZERO,
        partition,
        header: restamp(&batch, stamp),
        body: batch.body(),
    };
    let sent = produce::send(&connection, &ProduceOptions::default(), vec![item]).await?;
    for produced in sent.results().await? {
        Error::check(produced.error.0, produced.message.as_deref(), || {
            "produce".into()
        })?;
    }
    Ok(())
}

/// The values in a partition, read from inside the cluster.
pub fn read(cluster: &MiniKafka, topic: &str, partition: i32) -> Result<Vec<String>> {
    let value = |record: Record| {
        let value = record.value.unwrap_or_default();
        String::from_utf8_lossy(&value).into_owned()
    };
    Ok(records(cluster, topic, partition)?
        .into_iter()
        .map(value)
        .collect())
}

/// The data records in a partition, as readers see them: a batch stays whole while its last record
/// is there, and those before the log's start are gone.
pub fn records(cluster: &MiniKafka, topic: &str, partition: i32) -> Result<Vec<Record>> {
    let seen = cluster.partition(topic, partition);
    let log_start = seen.map_or(0, |seen| seen.log_start);
    let mut log = BytesMut::new();
    for batch in cluster.batches(topic, partition) {
        log.extend_from_slice(&batch);
    }
    let mut records = Vec::new();
    for entry in walk(log.freeze()) {
        if let Entry::Batch(batch) = entry?
            && !batch.is_control()
        {
            let all = decode(&batch, DecodeLimits::default())?;
            records.extend(all.into_iter().filter(|record| record.offset >= log_start));
        }
    }
    Ok(records)
}

/// Waits until the flow's status is as wanted.
pub async fn expect_status(
    flow: &FlowHandle,
    what: &str,
    holds: impl Fn(&FlowStatus) -> bool,
) -> Result<FlowStatus> {
    eventually_async(WITHIN, async || {
        let status = flow.status();
        ensure!(holds(&status), "not {what}: {status:#?}");
        Ok(status)
    })
    .await
}

/// Stops a flow, giving it five seconds.
pub async fn stop(flow: FlowHandle) -> FlowStatus {
    flow.shutdown(Instant::now() + Duration::from_secs(5)).await
}

/// Numbers as values.
pub fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

/// As values are passed.
pub fn texts(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

/// The last value for each key of the offsets topic, one a line.
pub fn stored_positions(cluster: &MiniKafka) -> Result<String> {
    let mut last = std::collections::BTreeMap::new();
    for partition in 0..25 {
        for record in records(cluster, "mm2-offsets.us.internal", partition)? {
            last.insert(
                record.key.unwrap_or_default(),
                record.value.unwrap_or_default(),
            );
        }
    }
    let mut text = String::new();
    for (key, value) in last {
        let (key, value) = (
            String::from_utf8_lossy(&key),
            String::from_utf8_lossy(&value),
        );
        writeln!(text, "{key} {value}")?;
    }
    Ok(text)
}
