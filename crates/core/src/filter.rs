//! What is wanted: topics, groups and topic settings, by the include and exclude lists of a flow.
//!
//! The built-in filters of MirrorMaker 2 (`DefaultTopicFilter`, `DefaultGroupFilter`,
//! `DefaultConfigPropertyFilter`). A name must match as a whole; exclusion wins.

use crate::pattern::{JavaPattern, MatchError};

/// Includes and excludes of names; used for topics and for consumer groups.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFilter {
    /// Names that are wanted (`topics`, `groups`).
    pub include: JavaPattern,
    /// Names that are not, though included (`topics.exclude`, `groups.exclude`).
    pub exclude: JavaPattern,
}

/// Which topics a flow replicates.
pub type TopicFilter = NameFilter;

/// Which consumer groups a flow translates.
pub type GroupFilter = NameFilter;

impl NameFilter {
    /// Whether `name` is included and not excluded.
    pub fn accepts(&self, name: &str) -> Result<bool, MatchError> {
        Ok(self.include.matches(name)? && !self.exclude.matches(name)?)
    }
}

/// Which settings of a topic are copied to its remote topic.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigPropertyFilter {
    /// Settings that are not copied (`config.properties.exclude`).
    pub exclude: JavaPattern,
    /// Which cluster's defaults count (`use.defaults.from`).
    pub defaults_from: DefaultsFrom,
}

/// Whose default a remote topic gets for a setting that the source topic leaves at its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultsFrom {
    /// The source's, written explicitly on the remote topic.
    Source,
    /// The target's, by leaving the setting away.
    Target,
}

impl ConfigPropertyFilter {
    /// Whether the setting `property` is copied.
    pub fn accepts(&self, property: &str) -> Result<bool, MatchError> {
        Ok(!self.exclude.matches(property)?)
    }
}
