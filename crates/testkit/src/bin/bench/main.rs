//! Mirroring side by side, in one run on the same brokers: Java MirrorMaker 2 as it comes and
//! tuned, twinlog, and a bare TCP relay that moves the same bytes, which is the floor.
//!
//! ```text
//!   for each workload:   Java producer ──> source broker          (once)
//!     for each contender:  source broker ──> contender ──> target broker
//!                          watched from outside: log ends of the target, /proc of the contender
//! ```

mod contender;
mod relay;
mod report;
mod run;
mod usage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use testkit::{Load, LoadSpec, RealKafka, TopicSpec};

use crate::contender::Contender;
use crate::report::Report;
use crate::run::{Workload, measure};

/// Filling a topic may take this long.
const FILL: Duration = Duration::from_secs(900);

/// Compares the speed of mirrors on this machine; writes `build/bench/results.md`.
#[derive(Debug, Parser)]
struct Options {
    /// Part of the full size, which is 1.2 GB per workload for records of 100 bytes and 2 GB for
    /// others
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Sizes of record values, in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    sizes: Vec<usize>,
    /// Codecs of the source's batches
    #[arg(long, value_delimiter = ',', default_values_t = ["none", "lz4", "zstd"].map(String::from))]
    codecs: Vec<String>,
    /// Who runs, in this order
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Contender::ALL)]
    contenders: Vec<Contender>,
    /// Partitions of each topic
    #[arg(long, default_value_t = 6)]
    partitions: i32,
    /// The twinlog binary; the one beside this program unless given
    #[arg(long)]
    twinlog: Option<PathBuf>,
    /// Be the relay: connect to `--relay-to` and copy there what comes in
    #[arg(long, hide = true)]
    relay_to: Option<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(address) = &options.relay_to {
        return relay::run(address);
    }
    ensure!(options.scale > 0.0, "--scale must be above 0");
    let twinlog = match &options.twinlog {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .context("find this program")?
            .with_file_name("twinlog"),
    };
    let workloads = options.sizes.iter().flat_map(|size| {
        let codecs = options.codecs.iter();
        codecs.map(move |codec| Workload::new(*size, codec, options.scale))
    });

    say("starting two brokers");
    let broker = || {
        let builder = RealKafka::builder().full_speed().heap("1g");
        // Disk is given back before the next run needs it.
        builder
            .property("log.segment.delete.delay.ms", "1000")
            .start()
    };
    let (source, target) = (broker()?, broker()?);
    let mut report = Report::default();
    for workload in workloads {
        let bytes = fill(&source, &workload, options.partitions)?;
        for contender in &options.contenders {
            say(&format!("{workload}: {contender}"));
            let result = measure(*contender, &workload, bytes, &source, &target, &twinlog);
            if let Err(error) = &result {
                say(&format!("{contender} failed: {error:#}"));
            }
            report.add(&workload, *contender, result.ok());
        }
        source.admin().delete_topics(&[workload.topic()])?;
    }
    let table = report.to_markdown();
    say(&table);
    report.save(&table)?;
    ensure!(!report.has_failures(), "not every contender finished");
    Ok(())
}

/// Produces the workload's topic and returns its bytes on the source's disk.
fn fill(source: &RealKafka, workload: &Workload, partitions: i32) -> Result<u64> {
    let topic = TopicSpec::new(&workload.topic(), partitions).config("retention.ms", "-1");
    say(&format!("{workload}: producing"));
    source.admin().create_topic(&topic)?;
    let spec = LoadSpec {
        rate: None,
        size_bytes: workload.size_bytes,
        codec: workload.codec.clone(),
        records: Some(workload.records),
        ..LoadSpec::new(&source.bootstrap(), &workload.topic())
    };
    Load::start(&spec)?.finish(FILL)?;
    source.stored_bytes(&workload.topic())
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
