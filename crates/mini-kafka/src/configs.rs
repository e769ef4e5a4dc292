//! Settings of topics and brokers: names, defaults, checks, and which source wins
//! (`LogConfig`, `KafkaConfig`, `ConfigHelper`).

use std::collections::BTreeMap;

use kafka_protocol::ResponseError::InvalidConfig;

use crate::log::compression;
use crate::log::validate::Rules;
use crate::refusal::Refusal;

/// Overrides by name.
pub(crate) type Overrides = BTreeMap<String, String>;

/// What values look like; the numbers are `DescribeConfigsResponse.ConfigType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Kind {
    Boolean = 1,
    Text = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// Where a value comes from; the numbers are `DescribeConfigsResponse.ConfigSource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Source {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
}

/// One setting that a topic can have.
#[derive(Debug)]
pub(crate) struct TopicKey {
    pub name: &'static str,
    pub kind: Kind,
    pub default: &'static str,
    /// The broker setting that is its default; empty if there is none.
    pub broker_name: &'static str,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    broker_name: &'static str,
) -> TopicKey {
    TopicKey {
        name,
        kind,
        default,
        broker_name,
    }
}

const LONG_MAX: &str = "9223372036854775807";

/// All topic settings of Kafka 4.3, sorted by name.
#[rustfmt::skip]
pub(crate) const TOPIC_KEYS: &[TopicKey] = &[
    key("cleanup.policy", Kind::List, "delete", "log.cleanup.policy"),
    key("compression.gzip.level", Kind::Int, "-1", "compression.gzip.level"),
    key("compression.lz4.level", Kind::Int, "9", "compression.lz4.level"),
    key("compression.type", Kind::Text, "producer", "compression.type"),
    key("compression.zstd.level", Kind::Int, "3", "compression.zstd.level"),
    key("delete.retention.ms", Kind::Long, "86400000", "log.cleaner.delete.retention.ms"),
    key("file.delete.delay.ms", Kind::Long, "60000", "log.segment.delete.delay.ms"),
    key("flush.messages", Kind::Long, LONG_MAX, "log.flush.interval.messages"),
    key("flush.ms", Kind::Long, LONG_MAX, "log.flush.interval.ms"),
    key("follower.replication.throttled.replicas", Kind::List, "", ""),
    key("index.interval.bytes", Kind::Int, "4096", "log.index.interval.bytes"),
    key("leader.replication.throttled.replicas", Kind::List, "", ""),
    key("local.retention.bytes", Kind::Long, "-2", "log.local.retention.bytes"),
    key("local.retention.ms", Kind::Long, "-2", "log.local.retention.ms"),
    key("max.compaction.lag.ms", Kind::Long, LONG_MAX, "log.cleaner.max.compaction.lag.ms"),
    key("max.message.bytes", Kind::Int, "1048588", "message.max.bytes"),
    key("message.timestamp.after.max.ms", Kind::Long, "3600000", "log.message.timestamp.after.max.ms"),
    key("message.timestamp.before.max.ms", Kind::Long, LONG_MAX, "log.message.timestamp.before.max.ms"),
    key("message.timestamp.type", Kind::Text, "CreateTime", "log.message.timestamp.type"),
    key("min.cleanable.dirty.ratio", Kind::Double, "0.5", "log.cleaner.min.cleanable.ratio"),
    key("min.compaction.lag.ms", Kind::Long, "0", "log.cleaner.min.compaction.lag.ms"),
    key("min.insync.replicas", Kind::Int, "1", "min.insync.replicas"),
    key("preallocate", Kind::Boolean, "false", "log.preallocate"),
    key("remote.log.copy.disable", Kind::Boolean, "false", ""),
    key("remote.log.delete.on.disable", Kind::Boolean, "false", ""),
    key("remote.storage.enable", Kind::Boolean, "false", ""),
    key("retention.bytes", Kind::Long, "-1", "log.retention.bytes"),
    key("retention.ms", Kind::Long, "604800000", "log.retention.ms"),
    key("segment.bytes", Kind::Int, "1073741824", "log.segment.bytes"),
    key("segment.index.bytes", Kind::Int, "10485760", "log.index.size.max.bytes"),
    key("segment.jitter.ms", Kind::Long, "0", "log.roll.jitter.ms"),
    key("segment.ms", Kind::Long, "604800000", "log.roll.ms"),
    key("unclean.leader.election.enable", Kind::Boolean, "false", "unclean.leader.election.enable"),
];

impl TopicKey {
    /// The setting called `name`.
    pub fn find(name: &str) -> Option<&'static TopicKey> {
        TOPIC_KEYS.iter().find(|key| key.name == name)
    }

    /// Whether `value` is one that the broker takes.
    pub fn check(&self, value: &str) -> Result<(), Refusal> {
        let fits = match self.kind {
            Kind::Boolean => matches!(value.to_ascii_lowercase().as_str(), "true" | "false"),
            Kind::Int => value
                .trim()
                .parse::<i32>()
                .is_ok_and(|n| self.allows(n.into())),
            Kind::Long => value.trim().parse::<i64>().is_ok_and(|n| self.allows(n)),
            Kind::Double => value
                .trim()
                .parse::<f64>()
                .is_ok_and(|n| (0.0..=1.0).contains(&n)),
            Kind::Text | Kind::List => self.allows_text(value),
        };
        if fits {
            return Ok(());
        }
        Err(Refusal::new(
            InvalidConfig,
            format!("Invalid value {value} for configuration {}", self.name),
        ))
    }

    fn allows(&self, value: i64) -> bool {
        match self.name {
            "min.insync.replicas" => value >= 1,
            "segment.bytes" => value >= 1024 * 1024,
            "segment.ms" => value >= 1,
            "retention.ms" | "compression.gzip.level" => value >= -1,
            "local.retention.ms" | "local.retention.bytes" => value >= -2,
            "retention.bytes" | "compression.zstd.level" => true,
            _ => value >= 0,
        }
    }

    fn allows_text(&self, value: &str) -> bool {
        match self.name {
            "cleanup.policy" => value
                .split(',')
                .all(|p| matches!(p.trim(), "delete" | "compact" | "")),
            "compression.type" => value == "producer" || compression::NAMES.contains(&value),
            "message.timestamp.type" => matches!(value, "CreateTime" | "LogAppendTime"),
            _ => true,
        }
    }
}

/// The settings in force, from the most to the least specific source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers<'a> {
    /// The topic's own.
    pub topic: Option<&'a Overrides>,
    /// Altered on one broker.
    pub broker: Option<&'a Overrides>,
    /// Altered for all brokers.
    pub all_brokers: Option<&'a Overrides>,
    /// The brokers' properties file.
    pub file: &'a Overrides,
}

impl<'a> Layers<'a> {
    /// Every source that has a value for `key`, the winning one first: name there, value, source.
    pub fn values(&self, key: &'static TopicKey) -> Vec<(&'static str, &'a str, Source)> {
        let layers = [
            (self.topic, key.name, Source::Topic),
            (self.broker, key.broker_name, Source::DynamicBroker),
            (
                self.all_brokers,
                key.broker_name,
                Source::DynamicDefaultBroker,
            ),
            (Some(self.file), key.broker_name, Source::StaticBroker),
        ];
        let written = layers.into_iter().filter_map(|(overrides, name, source)| {
            overrides?
                .get(name)
                .map(|value| (name, value.as_str(), source))
        });
        let default_name = if key.broker_name.is_empty() {
            key.name
        } else {
            key.broker_name
        };
        written
            .chain([(default_name, key.default, Source::Default)])
            .collect()
    }

    /// The value in force of the topic setting `name`.
    pub fn text(&self, name: &str) -> &'a str {
        TopicKey::find(name).map_or("", |key| self.values(key)[0].1)
    }

    fn number(&self, name: &str) -> i64 {
        self.text(name).trim().parse().unwrap_or(0)
    }

    /// How many replicas must be in sync for acks=all.
    pub fn min_insync_replicas(&self) -> usize {
        self.number("min.insync.replicas").max(1) as usize
    }

    /// Whether the topic is compacted, and whether it may be deleted from.
    pub fn cleanup(&self) -> (bool, bool) {
        let policy = self.text("cleanup.policy");
        let has = |wanted: &str| policy.split(',').any(|part| part.trim() == wanted);
        (has("compact"), has("delete"))
    }

    /// What Produce checks.
    pub fn rules(&self) -> Rules {
        let codec_name = self.text("compression.type");
        Rules {
            batch_bytes_max: self.number("max.message.bytes"),
            segment_bytes: self.number("segment.bytes"),
            compacted: self.cleanup().0,
            append_time: self.text("message.timestamp.type") == "LogAppendTime",
            before_max_ms: self.number("message.timestamp.before.max.ms"),
            after_max_ms: self.number("message.timestamp.after.max.ms"),
            codec: compression::NAMES
                .iter()
                .position(|n| *n == codec_name)
                .map(|n| n as u8),
        }
    }
}
