//! The command line. It is read here and nowhere else; a misuse ends the process with 2 (clap's own
//! code).

use clap::{Parser, Subcommand};

use crate::commands::check::CheckOptions;
use crate::commands::demo::DemoOptions;
use crate::commands::run::RunOptions;
use crate::logging::LogOptions;

/// Mirrors Kafka clusters, with the configuration files of MirrorMaker 2
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed (`check`: a file has errors), 2 misused (`run`: the file has errors)."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// The subcommands, one file each under `commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Mirror what a file configures, until stopped
    Run(RunOptions),
    /// Say what is wrong in a file, and what would be done with it
    Check(CheckOptions),
    /// Show the mirror at work between two clusters inside this process
    Demo(DemoOptions),
}

/// The command line of this process.
pub fn read() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
