//! Logs for people: one line for each happening, on standard error, with the flow and partition it
//! concerns.
//!
//! ```text
//! 2026-12-01T02:58:26.123Z INFO  [us->eu orders-3] leader moved from=1 to=2
//! ```
//!
//! The same as one JSON object per line with `--log-format json`. Colours appear on a terminal
//! only. Control characters never reach the output, so that a topic's name can't forge a line or
//! steer a terminal.

mod filter;
mod layer;
mod line;
mod output;

use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::failure::Failure;
pub use line::{Text, printable};
pub use output::{LogOutput, Pane};

/// What is logged, and in which shape.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging (on standard error)")]
pub struct LogOptions {
    /// The shape of a line
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// error, warn, info, debug or trace; also per crate, such as info,twinlog_kafka=debug
    ///
    /// The environment variable RUST_LOG says the same where this is not given.
    #[arg(long, global = true, value_name = "FILTER")]
    pub log_level: Option<String>,
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs: one JSON object per line
    Json,
}

/// Logs from here on, and hands out where the lines go.
///
/// # Errors
/// When the filter can't be understood.
pub fn start(options: &LogOptions) -> Result<LogOutput, Failure> {
    let output = LogOutput::to_stderr();
    let subscriber = subscriber(options, output.clone())?;
    subscriber
        .try_init()
        .map_err(|error| Failure::from(anyhow::Error::new(error)))?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(output)
}

fn subscriber(
    options: &LogOptions,
    output: LogOutput,
) -> Result<impl Subscriber + Send + Sync + use<>, Failure> {
    let filter = match &options.log_level {
        Some(text) => filter::parse(text, "--log-level"),
        None => filter::parse(&std::env::var("RUST_LOG").unwrap_or_default(), "RUST_LOG"),
    };
    let layer = layer::Lines::new(options.log_format, output);
    Ok(tracing_subscriber::registry().with(layer.with_filter(filter?)))
}

/// A panic is a bug of ours. It becomes one line like any other, which also keeps it off a screen
/// that shows the live table; the task's owner sees the task end.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string);
    tracing::error!(place, "panic: {payload}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that remain of a warning and an information within a flow.
    fn logged(level: &str) -> Vec<String> {
        let options = LogOptions {
            log_format: LogFormat::Text,
            log_level: Some(level.to_owned()),
        };
        let output = LogOutput::to_stderr();
        let pane = output.open_pane();
        let subscriber = subscriber(&options, output).expect("a level");
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!("flow", flow = "us->eu").in_scope(|| {
                tracing::warn!("slow");
                tracing::info!("fine");
            });
        });
        pane.newest(9).into_iter().map(|text| text.rest).collect()
    }

    #[test]
    fn a_line_names_its_flow_at_every_level() {
        assert_eq!(logged("warn"), ["[us->eu] slow"]);
        assert_eq!(logged("twinlog=warn"), ["[us->eu] slow"]);
        assert_eq!(logged("info"), ["[us->eu] slow", "[us->eu] fine"]);
        assert_eq!(logged("error"), Vec::<String>::new());
    }
}
