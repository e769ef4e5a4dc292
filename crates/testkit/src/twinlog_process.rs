//! The real `twinlog` binary under test.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::ScratchDir;
use crate::process::{ManagedProcess, Signal, guarded};

/// A clean stop is bounded by the program itself; this is more.
const STOP: Duration = Duration::from_secs(60);
/// The level stands among the first words of a log line: behind the time.
const WORDS_BEFORE_LEVEL: usize = 2;

/// A running `twinlog`, whose log must stay free of unannounced warnings.
#[derive(Debug)]
pub struct TwinlogProcess {
    process: ManagedProcess,
    announced: Vec<String>,
    _scratch: ScratchDir,
}

impl TwinlogProcess {
    /// Runs `twinlog run` on this text of an `mm2.properties`; `binary` is
    /// `env!("CARGO_BIN_EXE_twinlog")` of the test's own crate.
    ///
    /// # Errors
    /// When the binary can't be run.
    pub fn run(binary: impl AsRef<Path>, properties: &str) -> Result<Self> {
        Self::run_with(binary, properties, &[])
    }

    /// The same with more words on the command line.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with(binary: impl AsRef<Path>, properties: &str, words: &[&str]) -> Result<Self> {
        let scratch = ScratchDir::new("twinlog")?;
        let file = scratch.path().join("mm2.properties");
        fs::write(&file, properties).context("write mm2.properties")?;
        let mut command = guarded(binary.as_ref());
        command
            .arg("run")
            .arg(file)
            .args(words)
            .current_dir(scratch.path())
            .env_remove("RUST_LOG");
        let process = ManagedProcess::spawn("twinlog", command, &scratch.path().join("log"))?;
        Ok(Self {
            process,
            announced: Vec::new(),
            _scratch: scratch,
        })
    }

    /// Announces warnings and errors that contain this text.
    #[must_use]
    pub fn expecting(mut self, text: &str) -> Self {
        self.announced.push(text.to_owned());
        self
    }

    /// The process: its id, its log, signals, waiting for what it should bring about.
    pub fn process(&mut self) -> &mut ManagedProcess {
        &mut self.process
    }

    /// Asks it to stop (SIGTERM) and checks that it did so with exit code 0 and without complaint.
    ///
    /// # Errors
    /// When it didn't; the message has what it said.
    pub fn stop(mut self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        let status = self.wait(STOP)?;
        ensure!(status.success(), "{status}\n{}", self.process.log_tail());
        Ok(())
    }

    /// Waits for its end and checks that it ended without complaint.
    ///
    /// # Errors
    /// When it still runs after `within`, or its log has warnings nobody announced.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let status = self.process.wait(within)?;
        self.check_log()?;
        Ok(status)
    }

    /// Kills it as a crash does, and checks that it had not complained.
    ///
    /// # Errors
    /// When its log has warnings nobody announced.
    pub fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.check_log()
    }

    /// Lets it stand still (SIGSTOP), as a machine that hangs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn freeze(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets it go on after [`Self::freeze`].
    ///
    /// # Errors
    /// When it has ended.
    pub fn thaw(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Checks that the log has no warning or error that wasn't announced.
    ///
    /// # Errors
    /// The lines.
    pub fn check_log(&self) -> Result<()> {
        let log = self.process.log();
        let unexpected = complaints(&log, &self.announced);
        ensure!(
            unexpected.is_empty(),
            "twinlog complained:\n{}",
            unexpected.join("\n")
        );
        Ok(())
    }
}

/// Lines at WARN or ERROR, and panics, that contain none of the announced texts.
fn complaints<'log>(log: &'log str, announced: &[String]) -> Vec<&'log str> {
    let is_complaint = |line: &&str| {
        let mut words = line.split_whitespace().take(WORDS_BEFORE_LEVEL);
        words.any(|word| word == "WARN" || word == "ERROR") || line.contains("panicked at")
    };
    let is_announced = |line: &&str| announced.iter().any(|text| line.contains(text.as_str()));
    log.lines()
        .filter(is_complaint)
        .filter(|line| !is_announced(line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_counts_as_a_complaint_unless_it_was_announced() {
        let log = "2026-01-01T00:00:00Z  INFO run: started, no WARN here\n\
                   2026-01-01T00:00:01Z  WARN run: connection lost broker=1\n\
                   2026-01-01T00:00:02Z ERROR run: out of range\n";

        let found = complaints(log, &["connection lost".to_owned()]);

        assert_eq!(found, ["2026-01-01T00:00:02Z ERROR run: out of range"]);
    }
}
