//! One contender that copies what lies on the source, watched from outside.

use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::RealKafka;

use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics, Watch};
use crate::report::{Column, Order, Ratio, Seen, column, java_to, ratio};
use crate::{now, usage};

/// Java takes up to 12 s alone on two cores, more where it makes topics first.
const FIRST_RECORD: Duration = Duration::from_secs(180);

pub const COLUMNS: &[Column] = &[
    column("first record s", 2),
    column("copy s", 1),
    column("records/s", 0),
    column("MB/s", 1),
    column("CPU-s/GB", 2),
    column("CPU-s in all", 1),
    column("peak RSS MB", 0),
];
const RATE: usize = 3;
const CPU_PER_GIGABYTE: usize = 4;
const PEAK_MEMORY: usize = 6;

/// Against Java as it comes.
pub const RATIOS: &[Ratio] = &[
    ratio("rate : Java", RATE, Contender::Java, Order::MineToTheirs),
    ratio(
        "rate : tuned Java",
        RATE,
        Contender::JavaTuned,
        Order::MineToTheirs,
    ),
    java_to("Java : CPU", CPU_PER_GIGABYTE),
    java_to("Java : RSS", PEAK_MEMORY),
];
/// Where the wire is what counts: against Java at its best, and the floor.
pub const COPY_RATIOS: &[Ratio] = &[
    ratio(
        "rate : tuned Java",
        RATE,
        Contender::JavaTuned,
        Order::MineToTheirs,
    ),
    ratio(
        "tuned Java : CPU",
        CPU_PER_GIGABYTE,
        Contender::JavaTuned,
        Order::TheirsToMine,
    ),
    ratio(
        "CPU : relay",
        CPU_PER_GIGABYTE,
        Contender::Relay,
        Order::OverFloor,
    ),
];

/// What lies on the source.
#[derive(Debug)]
pub struct Backlog {
    pub topics: Topics,
    pub records: u64,
    /// On the source's disk.
    pub bytes: u64,
    /// A copy that takes longer is cut short, and its rate is that of what was copied.
    pub cut_after: Duration,
}

/// What was seen of one contender.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// From the start of the process to the first record on the target.
    pub first_record: Duration,
    /// From there to the last, or to where it was cut short.
    pub copying: Duration,
    /// Records that were copied in this time.
    pub copied: u64,
    /// Their bytes, as stored on the source.
    pub copied_bytes: u64,
    /// User and system time until the first record.
    pub cpu_starting: Duration,
    /// User and system time while copying.
    pub cpu_copying: Duration,
    pub peak_memory_bytes: u64,
    /// How many there were in all, when it was cut short.
    pub cut_of: Option<u64>,
}

impl Measurement {
    /// A row of [`COLUMNS`].
    pub fn seen(&self) -> Seen {
        let copying = self.copying.as_secs_f64();
        let gigabytes = self.copied_bytes as f64 / 1e9;
        Seen {
            values: vec![
                self.first_record.as_secs_f64(),
                copying,
                self.copied as f64 / copying,
                gigabytes * 1e3 / copying,
                self.cpu_copying.as_secs_f64() / gigabytes,
                (self.cpu_starting + self.cpu_copying).as_secs_f64(),
                self.peak_memory_bytes as f64 / 1e6,
            ],
            note: self.cut_of.map_or(String::new(), |records| {
                format!("cut short: {} of {records} records", self.copied)
            }),
        }
    }
}

/// Runs a mirror from its start to its last record, and removes what it made. The mirror reaches the
/// brokers at the addresses of `flow`.
pub fn measure(
    lab: &Lab,
    contender: Contender,
    backlog: &Backlog,
    flow: &Flow,
    source: &RealKafka,
    target: &RealKafka,
) -> Result<Measurement> {
    let topics = &backlog.topics;
    let watch = Watch::new(target, flow, &topics.names, topics.count());
    let started = now();
    let mut mirror = lab.start(contender, flow)?;
    let process = mirror.process();
    let pid = process.pid();
    let early = watch.until(process, 1, FIRST_RECORD)?;
    ensure!(early > 0, "no record arrived\n{}", process.log_tail());
    let first_record = started.elapsed();
    let cpu_starting = usage::cpu(pid)?;
    let mirrored = watch.until(process, backlog.records, backlog.cut_after)?;
    let copying = started.elapsed() - first_record;
    let cpu_copying = usage::cpu(pid)?.saturating_sub(cpu_starting);
    ensure!(
        mirrored <= backlog.records,
        "{mirrored} records arrived of {}",
        backlog.records
    );
    let copied = mirrored - early;
    let copied_bytes = u128::from(backlog.bytes) * u128::from(copied) / u128::from(backlog.records);
    let measurement = Measurement {
        first_record,
        copying,
        copied,
        copied_bytes: u64::try_from(copied_bytes)?,
        cpu_starting,
        cpu_copying,
        peak_memory_bytes: usage::peak_memory_bytes(pid)?,
        cut_of: (mirrored < backlog.records).then_some(backlog.records),
    };
    drop(mirror);
    lab::clean_up(source, target)?;
    Ok(measurement)
}
