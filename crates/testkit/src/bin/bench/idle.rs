//! Thousands of partitions: how long until all are mirrored, and what they cost when all is quiet.

use std::time::Duration;

use anyhow::Result;
use testkit::RealKafka;

use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics, Watch};
use crate::report::{Column, Ratio, Section, Seen, column, java_to};
use crate::usage::{self, Share};
use crate::{now, say};

const ABOUT: &str = "Topics of 100 partitions with one record in each. All mirrored: from the start \
    of the process until each partition of the target holds its record; once with a target that \
    has none of the topics, once with one that has them. Idle: 30 s that begin 15 s later. Aim: \
    5 s, a quarter of Java's idle CPU, 100 MB.";
const TOPICS: f64 = 100.0;
const PARTITIONS: i32 = 100;
/// Java takes a minute alone on two cores.
const MIRRORING: Duration = Duration::from_secs(300);
/// What is done behind the last record is done by then.
const SETTLING: Duration = Duration::from_secs(15);
const IDLE: Duration = Duration::from_secs(30);

const COLUMNS: &[Column] = &[
    column("all mirrored s", 1),
    column("CPU-s until then", 1),
    column("idle CPU % of a core", 2),
    column("idle RSS MB", 0),
    column("peak RSS MB", 0),
];
const RATIOS: &[Ratio] = &[
    java_to("Java : all mirrored", 0),
    java_to("Java : idle CPU", 2),
    java_to("Java : idle RSS", 3),
];

/// Each mirror on a fresh target, without and with the topics.
pub fn run(lab: &Lab) -> Result<Section> {
    let mut section = Section::new("Partitions by the thousand", ABOUT, COLUMNS, RATIOS);
    let source = lab::broker().start()?;
    let topics = Topics::new("idle", lab.scaled(TOPICS), PARTITIONS);
    lab::ensure_files(topics.count())?;
    say("partitions by the thousand: producing");
    topics.create(&source.admin())?;
    topics.fill(&source, 1, 100, 16_384)?;

    let mut creating = None;
    for there_already in [false, true] {
        let state = if there_already {
            "there already"
        } else {
            "to be made"
        };
        let case = format!("{} partitions, topics {state}", topics.count());
        lab.measure_each(&mut section, &case, &Contender::UNTUNED, |contender| {
            // Deleting ten thousand partitions takes longer than a new broker.
            let target = lab::broker().start()?;
            let flow = Flow::new(&source.bootstrap(), &target.bootstrap(), &topics.pattern());
            if there_already {
                let started = now();
                lab::create(&target.admin(), &flow.remote(&topics.names), PARTITIONS)?;
                creating = Some(started.elapsed());
            }
            let seen = measure(lab, contender, &topics, &flow, &target)?;
            lab::clean_up(&source, &target)?;
            Ok(seen)
        });
    }
    if let Some(creating) = creating {
        section.remark(&format!(
            "A bare client made the topics in {:.1} s.",
            creating.as_secs_f64()
        ));
    }
    Ok(section)
}

fn measure(
    lab: &Lab,
    contender: Contender,
    topics: &Topics,
    flow: &Flow,
    target: &RealKafka,
) -> Result<Seen> {
    let watch = Watch::new(target, flow, &topics.names, topics.count());
    let started = now();
    let mut mirror = lab.start(contender, flow)?;
    let process = mirror.process();
    let pid = process.pid();
    let mirrored = watch.until(process, topics.count(), MIRRORING)?;
    let (mirroring, used) = (started.elapsed(), usage::cpu(pid)?);
    if mirrored < topics.count() {
        return Ok(Seen {
            values: vec![f64::NAN, used.as_secs_f64()],
            note: format!(
                "{mirrored} of {} after {} s",
                topics.count(),
                MIRRORING.as_secs()
            ),
        });
    }
    lab::pause(SETTLING);
    let share = Share::of(pid)?;
    lab::pause(lab.scaled_time(IDLE));
    let idle = share.percent()?;
    Ok(Seen {
        values: vec![
            mirroring.as_secs_f64(),
            used.as_secs_f64(),
            idle,
            usage::memory_bytes(pid)? as f64 / 1e6,
            usage::peak_memory_bytes(pid)? as f64 / 1e6,
        ],
        note: String::new(),
    })
}
