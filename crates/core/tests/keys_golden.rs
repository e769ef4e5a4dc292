//! The tables of keys against those of Kafka, which `golden/java/KeysGolden.java` wrote.

use twinlog_core::config::keys::{ClientKind, Key, Kind, Table};

const GOLDEN: &str = include_str!("golden/keys.tsv");

/// Keys whose default is another on purpose, and keys whose default depends on the kind of client.
const OTHER_DEFAULT: [&str; 14] = [
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "compression.type",
    "connections.max.idle.ms",
    "enable.auto.commit",
    "enable.metrics.push",
    "enabled",
    "header.converter",
    "isolation.level",
    "max.request.size",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "refresh.topics.interval.seconds",
];

#[test]
fn every_key_of_kafka_is_known_with_its_type_and_default() {
    let mut wrong = Vec::new();
    // What begins with `internal.` is for Kafka's own programs.
    for row in GOLDEN.lines().filter(|row| !row.contains("\tinternal.")) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [place, name, kind, default] = columns[..] else {
            panic!("four columns in {row}");
        };
        let Some(key) = find(place, name) else {
            wrong.push(format!("{place} {name} is missing"));
            continue;
        };
        if !fits(key.kind, kind) {
            wrong.push(format!("{place} {name} is {kind}, not {:?}", key.kind));
        }
        let ours = key.default.unwrap_or("-");
        // Texts compare as they are; a list without elements and no list at all are the same.
        let same = ours.eq_ignore_ascii_case(default) || (ours.is_empty() && default == "-");
        if !same && !OTHER_DEFAULT.contains(&name) && !is_class_or_text_of_client(key) {
            wrong.push(format!("{place} {name} is {default}, not {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the mirror sets itself, whatever Kafka's default for it is.
fn is_class_or_text_of_client(key: &Key) -> bool {
    matches!(key.kind, Kind::AnyClass | Kind::Class(_))
}

fn find(place: &str, name: &str) -> Option<&'static Key> {
    let of_clients = |kind: ClientKind| kind.find(name);
    match place {
        "driver" => [Table::Driver, Table::Security]
            .iter()
            .find_map(|table| table.find(name)),
        "connector" => [Table::Connector, Table::Security]
            .iter()
            .find_map(|table| table.find(name)),
        "worker" => [Table::Worker, Table::Security]
            .iter()
            .find_map(|table| table.find(name)),
        "security" => Table::Security.find(name),
        "producer" => of_clients(ClientKind::Producer),
        "consumer" => of_clients(ClientKind::Consumer),
        "admin" => of_clients(ClientKind::Admin),
        other => panic!("no place {other}"),
    }
}

fn fits(ours: Kind, kafka: &str) -> bool {
    match kafka {
        "BOOLEAN" => ours == Kind::Boolean,
        "INT" | "LONG" | "SHORT" => matches!(ours, Kind::Integer(..) | Kind::CountOrDefault(_)),
        "DOUBLE" => matches!(ours, Kind::Decimal(..)),
        "LIST" => matches!(ours, Kind::List | Kind::Patterns | Kind::Addresses),
        "CLASS" => matches!(ours, Kind::AnyClass | Kind::Class(_)),
        "PASSWORD" => ours == Kind::Password,
        "STRING" => matches!(
            ours,
            Kind::Text | Kind::NonEmpty | Kind::OneOf(_) | Kind::OneOfAnyCase(_) | Kind::AnyClass
        ),
        other => panic!("no type {other}"),
    }
}
