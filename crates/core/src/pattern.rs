//! Regular expressions as Java understands them, on an engine of ours.
//!
//! Filters hold patterns that were written for `java.util.regex`. [`translate`] reads that dialect
//! and writes the same language in the one of `fancy-regex`, which hands everything without
//! look-around, back-references and possessive parts to the linear `regex`. What can't be said
//! there is refused by name: a pattern never quietly means something else.
//!
//! Differences that remain, none of them in names of topics: `\b` goes by ASCII words, as since
//! JDK 19; the tables of Unicode may be of another version than the JVM's.

mod alternatives;
mod class;
mod property;
mod reader;
mod translate;

use std::fmt;

/// How often a pattern that needs backtracking may go back for one name.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// A list of Java regular expressions that a whole name must match, as MirrorMaker's filters use
/// them.
#[derive(Clone)]
pub struct JavaPattern {
    text: String,
    engine: Option<fancy_regex::Regex>,
}

/// A name for which the pattern came to no answer within its limit of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("match {name:?} against {pattern}: more than {limit} steps back")]
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
    /// Joins `elements` with `|`, as MirrorMaker does, and compiles the result. No elements:
    /// matches nothing.
    ///
    /// Nothing is put around an element: an inline flag works on in the later ones, and `\1` counts
    /// the groups of all.
    pub fn of_list<S: AsRef<str>>(elements: &[S]) -> Result<Self, PatternError> {
        if elements.is_empty() {
            return Ok(Self::nothing());
        }
        let parts: Vec<&str> = elements.iter().map(AsRef::as_ref).collect();
        let text = parts.join("|");
        let translated = translate::translate(&text)?;
        let engine = fancy_regex::RegexBuilder::new(&format!(r"\A(?:{translated})\z"))
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map_err(|error| PatternError {
                reason: engine_error(&error),
                position: None,
            })?;
        Ok(JavaPattern {
            text,
            engine: Some(engine),
        })
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
            limit: BACKTRACK_LIMIT,
        })
    }

    /// Whether it is sure that no name matches both, which is told from how names begin.
    pub fn is_disjoint(&self, other: &JavaPattern) -> bool {
        let others = other.alternatives();
        let mut own = self.alternatives().into_iter();
        !own.any(|own| others.iter().any(|other| own.may_share(other)))
    }

    /// The alternatives that are written like plain names, as these names.
    pub fn names(&self) -> Vec<String> {
        let alternatives = self.alternatives().into_iter();
        alternatives.filter_map(|own| own.name).collect()
    }

    /// Whether only some names match that are known one by one: those of [`JavaPattern::names`].
    pub fn is_names_only(&self) -> bool {
        self.alternatives().iter().all(|own| own.whole)
    }

    fn alternatives(&self) -> Vec<alternatives::Alternative> {
        match self.engine {
            Some(_) => alternatives::of(&self.text),
            None => Vec::new(),
        }
    }

    /// The pattern as joined from its list.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The engine's own words and positions are about the translation and would mislead.
fn engine_error(error: &fancy_regex::Error) -> String {
    use fancy_regex::{CompileError, Error};
    match error {
        Error::CompileError(error) => match **error {
            CompileError::LookBehindNotConst | CompileError::VariableLookBehindRequiresFeature => {
                "look-behind of variable length is not supported".to_owned()
            }
            CompileError::InnerError(_) | CompileError::PatternTooComplex => {
                "a pattern of this size is not supported".to_owned()
            }
            _ => format!("not supported: {error}"),
        },
        other => format!("not supported: {other}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_elements_match_nothing_and_an_empty_one_the_empty_name() {
        let nothing = JavaPattern::of_list::<&str>(&[]).unwrap();
        let empty = JavaPattern::of_list(&[""]).unwrap();

        assert_eq!(nothing.matches(""), Ok(false));
        assert_eq!(empty.matches(""), Ok(true));
        assert_eq!(empty.matches("a"), Ok(false));
    }

    #[test]
    fn a_match_that_takes_too_long_is_an_error_and_not_a_no() {
        let pattern = JavaPattern::of_list(&[r"(?:(a+)\1?)+b"]).unwrap();

        let error = pattern.matches(&"a".repeat(60)).unwrap_err();

        assert_eq!(error.limit, BACKTRACK_LIMIT);
    }

    #[test]
    fn an_inline_flag_works_on_in_later_elements() {
        let pattern = JavaPattern::of_list(&["a", "(?i)b", "c"]).unwrap();

        let matching: Vec<_> = ["a", "A", "b", "B", "c", "C"]
            .into_iter()
            .filter(|n| pattern.matches(n).unwrap())
            .collect();
        assert_eq!(matching, ["a", "b", "B", "c", "C"]);
    }

    #[test]
    fn an_error_says_what_and_where() {
        let error = JavaPattern::of_list(&["a", r"b\y"]).unwrap_err();

        assert_eq!(error.position, Some(4));
        assert_eq!(error.reason, r"`\y` is no escape");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in r"[ab()\[\]{}|?*+\\^$.&:=!<>,\-0-9QEpPLdwsbBkixnuc]{0,30}", name in "[ab.]{0,5}") {
            if let Ok(pattern) = JavaPattern::of_list(&[text]) {
                let _ = pattern.matches(&name);
            }
        }
    }
}
