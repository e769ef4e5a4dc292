//! Where a key may stand: bare, behind a cluster's alias or behind a flow, and what it is there.

use super::flow::Side;
use super::keys::{ClientKind, Key, Kind, Status, Table};
use super::resolve::{NOT_AT_TOP_LEVEL, TOP_LEVEL_OF_WORKER};
use super::suggest::nearest;
use crate::ids::{ClusterAlias, Flow};

/// What stands before a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// Nothing.
    Top,
    /// `us.`
    Cluster(ClusterAlias),
    /// `us->eu.`
    Flow(Flow),
}

/// What a key is in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// A key with an entry in the tables.
    Known(&'static Key),
    /// A key of a family that has names of its own, such as `config.providers.<name>.class`.
    Family,
    /// A key that exists, but is not looked at here; with where it would be.
    Lost {
        /// Why, as a clause.
        why: &'static str,
        /// What to write instead.
        instead: String,
    },
    /// Nothing that we know.
    Unknown,
}

impl Scope {
    /// All that `key` could be: bare, and behind each alias or flow it begins with. Longer prefixes
    /// come first, because they fit better.
    pub(super) fn readings<'k>(key: &'k str, aliases: &[ClusterAlias]) -> Vec<(Scope, &'k str)> {
        let mut readings = vec![(Scope::Top, key)];
        for source in aliases {
            if let Some(rest) = after_prefix(key, source.as_str()) {
                readings.push((Scope::Cluster(source.clone()), rest));
            }
            let Some(rest) = key.strip_prefix(&format!("{source}->")) else {
                continue;
            };
            for target in aliases.iter().filter(|target| *target != source) {
                if let Some(rest) = after_prefix(rest, target.as_str()) {
                    let flow = Flow {
                        source: source.clone(),
                        target: target.clone(),
                    };
                    readings.push((Scope::Flow(flow), rest));
                }
            }
        }
        readings.sort_by_key(|(_, rest)| rest.len());
        readings
    }

    /// What `name`, without the prefix, is here.
    pub(super) fn meaning(&self, name: &str) -> Meaning {
        match self {
            Scope::Top => at_top(name),
            Scope::Cluster(alias) => in_cluster(alias, name),
            Scope::Flow(flow) => in_flow(flow, name),
        }
    }

    /// The known key nearest to `name` here, with the prefix.
    pub(super) fn suggestion(&self, name: &str) -> Option<String> {
        let (prefix, tables): (String, &[Table]) = match self {
            Scope::Top => (
                String::new(),
                &[Table::Driver, Table::Connector, Table::Security],
            ),
            Scope::Cluster(alias) => (format!("{alias}."), &[Table::Security, Table::Worker]),
            Scope::Flow(flow) => (format!("{flow}."), &[Table::Connector]),
        };
        if let Some((before, kind, rest)) = split_client(name) {
            let names = kind
                .tables()
                .into_iter()
                .flat_map(Table::keys)
                .map(|key| key.name);
            return nearest(rest, names).map(|near| format!("{prefix}{before}{near}"));
        }
        // The oldest names of what is included now.
        if let Some(base) = name.strip_suffix(".whitelist")
            && tables.iter().any(|table| table.find(base).is_some())
        {
            return Some(format!("{prefix}{base}"));
        }
        let names = tables
            .iter()
            .flat_map(|table| table.keys())
            .filter_map(|key| (!matches!(key.status, Status::Removed(_))).then_some(key.name));
        nearest(name, names).map(|near| format!("{prefix}{near}"))
    }
}

fn after_prefix<'k>(key: &'k str, alias: &str) -> Option<&'k str> {
    key.strip_prefix(alias)?.strip_prefix('.')
}

fn lost(why: &'static str, instead: String) -> Meaning {
    Meaning::Lost { why, instead }
}

fn at_top(name: &str) -> Meaning {
    if NOT_AT_TOP_LEVEL.contains(&name) {
        return lost(
            "it is not passed on from here",
            format!("write `<source>-><target>.{name}`"),
        );
    }
    let known = [Table::Driver, Table::Connector, Table::Security]
        .iter()
        .find_map(|table| table.find(name));
    if let Some(key) = known {
        return Meaning::Known(key);
    }
    if let Some(key) = Table::Worker.find(name) {
        if TOP_LEVEL_OF_WORKER
            .iter()
            .any(|start| name.starts_with(start))
        {
            return Meaning::Known(key);
        }
        return lost_to_worker(key, "<target>");
    }
    if let Some((_, _, rest)) = split_client(name) {
        if known_to_clients(rest).is_some() {
            return lost(
                "it is not passed on from here",
                format!("write `<cluster>.{name}`"),
            );
        }
        return Meaning::Unknown;
    }
    if is_of(&FLOW_FAMILIES, name) {
        return lost(
            "it is not passed on from here",
            format!("write `<source>-><target>.{name}`"),
        );
    }
    if is_of(&FAMILIES, name) {
        return Meaning::Family;
    }
    lost_client_key("<cluster>.", name)
}

fn in_cluster(alias: &ClusterAlias, name: &str) -> Meaning {
    let known = [Table::Security, Table::Worker]
        .iter()
        .find_map(|table| table.find(name));
    if let Some(key) = known {
        return Meaning::Known(key);
    }
    if let Some((_, kind, rest)) =
        split_client(name).filter(|(before, ..)| !before.contains("override"))
    {
        return kind.find(rest).map_or(Meaning::Unknown, Meaning::Known);
    }
    if Table::Connector.find(name).is_some() {
        return lost(
            "it concerns a flow, not a cluster",
            format!("write `{name}` or `<source>-><target>.{name}`"),
        );
    }
    if is_of(&FAMILIES, name) {
        return Meaning::Family;
    }
    lost_client_key(&format!("{alias}."), name)
}

fn in_flow(flow: &Flow, name: &str) -> Meaning {
    if let Some(key) = Table::Connector.find(name) {
        return Meaning::Known(key);
    }
    for side in [Side::Source, Side::Target] {
        let Some(rest) = name.strip_prefix(&format!("{side}.cluster.")) else {
            continue;
        };
        return match Table::Security.find(rest) {
            Some(key) if key.name == "bootstrap.servers" => lost(
                "the cluster's own addresses win",
                format!(
                    "write `{flow}.{side}.consumer.{rest}` and the same for producer and admin"
                ),
            ),
            Some(key) => Meaning::Known(key),
            None => Meaning::Unknown,
        };
    }
    if let Some((before, kind, rest)) = split_client(name) {
        return match kind.find(rest) {
            Some(key) if before == "producer." && key.status == Status::Effective => lost(
                "it reaches only the producer of offset syncs",
                format!("write `{flow}.producer.override.{rest}` for the records"),
            ),
            Some(key) => Meaning::Known(key),
            None => Meaning::Unknown,
        };
    }
    if Table::Security.find(name).is_some() {
        return lost(
            "it is not passed on from here",
            format!("write `<cluster>.{name}`"),
        );
    }
    if let Some(key) = Table::Worker.find(name) {
        return lost_to_worker(key, flow.target.as_str());
    }
    if is_of(&FAMILIES, name) || is_of(&FLOW_FAMILIES, name) {
        return Meaning::Family;
    }
    lost_client_key(&format!("{flow}."), name)
}

/// A worker's key where the worker doesn't see it. One that has no effect anywhere isn't worth a
/// warning: files name `plugin.path` wherever they like.
fn lost_to_worker(key: &'static Key, target: &str) -> Meaning {
    if matches!(key.status, Status::NotApplicable(_)) {
        return Meaning::Known(key);
    }
    lost(
        "it is read behind the target's alias only",
        format!("write `{target}.{}`", key.name),
    )
}

/// A client's key without the kind of client before it.
fn lost_client_key(prefix: &str, name: &str) -> Meaning {
    match known_to_clients(name) {
        Some(kind) => lost(
            "it lacks the kind of client",
            format!("write `{prefix}{}.{name}`", kind.prefix()),
        ),
        None => Meaning::Unknown,
    }
}

fn known_to_clients(name: &str) -> Option<ClientKind> {
    [
        ClientKind::Consumer,
        ClientKind::Producer,
        ClientKind::Admin,
    ]
    .into_iter()
    .find(|kind| kind.find(name).is_some())
}

/// `source.consumer.fetch.max.bytes` into `source.consumer.`, the kind and the rest.
fn split_client(name: &str) -> Option<(&str, ClientKind, &str)> {
    let sides = ["", "source.", "target."];
    let rest = sides
        .iter()
        .rev()
        .find_map(|side| name.strip_prefix(side))?;
    let (kind, rest) = ClientKind::ALL
        .into_iter()
        .find_map(|kind| Some((kind, rest.strip_prefix(kind.prefix())?.strip_prefix('.')?)))?;
    let rest = rest.strip_prefix("override.").unwrap_or(rest);
    Some((&name[..name.len() - rest.len()], kind, rest))
}

/// Families of keys whose names hold a part that the user chooses.
const FAMILIES: [&str; 9] = [
    "config.providers.",
    "listeners.https.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "metrics.context.",
];

/// Families of one flow.
const FLOW_FAMILIES: [&str; 3] = ["transforms.", "predicates.", "topic.creation."];

fn is_of(families: &[&str], name: &str) -> bool {
    families.iter().any(|family| name.starts_with(family))
}

/// Whether the value of such a key names clusters' credentials, whose effect comes all at once.
pub(super) fn is_credential(key: &Key) -> bool {
    key.kind == Kind::Password || Table::Security.find(key.name).is_some()
}
