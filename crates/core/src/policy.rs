//! How topics are named on the target, and what a name on either side says about where it came
//! from.
//!
//! The two policies of MirrorMaker 2 with their settings: `DefaultReplicationPolicy` and
//! `IdentityReplicationPolicy` (Kafka 4.x, KIP-690, KIP-949, KIP-1074). A policy knows names only;
//! whether a topic is wanted at all is [`crate::filter`]'s.

use crate::ids::{ClusterAlias, Topic};

/// The name of the topic that heartbeats are written to; no separator changes it.
pub const HEARTBEATS_TOPIC: &str = "heartbeats";

/// Which of the two naming rules of MirrorMaker 2 a flow uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// `orders` of `us` is `us.orders` on the target (`DefaultReplicationPolicy`).
    Default,
    /// `orders` stays `orders` (`IdentityReplicationPolicy`, KAFKA-9726).
    Identity,
}

/// A naming rule with its separators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationPolicy {
    naming: Naming,
    separator: String,
    internal_separator: String,
    source: Option<ClusterAlias>,
}

impl ReplicationPolicy {
    /// The separator when `replication.policy.separator` isn't set.
    pub const SEPARATOR: &str = ".";

    /// The default policy with the default separator.
    pub fn new() -> Self {
        ReplicationPolicy {
            naming: Naming::Default,
            separator: Self::SEPARATOR.to_owned(),
            internal_separator: Self::SEPARATOR.to_owned(),
            source: None,
        }
    }

    /// The identity policy of a flow from `source`; the alias is what every topic is said to come
    /// from.
    pub fn identity(source: Option<ClusterAlias>) -> Self {
        ReplicationPolicy {
            naming: Naming::Identity,
            source,
            ..Self::new()
        }
    }

    /// The same policy with another separator (`replication.policy.separator`). Internal topics
    /// follow it only where `also_internal` says so
    /// (`replication.policy.internal.topic.separator.enabled`, KIP-949).
    #[must_use]
    pub fn with_separator(mut self, separator: &str, also_internal: bool) -> Self {
        separator.clone_into(&mut self.separator);
        let internal = if also_internal {
            separator
        } else {
            Self::SEPARATOR
        };
        internal.clone_into(&mut self.internal_separator);
        self
    }

    /// Which naming rule it is.
    pub fn naming(&self) -> Naming {
        self.naming
    }

    /// What stands between a cluster's alias and the topic.
    pub fn separator(&self) -> &str {
        &self.separator
    }

    /// The name on the target of `topic` of cluster `source` (`formatRemoteTopic`).
    pub fn remote_topic(&self, source: &ClusterAlias, topic: &str) -> Topic {
        if self.keeps_name(topic) {
            return Topic::from(topic);
        }
        Topic::from(format!("{source}{}{topic}", self.separator))
    }

    /// The cluster that `topic` was copied from, as far as its name says (`topicSource`).
    ///
    /// The default policy takes any name with a separator for a copy: `orders.v1` seems to come
    /// from `orders`. It is empty for `.orders`.
    pub fn topic_source<'a>(&'a self, topic: &'a str) -> Option<&'a str> {
        if self.keeps_name(topic) {
            return self.source.as_ref().map(ClusterAlias::as_str);
        }
        self.split(topic).map(|(source, _)| source)
    }

    /// The name that `topic` has one hop nearer to its origin (`upstreamTopic`); none for a local
    /// one.
    pub fn upstream_topic<'a>(&self, topic: &'a str) -> Option<&'a str> {
        if self.keeps_name(topic) {
            return Some(topic);
        }
        self.split(topic).map(|(_, upstream)| upstream)
    }

    /// The name of `topic` where it was first written (`originalTopic`).
    pub fn original_topic<'a>(&self, topic: &'a str) -> &'a str {
        let mut original = topic;
        while let Some(upstream) = self.upstream_topic(original).filter(|up| *up != original) {
            original = upstream;
        }
        original
    }

    /// Whether sending `topic` to `target` would send it back to where it came from, over any
    /// number of hops (`MirrorSourceConnector.isCycle`).
    ///
    /// The identity policy sees no cycle in any topic but heartbeats: names do not tell.
    pub fn is_cycle(&self, topic: &str, target: &ClusterAlias) -> bool {
        let mut topic = topic;
        while let Some(source) = self.topic_source(topic) {
            if source == target.as_str() {
                return true;
            }
            match self.upstream_topic(topic) {
                Some(upstream) if upstream != topic => topic = upstream,
                _ => return false,
            }
        }
        false
    }

    /// Whether `topic` holds heartbeats, of this cluster or of any upstream one.
    pub fn is_heartbeats_topic(&self, topic: &str) -> bool {
        self.original_topic(topic) == HEARTBEATS_TOPIC
    }

    /// Whether `topic` holds checkpoints.
    pub fn is_checkpoints_topic(&self, topic: &str) -> bool {
        topic
            .strip_suffix("internal")
            .and_then(|rest| rest.strip_suffix(&self.internal_separator))
            .and_then(|rest| rest.strip_suffix("checkpoints"))
            .is_some_and(|rest| rest.ends_with(&self.internal_separator))
    }

    /// Whether `topic` is one of MirrorMaker's own (offset syncs, Connect's internals,
    /// checkpoints).
    ///
    /// The narrower rule of Kafka 4.0 (KIP-1074): users' topics that merely end in `.internal` are
    /// not.
    pub fn is_mirror_internal_topic(&self, topic: &str) -> bool {
        let ends_internal = topic
            .strip_suffix("internal")
            .is_some_and(|rest| rest.ends_with(&self.internal_separator));
        (topic.starts_with("mm2") && ends_internal) || self.is_checkpoints_topic(topic)
    }

    /// Whether `topic` is never replicated, whatever the filters say.
    pub fn is_internal_topic(&self, topic: &str) -> bool {
        self.is_mirror_internal_topic(topic) || topic.starts_with("__") || topic.starts_with('.')
    }

    /// The topic of offset syncs. `other` is the cluster at the far end: the target's alias when
    /// the topic is on the source, the source's when it is on the target (KIP-716).
    pub fn offset_syncs_topic(&self, other: &ClusterAlias) -> Topic {
        let separator = &self.internal_separator;
        Topic::from(format!(
            "mm2-offset-syncs{separator}{other}{separator}internal"
        ))
    }

    /// The topic on the target that holds the checkpoints of flows from `source`.
    pub fn checkpoints_topic(&self, source: &ClusterAlias) -> Topic {
        let separator = &self.internal_separator;
        Topic::from(format!("{source}{separator}checkpoints{separator}internal"))
    }

    /// The identity policy names heartbeats as the default policy does, or they would loop; it
    /// takes every name that ends in `heartbeats` for them, as Java's does.
    fn keeps_name(&self, topic: &str) -> bool {
        self.naming == Naming::Identity && !topic.ends_with(HEARTBEATS_TOPIC)
    }

    /// Alias and upstream name, by the rules of Java's `String.split`: empty tokens at the end
    /// vanish, so that `foo.` has one token; and an empty separator splits between all
    /// characters.
    fn split<'a>(&self, topic: &'a str) -> Option<(&'a str, &'a str)> {
        if self.separator.is_empty() {
            let first = topic.chars().next()?.len_utf8();
            return Some(topic.split_at(first)).filter(|(_, rest)| !rest.is_empty());
        }
        let (source, upstream) = topic.split_once(&self.separator)?;
        upstream
            .split(&self.separator)
            .any(|token| !token.is_empty())
            .then_some((source, upstream))
    }
}

impl Default for ReplicationPolicy {
    fn default() -> Self {
        Self::new()
    }
}
