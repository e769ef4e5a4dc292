//! Every key that may stand in an `mm2.properties`: what it means, what it may hold, what happens
//! when it is left away, and whether it has an effect here yet.
//!
//! The names, types and defaults are those of Kafka 4.3's `ConfigDef`s. `docs/config.md` is printed
//! from these tables by [`page::markdown`].

mod client;
mod connector;
pub mod page;
mod security;
mod worker;

/// A key, without the prefix of a cluster, a flow or a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value must look like.
    pub kind: Kind,
    /// The value when it is left away, as it would be written; none if there is no value then.
    pub default: Option<&'static str>,
    /// Whether it has an effect.
    pub status: Status,
    /// What it means, in a sentence or two.
    pub doc: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// A whole number within these bounds, both included.
    Integer(i64, i64),
    /// A whole number from 1 up to this, or -1 for the broker's default.
    CountOrDefault(i64),
    /// A number within these bounds, both included.
    Decimal(f64, f64),
    /// Any text.
    Text,
    /// Any text but none at all.
    NonEmpty,
    /// Texts separated by commas.
    List,
    /// Java regular expressions separated by commas.
    Patterns,
    /// `host:port` pairs separated by commas.
    Addresses,
    /// One of these, in this case.
    OneOf(&'static [&'static str]),
    /// One of these, in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// The name of a Java class: one of these, which are built in.
    Class(&'static [&'static str]),
    /// The name of a Java class that is not looked at.
    AnyClass,
    /// A secret text.
    Password,
}

/// Whether a key has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has.
    Effective,
    /// It is accepted and checked; its effect comes with what the text names.
    Later(&'static str),
    /// It will never have one, for this reason.
    NotApplicable(&'static str),
    /// Kafka 4.0 removed it; the text says what to do.
    Removed(&'static str),
}

/// A table of keys that stand in the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The process as a whole: bare keys.
    Driver,
    /// The three mirror connectors: bare keys, or with a flow's prefix `S->T.`.
    Connector,
    /// The flow's worker, which lives on the target: with the prefix `T.`.
    Worker,
    /// Addresses and credentials of all clients (`MirrorClientConfig.CLIENT_CONFIG_DEF`).
    Security,
    /// Every kind of client, behind `producer.`, `consumer.` or `admin.`.
    AnyClient,
    /// Producers only.
    Producer,
    /// Consumers only.
    Consumer,
    /// Admin clients only.
    Admin,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 8] = [
        Table::Driver,
        Table::Connector,
        Table::Worker,
        Table::Security,
        Table::AnyClient,
        Table::Producer,
        Table::Consumer,
        Table::Admin,
    ];

    /// The rows, in the order of names.
    pub fn keys(self) -> &'static [Key] {
        match self {
            Table::Driver => connector::DRIVER,
            Table::Connector => connector::CONNECTOR,
            Table::Worker => worker::WORKER,
            Table::Security => security::SECURITY,
            Table::AnyClient => client::ANY_CLIENT,
            Table::Producer => client::PRODUCER,
            Table::Consumer => client::CONSUMER,
            Table::Admin => client::ADMIN,
        }
    }

    /// The row of `name`.
    pub fn find(self, name: &str) -> Option<&'static Key> {
        let keys = self.keys();
        let at = keys.binary_search_by(|key| key.name.cmp(name)).ok()?;
        Some(&keys[at])
    }
}

/// What a client is for; each kind has keys of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientKind {
    /// Writes records.
    Producer,
    /// Reads records.
    Consumer,
    /// Looks and changes.
    Admin,
}

impl ClientKind {
    /// All kinds.
    pub const ALL: [ClientKind; 3] = [
        ClientKind::Producer,
        ClientKind::Consumer,
        ClientKind::Admin,
    ];

    /// As keys spell it, without the dot.
    pub fn prefix(self) -> &'static str {
        match self {
            ClientKind::Producer => "producer",
            ClientKind::Consumer => "consumer",
            ClientKind::Admin => "admin",
        }
    }

    /// The tables whose keys such a client has.
    pub fn tables(self) -> [Table; 3] {
        let own = match self {
            ClientKind::Producer => Table::Producer,
            ClientKind::Consumer => Table::Consumer,
            ClientKind::Admin => Table::Admin,
        };
        [own, Table::AnyClient, Table::Security]
    }

    /// The row of `name` for such a client.
    pub fn find(self, name: &str) -> Option<&'static Key> {
        self.tables().iter().find_map(|table| table.find(name))
    }
}

/// Whether the value of a key must never be shown.
///
/// `prefix.` and all are looked at: a key we don't know that is named like a secret is one.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "password",
        "secret",
        "token",
        "passphrase",
        "sasl.jaas.config",
        "keystore.key",
        "credential",
    ]
    .iter()
    .any(|part| key.contains(part))
        && ![
            "url",
            "location",
            "class",
            "interval.ms",
            "endpoint",
            "file",
        ]
        .iter()
        .any(|end| key.ends_with(end))
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    status: Status,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default: Some(default),
        status,
        doc,
    }
}

/// A key without a default.
const fn unset(name: &'static str, kind: Kind, status: Status, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        default: None,
        status,
        doc,
    }
}

const INT: Kind = Kind::Integer(i32::MIN as i64, i32::MAX as i64);
const LONG: Kind = Kind::Integer(i64::MIN, i64::MAX);
/// INT of 0 and more.
const COUNT: Kind = Kind::Integer(0, i32::MAX as i64);
/// INT of 1 and more.
const POSITIVE: Kind = Kind::Integer(1, i32::MAX as i64);
/// LONG of 0 and more: mostly milliseconds.
const MILLIS: Kind = Kind::Integer(0, i64::MAX);
/// Socket buffers: -1 leaves it to the system.
const BUFFER: Kind = Kind::Integer(-1, i32::MAX as i64);
/// Memory for records: less than a few fetches of a megabyte would have brokers wait for each other.
const BUFFER_MEMORY: Kind = Kind::Integer(4 << 20, 1 << 40);
/// Replication factors.
const COPIES: Kind = Kind::CountOrDefault(i16::MAX as i64);
/// Partitions of a new topic.
const PARTITIONS: Kind = Kind::CountOrDefault(i32::MAX as i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_hold_no_name_twice() {
        for table in Table::ALL {
            let names: Vec<_> = table.keys().iter().map(|key| key.name).collect();
            for pair in names.windows(2) {
                assert!(
                    pair[0] < pair[1],
                    "{table:?}: {} before {}",
                    pair[0],
                    pair[1]
                );
            }
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let secret = [
            "us.ssl.keystore.password",
            "sasl.jaas.config",
            "us.producer.sasl.jaas.config",
            "ssl.keystore.key",
            "x.api.token",
            "sasl.oauthbearer.client.credentials.client.secret",
            "my.SECRET",
        ];
        let open = [
            "ssl.keystore.location",
            "sasl.oauthbearer.token.endpoint.url",
            "topics",
            "ssl.keymanager.algorithm",
        ];

        assert!(secret.iter().all(|key| is_secret(key)));
        assert!(!open.iter().any(|key| is_secret(key)));
    }
}
