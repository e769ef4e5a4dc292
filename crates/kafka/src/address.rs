//! `host:port`, as configurations and metadata write it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where a broker listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Name or address, without the brackets of IPv6.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
}

impl Address {
    /// The address `host:port`.
    pub fn new(host: &str, port: u16) -> Self {
        Address {
            host: host.into(),
            port,
        }
    }
}

/// A text that is not `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not host:port")]
pub struct NotAnAddress(pub String);

impl FromStr for Address {
    type Err = NotAnAddress;

    /// Accepts what Java's `ClientUtils` does: an optional `scheme://`, and brackets around IPv6.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.trim();
        let bare = bare.split_once("://").map_or(bare, |(_, rest)| rest);
        bare.rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)))
            .map(|(host, port)| (host.trim_start_matches('[').trim_end_matches(']'), port))
            .filter(|(host, port)| !host.is_empty() && *port != 0)
            .map(|(host, port)| Address::new(host, port))
            .ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_java_reads_them() {
        for (text, expected) in [
            ("kafka:9092", Some("kafka:9092")),
            (" kafka-1.example.com:1 ", Some("kafka-1.example.com:1")),
            ("PLAINTEXT://kafka:9092", Some("kafka:9092")),
            ("[::1]:9092", Some("[::1]:9092")),
            ("10.0.0.1:65535", Some("10.0.0.1:65535")),
            ("kafka", None),
            ("kafka:", None),
            ("kafka:0", None),
            ("kafka:65536", None),
            (":9092", None),
            ("", None),
        ] {
            let read = text
                .parse::<Address>()
                .ok()
                .map(|address| address.to_string());

            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
    }
}
