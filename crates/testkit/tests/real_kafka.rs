//! Real brokers start, crash, stop and come back. Needs Java and Maven.

use anyhow::Result;
use testkit::{RealKafka, TopicSpec, shared_pair};

#[test]
fn a_broker_comes_back_with_its_topics_after_a_crash_and_after_a_stop() -> Result<()> {
    let mut kafka = RealKafka::builder().quick_failover().start()?;
    let bootstrap = kafka.bootstrap();
    kafka
        .admin()
        .create_topic(&TopicSpec::new("kept", 3).config("retention.ms", "-1"))?;

    kafka.kill(1)?;
    assert!(kafka.admin().topics().is_err());
    kafka.restart(1)?;
    kafka.stop(1)?;
    kafka.restart(1)?;

    assert_eq!(kafka.bootstrap(), bootstrap);
    assert_eq!(kafka.admin().topics()?, ["kept"]);
    assert_eq!(kafka.admin().end_offsets("kept")?, [0, 0, 0]);
    Ok(())
}

#[test]
fn three_brokers_lead_on_when_one_dies() -> Result<()> {
    let mut kafka = RealKafka::builder().brokers(3).quick_failover().start()?;
    kafka
        .admin()
        .create_topic(&TopicSpec::new("replicated", 6).replicas(3))?;

    kafka.kill(1)?;

    testkit::eventually(std::time::Duration::from_secs(60), || {
        let leaders = kafka.admin().leaders("replicated")?;
        anyhow::ensure!(
            leaders.iter().all(|id| [2, 3].contains(id)),
            "led by {leaders:?}"
        );
        Ok(())
    })
}

#[test]
fn tests_share_a_pair_and_its_topics_grow_and_go() -> Result<()> {
    let pair = shared_pair()?;
    let admin = pair.source.admin();
    admin.create_topic(&TopicSpec::new("growing", 1))?;

    admin.add_partitions("growing", 4)?;

    assert_eq!(admin.start_offsets("growing")?, [0; 4]);
    assert!(pair.target.admin().end_offsets("growing").is_err());
    admin.delete_topics(&["growing".to_owned(), "never-was".to_owned()])
}
