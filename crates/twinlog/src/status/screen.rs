//! The terminal while the live table has it: one thread that draws and listens to keys.
//!
//! A thread and not a task, because a terminal that does not take what is written (a stopped one, a
//! slow link) must not hold up the mirror. The thread owns the screen; however it ends, the
//! terminal is as before.

use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Color, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{Command, execute};
use rustix::process::Signal;
use tokio::time::Instant;

use super::table::{self, Row, Size, Style};
use super::view::View;
use crate::logging::{LogOutput, Pane};

/// How often the table is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(500);
/// How soon a closed screen and a key are noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the end of the process waits for a terminal that does not take what is written.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The screen with the live table on it; dropping it gives the terminal back and prints the log
/// lines it held.
pub struct Screen {
    close: Arc<AtomicBool>,
    /// Nothing is ever sent; its other end goes away with the thread.
    closed: Receiver<()>,
}

/// Whether a live table can be shown: a person is there to see it and to press keys.
///
/// A process in the background has neither; taking the terminal's keys would stop it (SIGTTOU).
pub fn is_possible() -> bool {
    let terminal = io::stdout();
    terminal.is_terminal()
        && io::stdin().is_terminal()
        && rustix::termios::tcgetpgrp(&terminal).ok() == Some(rustix::process::getpgrp())
}

impl Screen {
    /// Takes the terminal, and shows `view` on it until the screen is dropped. `quit` is called for
    /// every press of q or Ctrl-C.
    ///
    /// # Errors
    /// When the terminal can't be taken or no thread started.
    pub fn open(
        log: &LogOutput,
        view: impl FnMut() -> View + Send + 'static,
        quit: impl Fn() + Send + 'static,
    ) -> io::Result<Screen> {
        let taken = Taken::take()?;
        let pane = log.open_pane();
        let close = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&close);
        let (alive, closed) = sync_channel(0);
        std::thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || {
                // The terminal is given back, then the held lines are printed, in the reverse order
                // of what is here.
                let _alive = alive;
                let pane = pane;
                if let Err(error) = show(taken, &pane, view, quit, &seen) {
                    tracing::warn!(%error, "the live table ended");
                }
            })?;
        Ok(Screen { close, closed })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close.store(true, Ordering::Relaxed);
        // Either way there is nothing left to do: the other end is gone, or the terminal does not
        // answer.
        self.closed.recv_timeout(CLOSE_WITHIN).ok();
    }
}

/// A terminal in raw mode on its second screen.
struct Taken;

impl Taken {
    fn take() -> io::Result<Taken> {
        terminal::enable_raw_mode()?;
        let taken = Taken;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        execute!(io::stdout(), Show, LeaveAlternateScreen).ok();
        terminal::disable_raw_mode().ok();
    }
}

/// Stops the process, as Ctrl-Z does where nobody has taken the keys, and takes the terminal again
/// once the process goes on in the foreground.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells of what the shell does"
)]
fn suspend(taken: Taken, close: &AtomicBool) -> io::Result<Option<Taken>> {
    drop(taken);
    rustix::process::kill_current_process_group(Signal::TSTP)?;
    loop {
        // Also while the signal is on its way, and while the shell that puts us in the foreground
        // sets the terminal up as it was.
        std::thread::sleep(LOOK_EVERY);
        if close.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if is_possible() {
            std::thread::sleep(LOOK_EVERY);
            break;
        }
    }
    Taken::take().map(Some)
}

fn show(
    mut taken: Taken,
    pane: &Pane,
    mut view: impl FnMut() -> View,
    quit: impl Fn(),
    close: &AtomicBool,
) -> io::Result<()> {
    let mut due = Instant::now();
    while !close.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            let (width, height) = terminal::size()?;
            let size = Size {
                width: width.into(),
                height: height.into(),
            };
            paint(&table::draw(&view(), &pane.newest(size.height), size))?;
            due = Instant::now() + DRAW_EVERY;
        }
        if event::poll(LOOK_EVERY)? {
            match event::read()? {
                Event::Key(key) if ends(key) => {
                    quit();
                    due = Instant::now();
                }
                Event::Key(key) if is_control(key, 'z') => match suspend(taken, close)? {
                    Some(again) => {
                        taken = again;
                        due = Instant::now();
                    }
                    None => return Ok(()),
                },
                Event::Resize(..) => due = Instant::now(),
                _ => {}
            }
        }
    }
    Ok(())
}

fn ends(key: KeyEvent) -> bool {
    let is_q = key.kind == KeyEventKind::Press && key.code == KeyCode::Char('q');
    is_q || is_control(key, 'c')
}

fn is_control(key: KeyEvent, letter: char) -> bool {
    let is_letter = key.code == KeyCode::Char(letter) && key.modifiers == KeyModifiers::CONTROL;
    key.kind == KeyEventKind::Press && is_letter
}

/// Writes all rows at once, over what is there, so that nothing flickers.
fn paint(rows: &[Row]) -> io::Result<()> {
    let mut screen = String::new();
    put(&mut screen, BeginSynchronizedUpdate);
    for (index, row) in rows.iter().enumerate() {
        put(
            &mut screen,
            MoveTo(0, u16::try_from(index).unwrap_or(u16::MAX)),
        );
        for (style, text) in &row.0 {
            begin(&mut screen, *style);
            screen.push_str(text);
            put(&mut screen, SetAttribute(Attribute::Reset));
            put(&mut screen, ResetColor);
        }
        put(&mut screen, Clear(ClearType::UntilNewLine));
    }
    put(&mut screen, EndSynchronizedUpdate);
    let mut output = io::stdout().lock();
    output.write_all(screen.as_bytes())?;
    output.flush()
}

fn begin(screen: &mut String, style: Style) {
    match style {
        Style::Plain => {}
        Style::Bold => put(screen, SetAttribute(Attribute::Bold)),
        Style::Dim => put(screen, SetAttribute(Attribute::Dim)),
        Style::Good => put(screen, SetForegroundColor(Color::Green)),
        Style::Warning => put(screen, SetForegroundColor(Color::Yellow)),
        Style::Bad => put(screen, SetForegroundColor(Color::Red)),
    }
}

/// Escape sequences go into a String, which takes everything.
fn put(screen: &mut String, command: impl Command) {
    command.write_ansi(screen).ok();
}
