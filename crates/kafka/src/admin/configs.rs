//! Reading and changing settings of topics and brokers.

use std::collections::BTreeMap;
use std::fmt;

use twinlog_core::ids::Topic;

use super::Results;
use crate::client::{Client, Purpose};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::wire::describe_configs_request::DescribeConfigsResource;
use crate::wire::describe_configs_response::DescribeConfigsResourceResult;
use crate::wire::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use crate::wire::{self, DescribeConfigsRequest, IncrementalAlterConfigsRequest};

/// What has settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    /// A topic.
    Topic(Topic),
    /// A broker, which is asked itself.
    Broker(i32),
    /// What all brokers share (`--entity-default`).
    AllBrokers,
}

impl ConfigResource {
    fn wire(&self) -> (i8, wire::StrBytes) {
        match self {
            ConfigResource::Topic(topic) => (2, wire::text(topic)),
            ConfigResource::Broker(id) => (4, wire::text(&id.to_string())),
            ConfigResource::AllBrokers => (4, wire::text("")),
        }
    }

    fn from_wire(kind: i8, name: &str) -> Option<ConfigResource> {
        match (kind, name) {
            (2, name) => Some(ConfigResource::Topic(name.into())),
            (4, "") => Some(ConfigResource::AllBrokers),
            (4, id) => id.parse().ok().map(ConfigResource::Broker),
            _ => None,
        }
    }
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigResource::Topic(topic) => write!(f, "topic {topic}"),
            ConfigResource::Broker(id) => write!(f, "broker {id}"),
            ConfigResource::AllBrokers => f.write_str("all brokers"),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigSource {
    /// Set on the topic.
    Topic,
    /// Set on the broker at run time.
    DynamicBroker,
    /// Set for all brokers at run time.
    DynamicDefaultBroker,
    /// The broker's configuration file.
    StaticBroker,
    /// Kafka's default.
    Default,
    /// Another, of newer brokers.
    Other(i8),
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value; `None` if it has none, or if it is sensitive.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether it can't be changed.
    pub read_only: bool,
    /// Whether its value is a secret.
    pub sensitive: bool,
}

impl ConfigEntry {
    /// Whether nobody set it on the topic itself. This is what `isDefault` means to MirrorMaker 2.
    pub fn is_default(&self) -> bool {
        self.source != ConfigSource::Topic
    }
}

/// A change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// Sets a value.
    Set(String, String),
    /// Goes back to the default.
    Delete(String),
}

/// Reads all settings of each resource. Topics are asked of any broker, a broker of itself.
///
/// # Errors
/// Those of reaching a broker for topics; each resource has its own besides.
pub async fn describe_configs(
    client: &Client,
    resources: &[ConfigResource],
) -> Result<Results<ConfigResource, Vec<ConfigEntry>>> {
    let mut results = BTreeMap::new();
    for (broker, resources) in by_broker(resources.iter().cloned().map(|resource| (resource, ()))) {
        let connection = connection(client, broker).await?;
        let wanted = resources.iter().map(|(resource, ())| {
            let (kind, name) = resource.wire();
            DescribeConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(name)
                .with_configuration_keys(None)
        });
        let request = DescribeConfigsRequest::default().with_resources(wanted.collect());
        let response = connection.call(&request).await?;
        for answer in response.results {
            let resource = ConfigResource::from_wire(answer.resource_type, &answer.resource_name);
            let Some(resource) = resource else { continue };
            let message = answer.error_message.as_deref();
            let checked = Error::check(answer.error_code, message, || {
                format!("describe the settings of {resource}")
            });
            let entries = answer.configs.iter().map(config_entry);
            results.insert(resource, checked.map(|()| entries.collect()));
        }
    }
    Ok(results)
}

/// Changes single settings and leaves all others (KIP-339). Brokers before 2.3 don't know this.
///
/// # Errors
/// [`Error::UnsupportedApi`]; those of reaching a broker; each resource has its own besides.
pub async fn incremental_alter_configs(
    client: &Client,
    changes: impl IntoIterator<Item = (ConfigResource, Vec<ConfigChange>)>,
) -> Result<Results<ConfigResource, ()>> {
    let mut results = BTreeMap::new();
    for (broker, resources) in by_broker(changes) {
        let connection = connection(client, broker).await?;
        let wanted = resources.iter().map(|(resource, changes)| {
            let (kind, name) = resource.wire();
            AlterConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(name)
                .with_configs(changes.iter().map(alterable).collect())
        });
        let request = IncrementalAlterConfigsRequest::default().with_resources(wanted.collect());
        let response = connection.call(&request).await?;
        for answer in response.responses {
            let resource = ConfigResource::from_wire(answer.resource_type, &answer.resource_name);
            let Some(resource) = resource else { continue };
            let message = answer.error_message.as_deref();
            let checked = Error::check(answer.error_code, message, || {
                format!("change the settings of {resource}")
            });
            results.insert(resource, checked);
        }
    }
    Ok(results)
}

fn alterable(change: &ConfigChange) -> AlterableConfig {
    let (name, operation, value) = match change {
        ConfigChange::Set(name, value) => (name, 0, Some(wire::text(value))),
        ConfigChange::Delete(name) => (name, 1, None),
    };
    AlterableConfig::default()
        .with_name(wire::text(name))
        .with_config_operation(operation)
        .with_value(value)
}

fn config_entry(entry: &DescribeConfigsResourceResult) -> ConfigEntry {
    ConfigEntry {
        name: entry.name.to_string(),
        value: entry.value.as_ref().map(ToString::to_string),
        source: match entry.config_source {
            1 => ConfigSource::Topic,
            2 => ConfigSource::DynamicBroker,
            3 => ConfigSource::DynamicDefaultBroker,
            4 => ConfigSource::StaticBroker,
            5 => ConfigSource::Default,
            other => ConfigSource::Other(other),
        },
        read_only: entry.read_only,
        sensitive: entry.is_sensitive,
    }
}

/// Resources by the broker that must be asked, `None` for any.
fn by_broker<T>(
    resources: impl IntoIterator<Item = (ConfigResource, T)>,
) -> BTreeMap<Option<i32>, Vec<(ConfigResource, T)>> {
    let mut brokers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (resource, item) in resources {
        let broker = match resource {
            ConfigResource::Broker(id) => Some(id),
            ConfigResource::Topic(_) | ConfigResource::AllBrokers => None,
        };
        brokers.entry(broker).or_default().push((resource, item));
    }
    brokers
}

async fn connection(client: &Client, broker: Option<i32>) -> Result<Connection> {
    match broker {
        Some(broker) => client.connection(broker, Purpose::General).await,
        // Changes of topics go to the controller on clusters before KRaft; there any broker
        // forwards them.
        None => client.controller().await,
    }
}
