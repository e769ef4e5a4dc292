//! Mirroring side by side, in one run on the same brokers: Java MirrorMaker 2 as it comes and
//! tuned, twinlog, and for copies a bare TCP relay that moves the same bytes, which is the floor.
//!
//! ```text
//!   for each workload:   Java producer ──> source broker          (once)
//!     for each contender:  source broker ──> contender ──> target broker
//!                          watched from outside: log ends of the target, /proc of the contender
//! ```
//!
//! A workload is a file of its own that yields a [`report::Section`]; those that copy a backlog
//! share [`backlog`].

mod backlog;
mod chart;
mod contender;
mod copy;
mod far;
mod idle;
mod lab;
mod latency;
mod outage;
mod relay;
mod report;
mod shapes;
mod usage;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::contender::Contender;
use crate::copy::Kinds;
use crate::lab::Lab;
use crate::report::{Report, Section};

/// Compares mirrors on this machine; writes `build/bench/results.md` and `results.svg`.
#[derive(Debug, Parser)]
struct Options {
    /// What is measured, in this order
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Workload::ALL)]
    workloads: Vec<Workload>,
    /// Part of the full size, which is 1 to 2 GB of records, 30 s or 10,000 partitions
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Sizes of record values in `copy`, in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    sizes: Vec<usize>,
    /// Codecs of the source's batches in `copy`
    #[arg(long, value_delimiter = ',', default_values_t = ["none", "lz4", "zstd"].map(String::from))]
    codecs: Vec<String>,
    /// Who runs, in this order, where it makes sense
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Contender::ALL)]
    contenders: Vec<Contender>,
    /// Partitions of each topic in `copy`
    #[arg(long, default_value_t = 6)]
    partitions: i32,
    /// The twinlog binary; the one beside this program unless given
    #[arg(long)]
    twinlog: Option<PathBuf>,
    /// Be the relay: connect to `--relay-to` and copy there what comes in
    #[arg(long, hide = true)]
    relay_to: Option<String>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Rate and cost of copying one topic: sizes and codecs
    Copy,
    /// What a mirror adds to latency at 5,000 records a second
    Latency,
    /// 10,000 partitions: time until all are mirrored, and cost when quiet
    Idle,
    /// 100 ms of round trip to either side
    Far,
    /// Batches of one record
    Small,
    /// 500 topics
    Topics,
    /// A topic of 1,000 partitions
    Wide,
    /// 5,000 partitions catch up after an outage
    Outage,
}

impl Workload {
    const ALL: [Self; 8] = [
        Self::Copy,
        Self::Latency,
        Self::Idle,
        Self::Far,
        Self::Small,
        Self::Topics,
        Self::Wide,
        Self::Outage,
    ];

    fn run(self, lab: &Lab, kinds: &Kinds<'_>) -> Result<Section> {
        match self {
            Self::Copy => copy::run(lab, kinds),
            Self::Latency => latency::run(lab),
            Self::Idle => idle::run(lab),
            Self::Far => far::run(lab),
            Self::Small => shapes::small(lab),
            Self::Topics => shapes::topics(lab),
            Self::Wide => shapes::wide(lab),
            Self::Outage => outage::run(lab),
        }
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(address) = &options.relay_to {
        return relay::run(address);
    }
    ensure!(options.scale > 0.0, "--scale must be above 0");
    let twinlog = match options.twinlog {
        Some(path) => path,
        None => std::env::current_exe()
            .context("find this program")?
            .with_file_name("twinlog"),
    };
    let lab = Lab {
        twinlog,
        scale: options.scale,
        contenders: options.contenders,
    };
    let kinds = Kinds {
        sizes: &options.sizes,
        codecs: &options.codecs,
        partitions: options.partitions,
    };
    let mut report = Report::default();
    let mut broken = Vec::new();
    for workload in options.workloads {
        match workload.run(&lab, &kinds) {
            Ok(section) => report.add(section),
            Err(error) => {
                say(&format!("{workload:?} cannot be measured: {error:#}"));
                broken.push(workload);
            }
        }
        // What was measured is kept, whatever becomes of the next.
        report.save()?;
    }
    say(&report.to_markdown());
    ensure!(broken.is_empty(), "not measured: {broken:?}");
    ensure!(!report.has_failures(), "not every contender finished");
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is what a benchmark measures"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_macros,
    reason = "a program for people at a terminal"
)]
fn say(text: &str) {
    println!("{text}");
}
