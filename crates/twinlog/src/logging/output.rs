//! Where log lines go: to standard error, or into a pane while the live table has the screen.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;

use super::line::Text;
use crate::config_file::Style;

/// How many lines a pane keeps. They are printed when it closes, so that nothing recent is lost
/// with the screen.
const PANE_LINES_MAX: usize = 1_000;

/// The one place log lines are written to; cloning it is a reference count.
#[derive(Clone)]
pub struct LogOutput {
    state: Arc<Mutex<State>>,
}

struct State {
    terminal: bool,
    style: Style,
    pane: Option<Held>,
}

#[derive(Default)]
struct Held {
    lines: VecDeque<Text>,
    forgotten: usize,
}

impl LogOutput {
    /// Lines on standard error.
    pub fn to_stderr() -> Self {
        let stderr = io::stderr();
        LogOutput {
            state: Arc::new(Mutex::new(State {
                terminal: stderr.is_terminal(),
                style: Style::of(&stderr),
                pane: None,
            })),
        }
    }

    /// Holds lines back from now on, for somebody who shows them; a log that goes to a file goes
    /// on.
    pub fn open_pane(&self) -> Pane {
        self.state.lock().pane = Some(Held::default());
        Pane(self.clone())
    }

    pub(super) fn write(&self, text: &Text) {
        let mut state = self.state.lock();
        let on_screen = match &mut state.pane {
            Some(held) => {
                held.push(text.clone());
                true
            }
            None => false,
        };
        if !(on_screen && state.terminal) {
            print(text, state.style);
        }
    }
}

impl Held {
    fn push(&mut self, text: Text) {
        if self.lines.len() == PANE_LINES_MAX {
            self.lines.pop_front();
            self.forgotten += 1;
        }
        self.lines.push_back(text);
    }
}

/// Lines that are held back; dropping it prints them.
pub struct Pane(LogOutput);

impl Pane {
    /// The newest lines, oldest first, at most `count`.
    pub fn newest(&self, count: usize) -> Vec<Text> {
        let state = self.0.state.lock();
        let Some(held) = &state.pane else {
            return Vec::new();
        };
        let skip = held.lines.len().saturating_sub(count);
        held.lines.iter().skip(skip).cloned().collect()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        let Some(held) = state.pane.take() else {
            return;
        };
        if !state.terminal {
            return;
        }
        if held.forgotten > 0 {
            let rest = format!("({} earlier log lines were not kept)", held.forgotten);
            print(
                &Text {
                    time: String::new(),
                    level: None,
                    rest,
                },
                state.style,
            );
        }
        for text in &held.lines {
            print(text, state.style);
        }
    }
}

/// A log that can't be written has nobody to tell.
fn print(text: &Text, style: Style) {
    let line = match style {
        Style::Plain => text.plain(),
        Style::Coloured => text.coloured(),
    };
    let _ = writeln!(io::stderr().lock(), "{line}");
}
