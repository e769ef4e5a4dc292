//! Java programs in `java/` that benchmarks drive: one fills many topics, one measures latency.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::java_tools::Tool;

/// The JVM's start, and the records before the first counted one.
const READY: Duration = Duration::from_secs(60);
/// What the probe waits for late records, and then some.
const LATE: Duration = Duration::from_secs(90);

/// Records for many topics, as many for each of their partitions; see `java/Fill.java`.
#[derive(Debug, Clone)]
pub struct FillSpec {
    /// Where to.
    pub bootstrap: String,
    /// Existing topics.
    pub topics: Vec<String>,
    /// Partitions of each.
    pub partitions: i32,
    /// Records for each partition.
    pub records: u64,
    /// Bytes of a record's value.
    pub size_bytes: usize,
    /// The most bytes of a batch; 0 makes a batch of every record.
    pub batch_bytes: usize,
}

impl FillSpec {
    /// Produces all of it, uncompressed.
    ///
    /// # Errors
    /// When a record is refused, or it takes longer than `within`.
    pub fn run(&self, within: Duration) -> Result<()> {
        let options = [
            ("bootstrap", self.bootstrap.clone()),
            ("topics", self.topics.join(",")),
            ("partitions", self.partitions.to_string()),
            ("records", self.records.to_string()),
            ("size", self.size_bytes.to_string()),
            ("batch", self.batch_bytes.to_string()),
        ];
        Tool::start("Fill", &options)?.finish(within).map(drop)
    }
}

/// A steady load whose records' arrival on both clusters is to be timed; see `java/Latency.java`.
#[derive(Debug, Clone)]
pub struct LatencySpec {
    /// Where the records are sent.
    pub source: String,
    /// Where they should arrive.
    pub target: String,
    /// An existing topic, mirrored already.
    pub topic: String,
    /// What its name on the target has in front.
    pub prefix: String,
    /// Records a second.
    pub rate: u32,
    /// Bytes of a record's value.
    pub size_bytes: usize,
    /// How long records are sent before those that count.
    pub warm_up: Duration,
    /// How long those that count are sent.
    pub counted: Duration,
}

/// Percentiles of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of all are not above it.
    pub p50: Duration,
    /// 99 % of all are not above it.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// What a [`LatencyProbe`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    /// From sending a record to a reader of the source.
    pub source: Percentiles,
    /// From sending a record to a reader of the target.
    pub target: Percentiles,
    /// From a reader of the source to one of the target, record by record.
    pub added: Percentiles,
}

/// A running measurement of latency.
#[derive(Debug)]
pub struct LatencyProbe {
    tool: Tool,
    within: Duration,
}

impl LatencyProbe {
    /// Starts it, and waits until the part that counts begins.
    ///
    /// # Errors
    /// When a topic is missing or a record refused.
    pub fn start(spec: &LatencySpec) -> Result<Self> {
        let options = [
            ("source", spec.source.clone()),
            ("target", spec.target.clone()),
            ("topic", spec.topic.clone()),
            ("prefix", spec.prefix.clone()),
            ("rate", spec.rate.to_string()),
            ("size", spec.size_bytes.to_string()),
            ("warm-up", spec.warm_up.as_secs().to_string()),
            ("seconds", spec.counted.as_secs().to_string()),
        ];
        let mut probe = Self {
            tool: Tool::start("Latency", &options)?,
            within: spec.counted + LATE,
        };
        probe.wait_for("measuring", spec.warm_up + READY)?;
        Ok(probe)
    }

    /// Waits until the last record that counts has been read everywhere.
    ///
    /// # Errors
    /// When one is missing.
    pub fn measured(&mut self) -> Result<()> {
        self.wait_for("measured", self.within)
    }

    /// Waits for the end and returns what was seen.
    ///
    /// # Errors
    /// As [`Self::measured`].
    pub fn finish(self) -> Result<Latencies> {
        let output = self.tool.finish(self.within)?;
        let percentiles = |name| parse_percentiles(&output, name);
        Ok(Latencies {
            source: percentiles("source")?,
            target: percentiles("target")?,
            added: percentiles("added")?,
        })
    }

    fn wait_for(&mut self, word: &str, within: Duration) -> Result<()> {
        let process = self.tool.process();
        let log = process.log_path().to_owned();
        process.eventually(within, || {
            let text = std::fs::read_to_string(&log).context("read the probe's output")?;
            ensure!(text.lines().any(|line| line == word), "not {word} yet");
            Ok(())
        })
    }
}

/// Reads the line `<name> p50 <us> p99 <us> max <us>`.
fn parse_percentiles(output: &str, name: &str) -> Result<Percentiles> {
    let words = output
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|words| words.first() == Some(&name))
        .with_context(|| format!("the probe printed no line for {name}"))?;
    let time = |label| -> Result<Duration> {
        let at = words.iter().position(|word| *word == label);
        let value = at.and_then(|at| words.get(at + 1)).context(label)?;
        let micros: i64 = value
            .parse()
            .with_context(|| format!("{label} of {name}"))?;
        // The reader of the target may be served first.
        Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    };
    Ok(Percentiles {
        p50: time("p50")?,
        p99: time("p99")?,
        max: time("max")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_from_the_probes_output() {
        let output = "measuring\nmeasured\nadded p50 -20 p99 9100 max 30000\n";

        let added = parse_percentiles(output, "added").unwrap();

        let expected = Percentiles {
            p50: Duration::ZERO,
            p99: Duration::from_micros(9100),
            max: Duration::from_millis(30),
        };
        assert_eq!(added, expected);
        assert!(parse_percentiles(output, "target").is_err());
    }
}
