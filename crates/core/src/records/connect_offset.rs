//! Where a partition's mirroring stands, as stored in Connect's offsets topic
//! (`mm2-offsets.<source>.internal`).
//!
//! ```text
//! key    ["MirrorSourceConnector",{"cluster":"us","partition":3,"topic":"orders"}]
//! value  {"offset":41,"downstream":42,"sequence":42}
//! ```
//!
//! Key and the value's first member are Java's (`JsonConverter` without schemas,
//! `MirrorUtils.wrapPartition`), byte for byte: Java looks a key up by its bytes. The members after
//! `offset` are ours. Java reads the one it knows and drops the others when it writes next, so that
//! they are there exactly when they belong to the offset beside them. They must stay numbers or
//! strings: Connect refuses offsets with nested values (`OffsetUtils.validateFormat`).

use bytes::Bytes;
use serde_json::Value;

use super::json::push_string;
use crate::ids::{DownstreamOffset, TopicId, TopicPartition, UpstreamOffset};
use crate::offsets::{Sequence, TargetMark};

/// Whose position a record holds: one partition of the source, as one connector sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The connector's name: `MirrorSourceConnector` in dedicated mode, anything on a Connect
    /// cluster.
    pub connector: String,
    /// The source cluster's alias.
    pub cluster: String,
    /// The partition on the source.
    pub partition: TopicPartition,
}

impl Key {
    /// The record's key. The members stand in the order of Java's `HashMap`, which for these three
    /// names is fixed.
    pub fn encode(&self) -> Bytes {
        let mut text = String::with_capacity(96);
        text.push('[');
        push_string(&mut text, &self.connector);
        text.push_str(",{\"cluster\":");
        push_string(&mut text, &self.cluster);
        text.push_str(",\"partition\":");
        text.push_str(&self.partition.partition.to_string());
        text.push_str(",\"topic\":");
        push_string(&mut text, &self.partition.topic);
        text.push_str("}]");
        text.into()
    }

    /// Reads a key; `None` if it is not a source connector's, as heartbeats and checkpoints share
    /// the topic.
    pub fn decode(key: &[u8]) -> Option<Key> {
        let value: Value = serde_json::from_slice(key).ok()?;
        let [connector, partition] = value.as_array()?.as_slice() else {
            return None;
        };
        let text = |name: &str| partition.get(name)?.as_str();
        Some(Key {
            connector: connector.as_str()?.to_owned(),
            cluster: text("cluster")?.to_owned(),
            partition: TopicPartition::new(
                text("topic")?,
                i32::try_from(partition.get("partition")?.as_i64()?).ok()?,
            ),
        })
    }
}

/// How far a partition has been mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The first upstream offset that is not done yet. Stored as Java does, as the last one that
    /// is: one less.
    pub upstream: UpstreamOffset,
    /// Where the target's log ended then: everything before `upstream` lies before it. Java writes
    /// none.
    pub target: Option<TargetMark>,
    /// The source topic's id then, to notice that the topic was made anew.
    pub topic_id: Option<TopicId>,
}

impl Position {
    /// The record's value.
    pub fn encode(&self) -> Bytes {
        let mut text = format!("{{\"offset\":{}", self.upstream.0 - 1);
        if let Some(mark) = self.target {
            let (downstream, sequence) = (mark.downstream, mark.sequence.get());
            text.push_str(&format!(
                ",\"downstream\":{downstream},\"sequence\":{sequence}"
            ));
        }
        if let Some(id) = self.topic_id.filter(|id| *id != TopicId::ZERO) {
            let hex = id.0.iter().map(|byte| format!("{byte:02x}"));
            text.push_str(&format!(",\"topicId\":\"{}\"", hex.collect::<String>()));
        }
        text.push('}');
        text.into()
    }

    /// Reads a value; `None` if it holds no offset. Members of ours that make no sense count as
    /// absent.
    pub fn decode(value: &[u8]) -> Option<Position> {
        let value: Value = serde_json::from_slice(value).ok()?;
        let number = |name: &str| value.get(name)?.as_i64();
        let natural = |name: &str| number(name).filter(|n| *n >= 0);
        let last = number("offset")?.max(-1);
        let sequence = number("sequence").and_then(|n| Sequence::new(i32::try_from(n).ok()?));
        Some(Position {
            upstream: UpstreamOffset(last.checked_add(1)?),
            target: natural("downstream")
                .zip(sequence)
                .map(|(downstream, sequence)| TargetMark {
                    downstream: DownstreamOffset(downstream),
                    sequence,
                }),
            topic_id: value
                .get("topicId")
                .and_then(|id| decode_topic_id(id.as_str()?)),
        })
    }

    /// Whether Java would start from it. It takes a negative offset for none and goes by
    /// `auto.offset.reset`.
    pub fn is_set(&self) -> bool {
        self.upstream.0 > 0 || self.target.is_some()
    }
}

fn decode_topic_id(hex: &str) -> Option<TopicId> {
    let bytes = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect::<Option<Vec<u8>>>()?;
    Some(TopicId(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(connector: &str, cluster: &str, topic: &str, partition: i32) -> Key {
        Key {
            connector: connector.into(),
            cluster: cluster.into(),
            partition: TopicPartition::new(topic, partition),
        }
    }

    #[test]
    fn keys_are_javas_bytes() {
        // Written by JsonConverter (connect-json 4.3.1).
        let source = "MirrorSourceConnector";
        for (key, text) in [
            (
                key(source, "A", "t", 0),
                r#"["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]"#,
            ),
            (
                key(source, "A", "t", 1),
                r#"["MirrorSourceConnector",{"cluster":"A","partition":1,"topic":"t"}]"#,
            ),
            (
                key("us->eu.MirrorSourceConnector", "us", "orders.v1", 12),
                r#"["us->eu.MirrorSourceConnector",{"cluster":"us","partition":12,"topic":"orders.v1"}]"#,
            ),
            (
                key(
                    "q\"uo\\te/",
                    "t\ta\u{1}b\u{1f}\u{7f}\n\r\u{8}\u{c}",
                    "üml€",
                    i32::MAX,
                ),
                "[\"q\\\"uo\\\\te/\",{\"cluster\":\"t\\ta\\u0001b\\u001F\u{7f}\\n\\r\\b\\f\",\
                 \"partition\":2147483647,\"topic\":\"üml€\"}]",
            ),
            (
                key("n", "\u{1f600}", "x", 3),
                r#"["n",{"cluster":"\uD83D\uDE00","partition":3,"topic":"x"}]"#,
            ),
            (
                key("n", "\u{2028}<>&'", "x", 3),
                "[\"n\",{\"cluster\":\"\u{2028}<>&'\",\"partition\":3,\"topic\":\"x\"}]",
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(&key.encode()), text);
            assert_eq!(Key::decode(&key.encode()), Some(key));
        }
    }

    #[test]
    fn other_connectors_keys_are_left_alone() {
        for other in [
            r#"["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]"#,
            r#"["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]"#,
            r#"["c",{"cluster":"A","partition":2147483648,"topic":"t"}]"#,
            "[]",
            "not json",
        ] {
            assert_eq!(Key::decode(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_value_starts_as_javas_and_carries_ours_behind() {
        let bare = Position {
            upstream: UpstreamOffset(124),
            target: None,
            topic_id: None,
        };
        let full = Position {
            upstream: UpstreamOffset(0),
            target: Some(TargetMark {
                downstream: DownstreamOffset(7),
                sequence: Sequence::new(5).unwrap(),
            }),
            topic_id: Some(TopicId([0xab; 16])),
        };

        assert_eq!(bare.encode(), r#"{"offset":123}"#);
        assert_eq!(
            full.encode(),
            format!(
                r#"{{"offset":-1,"downstream":7,"sequence":5,"topicId":"{}"}}"#,
                "ab".repeat(16)
            )
        );
        for position in [bare, full] {
            assert_eq!(Position::decode(&position.encode()), Some(position));
        }
    }

    #[test]
    fn values_that_make_no_sense_are_not_positions() {
        let decoded = |text: &str| Position::decode(text.as_bytes());

        for text in [
            "",
            "null",
            "{}",
            r#"{"offset":"1"}"#,
            r#"{"offset":9223372036854775807}"#,
        ] {
            assert_eq!(decoded(text), None, "{text}");
        }
        let odd = decoded(r#"{"offset":4,"downstream":-2,"sequence":9,"topicId":"xyz"}"#);
        assert_eq!(
            odd,
            Some(Position {
                upstream: UpstreamOffset(5),
                target: None,
                topic_id: None
            })
        );
        assert!(!decoded(r#"{"offset":-1}"#).unwrap().is_set());
        assert!(
            decoded(r#"{"offset":-1,"downstream":0,"sequence":0}"#)
                .unwrap()
                .is_set()
        );
    }
}
