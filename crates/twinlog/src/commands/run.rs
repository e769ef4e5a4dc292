//! `twinlog run`: mirrors what a file configures, until it is stopped.

use std::path::PathBuf;

use clap::Args;
use twinlog_core::config::MirrorConfig;

use crate::config_file;
use crate::failure::Failure;
use crate::flows::{Ending, Flows};
use crate::logging::{self, LogOptions, LogOutput};
use crate::runtime;
use crate::status::display::{self, Heading, StatusOptions};
use crate::stop::Stop;

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The file, as for MirrorMaker 2 (mm2.properties)
    pub file: PathBuf,
    /// Only flows into these clusters; FILE comes first, as this takes all words that follow
    #[arg(long, value_name = "ALIAS", num_args = 1..)]
    pub clusters: Vec<String>,
    /// How the status is shown.
    #[command(flatten)]
    pub status: StatusOptions,
}

/// Mirrors until stopped.
pub fn execute(options: &RunOptions, log: &LogOptions) -> Result<(), Failure> {
    let config = config_file::load(&options.file, &options.clusters)?;
    let output = logging::start(log)?;
    runtime::run(mirror(config, options, &output))
}

async fn mirror(
    config: MirrorConfig,
    options: &RunOptions,
    output: &LogOutput,
) -> Result<(), Failure> {
    let stop = Stop::default();
    let signals = stop.on_signals()?;
    let flows = Flows::start(config);
    let heading = Heading {
        title: options.file.display().to_string(),
        notes: Vec::new(),
    };
    let display = display::show(heading, flows.watches(), &options.status, output, &stop);
    let ending = tokio::select! {
        ending = flows.run_until(&stop) => ending,
        never = display => match never {},
        never = signals => match never {},
    };
    match ending {
        Ending::Stopped => Ok(()),
        Ending::Refused => Err(anyhow::anyhow!("not all flows ended well; see the log").into()),
        Ending::CutOff => Err(anyhow::anyhow!(
            "stopped before everything was finished; see the log for what was not"
        )
        .into()),
    }
}
