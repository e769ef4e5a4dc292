//! Backlogs of awkward shapes: batches of one record, many topics, many partitions.

use std::time::Duration;

use anyhow::Result;
use testkit::RealKafka;

use crate::backlog::{self, Backlog};
use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics};
use crate::report::Section;
use crate::say;

/// What producers make batches of unless told otherwise (`batch.size`).
pub const DEFAULT_BATCH_BYTES: usize = 16_384;
/// Java's rate is known by then.
const CUT_AFTER: Duration = Duration::from_secs(90);

/// A backlog, before it is scaled.
struct Shape {
    title: &'static str,
    about: &'static str,
    name: &'static str,
    topics: f64,
    partitions: i32,
    records: f64,
    size_bytes: usize,
    batch_bytes: usize,
}

/// Batches of one record each.
pub fn small(lab: &Lab) -> Result<Section> {
    run(
        lab,
        &Shape {
            title: "Batches of one record",
            about: "A topic of six partitions whose producer did not batch.",
            name: "small",
            topics: 1.0,
            partitions: 6,
            records: 50_000.0 * lab.scale,
            size_bytes: 100,
            batch_bytes: 0,
        },
    )
}

/// Many topics.
pub fn topics(lab: &Lab) -> Result<Section> {
    run(
        lab,
        &Shape {
            title: "500 topics",
            about: "Two partitions each, with as many records in each, batches of 16 KiB; topics \
                    of the target are made by the mirror.",
            name: "topics",
            topics: 500.0 * lab.scale,
            partitions: 2,
            records: 1_000.0,
            size_bytes: 1_000,
            batch_bytes: DEFAULT_BATCH_BYTES,
        },
    )
}

/// One topic with many partitions.
pub fn wide(lab: &Lab) -> Result<Section> {
    let partitions = i32::try_from(lab.scaled(1_000.0))?;
    run(
        lab,
        &Shape {
            title: "A topic of 1,000 partitions",
            about: "As many records in each, batches of 16 KiB; the topic of the target is made by \
                    the mirror.",
            name: "wide",
            topics: 1.0,
            partitions,
            records: 1_000.0,
            size_bytes: 1_000,
            batch_bytes: DEFAULT_BATCH_BYTES,
        },
    )
}

fn run(lab: &Lab, shape: &Shape) -> Result<Section> {
    let about = format!(
        "{} A run of more than {} s is cut short, and its rate is that of what was copied.",
        shape.about,
        CUT_AFTER.as_secs()
    );
    let mut section = Section::new(shape.title, &about, backlog::COLUMNS, backlog::RATIOS);
    let (source, target) = (lab::broker().start()?, lab::broker().start()?);
    let backlog = fill(&source, shape)?;
    let topics = &backlog.topics;
    let case = format!(
        "{}: {} partitions, {} x {} B",
        shape.name,
        topics.count(),
        backlog.records,
        shape.size_bytes
    );
    lab.measure_each(&mut section, &case, &Contender::MIRRORS, |contender| {
        let flow = Flow::new(&source.bootstrap(), &target.bootstrap(), &topics.pattern());
        let seen = backlog::measure(lab, contender, &backlog, &flow, &source, &target)?;
        Ok(seen.seen())
    });
    Ok(section)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts between 1 and some thousands"
)]
fn fill(source: &RealKafka, shape: &Shape) -> Result<Backlog> {
    let whole = |count: f64| count.max(1.0) as u64;
    let topics = Topics::new(shape.name, whole(shape.topics), shape.partitions);
    let each = whole(shape.records);
    say(&format!("{}: producing", shape.title));
    topics.create(&source.admin())?;
    topics.fill(source, each, shape.size_bytes, shape.batch_bytes)?;
    let (records, bytes) = (each * topics.count(), topics.stored_bytes(source)?);
    Ok(Backlog {
        topics,
        records,
        bytes,
        cut_after: CUT_AFTER,
    })
}
