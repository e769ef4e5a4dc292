//! `twinlog`: mirrors Kafka clusters, in place of Apache Kafka's MirrorMaker 2.

mod cli;
mod clock;
mod commands;
mod config_file;
mod demo;
mod failure;
mod flows;
mod logging;
mod runtime;
mod status;
mod stop;

use std::process::ExitCode;

/// Fetched frames of megabytes come and go all the time; glibc pays page faults for each of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::execute(cli::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
