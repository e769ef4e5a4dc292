//! The names and numbers that must not be mixed up: topics, partitions, clusters, and offsets of
//! either side.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A topic's name; cloning it is a reference count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Topic {
    fn from(name: &str) -> Self {
        Topic(name.into())
    }
}

impl From<String> for Topic {
    fn from(name: String) -> Self {
        Topic(name.into())
    }
}

impl std::ops::Deref for Topic {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Topic {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// One partition of one topic, written `orders-3` as Kafka does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: Topic,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Names partition `partition` of `topic`.
    pub fn new(topic: impl Into<Topic>, partition: i32) -> Self {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not `<topic>-<partition>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a topic, a dash and a partition number")]
pub struct NotATopicPartition(pub String);

impl FromStr for TopicPartition {
    type Err = NotATopicPartition;

    /// Splits at the last dash, as `MirrorUtils.decodeTopicPartition` does: topic names may hold
    /// dashes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.rsplit_once('-')
            .filter(|(topic, _)| !topic.is_empty())
            .and_then(|(topic, number)| Some((topic, number.parse::<i32>().ok()?)))
            .filter(|(_, number)| *number >= 0)
            .map(|(topic, number)| TopicPartition::new(topic, number))
            .ok_or_else(|| NotATopicPartition(text.to_owned()))
    }
}

/// The id a cluster gives a topic at creation (KIP-516); it differs after the topic was deleted and
/// made again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// What brokers before 2.8 answer: no id.
    pub const ZERO: TopicId = TopicId([0; 16]);

    /// Whether it is an id at all.
    pub fn is_known(self) -> bool {
        self != TopicId::ZERO
    }
}

macro_rules! offset {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl $name {
            /// The offset `records` further on.
            #[must_use]
            pub fn plus(self, records: i64) -> Self {
                $name(self.0 + records)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

offset! {
    /// An offset in a partition of the source cluster.
    UpstreamOffset
}
offset! {
    /// An offset in a partition of the target cluster.
    DownstreamOffset
}

/// The short name a configuration gives a cluster (`us` in `us.bootstrap.servers`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterAlias(Arc<str>);

impl ClusterAlias {
    /// The alias as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClusterAlias {
    fn from(alias: &str) -> Self {
        ClusterAlias(alias.into())
    }
}

impl fmt::Display for ClusterAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An ordered pair of clusters, written `us->eu`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Where records come from.
    pub source: ClusterAlias,
    /// Where records go to.
    pub target: ClusterAlias,
}

impl Flow {
    /// The flow from `source` to `target`.
    pub fn new(source: impl Into<ClusterAlias>, target: impl Into<ClusterAlias>) -> Self {
        Flow {
            source: source.into(),
            target: target.into(),
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.source, self.target)
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_written_and_read_as_kafka_does() {
        for text in ["orders-3", "a-b-0", "x.y-2147483647"] {
            assert_eq!(text.parse::<TopicPartition>().unwrap().to_string(), text);
        }
        for text in [
            "orders",
            "-3",
            "orders-",
            "orders-x",
            "orders--",
            "orders-2147483648",
        ] {
            assert!(text.parse::<TopicPartition>().is_err(), "{text}");
        }
    }
}
