//! Which topics must be created or grown on the target, and with which settings.
//!
//! Nothing is ever shrunk or deleted: a topic that leaves the source keeps its copy.

use std::collections::HashMap;

use crate::filter::{ConfigPropertyFilter, DefaultsFrom};
use crate::ids::Topic;
use crate::pattern::MatchError;

/// The longest topic name that brokers accept
/// (`org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH`).
pub const NAME_LENGTH_MAX: usize = 249;

/// A topic that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTopic {
    /// Its name on the source.
    pub name: Topic,
    /// Its name on the target.
    pub remote: Topic,
    /// How many partitions it has.
    pub partitions: i32,
}

/// One thing to do on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicChange {
    /// The copy does not exist: make it, with the settings of [`creation_settings`].
    Create(SourceTopic),
    /// The copy has fewer partitions than the source.
    Grow {
        /// The topic.
        topic: SourceTopic,
        /// How many partitions the copy has now.
        from: i32,
    },
    /// The copy cannot exist; the topic is not mirrored.
    Refuse(SourceTopic, Refusal),
}

/// Why a topic cannot have a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// With the source's alias before it, the name is longer than brokers allow.
    #[error("the name on the target would have {0} characters and brokers take {NAME_LENGTH_MAX}")]
    NameTooLong(usize),
}

impl Refusal {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Refusal::NameTooLong(_) => {
                "leave the topic out (topics.exclude), shorten the alias, or use IdentityReplicationPolicy"
            }
        }
    }
}

/// Compares the mirrored topics with the partition counts of the target's topics.
pub fn topics(source: &[SourceTopic], target: &HashMap<Topic, i32>) -> Vec<TopicChange> {
    source
        .iter()
        .filter_map(|topic| match target.get(&topic.remote) {
            Some(has) if *has >= topic.partitions => None,
            Some(has) => Some(TopicChange::Grow {
                topic: topic.clone(),
                from: *has,
            }),
            None if topic.remote.len() > NAME_LENGTH_MAX => Some(TopicChange::Refuse(
                topic.clone(),
                Refusal::NameTooLong(topic.remote.len()),
            )),
            None => Some(TopicChange::Create(topic.clone())),
        })
        .collect()
}

/// One setting of a topic, as DescribeConfigs answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSetting {
    /// Its key.
    pub name: String,
    /// Its value; sensitive ones come without.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: SettingOrigin,
    /// Nobody can set it.
    pub read_only: bool,
    /// It is a secret.
    pub sensitive: bool,
}

/// Where a setting's value comes from (`ConfigEntry.ConfigSource`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Set on the topic.
    Topic,
    /// Set at run time, for one broker or all of them.
    DynamicBroker,
    /// Written in the broker's own file.
    StaticBroker,
    /// Kafka's default.
    Default,
    /// Any other origin a newer broker may name.
    Other,
}

/// The settings a new copy is made with (`MirrorSourceConnector.createNewTopics`): what is set on
/// the source, or everything where the user wants the source's defaults; nothing read-only, secret,
/// excluded by the filter, or out of a broker's own file, which speaks of that cluster's machines.
pub fn creation_settings(
    source: &[TopicSetting],
    filter: &ConfigPropertyFilter,
) -> Result<Vec<(String, String)>, MatchError> {
    let mut settings = Vec::new();
    for setting in source {
        let wanted = match setting.origin {
            SettingOrigin::StaticBroker => false,
            SettingOrigin::Default => filter.defaults_from == DefaultsFrom::Source,
            SettingOrigin::Topic | SettingOrigin::DynamicBroker | SettingOrigin::Other => true,
        };
        let Some(value) = &setting.value else {
            continue;
        };
        if wanted && !setting.read_only && !setting.sensitive && filter.accepts(&setting.name)? {
            settings.push((setting.name.clone(), value.clone()));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::JavaPattern;

    fn topic(name: &str, partitions: i32) -> SourceTopic {
        SourceTopic {
            name: name.into(),
            remote: format!("us.{name}").into(),
            partitions,
        }
    }

    #[test]
    fn only_what_is_missing_is_changed_and_nothing_shrinks() {
        let source = [
            topic("new", 3),
            topic("grown", 4),
            topic("same", 2),
            topic("shrunk", 1),
        ];
        let target = HashMap::from([
            ("us.grown".into(), 1),
            ("us.same".into(), 2),
            ("us.shrunk".into(), 5),
            ("us.gone".into(), 7),
        ]);

        let expected = [
            TopicChange::Create(topic("new", 3)),
            TopicChange::Grow {
                topic: topic("grown", 4),
                from: 1,
            },
        ];
        assert_eq!(topics(&source, &target), expected);
    }

    #[test]
    fn a_name_too_long_for_the_target_is_refused_unless_the_copy_is_there() {
        let longest = topic(&"n".repeat(246), 1);
        let longer = topic(&"n".repeat(247), 1);

        let refused = TopicChange::Refuse(longer.clone(), Refusal::NameTooLong(250));
        assert_eq!(
            topics(&[longest.clone(), longer], &HashMap::new()),
            [TopicChange::Create(longest), refused]
        );
    }

    #[test]
    fn a_new_copy_gets_the_settings_that_java_gives_it() {
        let setting = |name: &str, origin| TopicSetting {
            name: name.into(),
            value: Some("v".into()),
            origin,
            read_only: false,
            sensitive: false,
        };
        let source = [
            setting("cleanup.policy", SettingOrigin::Topic),
            setting("min.insync.replicas", SettingOrigin::Topic),
            setting("retention.ms", SettingOrigin::DynamicBroker),
            setting("segment.bytes", SettingOrigin::StaticBroker),
            setting("flush.ms", SettingOrigin::Default),
            TopicSetting {
                read_only: true,
                ..setting("a", SettingOrigin::Topic)
            },
            TopicSetting {
                sensitive: true,
                ..setting("b", SettingOrigin::Topic)
            },
            TopicSetting {
                value: None,
                ..setting("c", SettingOrigin::Topic)
            },
        ];
        let names = |defaults_from| {
            let filter = ConfigPropertyFilter {
                exclude: JavaPattern::of_list(&["min\\.insync\\.replicas"]).unwrap(),
                defaults_from,
            };
            let settings = creation_settings(&source, &filter).unwrap();
            settings
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };

        assert_eq!(
            names(DefaultsFrom::Target),
            ["cleanup.policy", "retention.ms"]
        );
        assert_eq!(
            names(DefaultsFrom::Source),
            ["cleanup.policy", "retention.ms", "flush.ms"]
        );
    }
}
