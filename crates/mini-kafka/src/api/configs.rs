//! DescribeConfigs and IncrementalAlterConfigs, of topics and brokers.

use kafka_protocol::ResponseError::{InvalidConfig, InvalidRequest, UnknownTopicOrPartition};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use super::{Answer, Api, Call, text};
use crate::configs::{Kind, Layers, Overrides, TOPIC_KEYS, TopicKey};
use crate::refusal::{Refusal, code};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

impl Api for DescribeConfigsRequest {
    const OURS: (i16, i16) = (1, 4);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let topics = self
            .resources
            .iter()
            .filter(|resource| resource.resource_type == TOPIC);
        topics
            .map(|resource| (resource.resource_name.to_string(), -1))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<DescribeConfigsResponse> {
        let results = self.resources.iter().map(|resource| {
            let found = call.guarded(&resource.resource_name, -1, || {
                describe(call, self, resource)
            });
            DescribeConfigsResult::default()
                .with_error_code(code(&found))
                .with_error_message(found.as_ref().err().and_then(Refusal::text))
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_configs(found.unwrap_or_default())
        });
        Answer::Response(DescribeConfigsResponse::default().with_results(results.collect()))
    }
}

fn describe(
    call: &Call,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let state = call.state();
    let name = resource.resource_name.as_str();
    let (layers, of_broker) = match resource.resource_type {
        TOPIC => (state.layers(Some(state.topic(name)?), call.broker), false),
        BROKER => {
            let id: i32 = if name.is_empty() {
                -1
            } else {
                own_id(call, name)?
            };
            (state.layers(None, id), true)
        }
        _ => return Err(InvalidRequest.into()),
    };
    let wanted = |name: &str| {
        resource
            .configuration_keys
            .as_ref()
            .is_none_or(|keys| keys.iter().any(|k| **k == *name))
    };
    let shown = TOPIC_KEYS
        .iter()
        .map(|key| (key, if of_broker { key.broker_name } else { key.name }))
        .filter(|(_, name)| !name.is_empty() && wanted(name));
    Ok(shown
        .map(|(key, name)| entry(&layers, key, name, request))
        .collect())
}

/// A broker knows its own settings only.
fn own_id(call: &Call, name: &str) -> Result<i32, Refusal> {
    let id = name.parse().ok().filter(|id| *id == call.broker);
    id.ok_or_else(|| Refusal::new(InvalidRequest, format!("Unexpected broker id {name}")))
}

fn entry(
    layers: &Layers<'_>,
    key: &'static TopicKey,
    name: &'static str,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let values = layers.values(key);
    let (_, value, source) = values[0];
    let synonyms = values.iter().map(|(name, value, source)| {
        DescribeConfigsSynonym::default()
            .with_name(text(*name))
            .with_value(Some(text(*value)))
            .with_source(*source as i8)
    });
    DescribeConfigsResourceResult::default()
        .with_name(text(name))
        .with_value(Some(text(value)))
        .with_read_only(false)
        .with_config_source(source as i8)
        .with_config_type(key.kind as i8)
        .with_synonyms(if request.include_synonyms {
            synonyms.collect()
        } else {
            Vec::new()
        })
}

impl Api for IncrementalAlterConfigsRequest {
    const OURS: (i16, i16) = (0, 1);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let topics = self
            .resources
            .iter()
            .filter(|resource| resource.resource_type == TOPIC);
        topics
            .map(|resource| (resource.resource_name.to_string(), -1))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<IncrementalAlterConfigsResponse> {
        let responses = self.resources.iter().map(|resource| {
            let outcome = call.guarded(&resource.resource_name, -1, || {
                alter(call, resource, self.validate_only)
            });
            AlterConfigsResourceResponse::default()
                .with_error_code(code(&outcome))
                .with_error_message(outcome.err().and_then(|refusal| refusal.text()))
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
        });
        let responses = responses.collect();
        Answer::Response(IncrementalAlterConfigsResponse::default().with_responses(responses))
    }
}

/// All changes of a resource, or none.
fn alter(call: &Call, resource: &AlterConfigsResource, dry: bool) -> Result<(), Refusal> {
    let mut state = call.state();
    let name = resource.resource_name.as_str();
    let of_broker = resource.resource_type == BROKER;
    let mut overrides = match resource.resource_type {
        TOPIC => state.topic(name)?.configs.clone(),
        BROKER => state.broker_configs.get(name).cloned().unwrap_or_default(),
        _ => return Err(InvalidRequest.into()),
    };
    for change in &resource.configs {
        let key = find_key(&change.name, of_broker)?;
        let layers = state.layers(state.topics.get(name).filter(|_| !of_broker), call.broker);
        apply(change, key, &layers, &mut overrides)?;
    }
    if dry {
        return Ok(());
    }
    if of_broker {
        state.broker_configs.insert(name.to_owned(), overrides);
    } else {
        let topic = state.topics.get_mut(name).ok_or(UnknownTopicOrPartition)?;
        topic.configs = overrides;
    }
    Ok(())
}

fn find_key(name: &str, of_broker: bool) -> Result<&'static TopicKey, Refusal> {
    let key = if of_broker {
        TOPIC_KEYS.iter().find(|key| key.broker_name == name)
    } else {
        TopicKey::find(name)
    };
    key.ok_or_else(|| Refusal::new(InvalidConfig, format!("Unknown topic config name: {name}")))
}

fn apply(
    change: &AlterableConfig,
    key: &'static TopicKey,
    layers: &Layers<'_>,
    overrides: &mut Overrides,
) -> Result<(), Refusal> {
    let name = change.name.to_string();
    if change.config_operation == DELETE {
        overrides.remove(&name);
        return Ok(());
    }
    let Some(value) = change.value.as_deref() else {
        let message = format!("Null value not supported for : {name}");
        return Err(Refusal::new(InvalidRequest, message));
    };
    let is_list = key.kind == Kind::List;
    let written = match change.config_operation {
        SET => value.to_owned(),
        APPEND | SUBTRACT if is_list => {
            let known = overrides.get(&name).map(String::as_str);
            let current = known.unwrap_or_else(|| layers.values(key)[0].1);
            combine(current, value, change.config_operation == APPEND)
        }
        APPEND | SUBTRACT => {
            let message = format!("Can't APPEND to or SUBTRACT from {name}, which is no list");
            return Err(Refusal::new(InvalidConfig, message));
        }
        _ => return Err(InvalidRequest.into()),
    };
    key.check(&written)?;
    overrides.insert(name, written);
    Ok(())
}

fn combine(current: &str, change: &str, append: bool) -> String {
    let parts = |list: &str| -> Vec<String> {
        list.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (mut list, changed) = (parts(current), parts(change));
    list.retain(|part| append || !changed.contains(part));
    if append {
        list.extend(
            changed
                .into_iter()
                .filter(|part| !current.split(',').any(|p| p == part)),
        );
    }
    list.join(",")
}
