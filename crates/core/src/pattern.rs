//! Regular expressions as Java understands them.

use std::fmt;

/// A list of Java regular expressions that a whole name must match, as MirrorMaker's filters use them.
#[derive(Clone)]
pub struct JavaPattern {
    text: String,
    engine: Option<fancy_regex::Regex>,
}

/// A name for which the pattern came to no answer within its limit of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("match {name:?} against {pattern}: more than {limit} steps")]
pub struct MatchError {
    /// The pattern, as joined from its list.
    pub pattern: String,
    /// The name that was to be matched.
    pub name: String,
    /// The steps that were allowed.
    pub limit: usize,
}

/// A pattern that Java refuses, or that means in Java what we can't honour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PatternError {
    /// What is wrong, or which construct isn't supported.
    pub reason: String,
    /// Where, in characters from the start of the joined pattern; none if nowhere in particular.
    pub position: Option<usize>,
}

impl JavaPattern {
    /// Joins `elements` with `|`, as MirrorMaker does, and compiles the result. No elements: matches nothing.
    pub fn of_list<S: AsRef<str>>(elements: &[S]) -> Result<Self, PatternError> {
        let parts: Vec<&str> = elements.iter().map(AsRef::as_ref).collect();
        let text = parts.join("|");
        let engine = if parts.is_empty() {
            None
        } else {
            let whole = format!(r"\A(?:{text})\z");
            Some(fancy_regex::Regex::new(&whole).map_err(|e| PatternError {
                reason: e.to_string(),
                position: None,
            })?)
        };
        Ok(JavaPattern { text, engine })
    }

    /// The pattern of an empty list, which no name matches.
    pub fn nothing() -> Self {
        JavaPattern {
            text: String::new(),
            engine: None,
        }
    }

    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &str) -> Result<bool, MatchError> {
        let Some(engine) = &self.engine else {
            return Ok(false);
        };
        engine.is_match(name).map_err(|_| MatchError {
            pattern: self.text.clone(),
            name: name.to_owned(),
            limit: 1_000_000,
        })
    }

    /// The pattern as joined from its list.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for JavaPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for JavaPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.engine.is_some() == other.engine.is_some()
    }
}
