//! From derived settings to the typed configuration of one flow.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::flow::*;
use super::keys::{ClientKind, Table};
use super::reader::{Reader, Section};
use super::resolve::{self, Layer, Resolver};
use super::value;
use crate::circles::Hop;
use crate::filter::{ConfigPropertyFilter, DefaultsFrom, GroupFilter, TopicFilter};
use crate::ids::{ClusterAlias, Flow, Topic};
use crate::pattern::JavaPattern;
use crate::policy::ReplicationPolicy;

/// The connector whose name stands before stored positions.
pub(super) const SOURCE_CONNECTOR: &str = "MirrorSourceConnector";
const IDENTITY: &str = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy";

/// A flow's configuration and all settings it was made of.
pub(super) struct Built {
    pub(super) config: FlowConfig,
    pub(super) sections: Vec<Section>,
}

/// Patterns by their text: flows mostly share them, and compiling one takes longer than all else.
#[derive(Default)]
pub(super) struct Patterns(HashMap<Vec<String>, JavaPattern>);

impl Patterns {
    fn read(&mut self, reader: &mut Reader<'_>, name: &str) -> JavaPattern {
        let elements = reader.list(name);
        if let Some(known) = self.0.get(&elements) {
            return known.clone();
        }
        let pattern = JavaPattern::of_list(&elements).unwrap_or_else(|_| JavaPattern::nothing());
        self.0.insert(elements, pattern.clone());
        pattern
    }
}

/// How many bytes fetched records may occupy, and the section that it stands in.
pub(super) fn process(resolver: &Resolver) -> (usize, Section) {
    let mut reader = Reader::new("process", resolver.process(), &[Table::Driver]);
    let bytes = reader.integer("twinlog.buffer.memory");
    (
        usize::try_from(bytes).unwrap_or(usize::MAX),
        reader.into_section(),
    )
}

/// Builds the configuration of `flow`, which knows of no circles yet.
pub(super) fn flow(resolver: &Resolver, flow: &Flow, patterns: &mut Patterns) -> Built {
    let connector = resolver.connector(flow, SOURCE_CONNECTOR);
    let worker = resolver.worker(flow);
    let mut sections = Vec::new();

    let source = cluster(&connector, Side::Source, &flow.source, &mut sections);
    let target = cluster(&connector, Side::Target, &flow.target, &mut sections);
    let writer_layer = resolve::writer(&worker, &connector);
    let writer = producer("writer", &writer_layer, &mut sections);
    let worker = worker_config(&worker, &mut sections);

    let mut reader = Reader::new("flow", &connector, &[Table::Connector]);
    let policy = policy(&mut reader, &connector, &flow.source);
    let config = FlowConfig {
        role: if reader.boolean("enabled") {
            FlowRole::Replicates
        } else {
            FlowRole::HeartbeatsOnly
        },
        names: Hop {
            flow: flow.clone(),
            topics: TopicFilter {
                include: patterns.read(&mut reader, "topics"),
                exclude: patterns.read(&mut reader, "topics.exclude"),
            },
            takes_heartbeats: reader.boolean("heartbeats.replication.enabled"),
            policy: policy.clone(),
        },
        circles: Arc::default(),
        config_properties: ConfigPropertyFilter {
            exclude: patterns.read(&mut reader, "config.properties.exclude"),
            defaults_from: match reader.text("use.defaults.from").as_deref() {
                Some("source") => DefaultsFrom::Source,
                _ => DefaultsFrom::Target,
            },
        },
        tasks_max: usize::try_from(reader.integer("tasks.max"))
            .unwrap_or(1)
            .max(1),
        replication_factor: replication_factor(&mut reader, "replication.factor"),
        refresh_topics: reader.periodic("refresh.topics"),
        sync_topic_configs: reader.periodic("sync.topic.configs"),
        sync_topic_acls: reader.periodic("sync.topic.acls"),
        admin_timeout: reader.millis("admin.timeout.ms"),
        offset_syncs: offset_syncs(&mut reader, &policy, flow),
        checkpoints: checkpoints(&mut reader, &policy, flow, patterns),
        heartbeats: HeartbeatConfig {
            emit: reader.periodic("emit.heartbeats"),
            replication_factor: replication_factor(
                &mut reader,
                "heartbeats.topic.replication.factor",
            ),
        },
        source_connector_name: reader
            .text_or("name", Some(SOURCE_CONNECTOR))
            .unwrap_or_else(|| SOURCE_CONNECTOR.to_owned()),
        flow: flow.clone(),
        source,
        target,
        writer,
        worker,
    };
    sections.insert(0, reader.into_section());
    Built { config, sections }
}

fn cluster(
    connector: &Layer,
    side: Side,
    alias: &ClusterAlias,
    sections: &mut Vec<Section>,
) -> ClusterConfig {
    let layer = |kind| resolve::client(connector, side, kind);
    let [producer_name, consumer_name, admin_name] = match side {
        Side::Source => ["source producer", "source consumer", "source admin"],
        Side::Target => ["target producer", "target consumer", "target admin"],
    };
    ClusterConfig {
        alias: alias.clone(),
        consumer: consumer(consumer_name, &layer(ClientKind::Consumer), sections),
        admin: {
            let layer = layer(ClientKind::Admin);
            let tables = ClientKind::Admin.tables();
            let mut reader = Reader::new(admin_name, &layer, &tables);
            let client = client(&mut reader, Duration::from_millis(300_000));
            sections.push(reader.into_section());
            client
        },
        producer: producer(producer_name, &layer(ClientKind::Producer), sections),
    }
}

/// Kafka's clients close unused connections after nine minutes, its admin clients after five.
const CLIENT_MAX_IDLE: Duration = Duration::from_millis(540_000);

fn client(reader: &mut Reader<'_>, max_idle: Duration) -> ClientConfig {
    let addresses = reader.text("bootstrap.servers").unwrap_or_default();
    let _ = reader.text("security.protocol");
    ClientConfig {
        bootstrap: value::addresses(&addresses),
        security: Security::Plaintext,
        client_id: reader.optional("client.id"),
        request_timeout: reader.millis("request.timeout.ms"),
        metadata_max_age: reader.millis("metadata.max.age.ms"),
        reconnect_backoff: backoff(reader, "reconnect.backoff.ms", "reconnect.backoff.max.ms"),
        retry_backoff: backoff(reader, "retry.backoff.ms", "retry.backoff.max.ms"),
        connection_setup_timeout: backoff(
            reader,
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
        ),
        connections_max_idle: {
            let default = max_idle.as_millis().to_string();
            let text = reader.text_or("connections.max.idle.ms", Some(&default));
            let millis = text.as_deref().and_then(value::integer).unwrap_or(-1);
            u64::try_from(millis).ok().map(Duration::from_millis)
        },
        send_buffer_bytes: buffer(reader, "send.buffer.bytes"),
        receive_buffer_bytes: buffer(reader, "receive.buffer.bytes"),
    }
}

/// A first wait above the longest one is lowered to it, as Kafka's `ExponentialBackoff` does.
fn backoff(reader: &mut Reader<'_>, initial: &str, max: &str) -> Backoff {
    let initial = reader.millis(initial);
    let max = reader.millis(max);
    Backoff {
        initial: initial.min(max),
        max,
    }
}

fn buffer(reader: &mut Reader<'_>, name: &str) -> Option<u32> {
    let bytes = reader.optional(name)?;
    value::integer(&bytes).and_then(|bytes| u32::try_from(bytes).ok())
}

fn consumer(name: &'static str, layer: &Layer, sections: &mut Vec<Section>) -> ConsumerConfig {
    let tables = ClientKind::Consumer.tables();
    let mut reader = Reader::new(name, layer, &tables);
    let config = ConsumerConfig {
        client: client(&mut reader, CLIENT_MAX_IDLE),
        client_rack: reader.optional("client.rack"),
        fetch_max_wait: reader.millis("fetch.max.wait.ms"),
        fetch_min_bytes: reader.number("fetch.min.bytes"),
        fetch_max_bytes: reader.number("fetch.max.bytes"),
        max_partition_fetch_bytes: reader.number("max.partition.fetch.bytes"),
        isolation: match reader.text("isolation.level").as_deref() {
            Some("read_uncommitted") => Isolation::ReadUncommitted,
            _ => Isolation::ReadCommitted,
        },
        auto_offset_reset: match reader.text("auto.offset.reset").as_deref() {
            Some("latest") => OffsetReset::Latest,
            Some("none") => OffsetReset::None,
            _ => OffsetReset::Earliest,
        },
    };
    sections.push(reader.into_section());
    config
}

fn producer(name: &'static str, layer: &Layer, sections: &mut Vec<Section>) -> ProducerConfig {
    let tables = ClientKind::Producer.tables();
    let mut reader = Reader::new(name, layer, &tables);
    let config = ProducerConfig {
        client: client(&mut reader, CLIENT_MAX_IDLE),
        compression: compression(&mut reader),
        max_request_bytes: reader
            .optional("max.request.size")
            .and_then(|bytes| bytes.parse().ok()),
        linger: {
            let linger = reader.text_or("linger.ms", Some("0"));
            let millis = linger
                .as_deref()
                .and_then(value::integer)
                .unwrap_or_default();
            Duration::from_millis(u64::try_from(millis).unwrap_or_default())
        },
    };
    sections.push(reader.into_section());
    config
}

fn compression(reader: &mut Reader<'_>) -> Option<Compression> {
    let codec = reader.optional("compression.type")?;
    let mut level = |name: &str| {
        let level = reader.optional(name)?;
        value::integer(&level).and_then(|level| i32::try_from(level).ok())
    };
    match codec.as_str() {
        "gzip" => Some(Compression::Gzip(
            level("compression.gzip.level").filter(|l| *l > 0),
        )),
        "snappy" => Some(Compression::Snappy),
        "lz4" => Some(Compression::Lz4(level("compression.lz4.level"))),
        "zstd" => Some(Compression::Zstd(level("compression.zstd.level"))),
        _ => Some(Compression::None),
    }
}

fn worker_config(layer: &Layer, sections: &mut Vec<Section>) -> WorkerConfig {
    let mut reader = Reader::new("worker", layer, &[Table::Worker, Table::Security]);
    let config = WorkerConfig {
        client: client(&mut reader, CLIENT_MAX_IDLE),
        offsets_topic: internal_topic(&mut reader, "offset.storage", true),
        config_topic: internal_topic(&mut reader, "config.storage", false),
        status_topic: internal_topic(&mut reader, "status.storage", true),
        group_id: reader.text("group.id").unwrap_or_default(),
        offset_flush_interval: reader.millis("offset.flush.interval.ms"),
        offset_flush_timeout: reader.millis("offset.flush.timeout.ms"),
        task_shutdown_timeout: reader.millis("task.shutdown.graceful.timeout.ms"),
    };
    sections.push(reader.into_section());
    config
}

fn internal_topic(reader: &mut Reader<'_>, name: &str, has_partitions: bool) -> InternalTopic {
    InternalTopic {
        name: Topic::from(reader.text(&format!("{name}.topic")).unwrap_or_default()),
        partitions: if has_partitions {
            u32::try_from(reader.integer(&format!("{name}.partitions"))).ok()
        } else {
            Some(1)
        },
        replication_factor: replication_factor(reader, &format!("{name}.replication.factor")),
    }
}

fn replication_factor(reader: &mut Reader<'_>, name: &str) -> ReplicationFactor {
    match i16::try_from(reader.integer(name)) {
        Ok(copies) if copies > 0 => ReplicationFactor::Copies(copies),
        _ => ReplicationFactor::BrokerDefault,
    }
}

fn policy(reader: &mut Reader<'_>, connector: &Layer, source: &ClusterAlias) -> ReplicationPolicy {
    let class = reader.text("replication.policy.class");
    let policy = if class.as_deref() == Some(IDENTITY) {
        ReplicationPolicy::identity(Some(source.clone()))
    } else {
        ReplicationPolicy::new()
    };
    let _ = reader.text("replication.policy.separator");
    let also_internal = reader.boolean("replication.policy.internal.topic.separator.enabled");
    // The policy gets the text as it was written: a separator may be a blank. The switch for
    // internal topics is looked at only where a separator is written, as in Java.
    match connector.get("replication.policy.separator") {
        Some(separator) => policy.with_separator(&separator.text, also_internal),
        None => policy,
    }
}

fn offset_syncs(
    reader: &mut Reader<'_>,
    policy: &ReplicationPolicy,
    flow: &Flow,
) -> Option<OffsetSyncsConfig> {
    let enabled = reader.boolean("emit.offset-syncs.enabled");
    let location = match reader.text("offset-syncs.topic.location").as_deref() {
        Some("target") => Side::Target,
        _ => Side::Source,
    };
    let config = OffsetSyncsConfig {
        topic: policy.offset_syncs_topic(match location {
            Side::Source => &flow.target,
            Side::Target => &flow.source,
        }),
        location,
        replication_factor: replication_factor(reader, "offset-syncs.topic.replication.factor"),
        offset_lag_max: u64::try_from(reader.integer("offset.lag.max")).unwrap_or_default(),
    };
    enabled.then_some(config)
}

fn checkpoints(
    reader: &mut Reader<'_>,
    policy: &ReplicationPolicy,
    flow: &Flow,
    patterns: &mut Patterns,
) -> CheckpointConfig {
    CheckpointConfig {
        groups: GroupFilter {
            include: patterns.read(reader, "groups"),
            exclude: patterns.read(reader, "groups.exclude"),
        },
        emit: reader.periodic("emit.checkpoints"),
        refresh_groups: reader.periodic("refresh.groups"),
        sync_group_offsets: reader.periodic("sync.group.offsets"),
        topic: policy.checkpoints_topic(&flow.source),
        replication_factor: replication_factor(reader, "checkpoints.topic.replication.factor"),
    }
}
