//! A small blocking admin client, so that tests need not trust the client they test.
//!
//! One connection per call and one fixed version per request, which all brokers from 1.1 to 4.3
//! speak.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, ListOffsetsRequest, MetadataRequest, MetadataResponse, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// How long a broker may take over one request.
const TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_MS: i32 = 30_000;
const METADATA: i16 = 4;
/// A controller refuses requests for 10,000 (KRaft's `ReplicationControlManager`).
const PARTITIONS_A_REQUEST: i32 = 2_000;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
/// Of DescribeConfigs: what is asked about, and where a value comes from.
const RESOURCE_TOPIC: i8 = 2;
const SOURCE_TOPIC: i8 = 1;

/// A topic to be made.
#[derive(Debug, Clone)]
pub struct TopicSpec {
    name: String,
    partitions: i32,
    replicas: i16,
    configs: Vec<(String, String)>,
}

impl TopicSpec {
    /// A topic with one replica and the broker's settings.
    pub fn new(name: &str, partitions: i32) -> Self {
        Self {
            name: name.to_owned(),
            partitions,
            replicas: 1,
            configs: Vec::new(),
        }
    }

    /// With this many replicas.
    #[must_use]
    pub fn replicas(mut self, replicas: i16) -> Self {
        self.replicas = replicas;
        self
    }

    /// With a topic config, as `retention.ms`.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.configs.push((key.to_owned(), value.to_owned()));
        self
    }
}

/// Creates, grows and deletes topics and asks for their offsets.
#[derive(Debug, Clone)]
pub struct Admin {
    bootstrap: String,
}

impl Admin {
    /// Asks the brokers in this comma-separated list of `host:port`.
    pub fn new(bootstrap: &str) -> Self {
        Self {
            bootstrap: bootstrap.to_owned(),
        }
    }

    /// Makes a topic and waits until each of its partitions has a leader.
    ///
    /// # Errors
    /// When the broker refuses, or the leaders don't appear.
    pub fn create_topic(&self, topic: &TopicSpec) -> Result<()> {
        self.create_topics(std::slice::from_ref(topic))
    }

    /// Makes topics and waits until each of their partitions has a leader.
    ///
    /// # Errors
    /// As [`Self::create_topic`].
    pub fn create_topics(&self, topics: &[TopicSpec]) -> Result<()> {
        let mut rest = topics;
        while !rest.is_empty() {
            let mut partitions = 0;
            let fits = rest.iter().take_while(|topic| {
                partitions += topic.partitions;
                partitions <= PARTITIONS_A_REQUEST
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            self.request_topics(now)?;
            rest = later;
        }
        for topic in topics {
            self.wait_for_leaders(&topic.name, topic.partitions)?;
        }
        Ok(())
    }

    fn request_topics(&self, topics: &[TopicSpec]) -> Result<()> {
        let creatable = topics.iter().map(|topic| {
            let configs = topic.configs.iter().map(|(key, value)| {
                CreatableTopicConfig::default()
                    .with_name(text(key))
                    .with_value(Some(text(value)))
            });
            CreatableTopic::default()
                .with_name(name(&topic.name))
                .with_num_partitions(topic.partitions)
                .with_replication_factor(topic.replicas)
                .with_configs(configs.collect())
        });
        let request = CreateTopicsRequest::default()
            .with_topics(creatable.collect())
            .with_timeout_ms(TIMEOUT_MS);
        let response = call(&self.controller()?, &request, 2)?;
        for answer in &response.topics {
            let detail = answer.error_message.as_deref().unwrap_or_default();
            let topic = answer.name.as_str();
            check(answer.error_code).with_context(|| format!("create {topic}: {detail}"))?;
        }
        Ok(())
    }

    /// Raises the partition count of a topic.
    ///
    /// # Errors
    /// When the broker refuses, or the leaders don't appear.
    pub fn add_partitions(&self, topic: &str, count: i32) -> Result<()> {
        let grown = CreatePartitionsTopic::default()
            .with_name(name(topic))
            .with_count(count)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![grown])
            .with_timeout_ms(TIMEOUT_MS);
        let response = call(&self.controller()?, &request, 0)?;
        for answer in &response.results {
            check(answer.error_code).with_context(|| format!("add partitions to {topic}"))?;
        }
        self.wait_for_leaders(topic, count)
    }

    /// Deletes topics; those that don't exist are no error.
    ///
    /// # Errors
    /// When the broker refuses.
    pub fn delete_topics(&self, topics: &[String]) -> Result<()> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(topics.iter().map(|topic| name(topic)).collect())
            .with_timeout_ms(TIMEOUT_MS);
        let response = call(&self.controller()?, &request, 1)?;
        for answer in &response.responses {
            if answer.error_code != ResponseError::UnknownTopicOrPartition.code() {
                let topic = answer.name.as_ref().map_or("", |name| name.as_str());
                check(answer.error_code).with_context(|| format!("delete {topic}"))?;
            }
        }
        Ok(())
    }

    /// The names of all topics, internal ones too, sorted.
    ///
    /// # Errors
    /// When no broker answers.
    pub fn topics(&self) -> Result<Vec<String>> {
        let response = self.metadata(None)?;
        let names = response.topics.iter().flat_map(|topic| &topic.name);
        let mut names: Vec<_> = names.map(|name| name.to_string()).collect();
        names.sort();
        Ok(names)
    }

    /// The settings made on the topic itself, by name.
    ///
    /// # Errors
    /// When the topic doesn't exist or no broker answers.
    pub fn topic_settings(&self, topic: &str) -> Result<BTreeMap<String, String>> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(RESOURCE_TOPIC)
            .with_resource_name(text(topic))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let response = call(&self.controller()?, &request, 1)?;
        let mut settings = BTreeMap::new();
        for answer in &response.results {
            check(answer.error_code).with_context(|| format!("settings of {topic}"))?;
            let own = answer
                .configs
                .iter()
                .filter(|config| config.config_source == SOURCE_TOPIC);
            settings.extend(own.map(|config| {
                let value = config.value.as_deref().unwrap_or_default();
                (config.name.to_string(), value.to_owned())
            }));
        }
        Ok(settings)
    }

    /// The id of each broker that is up.
    ///
    /// # Errors
    /// When no broker answers.
    pub fn brokers(&self) -> Result<Vec<i32>> {
        let response = self.metadata(Some(Vec::new()))?;
        ensure!(response.controller_id.0 >= 0, "no controller yet");
        Ok(response
            .brokers
            .iter()
            .map(|broker| broker.node_id.0)
            .collect())
    }

    /// The leader of each partition, by partition number; -1 where there is none.
    ///
    /// # Errors
    /// When the topic doesn't exist or no broker answers.
    pub fn leaders(&self, topic: &str) -> Result<Vec<i32>> {
        Ok(self.located(topic)?.1)
    }

    /// The high watermark of each partition, by partition number.
    ///
    /// # Errors
    /// When the topic doesn't exist or a leader doesn't answer, or, for a moment after a restart,
    /// doesn't know yet that it leads: that is a case for [`eventually`](crate::eventually).
    pub fn end_offsets(&self, topic: &str) -> Result<Vec<i64>> {
        self.offsets(topic, LATEST)
    }

    /// The log start of each partition, by partition number.
    ///
    /// # Errors
    /// As [`Self::end_offsets`].
    pub fn start_offsets(&self, topic: &str) -> Result<Vec<i64>> {
        self.offsets(topic, EARLIEST)
    }

    /// The sum of all high watermarks of `topics`. A topic or leader that isn't there yet counts as
    /// nothing, so that a mirror can be watched from its start.
    ///
    /// # Errors
    /// When a broker doesn't answer.
    pub fn records_so_far(&self, topics: &[String]) -> Result<u64> {
        let asked = topics
            .iter()
            .map(|topic| MetadataRequestTopic::default().with_name(Some(name(topic))));
        let response = self.metadata(Some(asked.collect()))?;
        let mut records = 0;
        for broker in &response.brokers {
            let asked = response.topics.iter().filter_map(|topic| {
                let mine = topic
                    .partitions
                    .iter()
                    .filter(|partition| partition.leader_id == broker.node_id);
                let partitions = mine.map(|partition| {
                    ListOffsetsPartition::default()
                        .with_partition_index(partition.partition_index)
                        .with_timestamp(LATEST)
                });
                let asked = ListOffsetsTopic::default().with_name(topic.name.clone()?);
                Some(asked.with_partitions(partitions.collect()))
            });
            let request = ListOffsetsRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_topics(asked.collect());
            let answer = call(&format!("{}:{}", broker.host, broker.port), &request, 1)?;
            let ends = answer.topics.iter().flat_map(|topic| &topic.partitions);
            let known = ends.filter_map(|end| u64::try_from(end.offset).ok());
            records += known.sum::<u64>();
        }
        Ok(records)
    }

    fn offsets(&self, topic: &str, which: i64) -> Result<Vec<i64>> {
        let (response, leaders) = self.located(topic)?;
        let mut offsets = vec![-1; leaders.len()];
        for broker in &response.brokers {
            let mine = (0_i32..)
                .zip(&leaders)
                .filter(|(_, leader)| **leader == broker.node_id.0);
            let partitions: Vec<_> = mine
                .map(|(partition, _)| {
                    ListOffsetsPartition::default()
                        .with_partition_index(partition)
                        .with_timestamp(which)
                })
                .collect();
            if partitions.is_empty() {
                continue;
            }
            let asked = ListOffsetsTopic::default()
                .with_name(name(topic))
                .with_partitions(partitions);
            let request = ListOffsetsRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_topics(vec![asked]);
            let answer = call(&format!("{}:{}", broker.host, broker.port), &request, 1)?;
            for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
                let number = partition.partition_index;
                check(partition.error_code)
                    .with_context(|| format!("offset of {topic}-{number}"))?;
                let slot = offsets.get_mut(usize::try_from(number)?);
                *slot.context("a partition nobody asked for")? = partition.offset;
            }
        }
        ensure!(
            !offsets.contains(&-1),
            "{topic} has partitions without a leader: {leaders:?}"
        );
        Ok(offsets)
    }

    /// Metadata that covers `topic`, and the leaders in it by partition number.
    fn located(&self, topic: &str) -> Result<(MetadataResponse, Vec<i32>)> {
        let asked = MetadataRequestTopic::default().with_name(Some(name(topic)));
        let response = self.metadata(Some(vec![asked]))?;
        let answer = response.topics.first().context("no topic in the answer")?;
        check(answer.error_code).with_context(|| format!("metadata of {topic}"))?;
        let mut leaders: Vec<_> = answer
            .partitions
            .iter()
            .map(|p| (p.partition_index, p.leader_id.0))
            .collect();
        leaders.sort_unstable();
        let leaders = leaders.into_iter().map(|(_, leader)| leader).collect();
        Ok((response, leaders))
    }

    fn wait_for_leaders(&self, topic: &str, partitions: i32) -> Result<()> {
        crate::eventually(TIMEOUT, || {
            let leaders = self.leaders(topic)?;
            ensure!(
                leaders.len() == usize::try_from(partitions)?,
                "only {leaders:?} partitions"
            );
            ensure!(
                leaders.iter().all(|leader| *leader >= 0),
                "leaders of {topic}: {leaders:?}"
            );
            // Leaders in the metadata may not know yet that they lead.
            self.end_offsets(topic).map(drop)
        })
    }

    pub(crate) fn controller(&self) -> Result<String> {
        let response = self.metadata(Some(Vec::new()))?;
        let controller = response
            .brokers
            .iter()
            .find(|b| b.node_id == response.controller_id);
        let broker = controller.context("no controller at the moment")?;
        Ok(format!("{}:{}", broker.host, broker.port))
    }

    fn metadata(&self, topics: Option<Vec<MetadataRequestTopic>>) -> Result<MetadataResponse> {
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(false);
        let mut last = None;
        for address in self.bootstrap.split(',') {
            match call(address, &request, METADATA) {
                Ok(response) => return Ok(response),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no bootstrap address")?)
    }
}

/// Sends one request on a fresh connection and reads its answer.
pub(crate) fn call<R: Request>(address: &str, request: &R, version: i16) -> Result<R::Response> {
    let action = || format!("ask {address} with request {} v{version}", R::KEY);
    let frame = encode(request, version).with_context(action)?;
    let answer = exchange(address, &frame).with_context(action)?;
    decode::<R>(answer, version).with_context(action)
}

fn encode<R: Request>(request: &R, version: i16) -> Result<Bytes> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_client_id(Some(StrBytes::from_static_str("testkit")));
    let mut body = BytesMut::new();
    header.encode(&mut body, R::header_version(version))?;
    request.encode(&mut body, version)?;
    Ok(body.freeze())
}

fn exchange(address: &str, frame: &[u8]) -> Result<Bytes> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&i32::try_from(frame.len())?.to_be_bytes())?;
    stream.write_all(frame)?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(size))?];
    stream.read_exact(&mut answer)?;
    Ok(answer.into())
}

fn decode<R: Request>(mut answer: Bytes, version: i16) -> Result<R::Response> {
    ResponseHeader::decode(&mut answer, R::Response::header_version(version))?;
    R::Response::decode(&mut answer, version)
}

pub(crate) fn check(error_code: i16) -> Result<()> {
    match ResponseError::try_from_code(error_code) {
        None => Ok(()),
        Some(error) => bail!("error {error_code} ({error:?})"),
    }
}

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

pub(crate) fn name(topic: &str) -> TopicName {
    TopicName(text(topic))
}
