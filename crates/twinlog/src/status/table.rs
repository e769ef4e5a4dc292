//! The live table as a pure function: what is known and how large the terminal is, in; rows, out.
//!
//! ```text
//! title          what runs, for how long, how to stop it
//! notes          lines that stay
//! flows          one row each
//! troubles       what stands still, why, and the way out; at most a third of the height
//! log            the newest lines, as many as fit
//! ```

use tracing::Level;

use super::numbers;
use super::view::{FlowView, Health, Trouble, View};
use crate::logging::{Text, printable};

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Characters in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// How a piece of a row looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As the terminal has it.
    Plain,
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// All is well.
    Good,
    /// Look at this when there is time.
    Warning,
    /// Look at this now.
    Bad,
}

/// Stands before what belongs to the row above.
const INDENT: &str = "    ";

/// One row of the screen, in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row(pub Vec<(Style, String)>);

/// Draws `view`, and `log` below it, to fill `size` exactly.
pub fn draw(view: &View, log: &[Text], size: Size) -> Vec<Row> {
    let mut rows = vec![title(view, size.width)];
    rows.extend(view.notes.iter().map(|note| Row::of(Style::Plain, note)));
    rows.push(Row::default());
    rows.extend(flows(&view.flows, size.width));
    rows.extend(troubles(&view.flows, size));
    rows.push(Row::default());
    let free = size.height.saturating_sub(rows.len());
    rows.extend(log_rows(log, size.width, free));
    rows.resize(size.height, Row::default());
    rows.iter_mut().for_each(|row| row.fit(size.width));
    rows
}

fn title(view: &View, width: usize) -> Row {
    let left = format!(
        "twinlog  {}  up {}",
        view.title,
        numbers::duration(view.uptime)
    );
    let right = if view.stopping {
        "stopping, q again: at once"
    } else {
        "q stops"
    };
    let gap = width.saturating_sub(length(&left) + length(right)).max(2);
    Row(vec![
        (Style::Bold, left),
        (Style::Plain, " ".repeat(gap)),
        (Style::Dim, right.to_owned()),
    ])
}

/// The widest flow names that are shown whole; longer ones push their row to the right.
const FLOW_WIDTH_MAX: usize = 32;

fn flows(flows: &[FlowView], width: usize) -> Vec<Row> {
    let names = flows
        .iter()
        .map(|flow| length(&flow.flow))
        .max()
        .unwrap_or(0);
    let first = names.clamp("FLOW".len(), FLOW_WIDTH_MAX.min(width / 2).max(4));
    let heading = format!(
        "{:first$}{}",
        "FLOW",
        columns("RECORDS/S", "MB/S", "LAG", "STATE")
    );
    let mut rows = vec![Row::of(Style::Dim, &heading)];
    for flow in flows {
        let numbers = match &flow.traffic {
            Some(traffic) => columns(
                &numbers::count(traffic.records_per_second.round() as u64),
                &numbers::megabytes(traffic.bytes_per_second),
                &numbers::count(traffic.lag_records),
                "",
            ),
            None => columns("-", "-", "-", ""),
        };
        let row = Row(vec![
            (Style::Bold, format!("{:first$}", flow.flow)),
            (Style::Plain, numbers),
            (health(flow.health), flow.state.clone()),
        ]);
        rows.extend(row.wrapped(width));
    }
    rows
}

fn columns(records: &str, megabytes: &str, lag: &str, state: &str) -> String {
    format!("{records:>13}{megabytes:>9}{lag:>15}  {state}")
}

/// What stands still: for each why, and the way out.
fn troubles(flows: &[FlowView], size: Size) -> Vec<Row> {
    let all: Vec<_> = flows
        .iter()
        .flat_map(|flow| {
            flow.troubles
                .iter()
                .map(|trouble| (flow.flow.as_str(), trouble))
        })
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let heading = format!("STANDING STILL: {}", all.len());
    let mut rows = vec![Row::default(), Row::of(Style::Dim, &heading)];
    for (shown, (flow, trouble)) in all.iter().enumerate() {
        // One row is kept for how many more there are.
        let room = (size.height / 3).saturating_sub(rows.len() + 1);
        let told = [
            whole(flow, trouble, size.width),
            brief(flow, trouble, size.width),
        ];
        let Some(told) = told.into_iter().find(|told| told.len() <= room) else {
            let more = format!("{INDENT}and {} more", all.len() - shown);
            rows.push(Row::of(Style::Dim, &more));
            break;
        };
        rows.extend(told);
    }
    rows
}

/// Everything about it, in as many rows as it takes.
fn whole(flow: &str, trouble: &Trouble, width: usize) -> Vec<Row> {
    let mut told = trouble_row(flow, trouble).wrapped(width);
    if let Some(remedy) = &trouble.remedy {
        told.extend(Row::of(Style::Dim, &format!("{INDENT}{remedy}")).wrapped(width));
    }
    told
}

/// Its name in one row and the reason in another, as much of them as fits.
fn brief(flow: &str, trouble: &Trouble, width: usize) -> Vec<Row> {
    let room = width.saturating_sub(length(flow) + 1);
    let name = Row(vec![
        (Style::Plain, format!("{flow} ")),
        (Style::Bold, elided(&trouble.what, room)),
    ]);
    let reason = format!("{INDENT}{}", trouble.reason);
    vec![name, Row::of(Style::Warning, &reason)]
}

/// Both ends of a long name: the number of a partition is at its end.
fn elided(name: &str, width: usize) -> String {
    let surplus = (length(name) + 1).saturating_sub(width);
    if surplus <= 1 {
        return name.to_owned();
    }
    let first = width.saturating_sub(1) / 2;
    let start: String = name.chars().take(first).collect();
    let end: String = name.chars().skip(first + surplus).collect();
    format!("{start}…{end}")
}

fn trouble_row(flow: &str, trouble: &Trouble) -> Row {
    let since = match trouble.since {
        Some(since) => format!(" for {}", numbers::duration(since)),
        None => String::new(),
    };
    Row(vec![
        (Style::Plain, format!("{flow} ")),
        (Style::Bold, trouble.what.clone()),
        (Style::Warning, format!("{since}: {}", trouble.reason)),
    ])
}

/// The newest lines that fit into `height` rows, long ones continued on the next row.
fn log_rows(log: &[Text], width: usize, height: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for text in log.iter().rev() {
        let wrapped = log_row(text).wrapped(width);
        if rows.len() + wrapped.len() > height {
            break;
        }
        rows.extend(wrapped.into_iter().rev());
    }
    rows.reverse();
    rows
}

fn log_row(text: &Text) -> Row {
    let mut row = Row::default();
    if let Some(level) = text.level {
        // The date is the same all day; the time of day is what tells.
        let time = text.time.get("2026-12-01T".len()..).unwrap_or(&text.time);
        row.0
            .push((Style::Dim, format!("{} ", time.trim_end_matches('Z'))));
        row.0.push((urgency(level), format!("{level:5} ")));
    }
    row.0.push((Style::Plain, text.rest.clone()));
    row
}

fn health(health: Health) -> Style {
    match health {
        Health::Good => Style::Good,
        Health::Troubled => Style::Warning,
        Health::Bad => Style::Bad,
    }
}

fn urgency(level: Level) -> Style {
    match level {
        Level::ERROR => Style::Bad,
        Level::WARN => Style::Warning,
        Level::INFO => Style::Good,
        Level::DEBUG | Level::TRACE => Style::Dim,
    }
}

/// Where to break `text` so that the first part has `room` characters at most: behind a blank, if
/// there is one.
fn break_at(text: &str, room: usize) -> usize {
    match text.char_indices().nth(room) {
        None => text.len(),
        Some((end, _)) => text[..end].rfind(' ').map_or(end, |blank| blank + 1),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl Row {
    fn of(style: Style, text: &str) -> Row {
        Row(vec![(style, text.to_owned())])
    }

    fn length(&self) -> usize {
        self.0.iter().map(|(_, text)| length(text)).sum()
    }

    /// The same in as many rows as it takes, all but the first indented; broken between words where
    /// there are any.
    fn wrapped(self, width: usize) -> Vec<Row> {
        let mut rows = vec![Row::default()];
        let mut room = width.max(1);
        for (style, text) in self.0 {
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (part, left) = rest.split_at(break_at(rest, room));
                room -= length(part);
                rest = left;
                if let Some(row) = rows.last_mut() {
                    row.0.push((style, part.to_owned()));
                }
                if !rest.is_empty() {
                    rows.push(Row::of(Style::Plain, INDENT));
                    room = width.saturating_sub(INDENT.len()).max(1);
                }
            }
        }
        rows
    }

    /// Makes it safe for a terminal and shortens it to `width`, with a mark where something is
    /// missing.
    fn fit(&mut self, width: usize) {
        for (_, text) in &mut self.0 {
            if text.contains(char::is_control) {
                *text = printable(text);
            }
        }
        if self.length() <= width {
            return;
        }
        let mut left = width.saturating_sub(1);
        for (_, text) in &mut self.0 {
            let kept: String = text.chars().take(left).collect();
            left -= length(&kept);
            *text = kept;
        }
        if width > 0 {
            self.0.push((Style::Dim, "…".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::view::Traffic;
    use super::*;

    fn view() -> View {
        View {
            title: "mm2.properties".to_owned(),
            uptime: Duration::from_secs(751),
            stopping: false,
            notes: Vec::new(),
            flows: vec![flow("us->eu", 1_234_567.0, 99_900), waiting("eu->us")],
        }
    }

    fn flow(name: &str, records_per_second: f64, lag_records: u64) -> FlowView {
        FlowView {
            flow: name.to_owned(),
            state: "48 partitions of 12 topics".to_owned(),
            health: Health::Good,
            traffic: Some(Traffic {
                records_per_second,
                bytes_per_second: records_per_second * 100.0,
                lag_records,
            }),
            troubles: Vec::new(),
        }
    }

    fn waiting(name: &str) -> FlowView {
        FlowView {
            flow: name.to_owned(),
            state: "connecting: no broker answered of 10.0.0.1:9092".to_owned(),
            health: Health::Troubled,
            traffic: None,
            troubles: Vec::new(),
        }
    }

    fn trouble(what: &str) -> Trouble {
        Trouble {
            what: what.to_owned(),
            kind: "record-too-large",
            since: Some(Duration::from_secs(61)),
            reason: "the record at offset 42 is too large".to_owned(),
            remedy: Some("raise max.message.bytes".to_owned()),
        }
    }

    fn said(level: Level, rest: &str) -> Text {
        Text {
            time: "2026-12-01T02:58:26.123Z".to_owned(),
            level: Some(level),
            rest: rest.to_owned(),
        }
    }

    fn drawn(view: &View, log: &[Text], width: usize, height: usize) -> String {
        let rows = draw(view, log, Size { width, height });
        assert_eq!(rows.len(), height);
        assert!(rows.iter().all(|row| row.length() <= width), "{rows:?}");
        let text = |row: &Row| {
            row.0
                .iter()
                .map(|(_, text)| text.as_str())
                .collect::<String>()
        };
        let lines: Vec<_> = rows
            .iter()
            .map(|row| text(row).trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    #[test]
    fn flows_stand_above_the_log() {
        let log = [
            said(Level::INFO, "[us->eu] started"),
            said(Level::WARN, "slow"),
        ];

        let expected = "\
twinlog  mm2.properties  up 12m31s                                       q stops

FLOW      RECORDS/S     MB/S            LAG  STATE
us->eu    1,234,567      123         99,900  48 partitions of 12 topics
eu->us            -        -              -  connecting: no broker answered of
    10.0.0.1:9092

02:58:26.123 INFO  [us->eu] started
02:58:26.123 WARN  slow
";
        assert_eq!(drawn(&view(), &log, 80, 10), expected);
    }

    #[test]
    fn what_stands_still_has_a_reason_and_a_way_out_and_at_most_a_third_of_the_screen() {
        let mut view = view();
        view.flows.truncate(1);
        view.flows[0].troubles = (0..9).map(|n| trouble(&format!("orders-{n}"))).collect();

        let expected = "\
twinlog  mm2.properties  up 12m31s                                       q stops

FLOW      RECORDS/S     MB/S            LAG  STATE
us->eu    1,234,567      123         99,900  48 partitions of 12 topics

STANDING STILL: 9
us->eu orders-0 for 1m01s: the record at offset 42 is too large
    raise max.message.bytes
us->eu orders-1 for 1m01s: the record at offset 42 is too large
    raise max.message.bytes
    and 7 more";
        assert_eq!(drawn(&view, &[], 80, 21).trim_end(), expected);
    }

    #[test]
    fn a_long_name_gives_way_to_the_reason_on_a_small_screen() {
        let mut view = view();
        view.flows.truncate(1);
        view.flows[0].troubles = vec![trouble(&format!("{}-12", "n".repeat(249)))];

        let drawn = drawn(&view, &[], 80, 20);

        let half = "n".repeat(36);
        let expected = format!(
            "\
STANDING STILL: 1
us->eu {half}…{}-12
    the record at offset 42 is too large",
            "n".repeat(33)
        );
        assert!(drawn.contains(&expected), "{drawn}");
    }

    #[test]
    fn the_newest_log_lines_are_shown_whole_and_old_ones_give_way() {
        let long = format!("started {}", "x".repeat(40));
        let log = [
            said(Level::INFO, "old"),
            said(Level::INFO, &long),
            said(Level::INFO, "new"),
        ];
        let mut view = view();
        view.flows.clear();

        let expected = "\
twinlog  mm2.properties  up 12m31s  q s…

FLOW    RECORDS/S     MB/S            L…

02:58:26.123 INFO  started
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    xxxx
02:58:26.123 INFO  new";
        assert_eq!(drawn(&view, &log, 40, 8), expected);
    }

    #[test]
    fn any_size_is_filled_exactly() {
        let mut view = view();
        view.notes = vec!["connect to 127.0.0.1:9092".to_owned()];
        view.flows[0].troubles = (0..9).map(|n| trouble(&format!("orders-{n}"))).collect();
        let log = [said(Level::INFO, &"y".repeat(200))];

        for width in 0..100 {
            for height in 0..40 {
                drawn(&view, &log, width, height);
            }
        }
    }

    #[test]
    fn names_from_a_cluster_cannot_steer_the_terminal() {
        let mut view = view();
        view.flows[0].troubles = vec![trouble("or\u{1b}[2Jders-0")];

        let text = drawn(&view, &[], 80, 24);

        assert!(
            !text.replace('\n', "").contains(char::is_control),
            "{text:?}"
        );
    }
}
