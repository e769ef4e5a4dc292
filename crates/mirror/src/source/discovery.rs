//! Which topics are mirrored, and what the target needs for it: looked up, planned, applied.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::sleep;
use twinlog_core::config::flow::{FlowConfig, Selection};
use twinlog_core::ids::Topic;
use twinlog_core::plan::topics::{
    SettingOrigin, SourceTopic, TopicChange, TopicSetting, creation_settings, topics,
};
use twinlog_kafka::admin::{
    ConfigEntry, ConfigResource, ConfigSource, NewTopic, Results, create_partitions, create_topics,
    describe_configs,
};
use twinlog_kafka::client::Client;
use twinlog_kafka::error::{Class, Error, ErrorCode, Result};
use twinlog_kafka::metadata::{Metadata, Topics};

use super::clients::Clients;
use super::copies::{Copies, Shortage};
use crate::status::TopicTrouble;

/// Topics in one request.
const TOPICS_A_REQUEST: usize = 100;
/// The first wait for a change to be seen; the next ones double.
const VISIBLE_PAUSE_FIRST: Duration = Duration::from_millis(10);
/// After a wait of this length the next round has to do.
const VISIBLE_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Topics that are named in one line of the log.
const TOPICS_NAMED_MAX: usize = 5;

/// What a round of discovery found and did.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Topics that are mirrored, with their partitions that exist on both sides.
    pub topics: Vec<SourceTopic>,
    /// Topics of the target that this round created.
    pub created: Vec<Topic>,
    /// Topics that should be and are not, or not in full.
    pub troubles: Vec<TopicTrouble>,
}

/// Looks at both clusters, makes on the target what is missing, and says what can be mirrored. A
/// topic that fails does not keep others from going on.
///
/// # Errors
/// Those of reaching either cluster.
pub async fn discover(config: &FlowConfig, clients: &Clients) -> Result<Discovery> {
    let source = clients.source_admin.refresh(&Topics::All).await?;
    let target = clients.target_admin.refresh(&Topics::All).await?;
    let (wanted, mut troubles) = select(config, &source);
    let counts = partition_counts(&target);
    let changes = topics(&wanted, &counts);
    let (mut counts, mut created) = (counts, Vec::new());
    if !changes.is_empty() {
        let applied = apply(config, clients, changes).await?;
        troubles.extend(applied.troubles);
        created = applied.created;
        counts = counts_with(&clients.target_admin, &applied.done).await?;
    }
    let topics = on_both_sides(wanted, &counts);
    Ok(Discovery {
        topics,
        created,
        troubles,
    })
}

/// The partition counts of the target once `changed` topics are seen in it. Brokers learn of a
/// change some milliseconds after the controller has made it; without waiting for that it would be
/// a whole round.
async fn counts_with(target: &Client, changed: &[SourceTopic]) -> Result<HashMap<Topic, i32>> {
    let mut pause = VISIBLE_PAUSE_FIRST;
    loop {
        let counts = partition_counts(&*target.refresh(&Topics::All).await?);
        let is_seen = |topic: &SourceTopic| counts.get(&topic.remote) >= Some(&topic.partitions);
        if changed.iter().all(is_seen) || pause > VISIBLE_PAUSE_MAX {
            return Ok(counts);
        }
        sleep(pause).await;
        pause *= 2;
    }
}

/// The topics of the source that are mirrored.
fn select(config: &FlowConfig, source: &Metadata) -> (Vec<SourceTopic>, Vec<TopicTrouble>) {
    let (mut wanted, mut troubles) = (Vec::new(), Vec::new());
    for (name, topic) in &source.topics {
        match config.select(name) {
            Ok(Selection::Replicate) => {}
            Ok(Selection::NotSelected | Selection::Internal | Selection::Cycle) => continue,
            Ok(Selection::Circle(circle)) => {
                troubles.push(TopicTrouble {
                    topic: name.clone(),
                    reason: format!("it would be copied round in circles: {circle} keep its name"),
                    remedy: Some(format!("leave it out of {}", circle.keys())),
                });
                continue;
            }
            Err(error) => {
                let reason = format!("the filter cannot decide: {error}");
                troubles.push(TopicTrouble {
                    topic: name.clone(),
                    reason,
                    remedy: None,
                });
                continue;
            }
        }
        if let Err(error) = Error::check(topic.error.0, None, || "look at the topic".to_owned())
            && topic.partitions.is_empty()
        {
            let reason = error.to_string();
            troubles.push(TopicTrouble {
                topic: name.clone(),
                reason,
                remedy: None,
            });
            continue;
        }
        wanted.push(SourceTopic {
            name: name.clone(),
            remote: config.remote_topic(name),
            partitions: topic.partitions.len() as i32,
        });
    }
    (wanted, troubles)
}

fn partition_counts(metadata: &Metadata) -> HashMap<Topic, i32> {
    let counts = metadata
        .topics
        .iter()
        .filter(|(_, topic)| !topic.partitions.is_empty());
    counts
        .map(|(name, topic)| (name.clone(), topic.partitions.len() as i32))
        .collect()
}

/// Leaves out what the target does not have (yet).
fn on_both_sides(wanted: Vec<SourceTopic>, target: &HashMap<Topic, i32>) -> Vec<SourceTopic> {
    let topics = wanted.into_iter().filter_map(|topic| {
        let partitions = topic.partitions.min(*target.get(&topic.remote)?);
        Some(SourceTopic {
            partitions,
            ..topic
        })
    });
    topics.collect()
}

/// What became of changes.
struct Applied {
    /// Topics that were created or grown.
    done: Vec<SourceTopic>,
    /// The created among them, by their names on the target.
    created: Vec<Topic>,
    troubles: Vec<TopicTrouble>,
}

async fn apply(
    config: &FlowConfig,
    clients: &Clients,
    changes: Vec<TopicChange>,
) -> Result<Applied> {
    let (mut create, mut grow, mut troubles) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        match change {
            TopicChange::Create(topic) => create.push(topic),
            TopicChange::Grow { topic, from } => grow.push((topic, from)),
            TopicChange::Refuse(topic, refusal) => troubles.push(TopicTrouble {
                topic: topic.name,
                reason: refusal.to_string(),
                remedy: Some(refusal.remedy().to_owned()),
            }),
        }
    }
    let mut created = Vec::new();
    for topics in create.chunks(TOPICS_A_REQUEST) {
        let (new, refused) = new_topics(config, &clients.source_admin, topics).await?;
        troubles.extend(refused);
        let results = create_topics(&clients.target_admin, &new).await?;
        let failed = |error: &Error| error.code() != Some(ErrorCode::TOPIC_ALREADY_EXISTS);
        let brokers = clients.target_admin.metadata().brokers.len();
        for (topic, error) in take_results(topics, results, failed, &mut created) {
            troubles.push(creation_trouble(config, brokers, &topic, &error));
        }
    }
    log_topics("topics created on the target", &created);

    let mut grown = Vec::new();
    for topics in grow.chunks(TOPICS_A_REQUEST) {
        let totals = topics
            .iter()
            .map(|(topic, _)| (topic.remote.clone(), topic.partitions));
        let results = create_partitions(&clients.target_admin, totals).await?;
        let topics: Vec<SourceTopic> = topics.iter().map(|(topic, _)| topic.clone()).collect();
        // Somebody else may have been quicker.
        let failed = |error: &Error| error.code() != Some(ErrorCode::INVALID_PARTITIONS);
        let failures = take_results(&topics, results, failed, &mut grown);
        troubles.extend(failures.iter().map(|(topic, error)| refused(topic, error)));
    }
    log_topics("partitions added on the target", &grown);
    let names = created.iter().map(|topic| topic.remote.clone()).collect();
    created.extend(grown);
    Ok(Applied {
        done: created,
        created: names,
        troubles,
    })
}

/// New topics with their final settings, so that no record is ever written under others.
async fn new_topics(
    config: &FlowConfig,
    source: &Client,
    topics: &[SourceTopic],
) -> Result<(Vec<NewTopic>, Vec<TopicTrouble>)> {
    let resources: Vec<_> = topics
        .iter()
        .map(|topic| ConfigResource::Topic(topic.name.clone()))
        .collect();
    let mut described = describe_configs(source, &resources).await?;
    let (mut new, mut troubles) = (Vec::new(), Vec::new());
    for topic in topics {
        let settings = described.remove(&ConfigResource::Topic(topic.name.clone()));
        let settings = match settings {
            Some(Ok(settings)) => settings,
            // Records can be read without the permission for settings: the copy gets the target's
            // defaults.
            Some(Err(error)) if error.class() == Class::Authorization => {
                tracing::warn!(topic = %topic.name, "its settings may not be read: the copy gets the target's defaults; grant DescribeConfigs");
                Vec::new()
            }
            Some(Err(error)) => {
                troubles.push(trouble(&topic.name, &error));
                continue;
            }
            None => continue,
        };
        let settings: Vec<TopicSetting> = settings.into_iter().map(setting).collect();
        match creation_settings(&settings, &config.config_properties) {
            Ok(settings) => new.push(NewTopic {
                name: topic.remote.clone(),
                partitions: topic.partitions,
                replication_factor: config.replication_factor.as_i16(),
                configs: BTreeMap::from_iter(settings),
            }),
            Err(error) => troubles.push(trouble(&topic.name, &error)),
        }
    }
    Ok((new, troubles))
}

fn setting(entry: ConfigEntry) -> TopicSetting {
    TopicSetting {
        origin: match entry.source {
            ConfigSource::Topic => SettingOrigin::Topic,
            ConfigSource::DynamicBroker | ConfigSource::DynamicDefaultBroker => {
                SettingOrigin::DynamicBroker
            }
            ConfigSource::StaticBroker => SettingOrigin::StaticBroker,
            ConfigSource::Default => SettingOrigin::Default,
            ConfigSource::Other(_) => SettingOrigin::Other,
        },
        name: entry.name,
        value: entry.value,
        read_only: entry.read_only,
        sensitive: entry.sensitive,
    }
}

/// Sorts topics into those that are done and those whose failure counts.
fn take_results<V>(
    topics: &[SourceTopic],
    mut results: Results<Topic, V>,
    failed: impl Fn(&Error) -> bool,
    done: &mut Vec<SourceTopic>,
) -> Vec<(Topic, Error)> {
    let mut failures = Vec::new();
    for topic in topics {
        match results.remove(&topic.remote) {
            Some(Ok(_)) => done.push(topic.clone()),
            Some(Err(error)) if failed(&error) => failures.push((topic.name.clone(), error)),
            Some(Err(_)) | None => {}
        }
    }
    failures
}

fn creation_trouble(
    config: &FlowConfig,
    brokers: usize,
    topic: &Topic,
    error: &Error,
) -> TopicTrouble {
    let copies = Copies {
        factor: config.replication_factor,
        key: "replication.factor",
        scope: config.flow.to_string(),
    };
    match copies.shortage(error, brokers) {
        Some(Shortage { reason, remedy }) => TopicTrouble {
            topic: topic.clone(),
            reason,
            remedy: Some(remedy),
        },
        None => refused(topic, error),
    }
}

/// A change of a topic that the target refused.
fn refused(topic: &Topic, error: &Error) -> TopicTrouble {
    let remedy = "grant CREATE and ALTER on topics of the target, or make the copy by hand; \
                  it is tried again";
    let is_forbidden = error.class() == Class::Authorization;
    TopicTrouble {
        remedy: is_forbidden.then(|| remedy.to_owned()),
        ..trouble(topic, error)
    }
}

fn trouble(topic: &Topic, error: &dyn std::error::Error) -> TopicTrouble {
    TopicTrouble {
        topic: topic.clone(),
        reason: error.to_string(),
        remedy: None,
    }
}

fn log_topics(what: &str, topics: &[SourceTopic]) {
    if topics.is_empty() {
        return;
    }
    let (topics, more) = named(topics.iter().map(|topic| &topic.remote));
    tracing::info!(topics, more, "{what}");
}

/// The first few topics as text, and how many more there are.
pub fn named<'a>(topics: impl ExactSizeIterator<Item = &'a Topic>) -> (String, usize) {
    let more = topics.len().saturating_sub(TOPICS_NAMED_MAX);
    let named: Vec<&str> = topics.take(TOPICS_NAMED_MAX).map(Topic::as_str).collect();
    (named.join(", "), more)
}
