//! `twinlog check`: says what is wrong in a file, and what would be done with it.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use twinlog_core::config::Severity;

use crate::config_file::{ConfigFile, Style};
use crate::failure::Failure;

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The files, as for MirrorMaker 2 (mm2.properties), `-` for standard input; each is checked by itself
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only flows into these clusters; FILE comes first, as this takes all words that follow
    #[arg(long, value_name = "ALIAS", num_args = 1..)]
    pub clusters: Vec<String>,
    /// Show every value that is in effect, and the line it comes from
    #[arg(long)]
    pub explain: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Reads and checks the files; fails if any has an error.
pub fn execute(options: &CheckOptions) -> Result<(), Failure> {
    let files: Vec<_> = options
        .files
        .iter()
        .map(|path| ConfigFile::read(path, &options.clusters))
        .collect();
    let mut out = io::stdout().lock();
    let style = Style::of(&out);
    let written = if options.json {
        write_json(&mut out, &files, options.explain)
    } else {
        write_text(&mut out, &files, options.explain, style)
    };
    match written {
        // Whoever reads has seen enough, as `head` does; the exit code still tells the outcome.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        other => other.context("write the report")?,
    }

    let failed: Vec<_> = files
        .iter()
        .filter(|file| file.report.config.is_none())
        .map(ConfigFile::summary)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(anyhow::Error::msg(failed.join("; ")).into())
}

fn write_text(
    out: &mut impl Write,
    files: &[ConfigFile],
    explain: bool,
    style: Style,
) -> io::Result<()> {
    for file in files {
        file.write_problems(out, style)?;
        if file.count(Severity::Error) == 0 {
            writeln!(out, "{}", file.summary())?;
            file.write_flows(out)?;
        }
        if explain {
            file.write_explained(out, style)?;
        }
    }
    Ok(())
}

fn write_json(out: &mut impl Write, files: &[ConfigFile], explain: bool) -> io::Result<()> {
    let files: Vec<_> = files.iter().map(|file| file.to_json(explain)).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "files": files }))?;
    writeln!(out)
}
