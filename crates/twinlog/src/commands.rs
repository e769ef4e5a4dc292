//! One file per subcommand.

pub mod check;
pub mod demo;
pub mod run;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

/// Does what the command line asks for.
pub fn execute(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Run(options) => run::execute(&options, &cli.log),
        Command::Check(options) => check::execute(&options),
        Command::Demo(options) => demo::execute(&options, &cli.log),
    }
}
