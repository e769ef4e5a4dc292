//! Who is measured, and on which configuration.

use std::fmt;
use std::path::Path;

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
    /// Starts a contender other than the relay on `properties`.
    pub fn start(contender: Contender, properties: &str, twinlog: &Path) -> Result<Self> {
        match contender {
            Contender::Twinlog => TwinlogProcess::run(twinlog, properties).map(Self::Twinlog),
            _ => JavaMirrorMaker::start_full_speed(properties).map(Self::Java),
        }
    }

    pub fn process(&mut self) -> &mut ManagedProcess {
        match self {
            Self::Java(mirror) => mirror.process(),
            Self::Twinlog(mirror) => mirror.process(),
        }
    }
}

/// The file a mirror of `topic` from cluster `alias` to cluster `b` runs on.
pub fn properties(
    contender: Contender,
    alias: &str,
    source: &str,
    target: &str,
    topic: &str,
) -> String {
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
         {alias}->b.topics = {topic}\n\
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
