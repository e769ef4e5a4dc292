//! Our derivation against the one of Kafka's own classes, on what
//! `tests/golden/java/DeriveGolden.java` wrote.

use std::collections::BTreeMap;

use super::flow::Side;
use super::flows;
use super::keys::ClientKind;
use super::problem::Problems;
use super::properties::Properties;
use super::resolve::{self, Layer, Resolver};
use crate::ids::Flow;

/// Settings that Kafka's code sets whatever the file says.
const SET_BY_CODE: [&str; 12] = [
    "client.id",
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "enable.auto.commit",
    "acks",
    "max.block.ms",
    "enable.idempotence",
    "delivery.timeout.ms",
    "max.in.flight.requests.per.connection",
    "metrics.context.",
];

fn check(file: &str, expected: &str) {
    let properties = Properties::parse(file.as_bytes());
    let mut problems = Problems::default();
    let aliases = flows::aliases(&properties, &mut problems);
    let resolver = Resolver::new(&properties);
    let mut pairs = flows::pairs(&resolver, &aliases);
    pairs.sort_by_key(Flow::to_string);
    let mut derived = String::new();
    for flow in &pairs {
        derive(&resolver, flow, &mut derived);
    }

    assert_eq!(derived, expected);
}

fn derive(resolver: &Resolver, flow: &Flow, out: &mut String) {
    let worker = resolver.worker(flow);
    let connector = resolver.connector(flow, "MirrorSourceConnector");
    section(out, &format!("{flow} worker"), &worker, false);
    section(out, &format!("{flow} connector"), &connector, false);
    for side in [Side::Source, Side::Target] {
        for kind in ClientKind::ALL {
            let mut client = resolve::client(&connector, side, kind);
            if kind == ClientKind::Consumer {
                resolve::set_default(&mut client, "auto.offset.reset", "earliest");
            }
            section(
                out,
                &format!("{flow} {side} {}", kind.prefix()),
                &client,
                true,
            );
        }
    }
    let writer = resolve::writer(&worker, &connector);
    section(out, &format!("{flow} writer"), &writer, true);
}

fn section(out: &mut String, name: &str, layer: &Layer, of_client: bool) {
    out.push_str(&format!("[{name}]\n"));
    let sorted: BTreeMap<_, _> = layer.iter().collect();
    for (key, value) in sorted {
        if !(of_client && SET_BY_CODE.contains(&&**key)) {
            out.push_str(&format!("{key}={}\n", value.text));
        }
    }
}

#[test]
fn the_documented_example_is_derived_as_by_kafka() {
    check(
        include_str!("../../tests/golden/derive/documented-example.properties"),
        include_str!("../../tests/golden/derive/documented-example.derived"),
    );
}

#[test]
fn keys_at_every_level_win_and_lose_as_with_kafka() {
    check(
        include_str!("../../tests/golden/derive/every-level.properties"),
        include_str!("../../tests/golden/derive/every-level.derived"),
    );
}

#[test]
fn aliases_of_any_characters_are_derived_as_by_kafka() {
    check(
        include_str!("../../tests/golden/derive/aliases.properties"),
        include_str!("../../tests/golden/derive/aliases.derived"),
    );
}

#[test]
fn a_file_without_an_enabled_flow_is_derived_as_by_kafka() {
    check(
        include_str!("../../tests/golden/derive/nothing-but-heartbeats.properties"),
        include_str!("../../tests/golden/derive/nothing-but-heartbeats.derived"),
    );
}
