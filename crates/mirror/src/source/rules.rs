//! What a target topic takes, read from its settings.

use twinlog_core::ids::Topic;
use twinlog_kafka::admin::{ConfigEntry, ConfigResource, describe_configs};
use twinlog_kafka::batch::Compression;
use twinlog_kafka::client::Client;
use twinlog_kafka::error::{Class, Error, Result};

use crate::pipeline::planner::Rules;

/// The default of `max.message.bytes`: 1 MiB and a batch's overhead (`LogConfig`).
const BATCH_BYTES_DEFAULT: usize = (1 << 20) + 12;

/// What the user wants, whatever the topic takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RulesConfig {
    /// The codec for everything (`producer.compression.type`), if one is set.
    pub recompress: Option<Compression>,
    /// The largest request (`producer.max.request.size`), if one is set.
    pub request_bytes_max: Option<usize>,
}

impl RulesConfig {
    /// The rules for a topic with these settings. What cannot be read counts as Kafka's default.
    pub fn rules(&self, settings: &[ConfigEntry]) -> Rules {
        let value = |name: &str| {
            let entry = settings.iter().find(|entry| entry.name == name)?;
            entry.value.as_deref()
        };
        let limit = value("max.message.bytes").and_then(|bytes| bytes.parse().ok());
        let limit = limit.unwrap_or(BATCH_BYTES_DEFAULT);
        Rules {
            batch_bytes_max: self.request_bytes_max.map_or(limit, |most| most.min(limit)),
            recompress: self.recompress,
            target_stamps: value("message.timestamp.type") == Some("LogAppendTime"),
        }
    }

    /// Asks the target for the settings of a topic; `None` if there is no such topic.
    ///
    /// # Errors
    /// Those of reaching the cluster. A missing permission is none: Kafka's defaults are taken
    /// then, and what the topic does not take is refused later.
    pub async fn of_topic(&self, target: &Client, topic: &Topic) -> Result<Option<Rules>> {
        let resource = ConfigResource::Topic(topic.clone());
        let mut described = describe_configs(target, std::slice::from_ref(&resource)).await?;
        match described.remove(&resource) {
            None => Ok(None),
            Some(Ok(settings)) => Ok(Some(self.rules(&settings))),
            Some(Err(error)) => match error.class() {
                Class::Authorization => Ok(Some(self.rules(&[]))),
                Class::RefreshMetadata => Ok(None),
                _ => Err::<Option<Rules>, Error>(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_kafka::admin::ConfigSource;

    fn setting(name: &str, value: &str) -> ConfigEntry {
        ConfigEntry {
            name: name.into(),
            value: Some(value.into()),
            source: ConfigSource::Default,
            read_only: false,
            sensitive: false,
        }
    }

    #[test]
    fn the_topic_limits_a_batch_unless_the_user_limits_it_more() {
        let topic = [setting("max.message.bytes", "3000")];
        let limited = |request_bytes_max, settings: &[ConfigEntry]| {
            let config = RulesConfig {
                request_bytes_max,
                ..RulesConfig::default()
            };
            config.rules(settings).batch_bytes_max
        };

        assert_eq!(limited(None, &topic), 3_000);
        assert_eq!(limited(Some(2_000), &topic), 2_000);
        assert_eq!(limited(Some(4_000), &topic), 3_000);
        assert_eq!(limited(None, &[]), 1_048_588);
    }

    #[test]
    fn a_topic_that_stamps_records_itself_is_known_by_its_setting() {
        let stamps = |value| {
            RulesConfig::default()
                .rules(&[setting("message.timestamp.type", value)])
                .target_stamps
        };

        assert!(stamps("LogAppendTime"));
        assert!(!stamps("CreateTime"));
    }
}
