//! Which flows a file has, and what is wrong with how its keys go together.

use std::collections::BTreeMap;

use super::build::{Built, SOURCE_CONNECTOR};
use super::flow::{FlowConfig, FlowRole, Isolation, Side};
use super::keys::ClientKind;
use super::lint::likely_aliases;
use super::problem::{Problem, Problems};
use super::properties::Properties;
use super::resolve::{self, Origin, Resolver, Value};
use super::value;
use crate::ids::{ClusterAlias, Flow};
use crate::policy::{Naming, ReplicationPolicy};

/// The aliases in `clusters`; tells what is wrong with them.
pub(super) fn aliases(properties: &Properties, problems: &mut Problems) -> Vec<ClusterAlias> {
    let Some(clusters) = properties.get("clusters") else {
        let likely = likely_aliases(properties);
        let example = if likely.is_empty() {
            "us, eu".to_owned()
        } else {
            likely.join(", ")
        };
        problems.push(
            Problem::error("`clusters` is missing").hint(format!("write `clusters = {example}`")),
        );
        return likely
            .iter()
            .map(|alias| ClusterAlias::from(alias.as_str()))
            .collect();
    };
    let mut aliases: Vec<ClusterAlias> = Vec::new();
    for alias in value::list(&clusters.value) {
        let known = aliases.iter().any(|known| known.as_str() == alias);
        if known || alias.is_empty() {
            let what = if known {
                format!("`{alias}` is named twice")
            } else {
                "an alias is empty".into()
            };
            problems.push(
                Problem::warning(what)
                    .at(clusters.line, "clusters")
                    .hint("name each cluster once"),
            );
            continue;
        }
        if !value::is_name(alias) {
            let hint = match alias.contains([' ', '\t']) {
                true => "an alias must not hold a blank; a comma separates clusters",
                false => "letters, digits, `.`, `_` and `-` are allowed: topics are named after it",
            };
            problems.push(
                Problem::error(format!("`{alias}` can't be the name of a cluster"))
                    .at(clusters.line, "clusters")
                    .hint(hint),
            );
        }
        aliases.push(ClusterAlias::from(alias));
    }
    if aliases.len() < 2 {
        problems.push(
            Problem::error("a flow needs two clusters")
                .at(clusters.line, "clusters")
                .hint("write `clusters = us, eu`"),
        );
    }
    aliases
}

/// The pairs of clusters that get a worker: enabled, or with heartbeats on
/// (`MirrorMakerConfig.clusterPairs`, KAFKA-10710).
pub(super) fn pairs(resolver: &Resolver, aliases: &[ClusterAlias]) -> Vec<Flow> {
    let is_on = |key: &str| {
        resolver
            .written(key)
            .and_then(|value| value::boolean(&value.text))
    };
    let heartbeats = is_on("emit.heartbeats.enabled").unwrap_or(true);
    let all = aliases.iter().flat_map(|source| {
        let others = aliases.iter().filter(move |target| *target != source);
        others.map(move |target| Flow {
            source: source.clone(),
            target: target.clone(),
        })
    });
    all.filter(|flow| {
        is_on(&format!("{flow}.enabled")).unwrap_or(false)
            || is_on(&format!("{flow}.emit.heartbeats.enabled")).unwrap_or(heartbeats)
    })
    .collect()
}

/// Keeps the flows to one of `targets`, if there are any, and tells if nothing is left.
pub(super) fn keep(
    flows: &mut Vec<Built>,
    aliases: &[ClusterAlias],
    targets: Option<&[String]>,
    problems: &mut Problems,
) {
    for target in targets.unwrap_or_default() {
        if !aliases.iter().any(|alias| alias.as_str() == target) {
            let known: Vec<_> = aliases.iter().map(ClusterAlias::as_str).collect();
            problems.push(
                Problem::error(format!("`--clusters {target}`: no such cluster"))
                    .hint(format!("`clusters` holds {}", known.join(", "))),
            );
        }
    }
    flows.retain(|built| {
        let target = built.config.flow.target.as_str();
        targets.is_none_or(|targets| targets.iter().any(|wanted| wanted == target))
    });
    if flows.is_empty() && aliases.len() > 1 && !problems.has_errors() {
        let (source, target) = (&aliases[0], &aliases[1]);
        problems.push(
            Problem::error("no flow is left to run")
                .hint(format!("write `{source}->{target}.enabled = true`")),
        );
    }
}

/// Tells what is wrong with flows as a whole.
pub(super) fn check(resolver: &Resolver, built: &[Built], problems: &mut Problems) {
    let flows: Vec<&FlowConfig> = built.iter().map(|built| &built.config).collect();
    for flow in &flows {
        addresses(resolver, flow, problems);
        security(resolver, &flow.flow, problems);
        one_cluster(resolver, flow, problems);
        contradictions(resolver, flow, problems);
        separator_in_alias(resolver, flow, problems);
    }
    shared_groups(resolver, &flows, problems);
    if !problems.has_errors()
        && !flows.is_empty()
        && flows
            .iter()
            .all(|flow| flow.role == FlowRole::HeartbeatsOnly)
    {
        problems.push(
            Problem::error("no flow is enabled, and heartbeats alone are not written so far")
                .hint(format!("write `{}.enabled = true`", flows[0].flow)),
        );
    }
}

fn addresses(resolver: &Resolver, flow: &FlowConfig, problems: &mut Problems) {
    let sides = [
        (&flow.source, &flow.flow.source),
        (&flow.target, &flow.flow.target),
    ];
    for (cluster, alias) in sides {
        let key = format!("{alias}.bootstrap.servers");
        // Keys of an alias that can't be one can't be written; that is told already.
        let is_missing = cluster.admin.bootstrap.is_empty() && resolver.written(&key).is_none();
        if is_missing && value::is_name(alias.as_str()) {
            problems.push(
                Problem::error(format!("`{key}` is missing"))
                    .hint(format!("write `{key} = host:9092`")),
            );
        }
    }
}

/// What somebody writes who wants a connection that is encrypted or asks for a password.
const ASKS_FOR_SECURITY: [&str; 6] = [
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
];

/// Only plain connections work so far; each line that asks for others is named.
fn security(resolver: &Resolver, flow: &Flow, problems: &mut Problems) {
    let connector = resolver.connector(flow, SOURCE_CONNECTOR);
    let worker = resolver.worker(flow);
    let mut layers = vec![resolve::writer(&worker, &connector), worker];
    for side in [Side::Source, Side::Target] {
        layers.extend(ClientKind::ALL.map(|kind| resolve::client(&connector, side, kind)));
    }
    for layer in &layers {
        let protocol = layer
            .get("security.protocol")
            .map(|value| value::trim(&value.text));
        if protocol.is_some_and(|protocol| protocol != "PLAINTEXT") {
            continue;
        }
        for name in ASKS_FOR_SECURITY {
            let Some(value) = layer.get(name) else {
                continue;
            };
            let prefix = as_written(value).strip_suffix(name).unwrap_or_default();
            let problem = Problem::warning("has no effect: the connection is PLAINTEXT");
            problems.push(at(problem, value).hint(format!(
                "remove the line, or ask for it with `{prefix}security.protocol`"
            )));
        }
    }
    for protocol in layers
        .iter()
        .filter_map(|layer| layer.get("security.protocol"))
    {
        let name = value::trim(&protocol.text);
        if ["SSL", "SASL_PLAINTEXT", "SASL_SSL"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            let problem = Problem::error(format!("{name} connections are not supported so far"));
            problems.push(at(problem, protocol).hint("only `PLAINTEXT` works"));
        }
    }
}

/// Puts a problem on the line of a value.
pub(super) fn at(problem: Problem, value: &Value) -> Problem {
    match &value.origin {
        Origin::File { line, key } => problem.at(*line, key),
        Origin::Default => problem,
    }
}

fn one_cluster(resolver: &Resolver, flow: &FlowConfig, problems: &mut Problems) {
    let source = &flow.source.admin.bootstrap;
    let Some(shared) = flow
        .target
        .admin
        .bootstrap
        .iter()
        .find(|address| source.contains(address))
    else {
        return;
    };
    // Both directions have the same problem; it is told at the line that comes later in the file.
    let Flow { source, target } = &flow.flow;
    let mut sides: Vec<(usize, String, &ClusterAlias)> = [source, target]
        .into_iter()
        .filter_map(|alias| {
            let value = resolver.written(&format!("{alias}.bootstrap.servers"))?;
            let Origin::File { line, key } = &value.origin else {
                return None;
            };
            Some((*line, key.to_string(), alias))
        })
        .collect();
    sides.sort();
    let (Some((line, key, _)), Some((_, _, other))) = (sides.last(), sides.first()) else {
        problems.push(
            Problem::error(format!(
                "`{source}` and `{target}` have the same address {shared}"
            ))
            .hint(format!("write `{target}.bootstrap.servers`")),
        );
        return;
    };
    problems.push(
        Problem::error(format!(
            "{shared} is an address of `{other}` as well: both are one cluster"
        ))
        .at(*line, key)
        .hint("a flow needs two clusters"),
    );
}

fn contradictions(resolver: &Resolver, flow: &FlowConfig, problems: &mut Problems) {
    let connector = resolver.connector(&flow.flow, SOURCE_CONNECTOR);
    let is = |key: &str, text: &str| {
        connector
            .get(key)
            .filter(|value| value::trim(&value.text).eq_ignore_ascii_case(text))
    };
    if let Some(off) = is("emit.offset-syncs.enabled", "false") {
        let about_syncs = connector.iter().filter(|(key, _)| {
            key.starts_with("offset-syncs-") || key.starts_with("offset-syncs.topic.")
        });
        for (key, value) in about_syncs {
            let problem = Problem::error(format!(
                "contradicts `{} = false`{}",
                as_written(off),
                on_line(off)
            ));
            problems.push(at(problem, value).hint(format!(
                "remove one of the two lines; `{key}` means nothing without offset syncs"
            )));
        }
        if flow.role == FlowRole::Replicates && flow.checkpoints.emit.is_some() {
            let problem = Problem::warning(
                "without offset syncs there are no checkpoints and no group offsets",
            );
            problems.push(
                at(problem, off).hint("write `emit.checkpoints.enabled = false` if that is meant"),
            );
        }
    }
    if let Some(required) = is("exactly.once.support", "required")
        && flow.source.consumer.isolation == Isolation::ReadUncommitted
    {
        let problem = Problem::error("exactly-once delivery needs a source that is read committed");
        problems.push(at(problem, required).hint(format!(
            "remove `isolation.level = read_uncommitted` of `{}`",
            flow.flow.source
        )));
    }
}

fn as_written(value: &Value) -> &str {
    match &value.origin {
        Origin::File { key, .. } => key,
        Origin::Default => "",
    }
}

fn on_line(value: &Value) -> String {
    match &value.origin {
        Origin::File { line, .. } => format!(" on line {line}"),
        Origin::Default => String::new(),
    }
}

fn separator_in_alias(resolver: &Resolver, flow: &FlowConfig, problems: &mut Problems) {
    let separator = flow.names.policy.separator();
    if flow.names.policy.naming() == Naming::Identity || flow.role == FlowRole::HeartbeatsOnly {
        return;
    }
    for alias in [&flow.flow.source, &flow.flow.target] {
        if alias.as_str().contains(separator) && !separator.is_empty() {
            let problem = Problem::warning(format!(
                "the alias `{alias}` contains the separator `{separator}`: \
                 `{alias}{separator}topic` looks like a topic of `{}`",
                source_of(&flow.names.policy, alias),
            ))
            .hint("choose another alias or another `replication.policy.separator`");
            problems.push(match resolver.written("clusters") {
                Some(clusters) => at(problem, clusters),
                None => problem,
            });
        }
    }
}

fn source_of(policy: &ReplicationPolicy, alias: &ClusterAlias) -> String {
    let topic = policy.remote_topic(alias, "topic");
    policy.topic_source(&topic).unwrap_or_default().to_owned()
}

/// Workers of one group share their work; those of different flows must not.
fn shared_groups(resolver: &Resolver, flows: &[&FlowConfig], problems: &mut Problems) {
    let mut groups: BTreeMap<(&ClusterAlias, &str), Vec<&Flow>> = BTreeMap::new();
    for flow in flows {
        let key = (&flow.flow.target, flow.worker.group_id.as_str());
        groups.entry(key).or_default().push(&flow.flow);
    }
    for ((target, group), flows) in groups {
        let Some(value) = resolver
            .written(&format!("{target}.group.id"))
            .filter(|_| flows.len() > 1)
        else {
            continue;
        };
        let names: Vec<_> = flows.iter().map(|flow| flow.to_string()).collect();
        let problem =
            Problem::warning(format!("{} share the group `{group}`", names.join(" and ")));
        problems.push(
            at(problem, value).hint("remove the line: each flow has a group of its own then"),
        );
    }
}
