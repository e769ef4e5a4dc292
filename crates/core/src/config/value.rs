//! What a value may look like, as Kafka's `ConfigDef.parseType` and its validators have it.

use super::flow::BrokerAddress;
use super::keys::{Key, Kind};
use crate::pattern::JavaPattern;

/// Why a value isn't allowed, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

fn refuse(message: String, hint: Option<String>) -> Result<(), ValueError> {
    Err(ValueError { message, hint })
}

/// Whether `text` may stand behind `key`.
pub(super) fn check(key: &Key, text: &str) -> Result<(), ValueError> {
    let trimmed = trim(text);
    let may_be_empty = matches!(
        key.kind,
        Kind::Text | Kind::List | Kind::Patterns | Kind::AnyClass | Kind::Password
    );
    if trimmed.is_empty() && !may_be_empty {
        return refuse(
            "the value is empty".into(),
            Some("write a value or remove the line".into()),
        );
    }
    match key.kind {
        Kind::Boolean => check_boolean(trimmed),
        Kind::Integer(min, max) => check_integer(trimmed, min, max),
        Kind::CountOrDefault(max) if integer(trimmed) != Some(-1) => check_integer(trimmed, 1, max)
            .map_err(|error| ValueError {
                hint: error
                    .hint
                    .map(|hint| format!("{hint}; -1 is the broker's default")),
                ..error
            }),
        Kind::CountOrDefault(_) => Ok(()),
        Kind::Decimal(min, max) => match trimmed.parse::<f64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(()),
            _ => refuse(
                format!("`{trimmed}` is not a number from {min} to {max}"),
                None,
            ),
        },
        Kind::Text | Kind::NonEmpty | Kind::List | Kind::AnyClass | Kind::Password => Ok(()),
        Kind::Patterns => check_patterns(trimmed),
        Kind::Addresses => check_addresses(trimmed),
        Kind::OneOf(choices) if choices.contains(&trimmed) => Ok(()),
        Kind::OneOfAnyCase(choices) if choices.iter().any(|c| c.eq_ignore_ascii_case(trimmed)) => {
            Ok(())
        }
        Kind::OneOf(choices) | Kind::OneOfAnyCase(choices) => refuse(
            format!("`{trimmed}` is none of {}", choices.join(", ")),
            super::suggest::nearest(trimmed, choices.iter().copied())
                .map(|near| format!("did you mean `{near}`?")),
        ),
        Kind::Class(classes) => check_class(trimmed, classes),
    }
}

fn check_boolean(text: &str) -> Result<(), ValueError> {
    if boolean(text).is_some() {
        return Ok(());
    }
    let meant = match text.to_ascii_lowercase().as_str() {
        "yes" | "y" | "on" | "1" | "enabled" | "enable" | "tru" | "ture" => "write `true`",
        "no" | "n" | "off" | "0" | "disabled" | "disable" | "fals" => "write `false`",
        _ => "write `true` or `false`",
    };
    refuse(
        format!("`{text}` is neither true nor false"),
        Some(meant.into()),
    )
}

fn check_integer(text: &str, min: i64, max: i64) -> Result<(), ValueError> {
    match integer(text) {
        Some(number) if (min..=max).contains(&number) => Ok(()),
        Some(number) if number < min => refuse(
            format!("{number} is too small"),
            Some(format!("the smallest value is {min}")),
        ),
        Some(number) => refuse(
            format!("{number} is too large"),
            Some(format!("the largest value is {max}")),
        ),
        None => {
            let unit = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
            let has_unit = unit.len() < text.len() && integer(unit).is_some();
            let hint = has_unit.then(|| "write the number without a unit".to_owned());
            refuse(format!("`{text}` is not a whole number"), hint)
        }
    }
}

fn check_patterns(text: &str) -> Result<(), ValueError> {
    let elements = list(text);
    let Err(error) = JavaPattern::of_list(&elements) else {
        return Ok(());
    };
    let place = match error.position {
        Some(position) => format!(", at position {}", position + 1),
        None => String::new(),
    };
    let hint = if error.reason.contains("for `*`") {
        "patterns are Java regular expressions: `.*` is any name"
    } else if text.contains(['{', '[']) && text.contains(',') {
        "a comma separates patterns, inside of `{..}` and `[..]` as well"
    } else {
        r"patterns are Java regular expressions; `\\.` in the file is a dot that means itself"
    };
    refuse(
        format!("pattern `{text}`: {}{place}", error.reason),
        Some(hint.into()),
    )
}

fn check_addresses(text: &str) -> Result<(), ValueError> {
    let mut none = true;
    for item in list(text).into_iter().filter(|item| !item.is_empty()) {
        none = false;
        if address(item).is_none() {
            return refuse(
                format!("`{item}` is not a host and a port"),
                Some("write `host:9092`, several separated by commas".into()),
            );
        }
    }
    if none {
        return refuse(
            "no address is given".into(),
            Some("write `host:9092`".into()),
        );
    }
    Ok(())
}

fn check_class(text: &str, classes: &[&str]) -> Result<(), ValueError> {
    if classes.contains(&text) {
        return Ok(());
    }
    let simple = |class: &str| class.rsplit('.').next().map(str::to_owned);
    let same = classes.iter().find(|class| simple(class) == simple(text));
    let hint = match same {
        Some(class) => format!("did you mean `{class}`?"),
        None => format!("built in: {}", classes.join(", ")),
    };
    refuse(format!("class `{text}` is not supported"), Some(hint))
}

/// Without what Java's `String.trim` takes off: control characters and blanks.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// Whether all characters may stand in the name of a topic (`Topic.LEGAL_CHARS`).
pub(super) fn is_name(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// `true` or `false` in any case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let text = trim(text);
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A whole number; a sign may stand before it.
pub(super) fn integer(text: &str) -> Option<i64> {
    trim(text).parse().ok()
}

/// The elements of a list: none for an empty text, and empty ones between two commas.
pub(super) fn list(text: &str) -> Vec<&str> {
    let text = trim(text);
    if text.is_empty() {
        return Vec::new();
    }
    let is_blank = |c| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    text.split(',')
        .map(|item| item.trim_matches(is_blank))
        .collect()
}

/// One `host:port`; a protocol before it and brackets around an IPv6 address are taken off, as
/// `Utils.getHost` does.
pub(super) fn address(text: &str) -> Option<BrokerAddress> {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None => host,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-%._:".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return None;
    }
    let port = port.parse().ok().filter(|port| *port > 0)?;
    Some(BrokerAddress {
        host: host.to_owned(),
        port,
    })
}

/// All addresses of a list; what isn't one is left away.
pub(super) fn addresses(text: &str) -> Vec<BrokerAddress> {
    list(text).into_iter().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_kafkas_clients_read_them() {
        let read = |text| address(text).map(|a| a.to_string());

        assert_eq!(read("a:9092").as_deref(), Some("a:9092"));
        assert_eq!(read("PLAINTEXT://a.b-c:1").as_deref(), Some("a.b-c:1"));
        assert_eq!(read("[::1]:9092").as_deref(), Some("[::1]:9092"));
        for wrong in [
            "a",
            "a:",
            ":9092",
            "a:0",
            "a:65536",
            "a:x",
            "a b:1",
            "a:1:",
            "[::1:9092",
            "",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lists_are_split_as_kafka_splits_them() {
        assert!(list("  ").is_empty());
        assert_eq!(list(" a , b,c "), ["a", "b", "c"]);
        assert_eq!(list("a,,b,"), ["a", "", "b", ""]);
    }
}
