//! How fast a topic is copied, and for how much processor time: sizes and codecs.

use std::time::Duration;

use anyhow::Result;
use testkit::{Load, LoadSpec, RealKafka};

use crate::backlog::{self, Backlog};
use crate::contender::{Contender, Flow};
use crate::lab::{self, Lab, Topics};
use crate::report::Section;
use crate::{relay, say};

const ABOUT: &str = "One topic, from the start of the process to the last record on the target. \
    The source's batches are 128 KiB. MB and GB are those of the source's log. CPU-s/GB is counted \
    from the first mirrored record to the last, CPU-s in all from the start of the process. A run of \
    more than 60 s is cut short, and its rate is that of what was copied.";
/// Java's rate is known by then.
const CUT_AFTER: Duration = Duration::from_secs(60);

/// What is copied.
#[derive(Debug)]
pub struct Kinds<'options> {
    pub sizes: &'options [usize],
    pub codecs: &'options [String],
    pub partitions: i32,
}

/// A copy of each kind by each contender.
pub fn run(lab: &Lab, kinds: &Kinds<'_>) -> Result<Section> {
    let mut section = Section::new("Copy", ABOUT, backlog::COLUMNS, backlog::COPY_RATIOS);
    let (source, target) = (lab::broker().start()?, lab::broker().start()?);
    for size in kinds.sizes {
        for codec in kinds.codecs {
            // 10,000,000 records of up to 100 bytes, or as many larger ones as make 2 GB.
            let records = lab.scaled(10_000_000_f64.min(2e9 / *size as f64));
            let case = format!("{records} x {size} B {codec}");
            let topics = Topics::new(&format!("{size}-{codec}"), 1, kinds.partitions);
            say(&format!("{case}: producing"));
            let backlog = fill(&source, topics, *size, codec, records)?;
            lab.measure_each(&mut section, &case, &Contender::ALL, |contender| {
                if contender == Contender::Relay {
                    return Ok(relay::measure(records, backlog.bytes)?.seen());
                }
                let (from, to) = (source.bootstrap(), target.bootstrap());
                let flow = Flow::new(&from, &to, &backlog.topics.pattern());
                let seen = backlog::measure(lab, contender, &backlog, &flow, &source, &target)?;
                Ok(seen.seen())
            });
            source.admin().delete_topics(&backlog.topics.names)?;
        }
    }
    Ok(section)
}

fn fill(
    source: &RealKafka,
    topics: Topics,
    size: usize,
    codec: &str,
    records: u64,
) -> Result<Backlog> {
    topics.create(&source.admin())?;
    let spec = LoadSpec {
        rate: None,
        size_bytes: size,
        codec: codec.to_owned(),
        records: Some(records),
        ..LoadSpec::new(&source.bootstrap(), &topics.names[0])
    };
    Load::start(&spec)?.finish(lab::FILL)?;
    let bytes = topics.stored_bytes(source)?;
    Ok(Backlog {
        topics,
        records,
        bytes,
        cut_after: CUT_AFTER,
    })
}
