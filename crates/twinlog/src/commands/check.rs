//! `twinlog check`: says what is wrong in a file, and what would be done with it.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The file, as for MirrorMaker 2 (mm2.properties)
    pub file: PathBuf,
}

/// Reads and checks the file.
pub fn execute(options: &CheckOptions) -> Result<(), Failure> {
    let error = anyhow::anyhow!("check {}: not yet", options.file.display());
    Err(Failure::misused(error))
}
