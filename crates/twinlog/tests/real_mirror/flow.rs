//! One test's flow between the shared clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testkit::{
    Admin, ClusterPair, Comparison, JavaMirrorMaker, Load, LoadSpec, ManagedProcess, TopicSpec,
    TwinlogProcess, dump_topic, shared_pair,
};

use crate::hands::Hands;

/// Only bounds how long a failure takes to show.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What both mirrors need, so that one broker is enough.
const ONE_REPLICA: &str = "\
replication.factor = 1
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
emit.heartbeats.enabled = false
";

/// A flow from the shared source to the shared target, called `eu`.
pub struct Flow {
    alias: &'static str,
    pair: &'static ClusterPair,
    source: String,
    target: String,
    lines: String,
    prefix: String,
}

impl Flow {
    /// Of the source topics whose names are `alias`, a dot, and anything; `alias` is the source's.
    pub fn new(alias: &'static str) -> Result<Flow> {
        let pair = shared_pair()?;
        let lines = format!(
            "clusters = {alias}, eu\n\
             {alias}.bootstrap.servers = {source}\n\
             eu.bootstrap.servers = {target}\n\
             {alias}->eu.enabled = true\n\
             {alias}->eu.topics = {alias}\\\\..*\n\
             {ONE_REPLICA}",
            source = pair.source.bootstrap(),
            target = pair.target.bootstrap(),
        );
        Ok(Flow {
            alias,
            pair,
            source: pair.source.bootstrap(),
            target: pair.target.bootstrap(),
            lines,
            prefix: format!("{alias}."),
        })
    }

    /// With one more line in the file.
    pub fn with(mut self, line: &str) -> Flow {
        self.lines.push_str(line);
        self.lines.push('\n');
        self
    }

    /// Of these patterns instead.
    pub fn of_topics(self, patterns: &str) -> Flow {
        let line = format!("{}->eu.topics = {patterns}", self.alias);
        Flow {
            lines: self
                .lines
                .replace(&format!("{}->eu.topics", self.alias), "# topics"),
            ..self
        }
        .with(&line)
    }

    /// From this cluster instead of the shared one.
    pub fn from(self, bootstrap: &str) -> Flow {
        Flow {
            lines: self.lines.replace(&self.source, bootstrap),
            source: bootstrap.to_owned(),
            ..self
        }
    }

    /// To this cluster instead of the shared one.
    pub fn to(self, bootstrap: &str) -> Flow {
        Flow {
            lines: self.lines.replace(&self.target, bootstrap),
            target: bootstrap.to_owned(),
            ..self
        }
    }

    /// Under their own names.
    pub fn identity(mut self) -> Flow {
        self.prefix.clear();
        self.with(
            "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        )
    }

    /// With what Java lacks by default: it would copy aborted records, and refuse large ones.
    pub fn for_java_too(self) -> Flow {
        let isolation = format!("{}.consumer.isolation.level = read_committed", self.alias);
        self.with(&isolation)
            .with("eu.producer.max.request.size = 8388608")
    }

    /// Starts `twinlog run` on the file.
    pub fn twinlog(&self) -> Result<TwinlogProcess> {
        TwinlogProcess::run(env!("CARGO_BIN_EXE_twinlog"), &self.lines)
    }

    /// The same with a status line every second, for tests that look at it.
    pub fn twinlog_with_status(&self) -> Result<TwinlogProcess> {
        let every_second = ["--status-interval", "1s"];
        TwinlogProcess::run_with(env!("CARGO_BIN_EXE_twinlog"), &self.lines, &every_second)
    }

    /// Starts Java MirrorMaker 2 on the file.
    pub fn java(&self) -> Result<JavaMirrorMaker> {
        JavaMirrorMaker::start(&self.lines)
    }

    /// Where records come from.
    pub fn source(&self) -> Admin {
        Admin::new(&self.source)
    }

    /// Where records go.
    pub fn target(&self) -> Admin {
        Admin::new(&self.target)
    }

    /// Records and settings of the source, by hand.
    pub fn at_source(&self) -> Result<Hands> {
        Hands::at(&self.source_bootstrap())
    }

    /// Records and settings of the target, by hand.
    pub fn at_target(&self) -> Result<Hands> {
        Hands::at(&self.target)
    }

    /// The source's address.
    pub fn source_bootstrap(&self) -> String {
        self.source.clone()
    }

    /// The name of a source topic of this flow.
    pub fn topic(&self, kind: &str) -> String {
        format!("{}.{kind}", self.alias)
    }

    /// What this source topic is called on the target.
    pub fn remote(&self, topic: &str) -> String {
        format!("{}{topic}", self.prefix)
    }

    /// A comparison of source and target; it has to be told the topics.
    pub fn comparison(&self) -> Comparison {
        Comparison::new(&self.source, &self.target)
            .renamed(&self.prefix)
            .within(PATIENCE)
    }

    /// Makes a source topic whose records, however old, stay.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<()> {
        let spec = TopicSpec::new(name, partitions).config("retention.ms", "-1");
        self.source().create_topic(&spec)
    }

    /// Starts a load of this kind to a source topic.
    pub fn load(&self, topic: &str, adjust: impl FnOnce(&mut LoadSpec)) -> Result<Load> {
        let mut spec = LoadSpec::new(&self.source_bootstrap(), topic);
        adjust(&mut spec);
        Load::start(&spec)
    }

    /// Ends of the target's partitions, none if the topic isn't there yet.
    pub fn target_ends(&self, topic: &str) -> Vec<i64> {
        let remote = self.remote(topic);
        self.target().end_offsets(&remote).unwrap_or_default()
    }

    /// Waits until `mirror` has brought records to every partition of the copy that were not there
    /// when this began.
    pub fn wait_for_more(&self, mirror: &mut ManagedProcess, topic: &str) -> Result<()> {
        let before = self.target_ends(topic);
        mirror.eventually(PATIENCE, || {
            let now = self.target_ends(topic);
            let then = before.iter().copied().chain(std::iter::repeat(0));
            ensure!(
                !now.is_empty() && now.iter().zip(then).all(|(now, then)| *now > then),
                "the copy of {topic} ended at {before:?}, now at {now:?}"
            );
            Ok(())
        })
    }

    /// All records of the offsets topic.
    pub fn stored_positions(&self) -> Result<StoredPositions> {
        let topic = format!("mm2-offsets.{}.internal", self.alias);
        let mut positions = StoredPositions::default();
        for record in dump_topic(&self.pair.target.bootstrap(), &topic)? {
            let key = record.key.context("a position without a key")?;
            let value = record.value.context("a position was deleted")?;
            let value: Value = serde_json::from_slice(&value).context("a position is no JSON")?;
            let offset = value["offset"]
                .as_i64()
                .context("a position has no offset")?;
            positions.add(String::from_utf8(key)?, record.partition, offset)?;
        }
        Ok(positions)
    }

    /// The bytes that Java stores the position of a source partition under.
    pub fn position_key(&self, topic: &str, partition: usize) -> String {
        let alias = self.alias;
        format!(
            "[\"MirrorSourceConnector\",{{\"cluster\":\"{alias}\",\"partition\":{partition},\"topic\":\"{topic}\"}}]"
        )
    }
}

/// The offset of the last mirrored record by the bytes of the key, and in which partition the key
/// is.
#[derive(Debug, Default)]
pub struct StoredPositions {
    offsets: BTreeMap<String, i64>,
    pub placement: BTreeMap<String, i32>,
}

impl StoredPositions {
    fn add(&mut self, key: String, partition: i32, offset: i64) -> Result<()> {
        let placed = *self.placement.entry(key.clone()).or_insert(partition);
        ensure!(
            placed == partition,
            "{key} is in partitions {placed} and {partition}: compaction keeps both"
        );
        self.offsets.insert(key, offset);
        Ok(())
    }

    /// The newest position under this key.
    pub fn offset(&self, key: &str) -> Result<i64> {
        let offset = self.offsets.get(key).copied();
        offset.with_context(|| {
            format!(
                "no position under {key}, but under {:?}",
                self.offsets.keys()
            )
        })
    }
}
