//! `twinlog run`: mirrors what a file configures, until it is stopped.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::logging::{self, LogOptions};

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The file, as for MirrorMaker 2 (mm2.properties)
    pub file: PathBuf,
    /// Only flows into these clusters; FILE comes first, as this takes all words that follow
    #[arg(long, value_name = "ALIAS", num_args = 1..)]
    pub clusters: Vec<String>,
}

/// Mirrors until stopped.
pub fn execute(options: &RunOptions, log: &LogOptions) -> Result<(), Failure> {
    let _output = logging::start(log)?;
    tracing::info!(file = %options.file.display(), clusters = ?options.clusters, "start");
    Err(anyhow::anyhow!("nothing can be mirrored yet").into())
}
