//! What the process says of itself, once a second if it is asked to.

use anyhow::{Context as _, Result};
use testkit::TwinlogProcess;

use crate::flow::PATIENCE;

/// A process whose log and status a test looks at.
pub trait Watched {
    /// Waits until the log is as wanted.
    fn log_eventually(&mut self, holds: impl FnMut(&str) -> Result<()>) -> Result<()>;

    /// The newest status line of the flow.
    fn status_line(&mut self) -> Result<String>;
}

impl Watched for TwinlogProcess {
    fn log_eventually(&mut self, mut holds: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let log = self.process().log_path().to_owned();
        self.process()
            .eventually(PATIENCE, || holds(&std::fs::read_to_string(&log)?))
    }

    fn status_line(&mut self) -> Result<String> {
        let log = self.process().log();
        let mut lines = log.lines().rev();
        let line = lines.find(|line| line.contains(" mirroring records_per_s="));
        line.map(str::to_owned).context("no status line yet")
    }
}

/// The number behind `name` in a status line, 0 if it is left out.
pub fn number(line: &str, name: &str) -> Result<u64> {
    let words = line.split_whitespace();
    match words.filter_map(|word| word.strip_prefix(name)).next() {
        Some(number) => number.parse().with_context(|| format!("{name} in {line}")),
        None => Ok(0),
    }
}

/// What the newest status says that is complete.
pub fn newest_status(log: &str) -> Result<&str> {
    let mut statuses = log.rsplit(" mirroring records_per_s=").skip(1);
    statuses.next().context("no status yet")
}
