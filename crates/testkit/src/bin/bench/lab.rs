//! What every workload stands on: two brokers, topics in the source, and eyes on the target.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testkit::{Admin, FillSpec, ManagedProcess, RealKafka, RealKafkaBuilder, TopicSpec};

use crate::contender::{Contender, Flow, Mirror};
use crate::report::{Section, Seen};
use crate::{now, say};

/// Filling topics may take this long.
pub const FILL: Duration = Duration::from_secs(900);
/// What topics in the source begin with; everything else is a contender's.
pub const OURS: &str = "bench-";
/// Files that a broker has open besides one for each partition.
const BROKER_FILES: u64 = 2_000;

/// What was asked for.
#[derive(Debug)]
pub struct Lab {
    pub twinlog: PathBuf,
    /// Part of the full size.
    pub scale: f64,
    pub contenders: Vec<Contender>,
}

impl Lab {
    /// So many of `full`, at least one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count between 1 and some millions"
    )]
    pub fn scaled(&self, full: f64) -> u64 {
        (full * self.scale).max(1.0) as u64
    }

    /// As long a part of `full`, at least five seconds.
    pub fn scaled_time(&self, full: Duration) -> Duration {
        full.mul_f64(self.scale.min(1.0))
            .max(Duration::from_secs(5))
    }

    /// A mirror of this flow.
    pub fn start(&self, contender: Contender, flow: &Flow) -> Result<Mirror> {
        Mirror::start(contender, flow, &self.twinlog)
    }

    /// Measures those of `takes` that were asked for, and adds a row for each.
    pub fn measure_each(
        &self,
        section: &mut Section,
        case: &str,
        takes: &[Contender],
        mut measure: impl FnMut(Contender) -> Result<Seen>,
    ) {
        let contenders = self.contenders.iter();
        for contender in contenders.filter(|contender| takes.contains(contender)) {
            say(&format!("{case}: {contender}"));
            let seen = measure(*contender);
            if let Err(error) = &seen {
                say(&format!("{contender} failed: {error:#}"));
            }
            section.add(case, *contender, seen.ok());
        }
    }
}

/// A broker as production has it, which gives disk back before the next run needs it.
pub fn broker() -> RealKafkaBuilder {
    RealKafka::builder()
        .full_speed()
        .heap("2g")
        .property("log.segment.delete.delay.ms", "1000")
}

/// Fails early where a broker could not open that many partitions.
pub fn ensure_files(partitions: u64) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits").context("read the limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1));
    let hard = hard.context("the limit of open files")?;
    let needed = partitions + BROKER_FILES;
    // It may be `unlimited`.
    let is_enough = hard.parse::<u64>().map_or(true, |hard| hard >= needed);
    ensure!(
        is_enough,
        "a broker of {partitions} partitions may open {hard} files and needs {needed}: raise \
         `ulimit -Hn`"
    );
    Ok(())
}

/// Topics of the source that are alike.
#[derive(Debug, Clone)]
pub struct Topics {
    pub names: Vec<String>,
    pub partitions: i32,
}

impl Topics {
    /// `count` topics of so many partitions.
    pub fn new(name: &str, count: u64, partitions: i32) -> Self {
        Self {
            names: (0..count)
                .map(|number| format!("{OURS}{name}-{number}"))
                .collect(),
            partitions,
        }
    }

    /// As the key `topics` takes all of them: they share a name but for the number.
    pub fn pattern(&self) -> String {
        let name = self.names.first().and_then(|name| name.rsplit_once('-'));
        name.map_or_else(String::new, |(name, _)| format!("{name}-.*"))
    }

    pub fn count(&self) -> u64 {
        self.names.len() as u64 * u64::from(self.partitions.unsigned_abs())
    }

    pub fn create(&self, admin: &Admin) -> Result<()> {
        create(admin, &self.names, self.partitions)
    }

    /// Produces so many records to each partition.
    pub fn fill(&self, source: &RealKafka, records: u64, size: usize, batch: usize) -> Result<()> {
        let spec = FillSpec {
            bootstrap: source.bootstrap(),
            topics: self.names.clone(),
            partitions: self.partitions,
            records,
            size_bytes: size,
            batch_bytes: batch,
        };
        spec.run(FILL)
    }

    /// Bytes in the source's log.
    pub fn stored_bytes(&self, source: &RealKafka) -> Result<u64> {
        let bytes = self.names.iter().map(|topic| source.stored_bytes(topic));
        bytes.sum()
    }
}

/// Makes topics whose records stay.
pub fn create(admin: &Admin, names: &[String], partitions: i32) -> Result<()> {
    let specs = names
        .iter()
        .map(|name| TopicSpec::new(name, partitions).config("retention.ms", "-1"));
    admin.create_topics(&specs.collect::<Vec<_>>())
}

/// Removes what contenders made on either side.
pub fn clean_up(source: &RealKafka, target: &RealKafka) -> Result<()> {
    remove_topics(&source.admin(), |name| !name.starts_with(OURS))?;
    remove_topics(&target.admin(), |_| true)
}

fn remove_topics(admin: &Admin, unwanted: impl Fn(&str) -> bool) -> Result<()> {
    let mut topics = admin.topics()?;
    topics.retain(|name| !name.starts_with("__") && unwanted(name));
    admin.delete_topics(&topics)
}

/// Counts what arrives in topics of the target.
#[derive(Debug)]
pub struct Watch {
    admin: Admin,
    topics: Vec<String>,
    /// Between two looks: each costs the broker something for every partition.
    pause: Duration,
}

impl Watch {
    /// On the copies of `topics`, `partitions` in all, that `flow` makes on `target`.
    pub fn new(target: &RealKafka, flow: &Flow, topics: &[String], partitions: u64) -> Self {
        Self {
            admin: target.admin(),
            topics: flow.remote(topics),
            pause: Duration::from_millis(20 + partitions / 40),
        }
    }

    /// Looks until so many records are there or the time is up, and returns how many there are.
    pub fn until(
        &self,
        mirror: &mut ManagedProcess,
        records: u64,
        within: Duration,
    ) -> Result<u64> {
        let deadline = now() + within;
        loop {
            // A broker that is away or busy answers the next look.
            let seen = self.admin.records_so_far(&self.topics).unwrap_or(0);
            if seen >= records || now() >= deadline {
                return Ok(seen);
            }
            if let Some(status) = mirror.exited()? {
                bail!("the mirror ended: {status}\n{}", mirror.log_tail());
            }
            pause(self.pause);
        }
    }
}

/// Lets time pass that is to be measured.
#[expect(
    clippy::disallowed_methods,
    reason = "what happens while time passes is what is measured"
)]
pub fn pause(time: Duration) {
    thread::sleep(time);
}
