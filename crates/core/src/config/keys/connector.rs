//! Keys of the process and of the three mirror connectors.

use super::Kind::*;
use super::Status::*;
use super::{BUFFER_MEMORY, COPIES, INT, Key, LONG, POSITIVE, key, unset};

const REST: super::Status = Later("the REST server");
const GROUPS: super::Status = Later("checkpoints and group offsets");
const HEARTBEATS: super::Status = Later("heartbeats");
const SYNCS: super::Status = Later("offset syncs");
const SYNC: super::Status = Later("synchronisation of settings and permissions");
const TRANSFORMS: super::Status = Later("transforms");
const METRICS: super::Status = Later("metrics");
const EXACTLY_ONCE: super::Status = Later("exactly-once delivery");
const NO_REPORTERS: super::Status =
    NotApplicable("there is no JVM to load a class into; metrics are offered over HTTP");
const NO_PLUGINS: super::Status =
    NotApplicable("what runs is built in; there is no JVM to load plugins");
const NO_ERRORS: super::Status =
    NotApplicable("bytes are copied without conversion, so no record fails to convert");
const INTERNAL: super::Status =
    NotApplicable("MirrorMaker writes it itself; it has no effect in a file");

const BYTES: &str = "org.apache.kafka.connect.converters.ByteArrayConverter";

pub(super) const DRIVER: &[Key] = &[
    key(
        "access.control.allow.methods",
        Text,
        "",
        REST,
        "HTTP methods that other origins may use.",
    ),
    key(
        "access.control.allow.origin",
        Text,
        "",
        REST,
        "Origins that browsers may call the REST server from.",
    ),
    unset(
        "admin.listeners",
        List,
        REST,
        "Addresses of the administrative endpoints; unset: those of `listeners`.",
    ),
    unset(
        "clusters",
        List,
        Effective,
        "The aliases of all clusters, separated by commas. Every ordered pair of them is a possible flow.",
    ),
    key(
        "config.providers",
        List,
        "",
        Later("config providers"),
        "Names of the providers that resolve `${provider:path:key}` in values.",
    ),
    key(
        "dedicated.mode.enable.internal.rest",
        Boolean,
        "false",
        REST,
        "Let the nodes of one cluster of mirrors talk to each other over HTTP.",
    ),
    key(
        "listeners",
        List,
        "http://:8083",
        REST,
        "Addresses the REST server listens on.",
    ),
    key(
        "response.http.headers.config",
        Text,
        "",
        REST,
        "Headers to add to every answer.",
    ),
    unset(
        "rest.advertised.host.name",
        Text,
        REST,
        "The host name other nodes reach this one under.",
    ),
    unset(
        "rest.advertised.listener",
        Text,
        REST,
        "The listener (`http` or `https`) that is advertised.",
    ),
    unset(
        "rest.advertised.port",
        INT,
        REST,
        "The port other nodes reach this one under.",
    ),
    key(
        "rest.extension.classes",
        List,
        "",
        NO_PLUGINS,
        "Classes that extend the REST server.",
    ),
    key(
        "ssl.client.auth",
        OneOf(&["required", "requested", "none"]),
        "none",
        REST,
        "Whether clients of the REST server must show a certificate.",
    ),
    key(
        "twinlog.buffer.memory",
        BUFFER_MEMORY,
        "67108864",
        Effective,
        "Bytes that fetched and not yet acknowledged records of all flows may occupy together. More does not copy \
         faster over short links. MirrorMaker 2 has no such key and ignores it.",
    ),
];

#[rustfmt::skip]
pub(super) const CONNECTOR: &[Key] = &[
    key("add.source.alias.to.metrics", Boolean, "true", Removed("remove the line: metrics always carry the source"),
        "Whether metrics carry the source's alias."),
    key("admin.timeout.ms", LONG, "60000", NotApplicable("no step waits for another; a failed one is repeated"),
        "How long an administrative step at start or stop may take."),
    key("checkpoints.topic.replication.factor", COPIES, "3", GROUPS,
        "Copies of the checkpoints topic; -1 is the broker's default."),
    key("config.action.reload", OneOf(&["none", "restart"]), "restart", Later("config providers"),
        "What to do when a value behind `${..}` changes."),
    unset("config.properties.blacklist", Patterns, Removed("write `config.properties.exclude`"),
        "The old name of `config.properties.exclude`."),
    key("config.properties.exclude", Patterns,
        "follower.replication.throttled.replicas,leader.replication.throttled.replicas,message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms,message.timestamp.type,unclean.leader.election.enable,min.insync.replicas",
        Effective, "Topic settings that are not copied."),
    key("config.property.filter.class", Class(&["org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"]),
        "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter", Effective,
        "What decides which topic settings are copied."),
    key("config.providers", List, "", Later("config providers"),
        "Names of the providers that resolve `${provider:path:key}` in values."),
    unset("connector.class", AnyClass, INTERNAL, "The class of the connector."),
    unset("connector.plugin.version", Text, NO_PLUGINS, "The version of the connector's plugin."),
    key("consumer.poll.timeout.ms", LONG, "1000", NotApplicable("reading waits for the broker, not for a poll"),
        "How long one poll of the replicating consumer may take."),
    key("emit.checkpoints.enabled", Boolean, "true", GROUPS, "Whether checkpoints are written."),
    key("emit.checkpoints.interval.seconds", LONG, "60", GROUPS, "How often checkpoints are written."),
    key("emit.heartbeats.enabled", Boolean, "true", Effective,
        "Whether heartbeats are written to the target. While it is on, every pair of clusters has a worker, enabled or not."),
    key("emit.heartbeats.interval.seconds", LONG, "1", HEARTBEATS, "How often a heartbeat is written."),
    key("emit.offset-syncs.enabled", Boolean, "true", SYNCS,
        "Whether pairs of upstream and downstream offsets are written; checkpoints need them."),
    key("enabled", Boolean, "false", Effective,
        "Whether topics of the flow are replicated. Only with a flow's prefix: `S->T.enabled = true`."),
    key("errors.log.enable", Boolean, "false", NO_ERRORS, "Whether records that fail to convert are logged."),
    key("errors.log.include.messages", Boolean, "false", NO_ERRORS, "Whether their content is logged."),
    key("errors.retry.delay.max.ms", LONG, "60000", NO_ERRORS, "The longest wait between attempts."),
    key("errors.retry.timeout", LONG, "0", NO_ERRORS, "How long to try again; -1 for ever."),
    key("errors.tolerance", OneOf(&["none", "all"]), "none", NO_ERRORS, "Whether failing records are skipped."),
    key("exactly.once.support", OneOfAnyCase(&["requested", "required"]), "requested", EXACTLY_ONCE,
        "Whether a connector without exactly-once delivery is refused."),
    key("forwarding.admin.class", Class(&["org.apache.kafka.clients.admin.ForwardingAdmin"]),
        "org.apache.kafka.clients.admin.ForwardingAdmin", Effective, "What makes topics and settings on the target."),
    key("group.filter.class", Class(&["org.apache.kafka.connect.mirror.DefaultGroupFilter"]),
        "org.apache.kafka.connect.mirror.DefaultGroupFilter", GROUPS, "What decides which groups are translated."),
    key("groups", Patterns, ".*", GROUPS, "Groups whose offsets are translated."),
    unset("groups.blacklist", Patterns, Removed("write `groups.exclude`"), "The old name of `groups.exclude`."),
    key("groups.exclude", Patterns, "console-consumer-.*,connect-.*,__.*", GROUPS, "Groups that are not, though included."),
    key("header.converter", Class(&[BYTES]), BYTES, Effective, "How record headers are converted: not at all."),
    unset("header.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
    key("heartbeats.replication.enabled", Boolean, "true", Effective,
        "Whether heartbeat topics are replicated though the topic filter rejects them."),
    key("heartbeats.topic.replication.factor", COPIES, "3", HEARTBEATS, "Copies of the heartbeats topic; -1 is the broker's default."),
    key("key.converter", Class(&[BYTES]), BYTES, Effective, "How record keys are converted: not at all."),
    unset("key.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
    key("metric.names.formats", List, "legacy", METRICS, "Which names metrics are offered under: `legacy`, `new` or both."),
    key("metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", NO_REPORTERS, "Classes that report metrics."),
    unset("name", NonEmpty, Effective,
        "The connector's name, under which positions are stored; unset: the class's simple name."),
    key("offset-syncs.topic.location", OneOf(&["source", "target"]), "source", SYNCS, "Which cluster holds the topic of offset syncs."),
    key("offset-syncs.topic.replication.factor", COPIES, "3", SYNCS, "Copies of that topic; -1 is the broker's default."),
    key("offset.lag.max", super::MILLIS, "100", SYNCS, "How many records an offset sync may be behind."),
    unset("offsets.storage.topic", NonEmpty, Later("the Connect worker"), "A topic for this connector's positions alone."),
    key("predicates", List, "", TRANSFORMS, "Aliases of the predicates that transforms use."),
    key("refresh.groups.enabled", Boolean, "true", GROUPS, "Whether groups are discovered after the start."),
    key("refresh.groups.interval.seconds", LONG, "600", GROUPS, "How often."),
    key("refresh.topics.enabled", Boolean, "true", Effective, "Whether topics and partitions are discovered after the start."),
    key("refresh.topics.interval.seconds", LONG, "5", Effective,
        "How often. Kafka's default is 600; a new topic should not wait ten minutes for its first record."),
    key("replication.factor", COPIES, "2", Effective, "Copies of each partition of a new remote topic; -1 is the broker's default."),
    key("replication.policy.class", Class(&["org.apache.kafka.connect.mirror.DefaultReplicationPolicy", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"]),
        "org.apache.kafka.connect.mirror.DefaultReplicationPolicy", Effective,
        "How topics are named on the target: with the source's alias before them, or as they are."),
    key("replication.policy.internal.topic.separator.enabled", Boolean, "true", Effective,
        "Whether a separator of one's own is used in the names of internal topics as well."),
    key("replication.policy.separator", Text, ".", Effective, "What stands between alias and topic."),
    unset("source.cluster.alias", Text, INTERNAL, "The alias of the source."),
    key("sync.group.offsets.enabled", Boolean, "false", GROUPS, "Whether translated offsets are written to the target's groups."),
    key("sync.group.offsets.interval.seconds", LONG, "60", GROUPS, "How often."),
    key("sync.topic.acls.enabled", Boolean, "true", SYNC, "Whether permissions on topics are copied."),
    key("sync.topic.acls.interval.seconds", LONG, "600", SYNC, "How often."),
    key("sync.topic.configs.enabled", Boolean, "true", SYNC, "Whether topic settings are copied after creation."),
    key("sync.topic.configs.interval.seconds", LONG, "600", SYNC, "How often."),
    key("target.cluster.alias", Text, "target", INTERNAL, "The alias of the target."),
    unset("task.assigned.groups", List, INTERNAL, "The groups of a task."),
    unset("task.assigned.partitions", List, INTERNAL, "The partitions of a task."),
    unset("task.index", INT, INTERNAL, "The number of a task."),
    key("tasks.max", POSITIVE, "1", Effective, "The largest number of tasks of each connector."),
    key("tasks.max.enforce", Boolean, "true", NotApplicable("no connector of ours makes more tasks than allowed"),
        "Whether a connector that makes more tasks fails."),
    key("topic.creation.groups", List, "", Later("the Connect worker"), "Groups of topics with settings of their own at creation."),
    key("topic.filter.class", Class(&["org.apache.kafka.connect.mirror.DefaultTopicFilter"]),
        "org.apache.kafka.connect.mirror.DefaultTopicFilter", Effective, "What decides which topics are replicated."),
    key("topics", Patterns, ".*", Effective, "Topics to replicate."),
    unset("topics.blacklist", Patterns, Removed("write `topics.exclude`"), "The old name of `topics.exclude`."),
    key("topics.exclude", Patterns, r"mm2.*\.internal,.*\.replica,__.*", Effective, "Topics that are not replicated, though included."),
    key("transaction.boundary", OneOfAnyCase(&["poll", "connector", "interval"]), "poll", EXACTLY_ONCE, "What begins and ends a transaction."),
    unset("transaction.boundary.interval.ms", LONG, EXACTLY_ONCE, "How long a transaction lasts with `transaction.boundary = interval`."),
    key("transforms", List, "", TRANSFORMS, "Aliases of the transforms that records pass."),
    key("use.defaults.from", OneOf(&["source", "target"]), "target", SYNC,
        "Whose default a remote topic gets for a setting that the source topic leaves at its default. Only with a flow's prefix."),
    key("use.incremental.alter.configs", OneOf(&["requested", "required", "never"]), "required",
        Removed("remove the line: settings are always changed incrementally"), "How topic settings are changed."),
    key("value.converter", Class(&[BYTES]), BYTES, Effective, "How record values are converted: not at all."),
    unset("value.converter.plugin.version", Text, NO_PLUGINS, "The version of that converter."),
];
