//! Tells of topics that a file would copy round in circles, before there are topics.
//!
//! The mirror itself looks at each topic ([`crate::circles`]); here it is only known which names the
//! flows select. It is an error where a topic that the file names, or all topics, would go round,
//! and a warning where some might.

use std::collections::BTreeSet;

use super::build::SOURCE_CONNECTOR;
use super::flows::at;
use super::problem::{Problem, Problems};
use super::resolve::{Origin, Resolver, Value};
use crate::circles::{Circle, Circles, Hop, shortest};
use crate::ids::Flow;

/// How sure it is that a topic goes round.
enum Risk {
    /// These do.
    Certain(String),
    /// Some may.
    Possible,
    /// There is no name that all flows select.
    None,
}

pub(super) fn check(resolver: &Resolver, circles: &Circles, problems: &mut Problems) {
    let mut told = BTreeSet::new();
    let hops = circles.hops().iter();
    let named = hops.clone().filter_map(|hop| named(circles, hop));
    for (circle, risk) in named.chain(hops.filter_map(|hop| unnamed(circles, hop))) {
        let mut flows = circle.flows.clone();
        flows.sort();
        if told.insert(flows) {
            tell(resolver, &circle, &risk, problems);
        }
    }
}

/// A circle of a topic that the flow selects by its name.
fn named(circles: &Circles, hop: &Hop) -> Option<(Circle, Risk)> {
    let names = hop.topics.include.names();
    names.into_iter().find_map(|name| {
        // A pattern without an answer is the mirror's to tell.
        let circle = circles.through(&hop.flow, &name).ok()??;
        Some((circle, Risk::Certain(format!("`{name}`"))))
    })
}

/// The shortest circle of flows of which each may select what this one selects. Flows that share no
/// name with each other, only with this one, keep it from being told; the mirror sees it still.
fn unnamed(circles: &Circles, hop: &Hop) -> Option<(Circle, Risk)> {
    let may_share = |other: &&Hop| !hop.topics.include.is_disjoint(&other.topics.include);
    let others: Vec<&Hop> = circles.hops().iter().filter(may_share).collect();
    let flows: Vec<&Flow> = others.iter().map(|other| &other.flow).collect();
    let circle = shortest(&hop.flow, &flows)?;
    let hops: Vec<&Hop> = others
        .into_iter()
        .filter(|other| circle.flows.contains(&other.flow))
        .collect();
    match risk(&hops) {
        Risk::None => None,
        risk => Some((circle, risk)),
    }
}

fn risk(hops: &[&Hop]) -> Risk {
    let disjoint = |a: &Hop| {
        let mut others = hops.iter();
        others.any(|b| a.topics.include.is_disjoint(&b.topics.include))
    };
    // Where a flow selects nothing but names, each of them was looked at.
    let is_settled = |hop: &&Hop| hop.topics.include.is_names_only() || disjoint(hop);
    if hops.iter().any(is_settled) {
        return Risk::None;
    }
    if hops.windows(2).all(|pair| pair[0].topics == pair[1].topics) {
        return Risk::Certain("every topic that they select".to_owned());
    }
    Risk::Possible
}

fn tell(resolver: &Resolver, circle: &Circle, risk: &Risk, problems: &mut Problems) {
    let problem = match risk {
        Risk::Certain(topics) => Problem::error(format!(
            "{topics} would be copied round in circles: {circle} keep names"
        )),
        Risk::Possible | Risk::None => Problem::warning(format!(
            "{circle} keep names: a topic that all of them select would be copied round in circles, \
             and is not mirrored"
        )),
    };
    let problem = problem.hint(format!(
        "select different topics in {}, or use DefaultReplicationPolicy",
        circle.keys()
    ));
    problems.push(match place(resolver, circle) {
        Some(value) => at(problem, &value),
        None => problem,
    });
}

/// The last line that selects topics of the circle, or the one by which names are kept.
fn place(resolver: &Resolver, circle: &Circle) -> Option<Value> {
    let last = |key: &str| {
        let values = circle.flows.iter().filter_map(|flow| {
            let layer = resolver.connector(flow, SOURCE_CONNECTOR);
            layer.get(key).cloned()
        });
        values.max_by_key(|value| match value.origin {
            Origin::File { line, .. } => line,
            Origin::Default => 0,
        })
    };
    last("topics").or_else(|| last("replication.policy.class"))
}
