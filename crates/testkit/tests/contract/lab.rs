//! What cases work with: a cluster by its addresses, topics of their own, and short ways to ask the
//! usual things.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::*;
use testkit::wire::{Wire, text};
use uuid::Uuid;

use super::batch::{Batch, Fetched, read};

/// The last Produce and Fetch that name topics.
pub const PRODUCE: i16 = 12;
pub const FETCH: i16 = 12;
pub const METADATA: i16 = 12;

/// A cluster on trial.
#[derive(Debug)]
pub struct Lab {
    bootstrap: Vec<String>,
    /// Starts the names, so that a cluster can be tried twice.
    prefix: String,
    topics: AtomicU32,
}

/// A topic of a case's own, and a connection to the leader of its first partition.
#[derive(Debug)]
pub struct Bench {
    pub topic: TopicName,
    pub id: Uuid,
    pub leader_id: i32,
    pub leader_address: String,
    pub wire: Wire,
}

/// Compares, and says what was compared.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a call reads better without ampersands"
)]
pub fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<()> {
    ensure!(
        got == expected,
        "{what}: got {got:?}, expected {expected:?}"
    );
    Ok(())
}

impl Lab {
    pub fn new(bootstrap: Vec<String>) -> Self {
        let prefix = format!("contract-{}", super::now_ms());
        Lab {
            bootstrap,
            prefix,
            topics: AtomicU32::new(0),
        }
    }

    /// A connection to the first broker.
    pub async fn wire(&self) -> Result<Wire> {
        Wire::connect(&self.bootstrap[0]).await
    }

    /// A name that no topic has.
    pub fn new_name(&self) -> TopicName {
        let number = self.topics.fetch_add(1, Ordering::Relaxed);
        TopicName(text(format!("{}-{number}", self.prefix)))
    }

    /// A topic of one partition with these settings.
    pub async fn bench(&self, configs: &[(&str, &str)]) -> Result<Bench> {
        self.bench_of(1, 1, configs).await
    }

    /// A topic with these settings, once all its leaders are known.
    pub async fn bench_of(
        &self,
        partitions: i32,
        replicas: i16,
        configs: &[(&str, &str)],
    ) -> Result<Bench> {
        let wanted = creatable(&self.new_name(), partitions, replicas, configs);
        self.bench_like(wanted, partitions).await
    }

    /// A topic whose partitions all lie on broker 1.
    pub async fn bench_on_one_broker(&self, partitions: i32) -> Result<Bench> {
        let assignment = |index| {
            CreatableReplicaAssignment::default()
                .with_partition_index(index)
                .with_broker_ids(vec![BrokerId(1)])
        };
        let topic = creatable(&self.new_name(), -1, -1, &[])
            .with_assignments((0..partitions).map(assignment).collect());
        self.bench_like(topic, partitions).await
    }

    async fn bench_like(&self, wanted: CreatableTopic, partitions: i32) -> Result<Bench> {
        let topic = wanted.name.clone();
        let mut wire = self.wire().await?;
        let created = create(&mut wire, wanted).await?;
        expect("CreateTopics", created.error_code, 0)?;
        let mut tries = 0..100;
        let (leader_id, leader_address) = loop {
            if let Some(leader) = self.leader(&mut wire, &topic, partitions).await? {
                break leader;
            }
            tries.next().context("the topic gets no leaders")?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let wire = Wire::connect(&leader_address).await?;
        let mut bench = Bench {
            topic,
            id: created.topic_id,
            leader_id,
            leader_address,
            wire,
        };
        bench.until_served().await?;
        Ok(bench)
    }

    /// Id and address of the leader of partition 0, if all partitions have leaders.
    async fn leader(
        &self,
        wire: &mut Wire,
        topic: &TopicName,
        partitions: i32,
    ) -> Result<Option<(i32, String)>> {
        let (metadata, response) = describe(wire, topic).await?;
        let lead = metadata
            .partitions
            .iter()
            .all(|partition| partition.leader_id.0 >= 0);
        if metadata.error_code != 0 || metadata.partitions.len() != partitions as usize || !lead {
            return Ok(None);
        }
        let first = metadata
            .partitions
            .iter()
            .find(|partition| partition.partition_index == 0);
        let id = first.context("partition 0")?.leader_id;
        let broker = response.brokers.iter().find(|broker| broker.node_id == id);
        Ok(broker.map(|broker| (id.0, format!("{}:{}", &*broker.host, broker.port))))
    }

    /// A broker that does not lead partition 0 of the bench's topic.
    pub async fn other_broker(&self, bench: &Bench) -> Result<Wire> {
        let other = self
            .bootstrap
            .iter()
            .find(|address| **address != bench.leader_address);
        Wire::connect(other.context("the cluster has a second broker")?).await
    }
}

/// One topic in the Metadata answer, and the answer.
pub async fn describe(
    wire: &mut Wire,
    topic: &TopicName,
) -> Result<(MetadataResponseTopic, MetadataResponse)> {
    let wanted = MetadataRequestTopic::default().with_name(Some(topic.clone()));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![wanted]))
        .with_allow_auto_topic_creation(false);
    let response = wire.call(&request, METADATA).await?;
    let found = response.topics.first().context("one topic in the answer")?;
    Ok((found.clone(), response))
}

/// A topic as CreateTopics takes it.
pub fn creatable(
    topic: &TopicName,
    partitions: i32,
    replicas: i16,
    configs: &[(&str, &str)],
) -> CreatableTopic {
    let configs = configs.iter().map(|(key, value)| {
        CreatableTopicConfig::default()
            .with_name(text(*key))
            .with_value(Some(text(*value)))
    });
    CreatableTopic::default()
        .with_name(topic.clone())
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
        .with_configs(configs.collect())
}

/// The one result of creating one topic.
pub async fn create(wire: &mut Wire, topic: CreatableTopic) -> Result<CreatableTopicResult> {
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let response = wire.call(&request, 7).await?;
    response
        .topics
        .into_iter()
        .next()
        .context("one topic in the answer")
}

/// A Produce of one batch.
pub fn produce_request(topic: &TopicName, records: Option<Bytes>) -> ProduceRequest {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(records);
    let topic = TopicProduceData::default()
        .with_name(topic.clone())
        .with_partition_data(vec![partition]);
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(10_000)
        .with_topic_data(vec![topic])
}

/// What a Fetch asks for, of partition 0.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    pub offset: i64,
    pub max_bytes: i32,
    pub partition_max_bytes: i32,
    pub min_bytes: i32,
    pub max_wait_ms: i32,
    pub committed: bool,
    pub leader_epoch: i32,
    pub last_fetched_epoch: i32,
}

impl Ask {
    /// All from `offset` on, at once.
    pub fn from(offset: i64) -> Self {
        Ask {
            offset,
            max_bytes: 50 << 20,
            partition_max_bytes: 10 << 20,
            min_bytes: 0,
            max_wait_ms: 0,
            committed: false,
            leader_epoch: -1,
            last_fetched_epoch: -1,
        }
    }

    pub fn partition(&self, index: i32) -> FetchPartition {
        FetchPartition::default()
            .with_partition(index)
            .with_current_leader_epoch(self.leader_epoch)
            .with_fetch_offset(self.offset)
            .with_last_fetched_epoch(self.last_fetched_epoch)
            .with_partition_max_bytes(self.partition_max_bytes)
    }

    /// The request without topics, outside of any session.
    pub fn request(&self) -> FetchRequest {
        FetchRequest::default()
            .with_max_wait_ms(self.max_wait_ms)
            .with_min_bytes(self.min_bytes)
            .with_max_bytes(self.max_bytes)
            .with_isolation_level(i8::from(self.committed))
            .with_session_epoch(-1)
    }
}

impl Bench {
    /// Right after creation the leader may not know yet that it leads.
    async fn until_served(&mut self) -> Result<()> {
        let mut tries = 0..100;
        while self.offset(-1).await?.error_code != 0 {
            tries
                .next()
                .context("the leader does not serve the topic")?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Produces bytes to partition 0, and answers what became of them.
    pub async fn send(&mut self, records: Option<Bytes>) -> Result<PartitionProduceResponse> {
        let request = produce_request(&self.topic, records);
        self.send_request(&request, PRODUCE).await
    }

    /// Sends a Produce of one partition, and answers what became of it.
    pub async fn send_request(
        &mut self,
        request: &ProduceRequest,
        version: i16,
    ) -> Result<PartitionProduceResponse> {
        let response = self.wire.call(request, version).await?;
        let topic = response
            .responses
            .into_iter()
            .next()
            .context("one topic in the answer")?;
        topic
            .partition_responses
            .into_iter()
            .next()
            .context("one partition in the answer")
    }

    /// Produces a batch; answers the error code and the base offset.
    pub async fn produce(&mut self, batch: &Batch) -> Result<(i16, i64)> {
        let answer = self.send(Some(batch.bytes())).await?;
        Ok((answer.error_code, answer.base_offset))
    }

    /// Produces batches that must be taken; answers the offset after the last.
    pub async fn fill(&mut self, batches: &[Batch]) -> Result<i64> {
        let mut end = 0;
        for batch in batches {
            let (code, base) = self.produce(batch).await?;
            expect("Produce", code, 0)?;
            end = base + batch.records.len() as i64;
        }
        Ok(end)
    }

    /// Fetches from partition 0.
    pub async fn fetch(&mut self, ask: Ask) -> Result<PartitionData> {
        let topic = FetchTopic::default()
            .with_topic(self.topic.clone())
            .with_partitions(vec![ask.partition(0)]);
        let response = self
            .wire
            .call(&ask.request().with_topics(vec![topic]), FETCH)
            .await?;
        expect("Fetch", response.error_code, 0)?;
        let topic = response
            .responses
            .into_iter()
            .next()
            .context("one topic in the answer")?;
        topic
            .partitions
            .into_iter()
            .next()
            .context("one partition in the answer")
    }

    /// The batches of partition 0 from an offset on.
    pub async fn batches(&mut self, offset: i64) -> Result<Vec<Fetched>> {
        let data = self.fetch(Ask::from(offset)).await?;
        expect("Fetch of a partition", data.error_code, 0)?;
        Ok(read(&data.records.unwrap_or_default()).0)
    }

    /// ListOffsets of partition 0, as a consumer.
    pub async fn offset(&mut self, timestamp: i64) -> Result<ListOffsetsPartitionResponse> {
        self.offset_as(-1, 0, timestamp).await
    }

    /// ListOffsets of partition 0.
    pub async fn offset_as(
        &mut self,
        replica_id: i32,
        isolation_level: i8,
        timestamp: i64,
    ) -> Result<ListOffsetsPartitionResponse> {
        let partition = ListOffsetsPartition::default()
            .with_partition_index(0)
            .with_current_leader_epoch(-1)
            .with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default()
            .with_name(self.topic.clone())
            .with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(replica_id))
            .with_isolation_level(isolation_level)
            .with_topics(vec![topic]);
        let response = self.wire.call(&request, 7).await?;
        let topic = response
            .topics
            .into_iter()
            .next()
            .context("one topic in the answer")?;
        topic
            .partitions
            .into_iter()
            .next()
            .context("one partition in the answer")
    }
}
