//! The tables.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::chart;
use crate::contender::Contender;

/// All that was measured, in order.
#[derive(Debug, Default)]
pub struct Report {
    sections: Vec<Section>,
}

/// One table: a row per contender and case.
#[derive(Debug)]
pub struct Section {
    title: String,
    /// How to read it.
    about: String,
    columns: &'static [Column],
    ratios: &'static [Ratio],
    rows: Vec<Row>,
}

/// What is measured.
#[derive(Debug)]
pub struct Column {
    pub title: &'static str,
    pub decimals: usize,
}

/// How a contender's value of a column stands to another contender's in the same case.
#[derive(Debug)]
pub struct Ratio {
    pub title: &'static str,
    pub column: usize,
    pub against: Contender,
    pub order: Order,
}

/// A column with this title.
pub const fn column(title: &'static str, decimals: usize) -> Column {
    Column { title, decimals }
}

/// How values of the column at this index stand to those of `against`.
pub const fn ratio(title: &'static str, column: usize, against: Contender, order: Order) -> Ratio {
    Ratio {
        title,
        column,
        against,
        order,
    }
}

/// How a cost stands to that of Java as it comes.
pub const fn java_to(title: &'static str, column: usize) -> Ratio {
    ratio(title, column, Contender::Java, Order::TheirsToMine)
}

/// Which of the two values is divided by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Rates: above 1 is better than the other.
    MineToTheirs,
    /// Costs and times: above 1 is better than the other.
    TheirsToMine,
    /// Costs above a floor that nobody beats.
    OverFloor,
}

/// A value for each column, and what has to be said about them.
#[derive(Debug)]
pub struct Seen {
    /// Not a number where there is nothing to tell.
    pub values: Vec<f64>,
    /// As that a run was cut short; mostly empty.
    pub note: String,
}

#[derive(Debug)]
struct Row {
    case: String,
    contender: Contender,
    /// `None` when it failed.
    seen: Option<Seen>,
}

impl Report {
    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    pub fn has_failures(&self) -> bool {
        let mut rows = self.sections.iter().flat_map(|section| &section.rows);
        rows.any(|row| row.seen.is_none())
    }

    pub fn to_markdown(&self) -> String {
        self.sections.iter().map(Section::to_markdown).collect()
    }

    /// Writes the tables to `build/bench/results.md`, and twinlog's ratios to Java beside it.
    pub fn save(&self) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/bench");
        fs::create_dir_all(&folder).context("make build/bench")?;
        fs::write(folder.join("results.md"), self.to_markdown()).context("write results.md")?;
        let bars: Vec<_> = self.sections.iter().flat_map(Section::bars).collect();
        fs::write(folder.join("results.svg"), chart::draw(&bars)).context("write results.svg")
    }
}

impl Section {
    pub fn new(
        title: &str,
        about: &str,
        columns: &'static [Column],
        ratios: &'static [Ratio],
    ) -> Self {
        Self {
            title: title.to_owned(),
            about: about.to_owned(),
            columns,
            ratios,
            rows: Vec::new(),
        }
    }

    /// Adds a row; a contender that failed has one, too.
    pub fn add(&mut self, case: &str, contender: Contender, seen: Option<Seen>) {
        self.rows.push(Row {
            case: case.to_owned(),
            contender,
            seen,
        });
    }

    /// Adds a sentence to how it is to be read.
    pub fn remark(&mut self, text: &str) {
        self.about.push(' ');
        self.about.push_str(text);
    }

    fn to_markdown(&self) -> String {
        let mut text = format!("\n## {}\n\n{}\n\n", self.title, self.about);
        let columns = self.columns.iter().map(|column| column.title);
        let titles: Vec<_> = columns
            .chain(self.ratios.iter().map(|ratio| ratio.title))
            .collect();
        writeln!(text, "| workload | mirror | {} |", titles.join(" | ")).ok();
        writeln!(text, "|---|---|{}", "--:|".repeat(titles.len())).ok();
        for row in &self.rows {
            let (name, cells) = match &row.seen {
                Some(seen) => {
                    let note = Some(&seen.note).filter(|note| !note.is_empty());
                    let note = note.map_or(String::new(), |note| format!(" ({note})"));
                    (format!("{}{note}", row.contender), self.cells(row, seen))
                }
                None => (
                    format!("{} (failed)", row.contender),
                    vec!["-".to_owned(); titles.len()],
                ),
            };
            writeln!(text, "| {} | {name} | {} |", row.case, cells.join(" | ")).ok();
        }
        text
    }

    fn cells(&self, row: &Row, seen: &Seen) -> Vec<String> {
        let values = self.columns.iter().zip(&seen.values);
        let values = values.map(|(column, value)| cell(*value, column.decimals));
        let ratios = self.ratios.iter().map(|ratio| {
            let value = self.ratio(row, ratio).unwrap_or(f64::NAN);
            cell(value, usize::from(value < 100.0))
        });
        values.chain(ratios).collect()
    }

    fn ratio(&self, row: &Row, ratio: &Ratio) -> Option<f64> {
        let is_other = |other: &&Row| other.case == row.case && other.contender == ratio.against;
        let other = self.rows.iter().find(is_other)?.seen.as_ref()?;
        let theirs = other.values.get(ratio.column)?;
        let mine = row.seen.as_ref()?.values.get(ratio.column)?;
        Some(match ratio.order {
            Order::MineToTheirs | Order::OverFloor => mine / theirs,
            Order::TheirsToMine => theirs / mine,
        })
    }

    /// How many times better than Java twinlog is.
    fn bars(&self) -> Vec<chart::Bar> {
        let mut bars = Vec::new();
        let ours = |row: &&Row| row.contender == Contender::Twinlog;
        for row in self.rows.iter().filter(ours) {
            let ratios = self.ratios.iter();
            for ratio in ratios.filter(|ratio| ratio.order != Order::OverFloor) {
                let value = self.ratio(row, ratio).filter(|value| value.is_finite());
                bars.extend(value.map(|times| chart::Bar {
                    workload: row.case.clone(),
                    measure: ratio.title,
                    times,
                }));
            }
        }
        bars
    }
}

fn cell(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        "-".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[column("MB/s", 0), column("CPU-s", 2)];
    const RATIOS: &[Ratio] = &[
        ratio("rate : Java", 0, Contender::Java, Order::MineToTheirs),
        java_to("Java : CPU", 1),
    ];

    fn seen(values: [f64; 2]) -> Option<Seen> {
        let values = values.to_vec();
        Some(Seen {
            values,
            note: String::new(),
        })
    }

    #[test]
    fn ratios_are_taken_within_a_case_and_a_failed_row_has_none() {
        let mut section = Section::new("Copy", "About.", COLUMNS, RATIOS);
        section.add("one", Contender::Java, seen([10.0, 4.0]));
        section.add("one", Contender::Twinlog, seen([70.0, 0.5]));
        section.add("two", Contender::Java, None);
        section.add("two", Contender::Twinlog, seen([70.0, f64::NAN]));

        let expected = "\n## Copy\n\nAbout.\n\n\
            | workload | mirror | MB/s | CPU-s | rate : Java | Java : CPU |\n\
            |---|---|--:|--:|--:|--:|\n\
            | one | java | 10 | 4.00 | 1.0 | 1.0 |\n\
            | one | twinlog | 70 | 0.50 | 7.0 | 8.0 |\n\
            | two | java (failed) | - | - | - | - |\n\
            | two | twinlog | 70 | - | - | - |\n";
        assert_eq!(section.to_markdown(), expected);
        assert_eq!(section.bars().len(), 2);
    }
}
