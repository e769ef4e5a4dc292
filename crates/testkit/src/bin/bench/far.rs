//! Default settings over a long line, to the source or to the target.

use std::time::Duration;

use anyhow::Result;
use testkit::Line;

use crate::backlog::{self, Backlog};
use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics};
use crate::report::Section;
use crate::say;
use crate::shapes::DEFAULT_BATCH_BYTES;

const ABOUT: &str = "100 ms of round trip between the mirror and the source, or the target; the \
    line does not narrow. Records of 1,000 bytes in batches of 16 KiB, three partitions of them; \
    and 24 where each connection carries 100 KiB in a round trip, as it does with the socket \
    buffers that brokers have by default. A run of more than 45 s is cut short, and its rate is \
    that of what was copied. Aim for the first: 50 MB/s where Java as it comes makes 0.4.";
const ONE_WAY: Duration = Duration::from_millis(50);
/// `socket.send.buffer.bytes` and `socket.receive.buffer.bytes`.
const WINDOW: usize = 100 << 10;
const CUT_AFTER: Duration = Duration::from_secs(45);
const SIZE_BYTES: usize = 1_000;
/// Over all partitions: a gigabyte.
const RECORDS: f64 = 1e6;

/// Either line, of either kind, by each mirror.
pub fn run(lab: &Lab) -> Result<Section> {
    let mut section = Section::new("Long lines", ABOUT, backlog::COLUMNS, backlog::RATIOS);
    let line = Line::of(ONE_WAY);
    measure(lab, &mut section, "", line, 3)?;
    measure(
        lab,
        &mut section,
        ", 100 KiB windows",
        line.with_window(WINDOW),
        24,
    )?;
    Ok(section)
}

fn measure(
    lab: &Lab,
    section: &mut Section,
    kind: &str,
    line: Line,
    partitions: i32,
) -> Result<()> {
    let broker = || lab::broker().slow_link(line).start();
    let (source, target) = (broker()?, broker()?);
    let topics = Topics::new("far", 1, partitions);
    let each = lab.scaled(RECORDS / f64::from(partitions));
    say(&format!("long lines{kind}: producing"));
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
        let case = format!("{case}{kind}");
        lab.measure_each(section, &case, &Contender::MIRRORS, |contender| {
            let flow = Flow::new(&from, &to, &backlog.topics.pattern());
            let seen = backlog::measure(lab, contender, &backlog, &flow, &source, &target)?;
            Ok(seen.seen())
        });
    }
    Ok(())
}
