//! The independent client: Java programs in `java/` that write and compare with Kafka's own
//! library.

use std::process::ChildStdin;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::jars::{Jars, KafkaVersion, compiled_tools};
use crate::process::ManagedProcess;
use crate::{Admin, ScratchDir};

/// How long the corpus may take; the cleaner's turn is the longest part of it.
const CORPUS: Duration = Duration::from_secs(180);
/// What a comparison may take beyond the time it waits for records.
const COMPARING: Duration = Duration::from_secs(120);
/// How long the last records of a load may take to be acknowledged.
const LAST_RECORDS: Duration = Duration::from_secs(120);

/// One run of a tool; its output is its log.
#[derive(Debug)]
pub(crate) struct Tool {
    process: ManagedProcess,
    _scratch: ScratchDir,
}

impl Tool {
    /// Starts the program of this name in `java/`.
    pub(crate) fn start(class: &str, options: &[(&str, String)]) -> Result<Self> {
        let jars = Jars::resolve(KafkaVersion::V4_3_1)?;
        let class_path = format!("{}:{}", compiled_tools(&jars)?.display(), jars.class_path());
        let scratch = ScratchDir::new(class)?;
        let mut command = jars.java_with_class_path(
            &class_path,
            &["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        );
        command.arg(class);
        for (name, value) in options {
            command.arg(format!("--{name}")).arg(value);
        }
        let process = ManagedProcess::spawn(class, command, &scratch.path().join("log"))?;
        Ok(Self {
            process,
            _scratch: scratch,
        })
    }

    /// The running program.
    pub(crate) fn process(&mut self) -> &mut ManagedProcess {
        &mut self.process
    }

    /// Waits for a good end and returns the output.
    pub(crate) fn finish(mut self, within: Duration) -> Result<String> {
        let status = self.process.wait(within)?;
        ensure!(status.success(), "{status}\n{}", self.process.log_tail());
        Ok(self.process.log())
    }
}

/// Topics that hold every kind of record and log a mirror meets; see `java/Corpus.java`.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    /// Topics whose records are to arrive as they are, each.
    pub topics: Vec<String>,
    /// Topics whose records are removed by the cleaners of both sides meanwhile.
    pub compacted: Vec<String>,
    bootstrap: String,
    prefix: String,
    rounds: u32,
}

impl Corpus {
    /// Makes the topics, named `prefix` and their kind, and fills them; `size` is about the records
    /// per partition, 100 a sensible one. Returns when the compacted topic really has holes.
    ///
    /// # Errors
    /// When a topic exists already, or a record can't be produced.
    pub fn produce(bootstrap: &str, prefix: &str, size: usize) -> Result<Self> {
        let mut corpus = Self {
            bootstrap: bootstrap.to_owned(),
            prefix: prefix.to_owned(),
            ..Self::default()
        };
        let output = corpus.produce_round(size)?;
        let named = |word: &str| {
            let named = output.lines().filter_map(|line| line.strip_prefix(word));
            named.map(str::to_owned).collect()
        };
        corpus.topics = named("topic ");
        corpus.compacted = named("compacted ");
        Ok(corpus)
    }

    /// Adds as much again of every kind to the same topics.
    ///
    /// # Errors
    /// When a record can't be produced.
    pub fn produce_more(&mut self, size: usize) -> Result<()> {
        self.produce_round(size).map(drop)
    }

    fn produce_round(&mut self, size: usize) -> Result<String> {
        tracing::info!(prefix = self.prefix, size, "producing the corpus");
        let options = [
            ("bootstrap", self.bootstrap.clone()),
            ("prefix", self.prefix.clone()),
            ("size", size.to_string()),
            ("round", self.rounds.to_string()),
        ];
        self.rounds += 1;
        Tool::start("Corpus", &options)?.finish(CORPUS)
    }
}

/// A comparison of topics on two clusters by Kafka's own consumer; see `java/Compare.java`.
///
/// Each record's key, value, headers in order and timestamp are compared, in order, per partition.
/// The source is read committed, the target uncommitted.
#[derive(Debug, Clone)]
pub struct Comparison {
    source: String,
    target: String,
    prefix: String,
    topics: Vec<String>,
    numbered: Vec<String>,
    compacted: Vec<String>,
    within: Duration,
    target_read_committed: bool,
    identical_offsets: bool,
}

impl Comparison {
    /// Between the clusters with these bootstrap addresses; topics are called the same on both.
    pub fn new(source: &str, target: &str) -> Self {
        Self {
            source: source.to_owned(),
            target: target.to_owned(),
            prefix: String::new(),
            topics: Vec::new(),
            numbered: Vec::new(),
            compacted: Vec::new(),
            within: Duration::from_secs(60),
            target_read_committed: false,
            identical_offsets: false,
        }
    }

    /// Topics are called `prefix` (as `us.`) and their source name on the target.
    #[must_use]
    pub fn renamed(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_owned();
        self
    }

    /// Of a topic whose records are the same, each.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.topics.push(topic.to_owned());
        self
    }

    /// Of a topic that [`Load`] wrote: the same, and nothing lost, doubled or out of order.
    #[must_use]
    pub fn numbered(mut self, topic: &str) -> Self {
        self.numbered.push(topic.to_owned());
        self
    }

    /// Of all that [`Corpus`] made.
    #[must_use]
    pub fn corpus(mut self, corpus: &Corpus) -> Self {
        self.topics.extend_from_slice(&corpus.topics);
        self.compacted.extend_from_slice(&corpus.compacted);
        self
    }

    /// How long what is missing may still take to arrive; a minute unless said.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Reads only committed records of the target, for mirrors that write transactions.
    #[must_use]
    pub fn target_read_committed(mut self) -> Self {
        self.target_read_committed = true;
        self
    }

    /// Compares offsets, too.
    #[must_use]
    pub fn identical_offsets(mut self) -> Self {
        self.identical_offsets = true;
        self
    }

    /// Compares, and returns the report: a line per topic.
    ///
    /// # Errors
    /// When anything differs; the message has the report and the first differences.
    pub fn run(&self) -> Result<String> {
        let isolation = if self.target_read_committed {
            "read_committed"
        } else {
            "read_uncommitted"
        };
        let options = [
            ("source", self.source.clone()),
            ("target", self.target.clone()),
            ("prefix", self.prefix.clone()),
            ("topics", self.topics.join(",")),
            ("numbered", self.numbered.join(",")),
            ("compacted", self.compacted.join(",")),
            ("seconds", self.within.as_secs().to_string()),
            ("target-isolation", isolation.to_owned()),
            ("identical-offsets", self.identical_offsets.to_string()),
        ];
        let report = Tool::start("Compare", &options)?
            .finish(self.within + COMPARING)
            .context("source and target differ")?;
        tracing::info!("{report}");
        Ok(report)
    }
}

/// What a [`Load`] produces.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    /// Where to.
    pub bootstrap: String,
    /// An existing topic.
    pub topic: String,
    /// Records a second over all partitions; `None` is as fast as it goes.
    pub rate: Option<u32>,
    /// Bytes of a record's value, of which the first eight are its number.
    pub size_bytes: usize,
    /// `none`, `gzip`, `snappy`, `lz4` or `zstd`.
    pub codec: String,
    /// Ends after so many; `None` is until stopped.
    pub records: Option<u64>,
    /// Timestamp of the first record, in milliseconds; each has one more than the last. `None` is
    /// the producer's clock.
    pub first_time: Option<u64>,
    /// Partitions below this one get nothing.
    pub first_partition: u32,
    /// So many records are a transaction; every third is first aborted and then sent again. `None`
    /// is no transactions.
    pub transaction: Option<u32>,
}

impl LoadSpec {
    /// 2,000 records of 200 bytes a second, uncompressed, until stopped.
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        Self {
            bootstrap: bootstrap.to_owned(),
            topic: topic.to_owned(),
            rate: Some(2_000),
            size_bytes: 200,
            codec: "none".to_owned(),
            records: None,
            first_time: None,
            first_partition: 0,
            transaction: None,
        }
    }
}

/// A producer of numbered records that runs until told to stop; see `java/Load.java`.
#[derive(Debug)]
pub struct Load {
    tool: Tool,
    input: Option<ChildStdin>,
}

impl Load {
    /// Starts it, and waits until its first records are there.
    ///
    /// # Errors
    /// When it ends at once, or nothing arrives.
    pub fn start(spec: &LoadSpec) -> Result<Self> {
        let mut options = vec![
            ("bootstrap", spec.bootstrap.clone()),
            ("topic", spec.topic.clone()),
            ("size", spec.size_bytes.to_string()),
            ("codec", spec.codec.clone()),
            ("rate", spec.rate.unwrap_or(0).to_string()),
        ];
        options.extend(spec.records.map(|records| ("records", records.to_string())));
        options.extend(spec.first_time.map(|time| ("first-time", time.to_string())));
        options.push(("first-partition", spec.first_partition.to_string()));
        let transaction = spec
            .transaction
            .map(|size| ("transaction", size.to_string()));
        options.extend(transaction);
        let mut tool = Tool::start("Load", &options)?;
        let input = tool.process.take_stdin();
        let admin = Admin::new(&spec.bootstrap);
        let before: i64 = admin.end_offsets(&spec.topic)?.iter().sum();
        if spec.records.is_none() {
            tool.process.eventually(Duration::from_secs(60), || {
                let now: i64 = admin.end_offsets(&spec.topic)?.iter().sum();
                ensure!(now > before, "no record arrived in {}", spec.topic);
                Ok(())
            })?;
        }
        Ok(Self { tool, input })
    }

    /// Tells it to stop and returns how many records were acknowledged, by partition.
    ///
    /// # Errors
    /// When a record was refused.
    pub fn stop(mut self) -> Result<Vec<u64>> {
        drop(self.input.take());
        self.finish(LAST_RECORDS)
    }

    /// Waits until it has sent all its records, and returns how many were acknowledged, by
    /// partition.
    ///
    /// # Errors
    /// When a record was refused, or time was up.
    pub fn finish(self, within: Duration) -> Result<Vec<u64>> {
        let output = self.tool.finish(within)?;
        drop(self.input);
        let counts = output
            .lines()
            .find_map(|line| line.strip_prefix("acknowledged "));
        let counts = counts.context("the load printed no counts")?.split(' ');
        counts
            .map(|count| count.parse().context("a count"))
            .collect()
    }
}
