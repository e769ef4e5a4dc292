//! `docs/config.md`, printed from the tables.

use std::fmt::Write;

use super::{Key, Kind, Status, Table};

const PREFACE: &str = r"# Configuration

twinlog reads the files of MirrorMaker 2 (`mm2.properties`). This page is printed from the table of keys in
`crates/core/src/config/keys/`; after a change there, write it anew with
`UPDATE_GOLDEN=1 cargo test -p twinlog-core --test config_page`.

`twinlog check mm2.properties` says what is wrong in a file; `--explain` prints every value that is in effect
and the line it comes from.

## Where a key is written

| written as | reaches |
|---|---|
| `topics` | the connectors of every flow; some keys the process or the workers |
| `us.bootstrap.servers` | every client of cluster `us`, and the workers of flows to `us` |
| `us.consumer.fetch.max.bytes` | the clients of one kind of cluster `us`, in every flow |
| `us->eu.topics` | the connectors of one flow |
| `us->eu.consumer.client.rack` | the clients of one kind of one flow, on both clusters |
| `us->eu.source.consumer.client.rack` | the same on one cluster |
| `us->eu.producer.override.compression.type` | the producer of replicated records |

Where several reach the same client, `us->eu.source.consumer.x` beats `us.consumer.x`, which beats `us->eu.consumer.x`,
which beats what the cluster says for all its clients. At top level, only keys of the first three tables below and
those that begin with `offset.storage`, `config.storage`, `status.storage`, `key.converter`, `value.converter`,
`header.converter`, `task`, `worker` or `replication.policy` go anywhere; the last beat the cluster's own.

The file is read as Java reads it: ISO-8859-1, `\uXXXX` for other characters, a backslash is written as two, and
blanks at the end of a value belong to it.

## What differs from MirrorMaker 2

- `refresh.topics.interval.seconds` is 5 where it isn't written, instead of 600.
- `isolation.level` of the source is `read_committed` where it isn't written: aborted records are not mirrored.
- `compression.type` of the producer has no default: batches keep their codec.
- `max.request.size` has no default: a record passes if both topics allow it.
- `send.buffer.bytes` and `receive.buffer.bytes` have no effect unless written: the system tunes its buffers.
- `linger.ms` is 0 where it isn't written.
- `auto.offset.reset = by_duration:..` is refused.
- A value that MirrorMaker 2 would quietly take for `false` (`us->eu.enabled = yes`), a key removed in Kafka 4.0, an
  alias that is not in `clusters` and two different values for one key are errors.
- `twinlog.buffer.memory` is a key of ours; MirrorMaker 2 ignores it.
- Interval keys that are 0 count as 1 second; negative ones switch off, as in MirrorMaker 2.

## Effect

*yes*: it has its effect. *not yet*: accepted and checked; comes with what is named. *none*: accepted and
checked, and never has an effect, for the reason named. *removed*: refused.
";

/// The page.
pub fn markdown() -> String {
    let mut page = PREFACE.to_owned();
    for table in Table::ALL {
        let (title, about) = heading(table);
        page.push_str(&format!(
            "\n## {title}\n\n{about}\n\n| key | value | default | effect | meaning |\n|---|---|---|---|---|\n"
        ));
        for key in table.keys() {
            row(&mut page, key);
        }
    }
    page
}

fn heading(table: Table) -> (&'static str, &'static str) {
    match table {
        Table::Driver => ("Process", "Bare keys that concern the process as a whole."),
        Table::Connector => (
            "Flows",
            "Bare for all flows, or behind `us->eu.` for one. `use.defaults.from`, `exactly.once.support`, \
             `transaction.boundary*`, `topic.creation.*` and `offsets.storage.topic` only behind a flow.",
        ),
        Table::Security => (
            "Addresses and credentials",
            "Bare for all clusters, behind `us.` for one, or behind the kind of client.",
        ),
        Table::Worker => (
            "Workers",
            "Behind the alias of a flow's target: `eu.offset.flush.interval.ms`.",
        ),
        Table::AnyClient => (
            "Clients of all kinds",
            "Behind `producer.`, `consumer.` or `admin.`, which stand behind a cluster or a flow.",
        ),
        Table::Producer => (
            "Producers",
            "Behind `producer.`; for replicated records `eu.producer.` or `us->eu.producer.override.`.",
        ),
        Table::Consumer => ("Consumers", "Behind `consumer.`."),
        Table::Admin => ("Admin clients", "Behind `admin.`."),
    }
}

fn row(page: &mut String, key: &Key) {
    let default = match key.default {
        None => "–".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{}`", cell(text)),
    };
    // Writing to a String can't fail.
    let _ = writeln!(
        page,
        "| `{}` | {} | {default} | {} | {} |",
        key.name,
        kind(key.kind),
        effect(key.status),
        cell(key.doc)
    );
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', r"\|")
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Boolean => "true or false".into(),
        Kind::Integer(min, max) => bounds(min, max),
        Kind::CountOrDefault(_) => "whole number from 1, or -1".into(),
        Kind::Decimal(f64::MIN, f64::MAX) => "number".into(),
        Kind::Decimal(min, max) => format!("{min} to {max}"),
        Kind::Text => "text".into(),
        Kind::NonEmpty => "text, not empty".into(),
        Kind::List => "list".into(),
        Kind::Patterns => "list of Java patterns".into(),
        Kind::Addresses => "list of `host:port`".into(),
        Kind::OneOf(choices) => choices.join(", "),
        Kind::OneOfAnyCase(choices) => format!("{}, in any case", choices.join(", ")),
        Kind::Class(classes) => {
            let names: Vec<_> = classes.iter().map(|class| format!("`{class}`")).collect();
            names.join(" or ")
        }
        Kind::AnyClass => "class name".into(),
        Kind::Password => "secret".into(),
    }
}

fn bounds(min: i64, max: i64) -> String {
    let widest = [i16::MAX.into(), i32::MAX.into(), i64::MAX];
    match (min, widest.contains(&max)) {
        (i64::MIN, _) => "whole number".into(),
        (min, true) if min == i64::from(i32::MIN) => "whole number".into(),
        (min, true) => format!("whole number from {min}"),
        (min, false) => format!("{min} to {max}"),
    }
}

fn effect(status: Status) -> String {
    match status {
        Status::Effective => "yes".into(),
        Status::Later(what) => format!("not yet: {what}"),
        Status::NotApplicable(why) => format!("none: {why}"),
        Status::Removed(instead) => format!("removed: {instead}"),
    }
}
