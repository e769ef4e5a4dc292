//! What the target refuses stops the partition or topic that it concerns, says why and what to do,
//! and keeps nothing else; when the obstacle is gone it goes on by itself.

use anyhow::{Result, ensure};
use testkit::{TopicSpec, TwinlogProcess};

use crate::flow::Flow;
use crate::hands::{Hands, keyed, record};
use crate::status::{Watched, newest_status, number};

/// One kind of refusal: what stands still, and what is said of it.
struct Refusal {
    /// A partition or topic.
    what: String,
    /// The kind, as the status has it.
    kind: &'static str,
    /// Words of the reason.
    reason: &'static str,
    /// Words of the way out.
    remedy: &'static str,
}

impl Refusal {
    /// Waits until the status shows it, with reason and remedy.
    fn expect_shown(&self, twinlog: &mut TwinlogProcess) -> Result<()> {
        let (what, kind) = (
            format!("what={} ", self.what),
            format!("kind={} ", self.kind),
        );
        twinlog.log_eventually(|log| {
            let mut lines = log.lines().filter(|line| line.contains("stands still"));
            let shown = lines.any(|line| {
                let parts = [&*what, &*kind, self.reason, self.remedy];
                parts.iter().all(|part| line.contains(part))
            });
            ensure!(shown, "the status does not show {what}{kind}");
            Ok(())
        })
    }

    /// It was told once, with reason and remedy.
    fn check_logged(&self, log: &str) -> Result<()> {
        let told = log.lines().filter(|line| {
            let is_told = line.contains("others go on") && line.contains(&self.what);
            is_told && line.contains(self.reason) && line.contains(self.remedy)
        });
        let told = told.count();
        ensure!(told == 1, "{} was told {told} times", self.what);
        Ok(())
    }
}

/// Topics on both sides of which the target's takes less.
struct Topics {
    flow: Flow,
    source: Hands,
    target: Hands,
}

impl Topics {
    fn remote(&self, kind: &str) -> String {
        self.flow.remote(&self.flow.topic(kind))
    }

    /// Two partitions, whose copies have a setting of their own.
    fn make(&self, kind: &str, setting: Option<(&str, &str)>) -> Result<()> {
        self.flow.create_topic(&self.flow.topic(kind), 2)?;
        let mut copy = TopicSpec::new(&self.remote(kind), 2);
        if let Some((key, value)) = setting {
            copy = copy.config(key, value);
        }
        self.flow.target().create_topic(&copy)
    }

    /// What was written arrived, in both partitions.
    fn expect(&self, kind: &str, first: &[&str], second: &[&str]) -> Result<()> {
        self.target.expect(&self.remote(kind), 0, first)?;
        self.target.expect(&self.remote(kind), 1, second)
    }
}

#[test]
fn what_the_target_refuses_stops_alone_says_why_and_goes_on_when_it_may() -> Result<()> {
    let flow = Flow::new("refused")?.with("refresh.topics.interval.seconds = 1");
    let (source, target) = (flow.at_source()?, flow.at_target()?);
    let topics = Topics {
        flow,
        source,
        target,
    };
    let Topics {
        flow,
        source,
        target,
    } = &topics;
    let (size, time, key) = (flow.topic("size"), flow.topic("time"), flow.topic("key"));
    topics.make("size", Some(("max.message.bytes", "1000")))?;
    topics.make("time", Some(("message.timestamp.before.max.ms", "3600000")))?;
    topics.make("key", Some(("cleanup.policy", "compact")))?;
    topics.make("fine", None)?;
    let name = flow.topic(&"n".repeat(249 - "refused.".len()));
    flow.create_topic(&name, 1)?;
    let large = "x".repeat(2_000);
    source.write(&size, 0, &["a", &large, "b"])?;
    let mut old = record("old");
    old.timestamp = 1;
    source.write(&time, 0, &["a"])?;
    source.write_records(&time, 0, &[old])?;
    source.write_records(&key, 0, &[keyed("k", "a")])?;
    source.write_records(&key, 0, &[record("no key")])?;
    for topic in [&size, &time, &key] {
        source.write_records(topic, 1, &[keyed("k", "other")])?;
    }

    let mut twinlog = flow
        .twinlog_with_status()?
        .expecting("paused, others go on")
        .expecting("not mirrored, others go on");

    let refusals = [
        Refusal {
            what: format!("{size}-0"),
            kind: "record-too-large",
            reason: "the record at offset 1 takes",
            remedy: "raise max.message.bytes",
        },
        Refusal {
            what: format!("{time}-0"),
            kind: "timestamp-refused",
            reason: "the target refuses the time of records from offset 1",
            remedy: "raise message.timestamp.after.max.ms or message.timestamp.before.max.ms",
        },
        Refusal {
            what: format!("{key}-0"),
            kind: "record-refused",
            reason: "the target refuses the records from offset 1",
            remedy: "set cleanup.policy=delete",
        },
        Refusal {
            what: name.clone(),
            kind: "topic-not-mirrored",
            reason: "257 characters",
            remedy: "topics.exclude",
        },
    ];
    for refusal in &refusals {
        refusal.expect_shown(&mut twinlog)?;
    }
    let fine = flow.topic("fine");
    source.write(&fine, 0, &["later"])?;
    topics.expect("fine", &["later"], &[])?;
    for kind in ["size", "time", "key"] {
        topics.expect(kind, &["a"], &["other"])?;
    }
    let log = twinlog.process().log();
    for refusal in &refusals {
        refusal.check_logged(&log)?;
    }
    // Attempts on three partitions, before each pause and at its end: whoever spins has thousands.
    let retries = number(&twinlog.status_line()?, "retries=")?;
    ensure!(retries <= 30, "{retries} requests were refused");

    target.set(&topics.remote("size"), "max.message.bytes", "100000")?;
    target.set(
        &topics.remote("time"),
        "message.timestamp.before.max.ms",
        &i64::MAX.to_string(),
    )?;
    target.set(&topics.remote("key"), "cleanup.policy", "delete")?;
    flow.source().delete_topics(std::slice::from_ref(&name))?;

    topics.expect("size", &["a", &large, "b"], &["other"])?;
    topics.expect("time", &["a", "old"], &["other"])?;
    topics.expect("key", &["a", "no key"], &["other"])?;
    twinlog.log_eventually(|log| {
        let goes_on = log.matches("goes on after a pause").count();
        ensure!(goes_on == 3, "{goes_on} partitions said that they go on");
        Ok(())
    })?;
    twinlog.log_eventually(|log| {
        let still = newest_status(log)?.contains("stands still");
        ensure!(!still, "something stands still");
        Ok(())
    })?;
    twinlog.stop()
}
