//! Keys of Kafka's clients.

use super::Kind::*;
use super::Status::*;
use super::{BUFFER, COUNT, INT, Key, LONG, MILLIS, POSITIVE, key, unset};

const MOVED: super::Status = Later("resilience to moved brokers");
const NO_PLUGINS: super::Status = NotApplicable("there is no JVM to load a class into");
const NO_JVM_METRICS: super::Status =
    NotApplicable("metrics are offered over HTTP, without windows of samples");
const NO_PUSH: super::Status = NotApplicable("metrics are not pushed to brokers");
const BYTES: super::Status = NotApplicable("bytes are copied as they are");
const NO_GROUP: super::Status =
    NotApplicable("partitions are assigned by the mirror, not by a consumer group");
const ALWAYS: super::Status =
    NotApplicable("delivery is always idempotent, in order and acknowledged by all replicas");
const FOREVER: super::Status =
    NotApplicable("a record is tried until it is written or its partition is paused with a reason");
const NO_PARTITIONER: super::Status = NotApplicable("a record stays in its partition");
const BATCHES: super::Status = NotApplicable("batches are kept as the source has them");

#[rustfmt::skip]
pub(super) const ANY_CLIENT: &[Key] = &[
    key("client.dns.lookup", OneOf(&["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]), "use_all_dns_ips", MOVED,
        "How host names become addresses."),
    key("client.id", Text, "", Effective, "What stands before the client ids that the mirror makes."),
    key("config.providers", List, "", Later("config providers"), "Names of the providers that resolve `${provider:path:key}` in values."),
    key("connections.max.idle.ms", LONG, "540000", Effective, "After how long an unused connection is closed; negative for never. Admin clients: 300000."),
    key("enable.metrics.push", Boolean, "true", NO_PUSH, "Whether the client sends its metrics to brokers."),
    key("metadata.max.age.ms", MILLIS, "300000", Effective, "How old metadata may be before it is asked for again."),
    key("metadata.recovery.rebootstrap.trigger.ms", MILLIS, "300000", MOVED, "After how long without metadata the bootstrap addresses are asked again."),
    key("metadata.recovery.strategy", OneOfAnyCase(&["rebootstrap", "none"]), "rebootstrap", MOVED, "What to do when no known broker answers."),
    key("metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", NO_PLUGINS, "Classes that report metrics."),
    key("metrics.num.samples", POSITIVE, "2", NO_JVM_METRICS, "Samples per metric."),
    key("metrics.recording.level", OneOf(&["INFO", "DEBUG", "TRACE"]), "INFO", NO_JVM_METRICS, "Which metrics are kept."),
    key("metrics.sample.window.ms", MILLIS, "30000", NO_JVM_METRICS, "The length of a sample."),
    key("receive.buffer.bytes", BUFFER, "65536", Effective,
        "The socket's receive buffer; -1 leaves it to the system. Without this key it is left to the system, which tunes it."),
    key("reconnect.backoff.max.ms", MILLIS, "1000", Effective, "The longest wait before connecting again."),
    key("reconnect.backoff.ms", MILLIS, "50", Effective, "The first wait before connecting again."),
    key("request.timeout.ms", COUNT, "30000", Effective, "How long a request may take."),
    key("retry.backoff.max.ms", MILLIS, "1000", Effective, "The longest wait before a request is tried again."),
    key("retry.backoff.ms", MILLIS, "100", Effective, "The first wait before a request is tried again."),
    unset("security.providers", Text, NO_PLUGINS, "Classes of security providers."),
    key("send.buffer.bytes", BUFFER, "131072", Effective,
        "The socket's send buffer; -1 leaves it to the system. Without this key it is left to the system, which tunes it."),
    key("socket.connection.setup.timeout.max.ms", MILLIS, "30000", NotApplicable("every attempt takes as long as the first"), "The longest time connecting may take."),
    key("socket.connection.setup.timeout.ms", MILLIS, "10000", Effective, "The first time connecting may take."),
];

#[rustfmt::skip]
pub(super) const PRODUCER: &[Key] = &[
    key("acks", OneOf(&["all", "-1", "0", "1"]), "all", ALWAYS, "Which replicas must have a record."),
    key("auto.include.jmx.reporter", Boolean, "true", Removed("remove the line"), "Whether metrics are reported by JMX."),
    key("batch.size", COUNT, "16384", BATCHES, "The size of a batch in bytes."),
    key("buffer.memory", MILLIS, "33554432", NotApplicable("memory is bounded for the whole process"), "Memory of the producer in bytes."),
    key("compression.gzip.level", Integer(-1, 9), "-1", Later("compression levels"), "The level with `compression.type = gzip`: 1 to 9, or -1 for the codec's default."),
    key("compression.lz4.level", Integer(1, 17), "9", Later("compression levels"), "The level with `compression.type = lz4`."),
    unset("compression.type", OneOf(&["none", "gzip", "snappy", "lz4", "zstd"]), Effective,
        "Re-encode everything to this codec. Unset, each batch keeps the codec it has, where Kafka would write it uncompressed."),
    key("compression.zstd.level", Integer(-131_072, 22), "3", Later("compression levels"), "The level with `compression.type = zstd`."),
    key("delivery.timeout.ms", COUNT, "120000", FOREVER, "How long a record is tried."),
    key("enable.idempotence", Boolean, "true", ALWAYS, "Whether the broker drops repeated batches."),
    key("interceptor.classes", List, "", NO_PLUGINS, "Classes that see records before they are written."),
    unset("key.serializer", AnyClass, BYTES, "The class that makes bytes of keys."),
    key("linger.ms", MILLIS, "5", Later("merging of small batches"), "How long to gather records before a request is sent."),
    key("max.block.ms", MILLIS, "60000", FOREVER, "How long writing may block."),
    key("max.in.flight.requests.per.connection", POSITIVE, "5", ALWAYS, "Requests on their way at a time."),
    unset("max.request.size", COUNT, Effective,
        "The largest batch. Unset, the topics' `max.message.bytes` decides, so that a record that fits both topics passes."),
    key("metadata.max.idle.ms", Integer(5000, i64::MAX), "300000", NotApplicable("topics are watched while the flow runs"), "How long an unused topic is remembered."),
    key("partitioner.adaptive.partitioning.enable", Boolean, "true", NO_PARTITIONER, "Whether faster partitions get more."),
    key("partitioner.availability.timeout.ms", MILLIS, "0", NO_PARTITIONER, "After how long a slow partition is avoided."),
    unset("partitioner.class", AnyClass, NO_PARTITIONER, "The class that chooses a partition."),
    key("partitioner.ignore.keys", Boolean, "false", NO_PARTITIONER, "Whether keys decide the partition."),
    key("retries", COUNT, "2147483647", FOREVER, "How often a record is tried again."),
    key("transaction.timeout.ms", INT, "60000", Later("exactly-once delivery"), "After how long the broker ends a transaction."),
    key("transaction.two.phase.commit.enable", Boolean, "false", Later("exactly-once delivery"), "Whether transactions are ended from outside."),
    unset("transactional.id", NonEmpty, Later("exactly-once delivery"), "The name of the transactional producer."),
    unset("value.serializer", AnyClass, BYTES, "The class that makes bytes of values."),
];

#[rustfmt::skip]
pub(super) const CONSUMER: &[Key] = &[
    key("allow.auto.create.topics", Boolean, "true", NotApplicable("reading never creates a topic"), "Whether asking for a topic may create it."),
    key("auto.commit.interval.ms", COUNT, "5000", NO_GROUP, "How often positions are committed."),
    key("auto.include.jmx.reporter", Boolean, "true", Removed("remove the line"), "Whether metrics are reported by JMX."),
    key("auto.offset.reset", OneOf(&["earliest", "latest", "none"]), "earliest", Effective,
        "Where to begin in a partition without a position. Kafka's `by_duration:` isn't supported."),
    key("check.crcs", Boolean, "true", NotApplicable("checksums are carried on, so that the target's broker checks what the source's broker wrote"), "Whether checksums are compared."),
    key("client.rack", Text, "", Effective, "Read from a replica in this rack where there is one."),
    key("default.api.timeout.ms", COUNT, "60000", NotApplicable("each request has a time limit of its own"), "How long a call may take."),
    key("enable.auto.commit", Boolean, "false", NO_GROUP, "Whether positions are committed to a group."),
    key("exclude.internal.topics", Boolean, "true", NO_GROUP, "Whether subscriptions see internal topics."),
    key("fetch.max.bytes", COUNT, "52428800", Effective, "The size of one answer."),
    key("fetch.max.wait.ms", COUNT, "500", Effective, "How long a broker may hold a request that finds nothing."),
    key("fetch.min.bytes", COUNT, "1", Effective, "How much a broker gathers before it answers."),
    unset("group.id", Text, NO_GROUP, "The consumer's group."),
    unset("group.instance.id", NonEmpty, NO_GROUP, "The consumer's name in its group."),
    key("group.protocol", OneOfAnyCase(&["classic", "consumer"]), "classic", NO_GROUP, "How the group works."),
    unset("group.remote.assignor", Text, NO_GROUP, "Who assigns partitions."),
    key("heartbeat.interval.ms", INT, "3000", NO_GROUP, "How often the consumer tells its group that it lives."),
    key("interceptor.classes", List, "", NO_PLUGINS, "Classes that see records after they are read."),
    key("isolation.level", OneOf(&["read_committed", "read_uncommitted"]), "read_committed", Effective,
        "Whether records of open and aborted transactions are read. Kafka's default is `read_uncommitted`, which mirrors aborted records."),
    unset("key.deserializer", AnyClass, BYTES, "The class that makes keys of bytes."),
    key("max.partition.fetch.bytes", COUNT, "1048576", Effective, "The share of one partition in an answer."),
    key("max.poll.interval.ms", POSITIVE, "300000", NO_GROUP, "How long a consumer may work before it asks again."),
    key("max.poll.records", POSITIVE, "500", BATCHES, "Records of one poll."),
    key("partition.assignment.strategy", List, "", NO_GROUP, "How partitions are assigned."),
    key("session.timeout.ms", INT, "45000", NO_GROUP, "After how long without a sign of life a consumer is out."),
    key("share.acknowledgement.mode", OneOf(&["implicit", "explicit"]), "implicit", NO_GROUP, "How share groups acknowledge."),
    key("share.acquire.mode", OneOf(&["batch_optimized", "record_limit"]), "batch_optimized", NO_GROUP, "How share groups acquire."),
    unset("value.deserializer", AnyClass, BYTES, "The class that makes values of bytes."),
];

#[rustfmt::skip]
pub(super) const ADMIN: &[Key] = &[
    key("auto.include.jmx.reporter", Boolean, "true", Removed("remove the line"), "Whether metrics are reported by JMX."),
    key("bootstrap.controllers", List, "", NotApplicable("only brokers are talked to"), "Addresses of controllers."),
    key("default.api.timeout.ms", COUNT, "60000", NotApplicable("each request has a time limit of its own"), "How long a call may take."),
    key("retries", COUNT, "2147483647", FOREVER, "How often a request is tried again."),
];
