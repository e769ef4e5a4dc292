//! The table.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::contender::Contender;
use crate::run::{Measurement, Workload};

/// All that was measured, in order.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    workload: Workload,
    contender: Contender,
    /// `None` when it failed.
    seen: Option<Measurement>,
}

impl Report {
    pub fn add(&mut self, workload: &Workload, contender: Contender, seen: Option<Measurement>) {
        self.rows.push(Row {
            workload: workload.clone(),
            contender,
            seen,
        });
    }

    pub fn has_failures(&self) -> bool {
        self.rows.iter().any(|row| row.seen.is_none())
    }

    /// A row per run; ratios are to tuned Java and to the relay on the same workload.
    pub fn to_markdown(&self) -> String {
        let mut table =
            "\n| workload | mirror | first record s | copy s | records/s | MB/s | CPU-s/GB \
             | CPU-s in all | peak RSS MB | rate : tuned Java | tuned Java : CPU | CPU : relay |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
                .to_owned();
        for row in &self.rows {
            let (workload, contender) = (&row.workload, row.contender);
            let cells = match &row.seen {
                Some(seen) => self.cells(workload, seen),
                None => "failed |".to_owned() + &" |".repeat(9),
            };
            writeln!(table, "| {workload} | {contender} | {cells}").ok();
        }
        table.push_str(
            "\nMB and GB are those of the source's log. CPU-s/GB is counted from the first mirrored \
             record to the last, CPU-s in all from the start of the process.\n",
        );
        table
    }

    fn cells(&self, workload: &Workload, seen: &Measurement) -> String {
        let tuned = self.of(workload, Contender::JavaTuned);
        let relay = self.of(workload, Contender::Relay);
        let ratio =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let rate = ratio(tuned.map(|tuned| seen.rate() / tuned.rate()));
        let cheaper = ratio(tuned.map(|tuned| tuned.cpu_per_gigabyte() / seen.cpu_per_gigabyte()));
        let over = ratio(relay.map(|relay| seen.cpu_per_gigabyte() / relay.cpu_per_gigabyte()));
        format!(
            "{:.2} | {:.1} | {:.0} | {:.0} | {:.2} | {:.1} | {:.0} | {rate} | {cheaper} | {over} |",
            seen.first_record.as_secs_f64(),
            seen.copying.as_secs_f64(),
            workload.records as f64 / seen.copying.as_secs_f64(),
            seen.rate(),
            seen.cpu_per_gigabyte(),
            (seen.cpu_starting + seen.cpu_copying).as_secs_f64(),
            seen.peak_memory_bytes as f64 / 1e6,
        )
    }

    fn of(&self, workload: &Workload, contender: Contender) -> Option<&Measurement> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.workload == *workload && row.contender == contender)?
            .seen
            .as_ref()
    }

    /// Writes the table to `build/bench/results.md`.
    pub fn save(&self, table: &str) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/bench");
        fs::create_dir_all(&folder).context("make build/bench")?;
        fs::write(folder.join("results.md"), table).context("write build/bench/results.md")
    }
}
