//! The place of one connection: at most one attempt at a time, with a growing pause after failures.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::address::Address;
use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::retry::Backoff;

/// Holds a connection to one node for one purpose.
pub(super) struct Slot {
    /// Held by the one attempt under way.
    connecting: Semaphore,
    state: Mutex<State>,
}

/// How likely a node is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It did lately.
    Connected,
    /// Nothing speaks against it.
    Untried,
    /// The last attempt to connect failed.
    Failed,
}

struct State {
    connection: Option<Connection>,
    failures: u32,
    last_failure: Option<(Instant, Error)>,
    not_before: Option<Instant>,
    random: fastrand::Rng,
}

impl Slot {
    pub(super) fn new(seed: u64) -> Slot {
        Slot {
            connecting: Semaphore::new(1),
            state: Mutex::new(State {
                connection: None,
                failures: 0,
                last_failure: None,
                not_before: None,
                random: fastrand::Rng::with_seed(seed),
            }),
        }
    }

    /// The open connection, or a new one. Whoever waited while an attempt failed gets its error,
    /// not an attempt of his own.
    pub(super) async fn connection(
        &self,
        config: &ClientConfig,
        address: &Address,
    ) -> Result<Connection> {
        if let Some(connection) = self.open(config, address) {
            return Ok(connection);
        }
        let asked_at = Instant::now();
        let _connecting = self.connecting.acquire().await;
        if let Some(connection) = self.open(config, address) {
            return Ok(connection);
        }
        let not_before = {
            let state = self.state.lock();
            if let Some((at, error)) = &state.last_failure
                && *at > asked_at
            {
                return Err(error.clone());
            }
            state.not_before
        };
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        let opened = Connection::open(config, address).await;
        self.on_attempt(config, opened.as_ref());
        opened
    }

    pub(super) fn standing(&self) -> Standing {
        let state = self.state.lock();
        let open = |connection: &Connection| !connection.is_closed();
        match (state.connection.as_ref().is_some_and(open), state.failures) {
            (true, _) => Standing::Connected,
            (false, 0) => Standing::Untried,
            (false, _) => Standing::Failed,
        }
    }

    /// The connection if it is open, not long idle (the broker may just be closing it) and leads to
    /// `address` still.
    fn open(&self, config: &ClientConfig, address: &Address) -> Option<Connection> {
        let mut state = self.state.lock();
        let usable = state.connection.as_ref().is_some_and(|connection| {
            !connection.is_closed()
                && connection.peer() == address
                && connection.idle_for() < config.connections_max_idle
        });
        if !usable {
            state.connection = None;
        }
        state.connection.clone()
    }

    fn on_attempt(&self, config: &ClientConfig, opened: Result<&Connection, &Error>) {
        let mut state = self.state.lock();
        match opened {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.failures = 0;
                state.last_failure = None;
                state.not_before = None;
            }
            Err(error) => {
                let backoff = Backoff {
                    first: config.reconnect_backoff,
                    max: config.reconnect_backoff_max,
                };
                let failures = state.failures;
                let pause: Duration = backoff.pause(failures, &mut state.random);
                state.failures = failures.saturating_add(1);
                state.last_failure = Some((Instant::now(), error.clone()));
                state.not_before = Some(Instant::now() + pause);
            }
        }
    }
}
