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

mod layer;
mod line;
mod output;

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
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
    let layer = layer::Lines::new(options.log_format, output.clone());
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter(options)?));
    subscriber
        .try_init()
        .map_err(|error| Failure::from(anyhow::Error::new(error)))?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(output)
}

fn filter(options: &LogOptions) -> Result<EnvFilter, Failure> {
    let text = match &options.log_level {
        Some(text) => text.clone(),
        None => std::env::var("RUST_LOG").unwrap_or_default(),
    };
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    builder.parse(&text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("understand log level {text:?}"));
        Failure::misused(error).hint("for example debug, or info,twinlog_kafka=debug")
    })
}

/// A panic is a bug of ours. It becomes one line like any other, which also keeps it off a screen
/// that shows the live table; the task's owner sees the task end.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string);
    tracing::error!(place, "panic: {payload}");
}
