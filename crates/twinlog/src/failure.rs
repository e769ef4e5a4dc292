//! How a command fails: the message for the person who called it, and the process's exit code.

use std::io::Write as _;
use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    error: anyhow::Error,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What was asked made sense and did not work out.
    Failed,
    /// What was asked can't be done as it is: the call or the file must change.
    Misused,
}

impl Failure {
    /// The call, or a file it names, must change; exit code 2.
    pub fn misused(error: impl Into<anyhow::Error>) -> Self {
        Failure {
            kind: Kind::Misused,
            error: error.into(),
            hint: None,
        }
    }

    /// Adds what the person may do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells the person, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let mut output = std::io::stderr().lock();
        // Whoever does not listen has the exit code.
        let _ = writeln!(output, "error: {:#}", self.error);
        if let Some(hint) = &self.hint {
            let _ = writeln!(output, "hint: {hint}");
        }
        self.code()
    }

    fn code(&self) -> ExitCode {
        match self.kind {
            Kind::Failed => ExitCode::from(1),
            Kind::Misused => ExitCode::from(2),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure {
            kind: Kind::Failed,
            error,
            hint: None,
        }
    }
}
