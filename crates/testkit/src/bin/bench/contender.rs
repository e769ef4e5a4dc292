//! Who is measured, and on which configuration.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use clap::ValueEnum;
use testkit::{JavaMirrorMaker, ManagedProcess, TwinlogProcess};

/// One that mirrors, or the relay that only moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Contender {
    /// Java MirrorMaker 2 with the settings it comes with
    Java,
    /// Java MirrorMaker 2 with producer and consumer tuned by hand
    JavaTuned,
    /// twinlog on the same file as `java`
    Twinlog,
    /// A process that reads one socket and writes the other
    Relay,
}

impl Contender {
    /// All, the slowest first.
    pub const ALL: [Self; 4] = [Self::Java, Self::JavaTuned, Self::Twinlog, Self::Relay];
    /// Those that read from one broker and write to another.
    pub const MIRRORS: [Self; 3] = [Self::Java, Self::JavaTuned, Self::Twinlog];
    /// Those on the settings they come with.
    pub const UNTUNED: [Self; 2] = [Self::Java, Self::Twinlog];
}

impl fmt::Display for Contender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Java => "java",
            Self::JavaTuned => "java-tuned",
            Self::Twinlog => "twinlog",
            Self::Relay => "relay",
        })
    }
}

/// A mirror that runs.
pub enum Mirror {
    Java(JavaMirrorMaker),
    Twinlog(TwinlogProcess),
}

impl Mirror {
    /// Starts a contender other than the relay.
    pub fn start(contender: Contender, flow: &Flow, twinlog: &Path) -> Result<Self> {
        let properties = flow.properties(contender);
        match contender {
            Contender::Twinlog => TwinlogProcess::run(twinlog, &properties).map(Self::Twinlog),
            _ => JavaMirrorMaker::start_full_speed(&properties).map(Self::Java),
        }
    }

    pub fn process(&mut self) -> &mut ManagedProcess {
        match self {
            Self::Java(mirror) => mirror.process(),
            Self::Twinlog(mirror) => mirror.process(),
        }
    }
}

/// What is mirrored: topics of one cluster to cluster `b`.
pub struct Flow {
    /// Fresh for every run: it has no stored positions and no topics.
    alias: String,
    source: String,
    target: String,
    /// As the key `topics` takes them.
    topics: String,
}

impl Flow {
    /// Of the topics that match `topics`, between the clusters with these bootstrap addresses.
    pub fn new(source: &str, target: &str, topics: &str) -> Self {
        static FLOWS: AtomicUsize = AtomicUsize::new(0);
        Self {
            alias: format!("a{}", FLOWS.fetch_add(1, Ordering::Relaxed)),
            source: source.to_owned(),
            target: target.to_owned(),
            topics: topics.to_owned(),
        }
    }

    /// What names on the target have in front.
    pub fn prefix(&self) -> String {
        format!("{}.", self.alias)
    }

    /// The names of `topics` on the target.
    pub fn remote(&self, topics: &[String]) -> Vec<String> {
        let prefix = self.prefix();
        topics
            .iter()
            .map(|topic| format!("{prefix}{topic}"))
            .collect()
    }

    fn properties(&self, contender: Contender) -> String {
        let Self {
            alias,
            source,
            target,
            topics,
        } = self;
        let tuning = match contender {
            Contender::JavaTuned => format!(
                "b.producer.batch.size = 262144\n\
                 b.producer.linger.ms = 20\n\
                 b.producer.compression.type = lz4\n\
                 b.producer.buffer.memory = 134217728\n\
                 b.producer.max.request.size = 4194304\n\
                 {alias}.consumer.max.partition.fetch.bytes = 8388608\n\
                 {alias}.consumer.max.poll.records = 10000\n\
                 {alias}.consumer.fetch.min.bytes = 100000\n"
            ),
            _ => String::new(),
        };
        format!(
            "clusters = {alias}, b\n\
             {alias}.bootstrap.servers = {source}\n\
             b.bootstrap.servers = {target}\n\
             {alias}->b.enabled = true\n\
             {alias}->b.topics = {topics}\n\
             replication.factor = 1\n\
             checkpoints.topic.replication.factor = 1\n\
             heartbeats.topic.replication.factor = 1\n\
             offset-syncs.topic.replication.factor = 1\n\
             offset.storage.replication.factor = 1\n\
             status.storage.replication.factor = 1\n\
             config.storage.replication.factor = 1\n\
             {tuning}"
        )
    }
}
