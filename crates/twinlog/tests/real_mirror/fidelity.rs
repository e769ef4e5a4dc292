//! Every record arrives as it is: its bytes, headers, time, partition and place in the order; and
//! so do settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use testkit::{Corpus, TopicSpec, TwinlogProcess, shared_pair};

use crate::flow::{Flow, PATIENCE};

/// Topic settings that are not copied unless told so (`config.properties.exclude`).
const NOT_COPIED: [&str; 6] = [
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
];

/// Every kind of record and log, in topics that start with `corpus.`; made once for all tests.
fn corpus() -> Result<&'static Corpus> {
    static CORPUS: OnceLock<Result<Corpus>> = OnceLock::new();
    let corpus =
        CORPUS.get_or_init(|| Corpus::produce(&shared_pair()?.source.bootstrap(), "corpus.", 100));
    corpus.as_ref().map_err(|error| anyhow!("{error:#}"))
}

/// Mirrors the corpus, and compares topics, settings and records.
fn check_corpus_is_mirrored(flow: &Flow) -> Result<()> {
    let corpus = corpus()?;
    let topics: Vec<_> = corpus.topics.iter().chain(&corpus.compacted).collect();

    let twinlog = flow.twinlog()?;
    let report = flow.comparison().corpus(corpus).run()?;
    twinlog.stop()?;

    let equal = report.matches(" partitions equal").count();
    ensure!(
        equal == topics.len(),
        "compared only {equal} topics: {report}"
    );
    let expected: BTreeSet<_> = topics.iter().map(|topic| flow.remote(topic)).collect();
    let there = flow.target().topics()?.into_iter();
    let mirrored = there.filter(|topic| topic.starts_with(&flow.remote("corpus.")));
    assert_eq!(mirrored.collect::<BTreeSet<_>>(), expected);
    for topic in topics {
        check_settings_are_copied(flow, topic)?;
    }
    Ok(())
}

fn check_settings_are_copied(flow: &Flow, topic: &str) -> Result<()> {
    let mut expected = flow.source().topic_settings(topic)?;
    expected.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    let remote = flow.target().topic_settings(&flow.remote(topic))?;
    ensure!(
        remote == expected,
        "{topic} has {expected:?}, its copy {remote:?}"
    );
    Ok(())
}

#[test]
fn every_record_arrives_as_it_is_under_the_prefix_of_its_source() -> Result<()> {
    let flow = Flow::new("us")?.of_topics("corpus\\\\..*");

    check_corpus_is_mirrored(&flow)
}

#[test]
fn every_record_arrives_as_it_is_under_its_own_name() -> Result<()> {
    let flow = Flow::new("same")?.of_topics("corpus\\\\..*").identity();

    check_corpus_is_mirrored(&flow)
}

#[test]
fn settings_are_copied_but_for_those_that_belong_to_a_cluster() -> Result<()> {
    let flow = Flow::new("settings")?;
    let spec = TopicSpec::new("settings.all", 4)
        .config("cleanup.policy", "compact,delete")
        .config("retention.ms", "604800001")
        .config("segment.bytes", "16777216")
        .config("compression.type", "zstd")
        .config("min.insync.replicas", "1")
        .config("unclean.leader.election.enable", "true")
        .config("message.timestamp.type", "LogAppendTime");
    flow.source().create_topic(&spec)?;

    let twinlog = flow.twinlog()?;
    flow.comparison().topic("settings.all").run()?;
    twinlog.stop()?;

    let settings = flow.target().topic_settings("settings.settings.all")?;
    let copied = [
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "604800001"),
        ("segment.bytes", "16777216"),
        ("compression.type", "zstd"),
    ];
    let expected: BTreeMap<_, _> = copied
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    assert_eq!(settings, expected);
    Ok(())
}

#[test]
fn topics_that_are_excluded_or_internal_or_came_from_the_target_are_not_mirrored() -> Result<()> {
    let flow = Flow::new("picky")?
        .of_topics("picky\\\\..*, eu\\\\.picky.*, __.*, mm2-.*")
        .with("topics.exclude = picky\\\\.secret.*");
    let refused = [
        "picky.secret.plans",
        "picky.checkpoints.internal",
        "eu.picky.came-from-there",
        "__picky",
        "mm2-picky.internal",
    ];
    for topic in refused {
        flow.create_topic(topic, 1)?;
    }
    flow.create_topic("picky.wanted", 3)?;
    let before = flow.source().topics()?;
    flow.load("picky.wanted", |load| load.records = Some(30))?
        .finish(PATIENCE)?;

    let twinlog = flow.twinlog()?;
    flow.comparison().numbered("picky.wanted").run()?;
    twinlog.stop()?;

    let picky = |topics: Vec<String>| -> BTreeSet<String> {
        let of_this_test = |topic: &String| topic.contains("picky");
        topics.into_iter().filter(of_this_test).collect()
    };
    let expected = ["mm2-offsets.picky.internal", "picky.picky.wanted"].map(str::to_owned);
    assert_eq!(picky(flow.target().topics()?), expected.into());
    assert_eq!(picky(flow.source().topics()?), picky(before));
    Ok(())
}

#[test]
fn a_topic_that_is_made_later_is_mirrored_without_a_restart() -> Result<()> {
    let flow = Flow::new("later")?;
    flow.create_topic("later.first", 1)?;
    let hundred = |topic| {
        let load = flow.load(topic, |load| load.records = Some(100))?;
        load.finish(PATIENCE)
    };
    hundred("later.first")?;
    let mut twinlog = flow.twinlog()?;
    flow.comparison().numbered("later.first").run()?;

    let spec = TopicSpec::new("later.second", 3).config("max.message.bytes", "2000000");
    flow.source().create_topic(&spec)?;
    hundred("later.second")?;

    let both = flow
        .comparison()
        .numbered("later.first")
        .numbered("later.second");
    both.run()?;
    check_settings_are_copied(&flow, "later.second")?;
    check_each_partition_joined_once(&mut twinlog, 4)?;
    twinlog.stop()
}

#[test]
fn new_partitions_are_mirrored_while_the_old_ones_go_on_undisturbed() -> Result<()> {
    let flow = Flow::new("growing")?;
    flow.create_topic("growing.orders", 2)?;
    let old = flow.load("growing.orders", |_| ())?;
    let mut twinlog = flow.twinlog()?;
    let wait_for_records_in = |twinlog: &mut TwinlogProcess, partitions: usize| {
        twinlog.process().eventually(PATIENCE, || {
            let ends = flow.target_ends("growing.orders");
            let filled = ends.iter().filter(|end| **end > 0).count();
            ensure!(
                filled == partitions,
                "the copy's partitions end at {ends:?}"
            );
            Ok(())
        })
    };
    wait_for_records_in(&mut twinlog, 2)?;

    flow.source().add_partitions("growing.orders", 5)?;
    let new = flow.load("growing.orders", |load| load.first_partition = 2)?;
    wait_for_records_in(&mut twinlog, 5)?;

    old.stop()?;
    new.stop()?;
    flow.comparison().numbered("growing.orders").run()?;
    check_each_partition_joined_once(&mut twinlog, 5)?;
    twinlog.stop()
}

/// No partition was taken from its task, and none was given twice.
fn check_each_partition_joined_once(twinlog: &mut TwinlogProcess, partitions: u64) -> Result<()> {
    let log = twinlog.process().log();
    let assigned = log
        .lines()
        .filter(|line| line.contains("partitions assigned"));
    let (mut joined, mut left) = (0, 0);
    for line in assigned {
        joined += number(line, "joined=")?;
        left += number(line, "left=")?;
    }
    ensure!(
        (joined, left) == (partitions, 0),
        "{joined} partitions joined and {left} left\n{}",
        twinlog.process().log_tail()
    );
    Ok(())
}

/// The number behind `name` in a line of the log.
fn number(line: &str, name: &str) -> Result<u64> {
    let value = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name));
    let value = value.with_context(|| format!("no {name} in {line}"))?;
    value.parse().with_context(|| format!("{name} in {line}"))
}
