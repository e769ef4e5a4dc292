//! What is wrong with single lines: keys that nobody knows, values that can't be, keys that have no
//! effect where they stand.

use std::collections::HashMap;

use super::keys::{Key, Kind, Status, Table, is_secret};
use super::place::{Meaning, Scope, is_credential};
use super::problem::{Problem, Problems};
use super::properties::{Properties, Property};
use super::secret::STARS;
use super::suggest::nearest;
use super::value;
use crate::ids::{ClusterAlias, Flow};

/// Tells what is wrong with each line.
pub(super) fn lines(properties: &Properties, aliases: &[ClusterAlias], problems: &mut Problems) {
    for error in &properties.errors {
        problems.push(Problem {
            line: Some(error.line),
            ..Problem::error(error.reason.to_string()).hint("write a backslash as two: `\\\\`")
        });
    }
    for line in &properties.utf8_lines {
        problems.push(Problem {
            line: Some(*line),
            ..Problem::warning(
                "the line looks like UTF-8, but .properties files are read as ISO-8859-1",
            )
            .hint("write other characters as `\\uXXXX`")
        });
    }
    repeated(properties, problems);
    for entry in &properties.entries {
        line(entry, aliases, problems);
    }
    provided(properties, problems);
}

/// Keys that stand in the file twice: harmless with the same value, otherwise one is not what was
/// meant.
fn repeated(properties: &Properties, problems: &mut Problems) {
    let mut seen: HashMap<&str, &Property> = HashMap::new();
    for entry in &properties.entries {
        let Some(first) = seen.insert(&entry.key, entry) else {
            continue;
        };
        let problem = if first.value == entry.value {
            Problem::warning(format!("the same stands on line {}", first.line))
        } else {
            Problem::error(format!(
                "line {} has another value for the same key",
                first.line
            ))
        };
        problems.push(
            problem
                .at(entry.line, &entry.key)
                .hint("remove one of the two lines"),
        );
    }
}

fn line(entry: &Property, aliases: &[ClusterAlias], problems: &mut Problems) {
    let readings = Scope::readings(&entry.key, aliases);
    let meanings = readings
        .iter()
        .map(|(scope, name)| (scope, scope.meaning(name)));
    // With the aliases `us` and `us.east`, `us.east.bootstrap.servers` is a key of the one and
    // nonsense for the other: the best reading counts.
    let best = meanings.min_by_key(|(_, meaning)| match meaning {
        Meaning::Known(_) => 0,
        Meaning::Family => 1,
        Meaning::Lost { .. } => 2,
        Meaning::Unknown => 3,
    });
    match best {
        Some((scope, Meaning::Known(key))) => known(entry, scope, key, problems),
        Some((_, Meaning::Lost { why, instead })) => problems.push(
            Problem::warning(format!("has no effect here: {why}"))
                .at(entry.line, &entry.key)
                .hint(instead),
        ),
        Some((_, Meaning::Family)) => {}
        Some((_, Meaning::Unknown)) | None => unknown(entry, &readings, aliases, problems),
    }
}

fn known(entry: &Property, scope: &Scope, key: &'static Key, problems: &mut Problems) {
    if let Status::Removed(instead) = key.status {
        let problem = Problem::error("this key was removed in Kafka 4.0 and would be ignored");
        let prefix = entry.key.strip_suffix(key.name).unwrap_or_default();
        let instead = instead.replace("write `", &format!("write `{prefix}"));
        problems.push(problem.at(entry.line, &entry.key).hint(instead));
        return;
    }
    if placeholder(&entry.value).is_some() {
        return;
    }
    if let Err(error) = value::check(key, &entry.value) {
        let secret = is_secret(&entry.key);
        let message = if secret {
            error.message.replace(entry.value.trim(), STARS)
        } else {
            error.message
        };
        let mut problem = Problem::error(message).at(entry.line, &entry.key);
        problem.hint = error.hint;
        if matches!(key.name, "enabled" | "emit.heartbeats.enabled")
            && let Some(hint) = &mut problem.hint
            && hint.contains("`true`")
        {
            hint.push_str("; MirrorMaker 2 would take this for `false` without a word");
        }
        problems.push(problem);
        return;
    }
    if key.name == "replication.policy.separator" && !value::is_name(&entry.value) {
        problems.push(
            Problem::error(format!("no topic can hold `{}` in its name", entry.value))
                .at(entry.line, &entry.key)
                .hint("letters, digits, `.`, `_` and `-` are allowed, without quotes or blanks"),
        );
    }
    status(entry, key, problems);
    traps(entry, scope, key, problems);
}

/// A key that asks for something that isn't done yet is told, and is an error where going on without
/// it would break a promise. Tuning what isn't there harms nobody.
fn status(entry: &Property, key: &Key, problems: &mut Problems) {
    if matches!(key.name, "source.cluster.alias" | "target.cluster.alias") {
        problems.push(
            Problem::warning("has no effect: a flow's aliases are those in its name")
                .at(entry.line, &entry.key)
                .hint("remove the line"),
        );
    }
    let Status::Later(what) = key.status else {
        return;
    };
    let text = value::trim(&entry.value);
    // Transforms may be what masks or drops data that must not leave the source.
    let promise = match key.name {
        "transforms" if !text.is_empty() => Some((
            "transforms are not supported so far",
            "remove the line if records may be mirrored as they are",
        )),
        "exactly.once.source.support" if text.eq_ignore_ascii_case("enabled") => Some((
            "exactly-once delivery by transactions is not supported so far",
            "remove the line: without it records are neither lost nor doubled either",
        )),
        _ => None,
    };
    if let Some((message, hint)) = promise {
        problems.push(
            Problem::error(message)
                .at(entry.line, &entry.key)
                .hint(hint),
        );
        return;
    }
    let is_default = key
        .default
        .is_some_and(|default| default.eq_ignore_ascii_case(text));
    let asks = match key.kind {
        Kind::Boolean => value::boolean(text) == Some(true),
        Kind::OneOf(_) | Kind::OneOfAnyCase(_) | Kind::List => !text.is_empty(),
        _ => false,
    };
    if asks && !is_default && !is_credential(key) {
        problems.push(
            Problem::warning(format!("has no effect so far; it comes with {what}"))
                .at(entry.line, &entry.key),
        );
    }
}

/// Lines that are right, but do not do what they look like.
fn traps(entry: &Property, scope: &Scope, key: &Key, problems: &mut Problems) {
    let mut warn = |message: &str, hint: &str| {
        problems.push(
            Problem::warning(message)
                .at(entry.line, &entry.key)
                .hint(hint),
        );
    };
    let is_top = *scope == Scope::Top;
    match key.name {
        "bootstrap.servers" if is_top => warn(
            "these addresses are used for every cluster that has none of its own",
            "write `<cluster>.bootstrap.servers`",
        ),
        "enabled" if is_top => warn(
            "enables every flow that has a worker, in both directions",
            "write `<source>-><target>.enabled`",
        ),
        "name" if is_top => warn(
            "gives all connectors of all flows one name",
            "remove the line, or positions stored under the usual names are not found",
        ),
        "enabled" | "emit.heartbeats.enabled" if value::trim(&entry.value) != entry.value => warn(
            "the value ends in blanks, so MirrorMaker 2 takes it for `false`; here it counts as written",
            "remove the blanks at the end of the line",
        ),
        _ => {}
    }
}

fn unknown(
    entry: &Property,
    readings: &[(Scope, &str)],
    aliases: &[ClusterAlias],
    problems: &mut Problems,
) {
    if let Some(meant) = flow_meant(entry, aliases) {
        let problem = Problem::warning("nobody knows this key; it has no effect");
        problems.push(problem.at(entry.line, &entry.key).hint(format!(
            "did you mean `{meant}`? A key ends at the first blank, `=` or `:`"
        )));
        return;
    }
    if let Some(problem) = unknown_alias(&entry.key, aliases) {
        problems.push(problem.at(entry.line, &entry.key));
        return;
    }
    let mut problem =
        Problem::warning("nobody knows this key; it has no effect").at(entry.line, &entry.key);
    problem.hint = readings
        .iter()
        .find_map(|(scope, name)| scope.suggestion(name))
        .map(|near| format!("did you mean `{near}`?"));
    problems.push(problem);
}

/// The key of a flow that somebody wrote with blanks or another arrow: `us -> eu.enabled = true` is
/// the key `us` with the rest for a value.
fn flow_meant(entry: &Property, aliases: &[ClusterAlias]) -> Option<String> {
    let line = format!("{}{}", entry.key, entry.value);
    [&entry.key, &line].into_iter().find_map(|text| {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        aliases.iter().find_map(|source| {
            let rest = text.strip_prefix(source.as_str())?;
            let rest = rest.strip_prefix(['-', '=', '>'])?.trim_start_matches('>');
            aliases
                .iter()
                .filter(|target| *target != source)
                .find_map(|target| {
                    let rest = rest.strip_prefix(target.as_str())?.strip_prefix('.')?;
                    let name = rest.split(['=', ':']).next()?;
                    let flow = Flow {
                        source: source.clone(),
                        target: target.clone(),
                    };
                    let meant = format!("{flow}.{name}");
                    (Scope::Flow(flow).meaning(name) != Meaning::Unknown).then_some(meant)
                })
        })
    })
}

/// A key that would be known behind an alias, if the alias were one.
///
/// A flow of an unknown cluster, or a name that is nearly one, is a mistake. Settings of some other
/// cluster are left alone, as Java does: files keep those of clusters that were taken out of
/// `clusters`, and keys of other programs.
fn unknown_alias(key: &str, aliases: &[ClusterAlias]) -> Option<Problem> {
    let known: Vec<&str> = aliases.iter().map(ClusterAlias::as_str).collect();
    let is_flow = key.contains("->");
    let unknown = if let Some((source, rest)) = key.split_once("->") {
        if known.contains(&source) {
            let same = rest
                .strip_prefix(source)
                .is_some_and(|rest| rest.starts_with('.'));
            if same {
                return Some(
                    Problem::error(format!("a flow from `{source}` to itself"))
                        .hint("source and target must be two clusters"),
                );
            }
            rest.split('.')
                .next()
                .filter(|target| !known.contains(target))?
        } else {
            source
        }
    } else {
        let (alias, _) = key
            .match_indices('.')
            .map(|(at, _)| key.split_at(at))
            .find(|(alias, rest)| {
                let scope = Scope::Cluster(ClusterAlias::from(*alias));
                matches!(scope.meaning(&rest[1..]), Meaning::Known(_))
            })?;
        alias
    };
    let message = format!("`{unknown}` is not one of the clusters");
    let problem = match nearest(unknown, known.iter().copied()) {
        Some(near) => Problem::error(message).hint(format!("did you mean `{near}`?")),
        None => {
            let hint = format!("add it to `clusters`, which holds {}", known.join(", "));
            match is_flow {
                true => Problem::error(message).hint(hint),
                false => Problem::warning(format!("{message}; this has no effect")).hint(hint),
            }
        }
    };
    Some(problem)
}

/// Values that config providers would have to fill in.
fn provided(properties: &Properties, problems: &mut Problems) {
    let providers: Vec<&str> = properties
        .entries
        .iter()
        .filter(|entry| entry.key == "config.providers" || entry.key.ends_with(".config.providers"))
        .flat_map(|entry| value::list(&entry.value))
        .collect();
    for entry in &properties.entries {
        let Some(placeholder) = placeholder(&entry.value) else {
            continue;
        };
        let provider = placeholder.split(':').next().unwrap_or_default();
        let message = format!("`${{{placeholder}}}` needs the config provider `{provider}`");
        let hint = if providers.contains(&provider) {
            "config providers are not supported so far: write the value itself"
        } else {
            "there is no such provider in `config.providers`, and none are supported so far: write the value itself"
        };
        problems.push(
            Problem::error(message)
                .at(entry.line, &entry.key)
                .hint(hint),
        );
    }
}

/// What stands in the first `${provider:..}` of a value (`ConfigTransformer`).
fn placeholder(value: &str) -> Option<&str> {
    value
        .match_indices("${")
        .filter_map(|(at, start)| value[at + start.len()..].split_once('}'))
        .map(|(inside, _)| inside)
        .find(|inside| inside.contains(':'))
}

/// Clusters that a file without `clusters` seems to have, from the keys that name addresses.
pub(super) fn likely_aliases(properties: &Properties) -> Vec<String> {
    let addresses = properties.entries.iter();
    addresses
        .filter_map(|entry| entry.key.strip_suffix(".bootstrap.servers"))
        .filter(|alias| !alias.contains("->") && Table::Driver.find(alias).is_none())
        .map(str::to_owned)
        .collect()
}
