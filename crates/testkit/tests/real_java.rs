//! The Java side of the kit: what it writes, what it compares, and Java MirrorMaker 2 itself.

use std::time::Duration;

use anyhow::Result;
use testkit::{
    ClusterPair, Comparison, Corpus, JavaMirrorMaker, Load, LoadSpec, TopicSpec, dump_topic,
    shared_pair,
};

const SOON: Duration = Duration::from_secs(2);

fn compare(pair: &ClusterPair) -> Comparison {
    Comparison::new(&pair.source.bootstrap(), &pair.target.bootstrap())
}

#[test]
fn java_mirror_maker_carries_the_whole_corpus_over() -> Result<()> {
    let pair = shared_pair()?;
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let corpus = Corpus::produce(&source, "corpus.", 60)?;
    assert_eq!((corpus.topics.len(), corpus.compacted.len()), (13, 1));

    let mirror = JavaMirrorMaker::start(&format!(
        "clusters = us, eu\n\
         us.bootstrap.servers = {source}\n\
         eu.bootstrap.servers = {target}\n\
         us->eu.enabled = true\n\
         us->eu.topics = corpus\\\\..*\n\
         us.consumer.isolation.level = read_committed\n\
         eu.producer.max.request.size = 8388608\n\
         replication.factor = 1\n\
         checkpoints.topic.replication.factor = 1\n\
         heartbeats.topic.replication.factor = 1\n\
         offset-syncs.topic.replication.factor = 1\n\
         offset.storage.replication.factor = 1\n\
         status.storage.replication.factor = 1\n\
         config.storage.replication.factor = 1\n"
    ))?;

    let report = compare(pair).renamed("us.").corpus(&corpus).run()?;
    assert_eq!(report.matches(" partitions equal").count(), 14, "{report}");
    mirror.stop()
}

#[test]
fn a_load_that_arrived_is_equal_and_in_sequence() -> Result<()> {
    let pair = shared_pair()?;
    for cluster in [&pair.source, &pair.target] {
        fill(&cluster.bootstrap(), &cluster.admin(), "same", 1000)?;
    }

    compare(pair).numbered("same").within(SOON).run()?;
    Ok(())
}

#[test]
fn a_record_that_is_missing_or_too_much_is_found() -> Result<()> {
    let pair = shared_pair()?;
    for (topic, here, there) in [("missing", 100, 99), ("more", 100, 101)] {
        fill(&pair.source.bootstrap(), &pair.source.admin(), topic, here)?;
        fill(&pair.target.bootstrap(), &pair.target.admin(), topic, there)?;

        let result = compare(pair).topic(topic).within(SOON).run();

        let text = format!("{:#}", result.unwrap_err());
        assert!(text.contains(&format!("DIFFERENT {topic}-")), "{text}");
    }
    Ok(())
}

/// `records` numbered records over three partitions of a new topic, at the same timestamps
/// wherever.
fn fill(bootstrap: &str, admin: &testkit::Admin, topic: &str, records: u64) -> Result<()> {
    admin.create_topic(&TopicSpec::new(topic, 3).config("retention.ms", "-1"))?;
    let spec = LoadSpec {
        records: Some(records),
        rate: None,
        first_time: Some(1_000_000),
        ..LoadSpec::new(bootstrap, topic)
    };
    let acknowledged = Load::start(&spec)?.finish(Duration::from_secs(60))?;
    assert_eq!(acknowledged.iter().sum::<u64>(), records);
    Ok(())
}

#[test]
fn a_load_runs_until_told_to_stop() -> Result<()> {
    let pair = shared_pair()?;
    let admin = pair.source.admin();
    admin.create_topic(&TopicSpec::new("steady", 2))?;

    let acknowledged = Load::start(&LoadSpec::new(&pair.source.bootstrap(), "steady"))?.stop()?;

    let ends: Vec<u64> = admin
        .end_offsets("steady")?
        .into_iter()
        .map(u64::try_from)
        .collect::<Result<_, _>>()?;
    assert_eq!(acknowledged, ends);
    Ok(())
}

#[test]
fn a_load_of_transactions_is_in_sequence_for_those_who_read_committed_records() -> Result<()> {
    let pair = shared_pair()?;
    let source = pair.source.bootstrap();
    pair.source
        .admin()
        .create_topic(&TopicSpec::new("transactional", 3))?;
    let spec = LoadSpec {
        records: Some(100),
        transaction: Some(10),
        first_partition: 1,
        ..LoadSpec::new(&source, "transactional")
    };

    let acknowledged = Load::start(&spec)?.finish(Duration::from_secs(60))?;

    assert_eq!(acknowledged, [0, 50, 50]);
    let with_itself = Comparison::new(&source, &source).numbered("transactional");
    with_itself.clone().target_read_committed().run()?;
    // Aborted records are in the log.
    assert!(with_itself.within(SOON).run().is_err());
    let values: Vec<_> = dump_topic(&source, "transactional")?
        .into_iter()
        .filter(|record| record.partition == 1)
        .map(|record| (record.key, record.value.map(|value| value[..8].to_vec())))
        .collect();
    let numbers = (0..50_u64).map(|number| (None, Some(number.to_be_bytes().to_vec())));
    assert!(values.into_iter().eq(numbers));
    Ok(())
}
