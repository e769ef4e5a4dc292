//! One contender on one workload, watched from outside.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use testkit::{Admin, ManagedProcess, RealKafka};

use crate::contender::{Contender, Mirror, properties};
use crate::{now, relay, usage};

/// Java takes up to 12 s alone on two cores.
const FIRST_RECORD: Duration = Duration::from_secs(120);
/// A copy that takes longer has failed.
const COPY: Duration = Duration::from_secs(1200);

/// A topic to be mirrored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workload {
    pub size_bytes: usize,
    pub codec: String,
    pub records: u64,
}

impl Workload {
    /// Full size is 10,000,000 records of up to 100 bytes, or as many larger ones as make 2 GB.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count between 1 and some millions"
    )]
    pub fn new(size_bytes: usize, codec: &str, scale: f64) -> Self {
        let full = 10_000_000_f64.min(2e9 / size_bytes as f64);
        let records = (full * scale).max(1.0) as u64;
        Self {
            size_bytes,
            codec: codec.to_owned(),
            records,
        }
    }

    pub fn topic(&self) -> String {
        format!("bench-{}-{}", self.size_bytes, self.codec)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} x {} B {}",
            self.records, self.size_bytes, self.codec
        )
    }
}

/// What was seen of one contender.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// From the start of the process to the first record on the target.
    pub first_record: Duration,
    /// From there to the last.
    pub copying: Duration,
    /// Bytes, as stored on the source, that were copied in this time.
    pub copied_bytes: u64,
    /// User and system time until the first record.
    pub cpu_starting: Duration,
    /// User and system time while copying.
    pub cpu_copying: Duration,
    pub peak_memory_bytes: u64,
}

impl Measurement {
    /// Megabytes (10^6) a second.
    pub fn rate(&self) -> f64 {
        self.copied_bytes as f64 / 1e6 / self.copying.as_secs_f64()
    }

    /// Processor seconds per gigabyte (10^9).
    pub fn cpu_per_gigabyte(&self) -> f64 {
        self.cpu_copying.as_secs_f64() / (self.copied_bytes as f64 / 1e9)
    }
}

/// Runs `contender` on a workload of `bytes` that lies on the source, and removes what it made.
pub fn measure(
    contender: Contender,
    workload: &Workload,
    bytes: u64,
    source: &RealKafka,
    target: &RealKafka,
    twinlog: &Path,
) -> Result<Measurement> {
    // A fresh alias has no stored positions and no topics.
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let alias = format!("a{}", RUNS.fetch_add(1, Ordering::Relaxed));
    if contender == Contender::Relay {
        return relay::measure(bytes);
    }
    let topic = workload.topic();
    let text = properties(
        contender,
        &alias,
        &source.bootstrap(),
        &target.bootstrap(),
        &topic,
    );
    let started = now();
    let mut mirror = Mirror::start(contender, &text, twinlog)?;
    let seen = Watch {
        admin: target.admin(),
        topic: format!("{alias}.{topic}"),
        started,
    }
    .follow(mirror.process(), workload.records, bytes);
    drop(mirror);
    remove_topics(&source.admin(), |name| !name.starts_with("bench-"))?;
    remove_topics(&target.admin(), |_| true)?;
    seen
}

struct Watch {
    admin: Admin,
    topic: String,
    started: Instant,
}

impl Watch {
    fn follow(
        &self,
        process: &mut ManagedProcess,
        records: u64,
        bytes: u64,
    ) -> Result<Measurement> {
        let pid = process.pid();
        let early = process.eventually(FIRST_RECORD, || match self.mirrored() {
            Ok(0) | Err(_) => bail!("no record of {} arrived", self.topic),
            Ok(early) => Ok(early),
        })?;
        let first_record = self.started.elapsed();
        let cpu_starting = usage::cpu(pid)?;
        process.eventually(COPY, || {
            let mirrored = self.mirrored()?;
            ensure!(
                mirrored >= records,
                "{mirrored} of {records} records in {}",
                self.topic
            );
            Ok(())
        })?;
        let copying = self.started.elapsed() - first_record;
        let cpu_copying = usage::cpu(pid)? - cpu_starting;
        let mirrored = self.mirrored()?;
        ensure!(
            mirrored == records,
            "{mirrored} records arrived of {records}"
        );
        let late = records.saturating_sub(early);
        let copied_bytes = u128::from(bytes) * u128::from(late) / u128::from(records);
        Ok(Measurement {
            first_record,
            copying,
            copied_bytes: u64::try_from(copied_bytes)?,
            cpu_starting,
            cpu_copying,
            peak_memory_bytes: usage::peak_memory_bytes(pid)?,
        })
    }

    fn mirrored(&self) -> Result<u64> {
        let ends = self.admin.end_offsets(&self.topic)?;
        u64::try_from(ends.iter().sum::<i64>()).context("a log end below 0")
    }
}

fn remove_topics(admin: &Admin, unwanted: impl Fn(&str) -> bool) -> Result<()> {
    let mut topics = admin.topics()?;
    topics.retain(|name| !name.starts_with("__") && unwanted(name));
    admin.delete_topics(&topics)
}
