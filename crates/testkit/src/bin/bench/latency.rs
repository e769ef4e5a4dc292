//! How much later a reader of the target sees a record than a reader of the source.

use std::time::Duration;

use anyhow::Result;
use testkit::{LatencyProbe, LatencySpec, Percentiles, RealKafka};

use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics};
use crate::report::{Column, Ratio, Section, Seen, column, java_to};
use crate::usage::{self, Share};

const ABOUT: &str = "5,000 records of 100 bytes a second over six partitions, sent one by one as \
    they come; one process sends them and reads both clusters, so there is one clock. Times are \
    from sending a record to a reader of the source, to a reader of the target, and, record by \
    record, from the former to the latter, which is what the mirror adds. The first records, while \
    all processes warm up, don't count. Aim: a third of what Java adds, and 3 % of a core.";
const RATE: u32 = 5_000;
const SIZE_BYTES: usize = 100;
const PARTITIONS: i32 = 6;
const WARM_UP: Duration = Duration::from_secs(15);
const COUNTED: Duration = Duration::from_secs(30);
/// A mirror may take so long until it has made its topic.
const START: Duration = Duration::from_secs(120);

const COLUMNS: &[Column] = &[
    column("source p50 ms", 1),
    column("source p99 ms", 1),
    column("target p50 ms", 1),
    column("target p99 ms", 1),
    column("added p50 ms", 2),
    column("added p99 ms", 2),
    column("added max ms", 1),
    column("CPU % of a core", 1),
    column("RSS MB", 0),
];
const ADDED_P99: usize = 5;
const CPU: usize = 7;
const RATIOS: &[Ratio] = &[
    java_to("Java : added p99", ADDED_P99),
    java_to("Java : CPU", CPU),
];

/// Each mirror on a topic of its own.
pub fn run(lab: &Lab) -> Result<Section> {
    let mut section = Section::new("Latency", ABOUT, COLUMNS, RATIOS);
    let (source, target) = (lab::broker().start()?, lab::broker().start()?);
    let case = format!("latency: {RATE} records/s");
    lab.measure_each(&mut section, &case, &Contender::MIRRORS, |contender| {
        let seen = measure(lab, contender, &source, &target)?;
        lab::clean_up(&source, &target)?;
        Ok(seen)
    });
    Ok(section)
}

fn measure(
    lab: &Lab,
    contender: Contender,
    source: &RealKafka,
    target: &RealKafka,
) -> Result<Seen> {
    let topics = Topics::new(&format!("latency-{contender}"), 1, PARTITIONS);
    topics.create(&source.admin())?;
    let flow = Flow::new(&source.bootstrap(), &target.bootstrap(), &topics.pattern());
    let mut mirror = lab.start(contender, &flow)?;
    let remote = &flow.remote(&topics.names)[0];
    let ready = || target.admin().end_offsets(remote);
    mirror.process().eventually(START, ready)?;

    let mut probe = LatencyProbe::start(&LatencySpec {
        source: source.bootstrap(),
        target: target.bootstrap(),
        topic: topics.names[0].clone(),
        prefix: flow.prefix(),
        rate: RATE,
        size_bytes: SIZE_BYTES,
        warm_up: WARM_UP,
        counted: lab.scaled_time(COUNTED),
    })?;
    let pid = mirror.process().pid();
    let share = Share::of(pid)?;
    probe.measured()?;
    let (percent, memory) = (share.percent()?, usage::memory_bytes(pid)?);
    let latencies = probe.finish()?;
    let half_and_most = |times: Percentiles| [millis(times.p50), millis(times.p99)];
    let mut values = Vec::new();
    for times in [latencies.source, latencies.target, latencies.added] {
        values.extend(half_and_most(times));
    }
    values.extend([millis(latencies.added.max), percent, memory as f64 / 1e6]);
    Ok(Seen {
        values,
        note: String::new(),
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
