//! What the demo's topics are like: between them they have every codec, keys and none, headers, and
//! tombstones.

use bytes::Bytes;
use serde_json::json;
use twinlog_kafka::batch::{Compression, Record};

/// A topic of the source cluster.
pub struct DemoTopic {
    /// Its name.
    pub name: &'static str,
    /// How many partitions it has.
    pub partitions: i32,
    /// Settings.
    pub configs: &'static [(&'static str, &'static str)],
    /// How its batches are compressed.
    pub compression: Compression,
    /// How many of ten records are for it.
    pub share: u64,
    /// Record number `n`, without its time.
    pub record: fn(u64) -> Record,
}

/// All topics; their shares are ten together.
pub const TOPICS: [DemoTopic; 5] = [
    DemoTopic {
        name: "orders",
        partitions: 6,
        configs: &[],
        compression: Compression::Lz4,
        share: 4,
        record: order,
    },
    DemoTopic {
        name: "payments",
        partitions: 3,
        configs: &[],
        compression: Compression::Zstd,
        share: 2,
        record: payment,
    },
    DemoTopic {
        name: "clicks",
        partitions: 4,
        configs: &[],
        compression: Compression::None,
        share: 2,
        record: click,
    },
    DemoTopic {
        name: "customers",
        partitions: 2,
        configs: &[("cleanup.policy", "compact")],
        compression: Compression::Snappy,
        share: 1,
        record: customer,
    },
    DemoTopic {
        name: "audit",
        partitions: 1,
        configs: &[],
        compression: Compression::Gzip,
        share: 1,
        record: audit,
    },
];

fn order(n: u64) -> Record {
    let customer = n % 997;
    let value =
        json!({ "order": n, "customer": customer, "items": n % 7 + 1, "cents": n % 90_001 });
    keyed(format!("customer-{customer}"), Some(value.to_string()))
}

/// Headers with the same name twice, and with a null and an empty value.
fn payment(n: u64) -> Record {
    let value = json!({ "payment": n, "order": n, "method": "card", "cents": n % 90_001 });
    Record {
        headers: vec![
            (
                Bytes::from_static(b"trace"),
                Some(Bytes::from(format!("{n:016x}"))),
            ),
            (
                Bytes::from_static(b"hop"),
                Some(Bytes::from_static(b"shop")),
            ),
            (
                Bytes::from_static(b"hop"),
                Some(Bytes::from_static(b"bank")),
            ),
            (Bytes::from_static(b"note"), None),
            (Bytes::from_static(b"sample"), Some(Bytes::new())),
        ],
        ..keyed(format!("order-{n}"), Some(value.to_string()))
    }
}

/// No key.
fn click(n: u64) -> Record {
    let value = format!(
        "GET /item/{} {}",
        n % 5_003,
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    );
    Record {
        value: Some(Bytes::from(value)),
        ..Record::default()
    }
}

/// Few keys that come again and again; every tenth record deletes one.
fn customer(n: u64) -> Record {
    let number = n % 997;
    let value = json!({ "customer": number, "name": format!("Customer {number}"), "visits": n });
    let deleted = n % 10 == 9;
    keyed(
        format!("customer-{number}"),
        (!deleted).then(|| value.to_string()),
    )
}

/// An empty key, which is not the same as none.
fn audit(n: u64) -> Record {
    keyed(String::new(), Some(format!("entry {n}: nothing unusual")))
}

fn keyed(key: String, value: Option<String>) -> Record {
    Record {
        key: Some(Bytes::from(key)),
        value: value.map(Bytes::from),
        ..Record::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_ten_together_and_all_codecs_are_there() {
        assert_eq!(TOPICS.iter().map(|topic| topic.share).sum::<u64>(), 10);
        for compression in Compression::ALL {
            assert!(
                TOPICS.iter().any(|topic| topic.compression == compression),
                "{compression:?}"
            );
        }
    }
}
