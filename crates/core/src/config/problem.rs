//! What is wrong with a file, told so that the reader knows where and what to do.

use std::fmt;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing runs until it is mended.
    Error,
    /// It runs, but probably not as it was meant.
    Warning,
}

/// One thing that is wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The line it stands on, from 1; none if what is wrong is that something isn't there.
    pub line: Option<usize>,
    /// The key as written.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// An error that concerns no line in particular.
    pub fn error(message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Error,
            line: None,
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    /// A warning that concerns no line in particular.
    pub fn warning(message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(message)
        }
    }

    /// The same, about `key` on `line`.
    #[must_use]
    pub fn at(mut self, line: usize, key: &str) -> Self {
        self.line = Some(line);
        self.key = Some(key.to_owned());
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity)?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

fn escaped(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Problems as they are found; each is told once, however many flows it concerns.
#[derive(Debug, Default)]
pub(super) struct Problems(indexmap::IndexSet<Problem>);

impl Problems {
    /// Adds a problem, with control characters escaped: what a file holds must not steer terminals.
    pub(super) fn push(&mut self, mut problem: Problem) {
        problem.message = escaped(problem.message);
        problem.key = problem.key.map(escaped);
        problem.hint = problem.hint.map(escaped);
        self.0.insert(problem);
    }

    pub(super) fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// All of them in the order of lines; those of no line come first.
    pub(super) fn into_sorted(self) -> Vec<Problem> {
        let mut problems: Vec<_> = self.0.into_iter().collect();
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}
