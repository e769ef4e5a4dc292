//! Keys of the flow's worker.

use super::Kind::*;
use super::Status::*;
use super::{BUFFER, COPIES, COUNT, INT, Key, LONG, MILLIS, PARTITIONS, POSITIVE, key, unset};

const GROUP: super::Status = Later("the Connect worker");
const REST: super::Status = Later("the REST server");
const NO_PLUGINS: super::Status =
    NotApplicable("what runs is built in; there is no JVM to load plugins");
const NO_JVM_METRICS: super::Status =
    NotApplicable("metrics are offered over HTTP, without windows of samples");
const BYTES: &str = "org.apache.kafka.connect.converters.ByteArrayConverter";

#[rustfmt::skip]
pub(super) const WORKER: &[Key] = &[
    key("access.control.allow.methods", Text, "", REST, "HTTP methods that other origins may use."),
    key("access.control.allow.origin", Text, "", REST, "Origins that browsers may call the REST server from."),
    unset("admin.listeners", List, REST, "Addresses of the administrative endpoints."),
    key("client.dns.lookup", OneOf(&["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]), "use_all_dns_ips",
        Later("resilience to moved brokers"), "How host names become addresses."),
    unset("client.id", Text, Effective, "The name of the worker's client; `S->T` when unset."),
    key("config.providers", List, "", Later("config providers"), "Names of the providers that resolve `${provider:path:key}` in values."),
    key("config.storage.replication.factor", COPIES, "3", GROUP, "Copies of the topic of connector configurations; -1 is the broker's default."),
    unset("config.storage.topic", NonEmpty, GROUP, "The topic of connector configurations; `mm2-configs.<S>.internal` when unset."),
    key("connect.protocol", OneOf(&["eager", "compatible", "sessioned"]), "sessioned", GROUP, "How workers of a group share the work."),
    key("connections.max.idle.ms", LONG, "540000", Effective, "After how long an unused connection is closed; negative for never."),
    key("connector.client.config.override.policy", OneOf(&["None", "Principal", "All", "Allowlist"]), "All", GROUP,
        "Which client settings a connector may override."),
    key("exactly.once.source.support", OneOfAnyCase(&["disabled", "preparing", "enabled"]), "disabled", Later("exactly-once delivery"),
        "Whether records and positions are written in one transaction."),
    unset("group.id", NonEmpty, Effective, "The worker's group on the target; `<S>-mm2` when unset. No two flows to one target may share it."),
    key("header.converter", Class(&[BYTES]), BYTES, Effective, "How record headers are converted: not at all."),
    unset("header.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
    key("heartbeat.interval.ms", INT, "3000", GROUP, "How often the worker tells its group that it lives."),
    key("inter.worker.key.generation.algorithm", Text, "HmacSHA256", GROUP, "How the key of internal requests is made."),
    unset("inter.worker.key.size", INT, GROUP, "Its size in bits."),
    key("inter.worker.key.ttl.ms", COUNT, "3600000", GROUP, "How long it is valid."),
    key("inter.worker.signature.algorithm", Text, "HmacSHA256", GROUP, "How internal requests are signed."),
    key("inter.worker.verification.algorithms", List, "HmacSHA256", GROUP, "Which signatures are accepted."),
    key("key.converter", Class(&[BYTES]), BYTES, Effective, "How record keys are converted: not at all."),
    unset("key.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
    key("listeners", List, "http://:8083", REST, "Addresses the REST server listens on."),
    key("metadata.max.age.ms", MILLIS, "300000", Effective, "How old metadata may be before it is asked for again."),
    key("metadata.recovery.rebootstrap.trigger.ms", MILLIS, "300000", Later("resilience to moved brokers"),
        "After how long without metadata the bootstrap addresses are asked again."),
    key("metadata.recovery.strategy", OneOfAnyCase(&["rebootstrap", "none"]), "rebootstrap", Later("resilience to moved brokers"),
        "What to do when no known broker answers."),
    key("metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", NO_PLUGINS, "Classes that report metrics."),
    key("metrics.num.samples", POSITIVE, "2", NO_JVM_METRICS, "Samples per metric."),
    key("metrics.recording.level", OneOf(&["INFO", "DEBUG"]), "INFO", NO_JVM_METRICS, "Which metrics are kept."),
    key("metrics.sample.window.ms", MILLIS, "30000", NO_JVM_METRICS, "The length of a sample."),
    key("offset.flush.interval.ms", LONG, "60000", Effective, "How often positions are stored."),
    key("offset.flush.timeout.ms", LONG, "5000", Effective, "How long storing them may take."),
    key("offset.storage.partitions", PARTITIONS, "25", Effective, "Partitions of the topic of positions; -1 is the broker's default."),
    key("offset.storage.replication.factor", COPIES, "3", Effective, "Its copies; -1 is the broker's default."),
    unset("offset.storage.topic", NonEmpty, Effective, "Its name; `mm2-offsets.<S>.internal` when unset."),
    key("plugin.discovery", OneOfAnyCase(&["only_scan", "service_load", "hybrid_warn", "hybrid_fail"]), "hybrid_warn", NO_PLUGINS, "How plugins are found."),
    unset("plugin.path", List, NO_PLUGINS, "Where plugins are found."),
    key("rebalance.timeout.ms", INT, "60000", GROUP, "How long a worker may take to join again."),
    key("receive.buffer.bytes", BUFFER, "32768", Effective, "The socket's receive buffer; -1 leaves it to the system."),
    key("reconnect.backoff.max.ms", MILLIS, "1000", Effective, "The longest wait before connecting again."),
    key("reconnect.backoff.ms", MILLIS, "50", Effective, "The first wait before connecting again."),
    key("request.timeout.ms", COUNT, "40000", Effective, "How long a request may take."),
    key("response.http.headers.config", Text, "", REST, "Headers to add to every answer."),
    unset("rest.advertised.host.name", Text, REST, "The host name other nodes reach this one under."),
    unset("rest.advertised.listener", Text, REST, "The listener that is advertised."),
    unset("rest.advertised.port", INT, REST, "The port other nodes reach this one under."),
    key("rest.extension.classes", List, "", NO_PLUGINS, "Classes that extend the REST server."),
    key("retry.backoff.max.ms", MILLIS, "1000", Effective, "The longest wait before a request is tried again."),
    key("retry.backoff.ms", MILLIS, "100", Effective, "The first wait before a request is tried again."),
    key("scheduled.rebalance.max.delay.ms", COUNT, "300000", GROUP, "How long the work of a worker that left is kept for it."),
    key("send.buffer.bytes", BUFFER, "131072", Effective, "The socket's send buffer; -1 leaves it to the system."),
    key("session.timeout.ms", INT, "10000", GROUP, "After how long without a sign of life a worker is out."),
    key("socket.connection.setup.timeout.max.ms", MILLIS, "30000", NotApplicable("every attempt takes as long as the first"), "The longest time connecting may take."),
    key("socket.connection.setup.timeout.ms", MILLIS, "10000", Effective, "The first time connecting may take."),
    key("ssl.client.auth", OneOf(&["required", "requested", "none"]), "none", REST, "Whether clients of the REST server must show a certificate."),
    key("status.storage.partitions", PARTITIONS, "5", GROUP, "Partitions of the topic of states; -1 is the broker's default."),
    key("status.storage.replication.factor", COPIES, "3", GROUP, "Its copies; -1 is the broker's default."),
    unset("status.storage.topic", NonEmpty, GROUP, "Its name; `mm2-status.<S>.internal` when unset."),
    key("task.shutdown.graceful.timeout.ms", LONG, "5000", Effective, "How long tasks may take to stop."),
    key("topic.creation.enable", Boolean, "true", GROUP, "Whether connectors may have topics made by the worker."),
    key("topic.tracking.allow.reset", Boolean, "true", GROUP, "Whether the list of a connector's topics may be emptied."),
    key("topic.tracking.enable", Boolean, "true", GROUP, "Whether that list is kept."),
    key("value.converter", Class(&[BYTES]), BYTES, Effective, "How record values are converted: not at all."),
    unset("value.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
    key("worker.sync.timeout.ms", INT, "3000", GROUP, "How long to wait for the newest configuration."),
    key("worker.unsync.backoff.ms", INT, "300000", GROUP, "How long to stay away after that failed."),
];
