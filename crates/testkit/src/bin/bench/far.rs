//! Default settings over a long line, to the source or to the target.

use std::time::Duration;

use anyhow::Result;

use crate::backlog::{self, Backlog};
use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics};
use crate::report::Section;
use crate::say;
use crate::shapes::DEFAULT_BATCH_BYTES;

const ABOUT: &str = "100 ms of round trip between the mirror and the source, or the target; the \
    line delays and does not narrow. Three partitions of records of 1,000 bytes in batches of \
    16 KiB. A run of more than 45 s is cut short, and its rate is that of what was copied. Aim: \
    50 MB/s where Java as it comes makes 0.4.";
const ONE_WAY: Duration = Duration::from_millis(50);
const CUT_AFTER: Duration = Duration::from_secs(45);
const SIZE_BYTES: usize = 1_000;
/// Over all partitions: a gigabyte.
const RECORDS: f64 = 1e6;
const PARTITIONS: i32 = 3;

/// Either line, by each mirror.
pub fn run(lab: &Lab) -> Result<Section> {
    let mut section = Section::new("Long lines", ABOUT, backlog::COLUMNS, backlog::RATIOS);
    let broker = || lab::broker().slow_link(ONE_WAY).start();
    let (source, target) = (broker()?, broker()?);
    let topics = Topics::new("far", 1, PARTITIONS);
    let each = lab.scaled(RECORDS / f64::from(PARTITIONS));
    say("long lines: producing");
    topics.create(&source.admin())?;
    topics.fill(&source, each, SIZE_BYTES, DEFAULT_BATCH_BYTES)?;
    let backlog = Backlog {
        records: each * topics.count(),
        bytes: topics.stored_bytes(&source)?,
        topics,
        cut_after: CUT_AFTER,
    };
    let lines = [
        ("far source", source.far_bootstrap()?, target.bootstrap()),
        ("far target", source.bootstrap(), target.far_bootstrap()?),
    ];
    for (case, from, to) in lines {
        lab.measure_each(&mut section, case, &Contender::MIRRORS, |contender| {
            let flow = Flow::new(&from, &to, &backlog.topics.pattern());
            let seen = backlog::measure(lab, contender, &backlog, &flow, &source, &target)?;
            Ok(seen.seen())
        });
    }
    Ok(section)
}
