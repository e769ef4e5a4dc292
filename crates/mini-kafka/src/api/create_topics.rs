//! CreateTopics, with the checks of `ReplicationControlManager`.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError::{
    InvalidConfig, InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor,
    InvalidRequest, InvalidTopicException, TopicAlreadyExists,
};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use uuid::Uuid;

use super::{Answer, Api, Call, text};
use crate::configs::{Overrides, Source, TOPIC_KEYS, TopicKey};
use crate::refusal::Refusal;
use crate::state::State;

const NAME_LENGTH_MAX: usize = 249;

impl Api for CreateTopicsRequest {
    const OURS: (i16, i16) = (2, 7);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        self.topics
            .iter()
            .map(|topic| (topic.name.to_string(), -1))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<CreateTopicsResponse> {
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for topic in &self.topics {
            *named.entry(&topic.name).or_default() += 1;
        }
        let results = self.topics.iter().map(|topic| {
            let outcome = call.guarded(&topic.name, -1, || {
                if named[topic.name.as_str()] > 1 {
                    return Err(Refusal::new(InvalidRequest, "Duplicate topic name."));
                }
                create(call, topic, self.validate_only)
            });
            let result = CreatableTopicResult::default().with_name(topic.name.clone());
            match outcome {
                Ok(created) => created.describe(result),
                Err(refusal) => result
                    .with_error_code(refusal.code.code())
                    .with_error_message(refusal.text())
                    .with_num_partitions(-1)
                    .with_replication_factor(-1),
            }
        });
        Answer::Response(CreateTopicsResponse::default().with_topics(results.collect()))
    }
}

struct Created {
    id: Uuid,
    partitions: i32,
    replication_factor: i16,
    configs: Vec<CreatableTopicConfigs>,
}

impl Created {
    fn describe(self, result: CreatableTopicResult) -> CreatableTopicResult {
        result
            .with_topic_id(self.id)
            .with_num_partitions(self.partitions)
            .with_replication_factor(self.replication_factor)
            .with_configs(Some(self.configs))
    }
}

fn create(call: &Call, wanted: &CreatableTopic, validate_only: bool) -> Result<Created, Refusal> {
    let mut state = call.state();
    let name = wanted.name.to_string();
    check_name(&state, &name)?;
    let configs = check_configs(wanted)?;
    let assignments = assign(&state, wanted)?;
    let partitions = assignments.len() as i32;
    let replication_factor = assignments.first().map_or(0, Vec::len) as i16;
    let layers = state.layers(None, call.broker);
    let described = TOPIC_KEYS.iter().map(|key| {
        let own = configs
            .get(key.name)
            .map(|value| (value.as_str(), Source::Topic));
        let (value, source) = own.unwrap_or_else(|| {
            let (_, value, source) = layers.values(key)[0];
            (value, source)
        });
        CreatableTopicConfigs::default()
            .with_name(text(key.name))
            .with_value(Some(text(value)))
            .with_config_source(source as i8)
    });
    let described = described.collect();
    let id = if validate_only {
        Uuid::nil()
    } else {
        state.add_topic(&name, assignments, configs)
    };
    Ok(Created {
        id,
        partitions,
        replication_factor,
        configs: described,
    })
}

/// Letters, digits, dot, underscore and dash, at most 249 of them (`Topic.validate`).
pub(super) fn is_legal_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty()
        && name != "."
        && name != ".."
        && name.len() <= NAME_LENGTH_MAX
        && name.chars().all(legal)
}

fn check_name(state: &State, name: &str) -> Result<(), Refusal> {
    if !is_legal_name(name) {
        return Err(Refusal::new(
            InvalidTopicException,
            format!("Topic name is invalid: {name}"),
        ));
    }
    if state.topics.contains_key(name) {
        let message = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(TopicAlreadyExists, message));
    }
    // Metric names turn dots into underscores, so two such topics would share theirs.
    let collides = |other: &&String| other.replace('.', "_") == name.replace('.', "_");
    match state.topics.keys().find(collides) {
        Some(other) => Err(Refusal::new(
            InvalidTopicException,
            format!("Topic '{name}' collides with existing topic: {other}"),
        )),
        None => Ok(()),
    }
}

fn check_configs(wanted: &CreatableTopic) -> Result<Overrides, Refusal> {
    let mut configs = Overrides::new();
    for config in &wanted.configs {
        let name = config.name.to_string();
        let Some(key) = TopicKey::find(&name) else {
            return Err(Refusal::new(
                InvalidConfig,
                format!("Unknown topic config name: {name}"),
            ));
        };
        let Some(value) = &config.value else {
            let message = format!("Null value not supported for topic configs: {name}");
            return Err(Refusal::new(InvalidConfig, message));
        };
        key.check(value)?;
        configs.insert(name, value.to_string());
    }
    Ok(configs)
}

fn assign(state: &State, wanted: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    if !wanted.assignments.is_empty() {
        return assign_by_hand(state, wanted);
    }
    let partitions = match wanted.num_partitions {
        -1 => state.options.default_partitions,
        n if n > 0 => n,
        _ => {
            let message =
                "Number of partitions must be larger than 0, or -1 for the default value.";
            return Err(Refusal::new(InvalidPartitions, message));
        }
    };
    let replicas = match wanted.replication_factor {
        -1 => state.options.default_replication_factor,
        n if n > 0 => n,
        _ => {
            let message = "Replication factor must be larger than 0, or -1 for the default value.";
            return Err(Refusal::new(InvalidReplicationFactor, message));
        }
    };
    check_replication_factor(state, replicas)?;
    Ok(state.spread(state.topics.len(), partitions, replicas))
}

pub(super) fn check_replication_factor(state: &State, replicas: i16) -> Result<(), Refusal> {
    let up = state.brokers.iter().filter(|broker| broker.up).count();
    if replicas as usize <= up {
        return Ok(());
    }
    Err(Refusal::new(
        InvalidReplicationFactor,
        format!(
            "Unable to replicate the partition {replicas} time(s): The target replication factor \
             of {replicas} cannot be reached because only {up} broker(s) are registered."
        ),
    ))
}

fn assign_by_hand(state: &State, wanted: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    if wanted.num_partitions != -1 || wanted.replication_factor != -1 {
        let message = "Counts must be -1 where partitions are assigned by hand.";
        return Err(Refusal::new(InvalidRequest, message));
    }
    let mut by_index: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for assignment in &wanted.assignments {
        let brokers: Vec<i32> = assignment.broker_ids.iter().map(|id| id.0).collect();
        if brokers.is_empty() || brokers.iter().any(|id| state.broker(*id).is_none()) {
            return Err(InvalidReplicaAssignment.into());
        }
        by_index.insert(assignment.partition_index, brokers);
    }
    if !by_index
        .keys()
        .copied()
        .eq(0..wanted.assignments.len() as i32)
    {
        return Err(InvalidReplicaAssignment.into());
    }
    Ok(by_index.into_values().collect())
}
