//! DescribeConfigs and IncrementalAlterConfigs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest, TopicName};
use testkit::wire::{Wire, text};

use crate::lab::{Lab, expect};

super::cases! {
    topics_have_the_settings_and_defaults_of_kafka,
    overrides_are_told_from_defaults,
    an_unknown_topic_has_no_settings,
    settings_are_altered_one_by_one,
    lists_are_appended_to_and_subtracted_from,
    wrong_alterations_are_refused_whole,
    validation_alone_changes_nothing,
    brokers_have_settings,
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

async fn describe(
    wire: &mut Wire,
    kind: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> Result<DescribeConfigsResult> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(keys.map(|keys| keys.iter().map(|key| text(*key)).collect()));
    let request = DescribeConfigsRequest::default()
        .with_resources(vec![resource])
        .with_include_synonyms(true);
    let response = wire.call(&request, 4).await?;
    response.results.into_iter().next().context("one result")
}

/// Value and source of a topic's setting.
async fn setting(wire: &mut Wire, topic: &TopicName, key: &str) -> Result<(String, i8)> {
    let result = describe(wire, TOPIC, topic, Some(&[key])).await?;
    let config = result
        .configs
        .first()
        .with_context(|| format!("{key} is described"))?;
    Ok((
        config.value.as_deref().unwrap_or_default().to_owned(),
        config.config_source,
    ))
}

async fn topics_have_the_settings_and_defaults_of_kafka(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut wire = lab.wire().await?;

    let result = describe(&mut wire, TOPIC, &bench.topic, None).await?;

    let mut shown: Vec<String> = result
        .configs
        .iter()
        .map(|c| {
            let value = c.value.as_deref().unwrap_or("null");
            format!("{}={value} {} {}", &*c.name, c.config_type, c.config_source)
        })
        .collect();
    shown.sort();
    let expected = DEFAULTS.map(|(name, value, kind)| {
        // Written down for the whole cluster when it was made (KIP-966).
        let source = if name == "min.insync.replicas" { 3 } else { 5 };
        format!("{name}={value} {kind} {source}")
    });
    for line in &shown {
        ensure!(expected.contains(line), "not expected: {line}");
    }
    for line in &expected {
        ensure!(shown.contains(line), "missing: {line}");
    }
    Ok(())
}

const LONG_MAX: &str = "9223372036854775807";
/// Name, default and type of all topic settings in 4.3.
#[rustfmt::skip]
const DEFAULTS: [(&str, &str, i8); 33] = [
    ("cleanup.policy", "delete", 7),
    ("compression.gzip.level", "-1", 3),
    ("compression.lz4.level", "9", 3),
    ("compression.type", "producer", 2),
    ("compression.zstd.level", "3", 3),
    ("delete.retention.ms", "86400000", 5),
    ("file.delete.delay.ms", "60000", 5),
    ("flush.messages", LONG_MAX, 5),
    ("flush.ms", LONG_MAX, 5),
    ("follower.replication.throttled.replicas", "", 7),
    ("index.interval.bytes", "4096", 3),
    ("leader.replication.throttled.replicas", "", 7),
    ("local.retention.bytes", "-2", 5),
    ("local.retention.ms", "-2", 5),
    ("max.compaction.lag.ms", LONG_MAX, 5),
    ("max.message.bytes", "1048588", 3),
    ("message.timestamp.after.max.ms", "3600000", 5),
    ("message.timestamp.before.max.ms", LONG_MAX, 5),
    ("message.timestamp.type", "CreateTime", 2),
    ("min.cleanable.dirty.ratio", "0.5", 6),
    ("min.compaction.lag.ms", "0", 5),
    ("min.insync.replicas", "1", 3),
    ("preallocate", "false", 1),
    ("remote.log.copy.disable", "false", 1),
    ("remote.log.delete.on.disable", "false", 1),
    ("remote.storage.enable", "false", 1),
    ("retention.bytes", "-1", 5),
    ("retention.ms", "604800000", 5),
    ("segment.bytes", "1073741824", 3),
    ("segment.index.bytes", "10485760", 3),
    ("segment.jitter.ms", "0", 5),
    ("segment.ms", "604800000", 5),
    ("unclean.leader.election.enable", "false", 1),
];

async fn overrides_are_told_from_defaults(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[("retention.ms", "5000")]).await?;
    let mut wire = lab.wire().await?;

    let result = describe(&mut wire, TOPIC, &bench.topic, Some(&["retention.ms"])).await?;

    expect("one setting", result.configs.len(), 1)?;
    let config = &result.configs[0];
    expect("source", config.config_source, 1)?;
    ensure!(!config.read_only && !config.is_sensitive, "{config:?}");
    let first = config
        .synonyms
        .first()
        .context("the override among the synonyms")?;
    expect(
        "first synonym",
        (first.value.as_deref(), first.source),
        (Some("5000"), 1),
    )?;
    expect(
        "default",
        setting(&mut wire, &bench.topic, "cleanup.policy").await?.1,
        5,
    )
}

async fn an_unknown_topic_has_no_settings(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;

    expect(
        "code",
        describe(&mut wire, TOPIC, &lab.new_name(), None)
            .await?
            .error_code,
        3,
    )
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

async fn alter(
    wire: &mut Wire,
    topic: &TopicName,
    changes: &[(&str, i8, Option<&str>)],
    validate_only: bool,
) -> Result<i16> {
    let configs = changes.iter().map(|(name, operation, value)| {
        AlterableConfig::default()
            .with_name(text(*name))
            .with_config_operation(*operation)
            .with_value(value.map(text))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(topic.0.clone())
        .with_configs(configs.collect());
    let request = IncrementalAlterConfigsRequest::default()
        .with_resources(vec![resource])
        .with_validate_only(validate_only);
    Ok(wire.call(&request, 1).await?.responses[0].error_code)
}

/// Waits until the broker that is asked has heard of a change.
async fn until_setting(
    wire: &mut Wire,
    topic: &TopicName,
    key: &str,
    expected: (&str, i8),
) -> Result<()> {
    let mut seen = (String::new(), 0);
    for _ in 0..200 {
        seen = setting(wire, topic, key).await?;
        if (seen.0.as_str(), seen.1) == expected {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    expect(key, (seen.0.as_str(), seen.1), expected)
}

async fn settings_are_altered_one_by_one(lab: &Lab) -> Result<()> {
    let bench = lab
        .bench(&[("retention.ms", "5000"), ("segment.ms", "7000")])
        .await?;
    let mut wire = lab.wire().await?;
    let changes = [
        ("retention.ms", SET, Some("6000")),
        ("segment.ms", DELETE, None),
    ];

    expect(
        "alter",
        alter(&mut wire, &bench.topic, &changes, false).await?,
        0,
    )?;

    until_setting(&mut wire, &bench.topic, "retention.ms", ("6000", 1)).await?;
    until_setting(&mut wire, &bench.topic, "segment.ms", ("604800000", 5)).await
}

async fn lists_are_appended_to_and_subtracted_from(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut wire = lab.wire().await?;

    let append = [("cleanup.policy", APPEND, Some("compact"))];
    expect(
        "append",
        alter(&mut wire, &bench.topic, &append, false).await?,
        0,
    )?;
    until_setting(
        &mut wire,
        &bench.topic,
        "cleanup.policy",
        ("delete,compact", 1),
    )
    .await?;
    let subtract = [("cleanup.policy", SUBTRACT, Some("delete"))];
    expect(
        "subtract",
        alter(&mut wire, &bench.topic, &subtract, false).await?,
        0,
    )?;
    until_setting(&mut wire, &bench.topic, "cleanup.policy", ("compact", 1)).await
}

async fn wrong_alterations_are_refused_whole(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut wire = lab.wire().await?;
    let with_good = |wrong| [("retention.ms", SET, Some("6000")), wrong];

    for (what, changes, expected) in [
        (
            "a wrong value",
            with_good(("segment.ms", SET, Some("x"))),
            40,
        ),
        (
            "an unknown setting",
            with_good(("no.such", SET, Some("1"))),
            40,
        ),
        (
            "append to no list",
            with_good(("segment.ms", APPEND, Some("1"))),
            40,
        ),
    ] {
        let code = alter(&mut wire, &bench.topic, &changes, false).await?;
        ensure!(code == expected, "{what}: {code}, not {expected}");
    }
    expect(
        "unknown topic",
        alter(&mut wire, &lab.new_name(), &[], false).await?,
        3,
    )?;
    expect(
        "unchanged",
        setting(&mut wire, &bench.topic, "retention.ms").await?.1,
        5,
    )
}

async fn validation_alone_changes_nothing(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut wire = lab.wire().await?;
    let change = [("retention.ms", SET, Some("6000"))];

    expect(
        "alter",
        alter(&mut wire, &bench.topic, &change, true).await?,
        0,
    )?;

    expect(
        "unchanged",
        setting(&mut wire, &bench.topic, "retention.ms").await?.1,
        5,
    )
}

async fn brokers_have_settings(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let keys = ["message.max.bytes", "log.retention.ms", "compression.type"];

    let own = describe(&mut wire, BROKER, "1", Some(&keys)).await?;
    let other = describe(&mut wire, BROKER, "2", Some(&keys)).await?;

    expect("code", own.error_code, 0)?;
    let limit = own
        .configs
        .iter()
        .find(|config| &*config.name == "message.max.bytes");
    let limit = limit.context("message.max.bytes")?;
    expect(
        "default",
        (limit.value.as_deref(), limit.config_source),
        (Some("1048588"), 5),
    )?;
    expect("another broker's", other.error_code, 42)
}
