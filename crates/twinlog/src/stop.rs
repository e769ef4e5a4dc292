//! How the process is asked to stop: once to finish what was begun, twice to stop at once.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The same signal so soon again is the same wish: some send it to a process and to its group.
const ECHO_WITHIN: Duration = Duration::from_millis(500);

/// The wish to stop; cloning it is a reference count.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    begun: CancellationToken,
    at_once: CancellationToken,
}

impl Stop {
    /// Asks to stop; asking again means at once.
    pub fn request(&self) {
        if self.begun.is_cancelled() {
            self.at_once.cancel();
        } else {
            self.begun.cancel();
        }
    }

    /// Cancelled by the first request.
    pub fn begun(&self) -> &CancellationToken {
        &self.begun
    }

    /// Cancelled by the second request.
    pub fn at_once(&self) -> &CancellationToken {
        &self.at_once
    }

    /// Turns SIGTERM and SIGINT into requests, for as long as it is polled.
    ///
    /// The handlers are in place when this returns, so that no early signal ends the process.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn on_signals(&self) -> anyhow::Result<impl Future<Output = Infallible> + use<>> {
        let mut terminate = signal(SignalKind::terminate()).context("handle SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("handle SIGINT")?;
        let stop = self.clone();
        Ok(async move {
            let mut signals = Signals::default();
            loop {
                let name = tokio::select! {
                    Some(()) = terminate.recv() => "SIGTERM",
                    Some(()) = interrupt.recv() => "SIGINT",
                    else => std::future::pending().await,
                };
                if signals.is_echo(name, Instant::now()) {
                    continue;
                }
                tracing::info!(signal = name, "asked to stop");
                stop.request();
            }
        })
    }
}

/// Signals that came in.
#[derive(Debug, Default)]
struct Signals {
    last: Option<(&'static str, Instant)>,
}

impl Signals {
    /// Whether this one is an echo of the last.
    fn is_echo(&mut self, name: &'static str, now: Instant) -> bool {
        let is_echo = self
            .last
            .is_some_and(|(last, at)| last == name && now - at < ECHO_WITHIN);
        if !is_echo {
            self.last = Some((name, now));
        }
        is_echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_means_at_once() {
        let stop = Stop::default();

        stop.request();
        assert!(stop.begun().is_cancelled() && !stop.at_once().is_cancelled());

        stop.request();
        assert!(stop.at_once().is_cancelled());
    }

    #[test]
    fn a_signal_that_is_sent_twice_at_once_is_one_wish() {
        let start = Instant::now();
        let mut signals = Signals::default();

        let echoes = [
            ("SIGINT", 0),
            ("SIGINT", 1),
            ("SIGTERM", 2),
            ("SIGTERM", 501),
            ("SIGTERM", 502),
        ]
        .map(|(name, ms)| signals.is_echo(name, start + Duration::from_millis(ms)));

        assert_eq!(echoes, [false, true, false, true, false]);
    }
}
