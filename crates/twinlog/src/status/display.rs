//! Chooses how the status is shown: a live table where a person watches, log lines elsewhere.

use std::convert::Infallible;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;
use twinlog_mirror::flow::FlowWatch;

use super::lines;
use super::meter::Meter;
use super::screen::{self, Screen};
use super::view::{self, View};
use crate::logging::LogOutput;
use crate::stop::Stop;

/// Twelve lines an hour: a healthy hour of a few flows fits on a screen.
const STATUS_INTERVAL: Duration = Duration::from_secs(300);
/// What the table's rates are taken over.
const TABLE_RATE_OVER: Duration = Duration::from_secs(3);

/// How the status is shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Status")]
pub struct StatusOptions {
    /// Time between two status lines in the log, such as 30s, 5m or 1h; 0 for none [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub status_interval: Option<Duration>,
    /// Status lines in the log instead of a live table, on a terminal too
    #[arg(long)]
    pub no_table: bool,
}

impl StatusOptions {
    /// With another default for the time between two lines.
    #[must_use]
    pub fn or_every(mut self, interval: Duration) -> Self {
        self.status_interval = self.status_interval.or(Some(interval));
        self
    }
}

/// What is shown above the flows.
#[derive(Debug, Clone)]
pub struct Heading {
    /// What runs.
    pub title: String,
    /// Lines that stay.
    pub notes: Vec<String>,
}

/// Shows how `flows` stand, for as long as it is polled; dropping it gives the terminal back.
pub async fn show(
    heading: Heading,
    flows: Vec<FlowWatch>,
    options: &StatusOptions,
    log: &LogOutput,
    stop: &Stop,
) -> Infallible {
    let _screen = match !options.no_table && screen::is_possible() {
        true => open(heading, flows.clone(), log, stop),
        false => None,
    };
    let interval = options.status_interval.unwrap_or(STATUS_INTERVAL);
    if _screen.is_none() && !interval.is_zero() {
        match lines::keep_logging(&flows, interval).await {}
    }
    std::future::pending().await
}

fn open(heading: Heading, flows: Vec<FlowWatch>, log: &LogOutput, stop: &Stop) -> Option<Screen> {
    let (shown, quit) = (stop.clone(), stop.clone());
    let start = Instant::now();
    let mut meters: Vec<_> = flows.iter().map(|_| Meter::new(TABLE_RATE_OVER)).collect();
    let view = move || {
        let now = Instant::now();
        let rows = flows.iter().zip(&mut meters).map(|(watch, meter)| {
            let status = watch.status();
            view::flow(watch.flow(), &status, meter.read(now, &status))
        });
        View {
            title: heading.title.clone(),
            uptime: now - start,
            stopping: shown.begun().is_cancelled(),
            notes: heading.notes.clone(),
            flows: rows.collect(),
        }
    };
    match Screen::open(log, view, move || quit.request()) {
        Ok(screen) => Some(screen),
        Err(error) => {
            tracing::info!(%error, "no live table on this terminal");
            None
        }
    }
}

/// `30s`, `5m`, `1h`, or seconds without a unit.
fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let number: u32 = digits
        .parse()
        .map_err(|_| "not a number with s, m or h".to_owned())?;
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err("the unit is none of s, m and h".to_owned()),
    };
    Ok(Duration::from_secs(u64::from(number) * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_a_number_and_a_unit() {
        for (text, seconds) in [
            ("0", Some(0)),
            ("30", Some(30)),
            ("30s", Some(30)),
            ("5m", Some(300)),
            ("1h", Some(3_600)),
        ] {
            assert_eq!(
                interval(text).ok().map(|time| time.as_secs()),
                seconds,
                "{text}"
            );
        }
        for text in ["", "m", "5d", "-1s", "1.5s", "5 m", "99999999999"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
