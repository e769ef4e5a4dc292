//! Our policies against Kafka's, on the rows that `golden/java/PolicyGolden.java` wrote.

use twinlog_core::ids::ClusterAlias;
use twinlog_core::policy::{HEARTBEATS_TOPIC, ReplicationPolicy};

const GOLDEN: &str = include_str!("golden/policies.tsv");

#[test]
fn topics_are_named_and_recognised_as_by_kafka() {
    let cluster = ClusterAlias::from("A");
    for row in GOLDEN.lines().filter(|row| !row.starts_with("names\t")) {
        let columns: Vec<&str> = row.split('\t').collect();
        let policy = policy(columns[0], columns[1], columns[2]);
        let topic = if columns[3] == "''" { "" } else { columns[3] };

        let found = [
            text(Some(policy.remote_topic(&cluster, topic).as_str())),
            text(policy.topic_source(topic)),
            text(policy.upstream_topic(topic)),
            text(Some(policy.original_topic(topic))),
            bit(policy.is_heartbeats_topic(topic)),
            bit(policy.is_checkpoints_topic(topic)),
            bit(policy.is_mirror_internal_topic(topic)),
            bit(policy.is_internal_topic(topic)),
        ];

        assert_eq!(found[..], columns[4..], "{row}");
    }
}

#[test]
fn internal_topics_are_named_as_by_kafka() {
    let cluster = ClusterAlias::from("A");
    for row in GOLDEN.lines().filter_map(|row| row.strip_prefix("names\t")) {
        let columns: Vec<&str> = row.split('\t').collect();
        let policy = policy(columns[0], columns[1], columns[2]);

        assert_eq!(
            policy.offset_syncs_topic(&cluster).as_str(),
            columns[3],
            "{row}"
        );
        assert_eq!(
            policy.checkpoints_topic(&cluster).as_str(),
            columns[4],
            "{row}"
        );
        assert_eq!(HEARTBEATS_TOPIC, columns[5]);
    }
}

fn policy(kind: &str, separator: &str, internal: &str) -> ReplicationPolicy {
    let policy = match kind {
        "Identity" => ReplicationPolicy::identity(Some(ClusterAlias::from("A"))),
        _ => ReplicationPolicy::new(),
    };
    match separator {
        "-" => policy,
        separator => policy.with_separator(separator, internal != "false"),
    }
}

fn text(text: Option<&str>) -> String {
    match text {
        None => "null".to_owned(),
        Some("") => "''".to_owned(),
        Some(text) => text.to_owned(),
    }
}

fn bit(bit: bool) -> String {
    u8::from(bit).to_string()
}
