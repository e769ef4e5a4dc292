//! Real brokers start, crash, stop and come back. Needs Java and Maven.

use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::{Admin, KafkaVersion, Line, RealKafka, TopicSpec, eventually, shared_pair};

const SOON: Duration = Duration::from_secs(60);

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
    assert_eq!(
        eventually(SOON, || kafka.admin().end_offsets("kept"))?,
        [0, 0, 0]
    );
    Ok(())
}

#[test]
fn three_brokers_lead_on_when_one_dies() -> Result<()> {
    let mut kafka = RealKafka::builder().brokers(3).quick_failover().start()?;
    kafka
        .admin()
        .create_topic(&TopicSpec::new("replicated", 6).replicas(3))?;

    kafka.kill(1)?;

    eventually(SOON, || {
        let leaders = kafka.admin().leaders("replicated")?;
        anyhow::ensure!(
            leaders.iter().all(|id| [2, 3].contains(id)),
            "led by {leaders:?}"
        );
        Ok(())
    })
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the delay of a line is real time"
)]
fn whoever_comes_through_a_slow_link_stays_on_it() -> Result<()> {
    const ONE_WAY: Duration = Duration::from_millis(50);
    let kafka = RealKafka::builder().slow_link(Line::of(ONE_WAY)).start()?;
    kafka.admin().create_topic(&TopicSpec::new("far", 2))?;

    let started = Instant::now();
    let ends = Admin::new(&kafka.far_bootstrap()?).end_offsets("far")?;

    // One request to find the leader, one to the leader.
    assert!(started.elapsed() >= 4 * ONE_WAY);
    assert_eq!(ends, [0, 0]);
    Ok(())
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

#[test]
fn brokers_with_zookeeper_come_back_after_a_crash() -> Result<()> {
    for version in [KafkaVersion::V2_8_2, KafkaVersion::V1_1_1] {
        let mut kafka = RealKafka::builder()
            .version(version)
            .quick_failover()
            .start()?;
        kafka.admin().create_topic(&TopicSpec::new("kept", 2))?;

        kafka.kill(1)?;
        kafka.restart(1)?;

        // Such a broker answers before the controller has told it of its topics.
        let ends = eventually(SOON, || kafka.admin().end_offsets("kept"))?;
        assert_eq!(ends, [0, 0], "{version:?}");
    }
    Ok(())
}

#[test]
fn the_last_release_before_4_0_starts() -> Result<()> {
    let kafka = RealKafka::builder().version(KafkaVersion::V3_9_2).start()?;

    assert_eq!(kafka.admin().brokers()?, [1]);
    Ok(())
}
