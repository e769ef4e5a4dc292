//! One log line, before it is text or JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tracing::Level;

/// Named values in the order in which they were set; a later value replaces an earlier one of its
/// name.
#[derive(Debug, Default)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Sets `name`.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets all of `other`.
    pub fn extend(&mut self, other: &Fields) {
        for (name, value) in &other.0 {
            self.set(name, value.clone());
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(index).1)
    }
}

/// What happened, when, and where.
pub struct Line {
    time: String,
    level: Level,
    module: &'static str,
    message: String,
    flow: Option<Value>,
    topic: Option<Value>,
    partition: Option<Value>,
    fields: Fields,
}

/// A line as text, in the parts that are coloured differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The time, without a blank behind it.
    pub time: String,
    /// How urgent it is; none where the whole line is in `rest`.
    pub level: Option<Level>,
    /// Everything else.
    pub rest: String,
}

impl Line {
    /// A line from an event's fields and those of its spans.
    pub fn new(time: String, level: Level, module: &'static str, mut fields: Fields) -> Self {
        Line {
            time,
            level,
            module,
            message: fields
                .take("message")
                .map(|text| plain(&text))
                .unwrap_or_default(),
            flow: fields.take("flow"),
            topic: fields.take("topic"),
            partition: fields.take("partition"),
            fields,
        }
    }

    /// For people.
    pub fn text(self) -> Text {
        let mut rest = match self.place() {
            Some(place) => format!("[{}] ", printable(&place)),
            None => String::new(),
        };
        rest.push_str(&printable(&self.message));
        for (name, value) in &self.fields.0 {
            // Writing to a String can't fail.
            let _ = write!(rest, " {name}={}", word(&plain(value)));
        }
        Text {
            time: self.time,
            level: Some(self.level),
            rest,
        }
    }

    /// For programs.
    pub fn json(self) -> Text {
        let mut object = Map::new();
        object.insert("time".to_owned(), self.time.into());
        object.insert("level".to_owned(), self.level.as_str().into());
        object.insert("module".to_owned(), self.module.into());
        for (name, value) in [
            ("flow", self.flow),
            ("topic", self.topic),
            ("partition", self.partition),
        ] {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        }
        object.insert("message".to_owned(), self.message.into());
        for (name, value) in self.fields.0 {
            object.insert(name.to_owned(), value);
        }
        Text {
            time: String::new(),
            level: None,
            rest: Value::Object(object).to_string(),
        }
    }

    /// `us->eu orders-3`, or what is known of it.
    fn place(&self) -> Option<String> {
        let topic = self.topic.as_ref().map(plain);
        let partition = self.partition.as_ref().map(plain);
        let partition = match (topic, partition) {
            (Some(topic), Some(partition)) => Some(format!("{topic}-{partition}")),
            (topic, partition) => topic.or(partition),
        };
        match (self.flow.as_ref().map(plain), partition) {
            (Some(flow), Some(partition)) => Some(format!("{flow} {partition}")),
            (flow, partition) => flow.or(partition),
        }
    }
}

impl Text {
    /// Without colours.
    pub fn plain(&self) -> String {
        match self.level {
            Some(level) => format!("{} {level:5} {}", self.time, self.rest),
            None => self.rest.clone(),
        }
    }

    /// With colours for a terminal.
    pub fn coloured(&self) -> String {
        match self.level {
            Some(level) => {
                let Text { time, rest, .. } = self;
                format!(
                    "\x1b[2m{time}\x1b[0m {}{level:5}\x1b[0m {rest}",
                    colour(level)
                )
            }
            None => self.rest.clone(),
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[2m",
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value behind `key=`: quoted where it would not be one word.
fn word(text: &str) -> String {
    if text.is_empty() || text.contains([' ', '"', '=']) || text.contains(char::is_control) {
        format!("{text:?}")
    } else {
        text.to_owned()
    }
}

/// Text from anywhere, with its control characters written out (`\n`).
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(fields: &[(&'static str, Value)]) -> Line {
        let mut set = Fields::default();
        for (name, value) in fields {
            set.set(name, value.clone());
        }
        let time = "2026-12-01T02:58:26.123Z".to_owned();
        Line::new(time, Level::INFO, "twinlog", set)
    }

    #[test]
    fn a_line_names_its_partition_before_the_message_and_its_values_after() {
        let line = line(&[
            ("flow", json!("us->eu")),
            ("topic", json!("orders")),
            ("partition", json!(3)),
            ("message", json!("leader moved")),
            ("from", json!(1)),
            ("reason", json!("broker 1 is away")),
        ]);

        let expected = "2026-12-01T02:58:26.123Z INFO  [us->eu orders-3] leader moved from=1 \
                        reason=\"broker 1 is away\"";
        assert_eq!(line.text().plain(), expected);
    }

    #[test]
    fn an_inner_value_replaces_the_outer_one_of_its_name() {
        let line = line(&[
            ("flow", json!("a->b")),
            ("flow", json!("b->a")),
            ("message", json!("up")),
        ]);

        assert_eq!(line.text().rest, "[b->a] up");
    }

    #[test]
    fn control_characters_can_neither_forge_a_line_nor_steer_a_terminal() {
        let forged = "x\nERROR \u{1b}[2J";
        let fields = [("topic", forged), ("message", forged), ("name", forged)];
        let line = line(&fields.map(|(name, value)| (name, json!(value))));

        let text = line.text().plain();

        assert!(!text.contains(char::is_control), "{text:?}");
    }

    #[test]
    fn json_is_one_flat_object_that_keeps_numbers() {
        let line = line(&[
            ("partition", json!(3)),
            ("message", json!("two\nlines")),
            ("records", json!(42)),
            // The alias of a cluster, which the module must not hide.
            ("target", json!("eu")),
        ]);

        let expected = r#"{"time":"2026-12-01T02:58:26.123Z","level":"INFO","module":"twinlog","partition":3,"message":"two\nlines","records":42,"target":"eu"}"#;
        assert_eq!(line.json().plain(), expected);
    }
}
