//! From the keys of a file to the settings of each worker, connector and client, as Kafka derives
//! them (`MirrorMakerConfig`, `MirrorConnectorConfig`), with where each value was written.
//!
//! ```text
//!        top level        S.*                T.*              S->T.*
//!            │             │                  │                  │
//!            ├─────────> cluster(S)       cluster(T) <───────────┼── credentials of the top level
//!            │             │               │      │              │
//!            │   source.* <┘     target.* <┘      └─> worker     │
//!            └──────────────> connector <────────────────────────┘
//!                        │                                │
//!            client(side, kind): X.cluster, kind, X.kind  └─> writer: worker's producer.*,
//!                                                              then producer.override.*
//! ```

use std::sync::Arc;

use indexmap::IndexMap;

use super::flow::Side;
use super::keys::{ClientKind, Table};
use super::properties::Properties;
use crate::ids::{ClusterAlias, Flow};

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The value as written.
    pub text: Arc<str>,
    /// Where it was written.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file.
    File {
        /// The line, from 1.
        line: usize,
        /// The key as it is written there, prefixes included.
        key: Arc<str>,
    },
    /// Nowhere: it is what holds without one.
    Default,
}

/// Settings by name, each with its origin.
pub(super) type Layer = IndexMap<Arc<str>, Value>;

/// What a top-level key must begin with to reach the workers.
pub(super) const TOP_LEVEL_OF_WORKER: [&str; 9] = [
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
];

/// Connector keys that no `ConfigDef` of the three connectors defines: at top level they are lost.
pub(super) const NOT_AT_TOP_LEVEL: [&str; 6] = [
    "exactly.once.support",
    "offsets.storage.topic",
    "topic.creation.groups",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "use.defaults.from",
];

/// The keys of a file, from which everything else is derived.
#[derive(Debug)]
pub(super) struct Resolver {
    file: Layer,
}

impl Resolver {
    /// Takes the last value of each key.
    pub(super) fn new(properties: &Properties) -> Self {
        let file = properties
            .entries
            .iter()
            .map(|entry| {
                let key: Arc<str> = entry.key.as_str().into();
                let value = Value {
                    text: entry.value.as_str().into(),
                    origin: Origin::File {
                        line: entry.line,
                        key: Arc::clone(&key),
                    },
                };
                (key, value)
            })
            .collect();
        Resolver { file }
    }

    /// The value of a key as it stands in the file.
    pub(super) fn written(&self, key: &str) -> Option<&Value> {
        self.file.get(key)
    }

    /// What concerns the process as a whole: the bare keys.
    pub(super) fn process(&self) -> &Layer {
        &self.file
    }

    /// `MirrorMakerConfig.clusterProps`: the cluster's own keys, then the credentials for each kind
    /// of client.
    pub(super) fn cluster(&self, alias: &ClusterAlias) -> Layer {
        let mut cluster = stripped(&self.file, &format!("{alias}."));
        let own: Vec<_> = security_of(&cluster);
        for (name, value) in own {
            copy_to_clients(&mut cluster, &name, &value);
        }
        for (name, value) in security_of(&self.file) {
            copy_to_clients(&mut cluster, &name, &value);
            cluster.entry(name).or_insert(value);
        }
        cluster
    }

    /// `MirrorMakerConfig.workerConfig`: the target's keys, overruled by some of the top level.
    pub(super) fn worker(&self, flow: &Flow) -> Layer {
        let mut worker = self.cluster(&flow.target);
        let top = self.file.iter().filter(|(key, _)| {
            TOP_LEVEL_OF_WORKER
                .iter()
                .any(|start| key.starts_with(start))
        });
        worker.extend(top.map(|(key, value)| (Arc::clone(key), value.clone())));
        let source = &flow.source;
        for (key, value) in [
            ("client.id", flow.to_string()),
            ("group.id", format!("{source}-mm2")),
            (
                "offset.storage.topic",
                format!("mm2-offsets.{source}.internal"),
            ),
            (
                "status.storage.topic",
                format!("mm2-status.{source}.internal"),
            ),
            (
                "config.storage.topic",
                format!("mm2-configs.{source}.internal"),
            ),
        ] {
            set_default(&mut worker, key, &value);
        }
        worker
    }

    /// `MirrorMakerConfig.connectorBaseConfig` for the connector whose class has this simple name.
    pub(super) fn connector(&self, flow: &Flow, class: &str) -> Layer {
        let mut connector: Layer = self
            .file
            .iter()
            .filter(|(key, _)| reaches_connectors(key))
            .map(|(key, value)| (Arc::clone(key), value.clone()))
            .collect();
        for (side, alias) in [("source", &flow.source), ("target", &flow.target)] {
            for (key, value) in self.cluster(alias) {
                let of_client = ClientKind::ALL
                    .iter()
                    .any(|kind| key.starts_with(kind.prefix()));
                let cluster = if of_client { "" } else { "cluster." };
                connector.insert(format!("{side}.{cluster}{key}").into(), value);
            }
        }
        set_default(&mut connector, "name", class);
        set_default(
            &mut connector,
            "connector.class",
            &format!("org.apache.kafka.connect.mirror.{class}"),
        );
        set_default(&mut connector, "source.cluster.alias", flow.source.as_str());
        set_default(&mut connector, "target.cluster.alias", flow.target.as_str());
        connector.extend(stripped(&self.file, &format!("{flow}.")));
        set_default(&mut connector, "enabled", "false");
        connector
    }
}

/// The settings of a client inside a connector (`MirrorConnectorConfig.sourceConsumerConfig` and
/// its siblings): later ones win, so that a cluster's `consumer.` beats a flow's.
pub(super) fn client(connector: &Layer, side: Side, kind: ClientKind) -> Layer {
    let kind = kind.prefix();
    let mut client: Layer = stripped(connector, &format!("{side}.cluster."))
        .into_iter()
        .filter(|(key, _)| Table::Security.find(key).is_some())
        .collect();
    client.extend(stripped(connector, &format!("{kind}.")));
    client.extend(stripped(connector, &format!("{side}.{kind}.")));
    client
}

/// The settings of the producer of replicated records, which the Connect framework makes for a task
/// (`Worker.baseProducerConfigs`): the worker's addresses, its `producer.` keys, then the
/// connector's `producer.override.` ones.
pub(super) fn writer(worker: &Layer, connector: &Layer) -> Layer {
    let mut writer = Layer::new();
    if let Some((key, value)) = worker.get_key_value("bootstrap.servers") {
        writer.insert(Arc::clone(key), value.clone());
    }
    writer.extend(stripped(worker, "producer."));
    writer.extend(stripped(connector, "producer.override."));
    writer
}

/// Whether a key at top level is handed to the connectors.
pub(super) fn reaches_connectors(key: &str) -> bool {
    let defined = (Table::Connector.find(key).is_some() || Table::Security.find(key).is_some())
        && !NOT_AT_TOP_LEVEL.contains(&key)
        && key != "bootstrap.servers";
    defined || key.starts_with("config.providers") || key.starts_with("replication.policy")
}

/// The keys that begin with `prefix`, without it.
fn stripped(layer: &Layer, prefix: &str) -> Layer {
    layer
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.into(), value.clone())))
        .collect()
}

fn security_of(layer: &Layer) -> Vec<(Arc<str>, Value)> {
    let is_security = |(key, _): &(&Arc<str>, &Value)| Table::Security.find(key).is_some();
    let keys = layer.iter().filter(is_security);
    keys.map(|(key, value)| (Arc::clone(key), value.clone()))
        .collect()
}

fn copy_to_clients(cluster: &mut Layer, name: &str, value: &Value) {
    for kind in ClientKind::ALL {
        let key = format!("{}.{name}", kind.prefix());
        cluster.entry(key.into()).or_insert_with(|| value.clone());
    }
}

pub(super) fn set_default(layer: &mut Layer, key: &str, text: &str) {
    layer.entry(key.into()).or_insert_with(|| Value {
        text: text.into(),
        origin: Origin::Default,
    });
}
