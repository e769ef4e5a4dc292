//! The target comes back after an outage: thousands of partitions have something to send at once.

use std::cmp::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::RealKafka;

use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics, Watch};
use crate::report::{Column, Ratio, Section, Seen, column, java_to};
use crate::{now, say, usage};

const ABOUT: &str = "Topics of 100 partitions, all mirrored, until the target's broker stops. While \
    it is away each partition gets 100 records of 1,000 bytes. Catching up: from the moment the \
    broker answers again until the last record is there. Memory: resident before the outage, at \
    its peak while the broker is away, and at its peak while catching up; twinlog's budget for \
    records is 64 MiB.";
const TOPICS: f64 = 50.0;
const PARTITIONS: i32 = 100;
const RECORDS: u64 = 100;
const SIZE_BYTES: usize = 1_000;
const MIRRORING: Duration = Duration::from_secs(300);
const CATCHING_UP: Duration = Duration::from_secs(300);

const COLUMNS: &[Column] = &[
    column("catching up s", 1),
    column("MB/s", 1),
    column("CPU-s", 1),
    column("RSS before MB", 0),
    column("peak RSS away MB", 0),
    column("peak RSS catching up MB", 0),
];
const RATIOS: &[Ratio] = &[
    java_to("Java : catching up", 0),
    java_to("Java : CPU", 2),
    java_to("Java : peak RSS", 5),
];

/// Each mirror through an outage of its own.
pub fn run(lab: &Lab) -> Result<Section> {
    let mut section = Section::new("After an outage", ABOUT, COLUMNS, RATIOS);
    let count = lab.scaled(TOPICS);
    let case = format!(
        "outage: {} partitions",
        count * PARTITIONS.unsigned_abs() as u64
    );
    lab.measure_each(&mut section, &case, &Contender::UNTUNED, |contender| {
        measure(lab, contender, &Topics::new("outage", count, PARTITIONS))
    });
    Ok(section)
}

fn measure(lab: &Lab, contender: Contender, topics: &Topics) -> Result<Seen> {
    lab::ensure_files(topics.count())?;
    let (source, mut target) = (lab::broker().start()?, lab::broker().start()?);
    topics.create(&source.admin())?;
    topics.fill(&source, 1, SIZE_BYTES, 16_384)?;
    let flow = Flow::new(&source.bootstrap(), &target.bootstrap(), &topics.pattern());
    let watch = Watch::new(&target, &flow, &topics.names, topics.count());
    let mut mirror = lab.start(contender, &flow)?;
    let process = mirror.process();
    let pid = process.pid();
    let mirrored = watch.until(process, topics.count(), MIRRORING)?;
    ensure!(
        mirrored == topics.count(),
        "{mirrored} of {} records before the outage\n{}",
        topics.count(),
        process.log_tail()
    );

    let before = usage::memory_bytes(pid)?;
    target.stop(1)?;
    usage::reset_peak(pid)?;
    let bytes = produce_more(topics, &source)?;
    let away = usage::peak_memory_bytes(pid)?;
    target.restart(1)?;

    usage::reset_peak(pid)?;
    let (started, cpu) = (now(), usage::cpu(pid)?);
    let all = topics.count() * (1 + RECORDS);
    let mirrored = watch.until(process, all, CATCHING_UP)?;
    let (catching_up, cpu) = (started.elapsed(), usage::cpu(pid)?.saturating_sub(cpu));
    ensure!(
        mirrored <= all || contender != Contender::Twinlog,
        "{mirrored} records arrived of {all}"
    );
    let cut = mirrored < all;
    let part = (mirrored as f64 / all as f64).min(1.0);
    let seconds = catching_up.as_secs_f64();
    Ok(Seen {
        values: vec![
            if cut { f64::NAN } else { seconds },
            bytes as f64 * part / 1e6 / seconds,
            cpu.as_secs_f64(),
            before as f64 / 1e6,
            away as f64 / 1e6,
            usage::peak_memory_bytes(pid)? as f64 / 1e6,
        ],
        note: note(mirrored, all),
    })
}

/// What has to be said where not exactly `all` records arrived.
fn note(mirrored: u64, all: u64) -> String {
    match mirrored.cmp(&all) {
        Ordering::Less => format!("cut short: {mirrored} of {all} records"),
        Ordering::Equal => String::new(),
        // They were counted in place of others that were still to come.
        Ordering::Greater => format!("{} records or more doubled", mirrored - all),
    }
}

/// What comes in meanwhile; returns its bytes in the source's log.
fn produce_more(topics: &Topics, source: &RealKafka) -> Result<u64> {
    say("the target is away: producing");
    let before = topics.stored_bytes(source)?;
    topics.fill(source, RECORDS, SIZE_BYTES, 16_384)?;
    Ok(topics.stored_bytes(source)? - before)
}
