//! `twinlog demo`: two clusters in this process and the mirror between them, to look at and to
//! connect to.

use std::io::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use tokio::time::sleep;

use crate::clock::wall_clock_ms;
use crate::config_file;
use crate::demo::clusters::Clusters;
use crate::demo::compare::{Comparison, Sides};
use crate::demo::producer;
use crate::failure::Failure;
use crate::flows::{Ending, Flows};
use crate::logging::{self, LogOptions, LogOutput};
use crate::runtime;
use crate::status::display::{self, Heading, StatusOptions};
use crate::status::numbers;
use crate::stop::Stop;

/// Between two status lines, unless another time is given.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);
/// How long the mirror may add nothing before the rest is called missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct DemoOptions {
    /// How long records are written before both clusters are compared
    #[arg(long, value_name = "SECONDS", default_value_t = 25)]
    pub seconds: u64,
    /// How many records are written per second
    #[arg(long, value_name = "RECORDS", default_value_t = 2_000)]
    pub rate: u32,
    /// How the status is shown.
    #[command(flatten)]
    pub status: StatusOptions,
}

/// Shows the mirror at work; fails unless both clusters are equal in the end.
pub fn execute(options: &DemoOptions, log: &LogOptions) -> Result<(), Failure> {
    let output = logging::start(log)?;
    runtime::run(demo(options, &output))
}

async fn demo(options: &DemoOptions, output: &LogOutput) -> Result<(), Failure> {
    let stop = Stop::default();
    let signals = stop.on_signals()?;
    let clusters = Clusters::start(wall_clock_ms()).await?;
    let heading = heading(&clusters);
    say(&heading.notes);

    let config = config_file::load(&clusters.file(), &[])?;
    let sides = Sides::of(&config, &clusters)?;
    let mirror_stop = Stop::default();
    let flows = Flows::start(config);
    let shown = options.status.clone().or_every(STATUS_INTERVAL);
    let display = display::show(heading, flows.watches(), &shown, output, &stop);
    let story = async {
        let written = write_and_wait(options, &clusters, &sides, &stop).await;
        mirror_stop.request();
        written
    };
    let (written, ending) = tokio::select! {
        both = async { tokio::join!(story, flows.run_until(&mirror_stop)) } => both,
        () = stop.at_once().cancelled() => return Err(anyhow!("stopped before the end").into()),
        never = display => match never {},
        never = signals => match never {},
    };
    let (written, comparison) = (written?, sides.compare().await?);
    verdict(written, &comparison, ending)
}

/// Writes to the source for the time that was asked for, then waits until all of it is on the
/// target.
async fn write_and_wait(
    options: &DemoOptions,
    clusters: &Clusters,
    sides: &Sides,
    stop: &Stop,
) -> anyhow::Result<u64> {
    let enough = stop.begun().child_token();
    let time_is_up = async {
        sleep(Duration::from_secs(options.seconds)).await;
        enough.cancel();
        std::future::pending().await
    };
    let client = clusters.source_client("demo-producer")?;
    let written = tokio::select! {
        written = producer::write_until(&client, options.rate, &enough) => written?,
        never = time_is_up => match never {},
    };
    tracing::info!(
        records = written,
        "nothing more is written; waiting until all is mirrored"
    );
    sides.wait_until_mirrored(PATIENCE).await?;
    Ok(written)
}

fn heading(clusters: &Clusters) -> Heading {
    Heading {
        title: "demo".to_owned(),
        notes: vec![
            format!("source  {}", clusters.source_bootstrap()),
            format!(
                "target  {}  (topics us.orders, us.payments, ...)",
                clusters.target_bootstrap()
            ),
            format!("file    {}", clusters.file().display()),
        ],
    }
}

/// Tells whether both sides are equal; it is a success only then.
fn verdict(written: u64, comparison: &Comparison, ending: Ending) -> Result<(), Failure> {
    let records = numbers::count(comparison.records);
    let partitions = numbers::counted(comparison.partitions, "partition");
    say(&comparison.differences);
    if !comparison.differences.is_empty() {
        return Err(anyhow!("{} differ", comparison.differences.len()).into());
    }
    // More are there if somebody else wrote too, which is what the addresses are for.
    if comparison.records < written {
        let written = numbers::count(written);
        return Err(anyhow!("{written} records were written and {records} were found").into());
    }
    if ending != Ending::Stopped {
        return Err(anyhow!("the mirror did not end well; see the log").into());
    }
    say(&[format!(
        "equal: {records} records in {partitions}, compared one by one on both sides"
    )]);
    Ok(())
}

/// Prints what the command was called for. A reader that has seen enough (`demo | head`) ends
/// nothing.
fn say(lines: &[String]) {
    let mut output = std::io::stdout().lock();
    for line in lines {
        if writeln!(output, "{line}").is_err() {
            return;
        }
    }
}
