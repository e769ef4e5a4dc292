//! Reading a configuration file and telling a person, or a program, what is in it.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use twinlog_core::config::flow::{FlowRole, MirrorConfig};
use twinlog_core::config::{self, Origin, Problem, Report, Section, Severity};
use twinlog_core::ids::Flow;

use crate::failure::Failure;

/// Warnings that are shown of one file; errors are shown all.
const WARNINGS_SHOWN_MAX: usize = 100;

/// A file and what was found in it.
pub struct ConfigFile {
    /// The file as the caller named it.
    pub name: String,
    /// What it means and what is wrong with it.
    pub report: Report,
}

/// Whether a report is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// With colours of a terminal.
    Coloured,
}

impl Style {
    /// Colours if `stream` is a terminal and `NO_COLOR` isn't set.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && stream.is_terminal() {
            Style::Coloured
        } else {
            Style::Plain
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// The configuration in `path`, for flows into `clusters`, or into all if there are none.
///
/// Whatever is wrong with it is told on standard error, at once; an error ends the command as
/// misused.
pub fn load(path: &Path, clusters: &[String]) -> Result<MirrorConfig, Failure> {
    let file = ConfigFile::read(path, clusters);
    let mut stderr = io::stderr().lock();
    let style = Style::of(&stderr);
    // Nobody can be told that nobody can be told.
    let _ = file.write_problems(&mut stderr, style);
    let summary = file.summary();
    file.report
        .config
        .ok_or_else(|| Failure::misused(anyhow::Error::msg(summary)))
}

impl ConfigFile {
    /// Reads and checks `path`, or standard input for `-`; a file that can't be read is a problem like any other.
    pub fn read(path: &Path, clusters: &[String]) -> Self {
        let is_stdin = path == Path::new("-");
        let name = match is_stdin {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let targets = (!clusters.is_empty()).then_some(clusters);
        let read = match is_stdin {
            true => read_stdin(),
            false => fs::read(path),
        };
        let report = match read {
            Ok(bytes) => config::check(&bytes, targets),
            Err(error) => Report {
                problems: vec![
                    Problem::error(format!("read the file: {error}"))
                        .hint("give the path of an mm2.properties"),
                ],
                config: None,
                explained: Vec::new(),
                process: None,
            },
        };
        ConfigFile { name, report }
    }

    /// How many problems of a kind there are.
    pub fn count(&self, severity: Severity) -> usize {
        let problems = self.report.problems.iter();
        problems
            .filter(|problem| problem.severity == severity)
            .count()
    }

    /// The outcome in a line.
    pub fn summary(&self) -> String {
        let counted = |number: usize, noun: &str| match number {
            1 => format!("1 {noun}"),
            _ => format!("{number} {noun}s"),
        };
        let name = &self.name;
        match (self.count(Severity::Error), self.count(Severity::Warning)) {
            (0, 0) => format!("{name}: no problems"),
            (0, warnings) => format!("{name}: {}", counted(warnings, "warning")),
            (errors, 0) => format!("{name}: {}", counted(errors, "error")),
            (errors, warnings) => {
                format!(
                    "{name}: {}, {}",
                    counted(errors, "error"),
                    counted(warnings, "warning")
                )
            }
        }
    }

    /// Writes every problem with its place and remedy.
    pub fn write_problems(&self, out: &mut impl Write, style: Style) -> io::Result<()> {
        let mut warnings = 0;
        for problem in &self.report.problems {
            if problem.severity == Severity::Warning {
                warnings += 1;
                if warnings > WARNINGS_SHOWN_MAX {
                    continue;
                }
            }
            let severity = match problem.severity {
                Severity::Error => style.paint("1;31", "error"),
                Severity::Warning => style.paint("1;33", "warning"),
            };
            write!(out, "{severity}: {}", self.name)?;
            if let Some(line) = problem.line {
                write!(out, ":{line}")?;
            }
            if let Some(key) = &problem.key {
                write!(out, ": {}", style.paint("1", key))?;
            }
            writeln!(out, ": {}", problem.message)?;
            if let Some(hint) = &problem.hint {
                writeln!(out, "{}: {hint}", style.paint("36", "hint"))?;
            }
        }
        if warnings > WARNINGS_SHOWN_MAX {
            let more = warnings - WARNINGS_SHOWN_MAX;
            writeln!(out, "{}: and {more} more warnings", self.name)?;
        }
        Ok(())
    }

    /// Writes which flows there are.
    pub fn write_flows(&self, out: &mut impl Write) -> io::Result<()> {
        for flow in self.report.config.iter().flat_map(|config| &config.flows) {
            let so_far = match flow.role {
                FlowRole::Replicates => "",
                FlowRole::HeartbeatsOnly => ", not written so far",
            };
            writeln!(out, "  {}: {}{so_far}", flow.flow, role_text(flow.role))?;
        }
        Ok(())
    }

    /// Writes every value that is in effect, and where it was written.
    pub fn write_explained(&self, out: &mut impl Write, style: Style) -> io::Result<()> {
        if let Some(process) = &self.report.process {
            writeln!(out, "\n{}", style.paint("1", process.name))?;
            self.write_section(out, process)?;
        }
        for (flow, sections) in &self.report.explained {
            for section in sections {
                writeln!(
                    out,
                    "\n{}",
                    style.paint("1", &format!("{flow} {}", section.name))
                )?;
                self.write_section(out, section)?;
            }
        }
        Ok(())
    }

    fn write_section(&self, out: &mut impl Write, section: &Section) -> io::Result<()> {
        let width = section
            .settings
            .iter()
            .map(|setting| setting.key.len())
            .max()
            .unwrap_or(0);
        for setting in &section.settings {
            let value = setting.value.as_deref().unwrap_or("(none)");
            write!(out, "  {:width$} = {value}", setting.key)?;
            match &setting.origin {
                Origin::File { line, key } => writeln!(out, "    # {}:{line} {key}", self.name)?,
                Origin::Default => writeln!(out, "    # default")?,
            }
        }
        Ok(())
    }

    /// The same for programs.
    pub fn to_json(&self, explain: bool) -> Value {
        let problems: Vec<_> = self.report.problems.iter().map(problem_json).collect();
        let flows = self.report.config.iter().flat_map(|config| &config.flows);
        let flows: Vec<_> = flows
            .map(|flow| json!({ "flow": flow.flow.to_string(), "role": role_text(flow.role) }))
            .collect();
        let mut file = json!({
            "file": self.name,
            "ok": self.report.config.is_some(),
            "problems": problems,
            "flows": flows,
        });
        if explain {
            file["process"] = self.report.process.as_ref().map(section_json).into();
            file["explained"] = self.report.explained.iter().map(explained_json).collect();
        }
        file
    }
}

fn read_stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn role_text(role: FlowRole) -> &'static str {
    match role {
        FlowRole::Replicates => "replicates",
        FlowRole::HeartbeatsOnly => "heartbeats only",
    }
}

fn problem_json(problem: &Problem) -> Value {
    json!({
        "severity": problem.severity.to_string(),
        "line": problem.line,
        "key": problem.key,
        "message": problem.message,
        "hint": problem.hint,
    })
}

fn explained_json((flow, sections): &(Flow, Vec<Section>)) -> Value {
    let sections: Vec<_> = sections.iter().map(section_json).collect();
    json!({ "flow": flow.to_string(), "sections": sections })
}

fn section_json(section: &Section) -> Value {
    let settings = section.settings.iter().map(|setting| {
        let (line, written) = match &setting.origin {
            Origin::File { line, key } => (Some(line), Some(key.as_ref())),
            Origin::Default => (None, None),
        };
        json!({ "key": setting.key, "value": setting.value, "line": line, "written": written })
    });
    json!({ "name": section.name, "settings": settings.collect::<Vec<_>>() })
}
