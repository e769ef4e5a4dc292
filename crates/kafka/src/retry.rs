//! The one loop that tries again.
//!
//! It decides nothing: a verdict function says for each error whether to go on. It waits a
//! jittered, growing time between attempts, logs early failures at INFO and persistent ones at
//! WARN, and ends at once when its token is cancelled.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// What to do about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Try again after the next pause.
    Retry,
    /// Hand the error to the caller.
    GiveUp,
}

/// Pauses that double from `first` to `max`, each cut by up to a fifth at random (as Java's
/// `ExponentialBackoff` spreads them), so that many clients do not come back in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Default for Backoff {
    /// `retry.backoff.ms` and `retry.backoff.max.ms` of Kafka's clients.
    fn default() -> Self {
        Backoff {
            first: Duration::from_millis(100),
            max: Duration::from_secs(1),
        }
    }
}

impl Backoff {
    /// The pause after `failures` earlier failures.
    pub fn pause(&self, failures: u32, random: &mut fastrand::Rng) -> Duration {
        let doubled = self.first.saturating_mul(1u32 << failures.min(20));
        doubled.min(self.max).mul_f64(1.0 - 0.2 * random.f64())
    }
}

/// Failures that are normal while a cluster changes its mind; later ones deserve attention.
const QUIET_FAILURES: u32 = 5;

/// A retrying caller.
#[derive(Debug)]
pub struct Retry {
    backoff: Backoff,
    cancel: CancellationToken,
    random: fastrand::Rng,
}

impl Retry {
    /// A loop with these pauses that `cancel` ends. `seed` makes the jitter repeatable.
    pub fn new(backoff: Backoff, cancel: CancellationToken, seed: u64) -> Retry {
        Retry {
            backoff,
            cancel,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Runs `attempt` until it succeeds, the verdict is to give up, or the token is cancelled. An
    /// attempt under way is dropped when that happens. `action` names for the log what is being
    /// done (`read the offsets topic`).
    ///
    /// # Errors
    /// The error that was given up on, or [`Error::Cancelled`].
    pub async fn run<T, A, F>(
        &mut self,
        action: &str,
        verdict: impl Fn(&Error) -> Verdict,
        mut attempt: A,
    ) -> Result<T>
    where
        A: FnMut() -> F,
        F: Future<Output = Result<T>>,
    {
        let cancel = self.cancel.clone();
        let cancelled = || Error::Cancelled {
            action: action.to_owned(),
        };
        let mut failures = 0;
        loop {
            let outcome = cancel.run_until_cancelled(attempt()).await;
            let error = match outcome.ok_or_else(cancelled)? {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if verdict(&error) == Verdict::GiveUp {
                return Err(error);
            }
            let pause = self.backoff.pause(failures, &mut self.random);
            failures = failures.saturating_add(1);
            log_failure(action, &error, failures, pause);
            let slept = cancel.run_until_cancelled(sleep(pause)).await;
            slept.ok_or_else(cancelled)?;
        }
    }
}

/// Whether a person is told of failure number `failures` in a row: of the first, second, fourth,
/// eighth and so on, so that one that lasts for hours is a few lines.
pub fn is_told(failures: u32) -> bool {
    failures.is_power_of_two()
}

fn log_failure(action: &str, error: &Error, failures: u32, pause: Duration) {
    let error = error as &dyn std::error::Error;
    if !is_told(failures) {
        tracing::debug!(action, error, failures, ?pause, "trying again");
    } else if failures <= QUIET_FAILURES {
        tracing::info!(action, error, failures, ?pause, "trying again");
    } else {
        tracing::warn!(
            action,
            error,
            failures,
            ?pause,
            "still failing, trying again"
        );
    }
}

/// The verdict for reads and for changes that may be repeated: go on while [`Error::is_retriable`]
/// says so.
pub fn while_retriable(error: &Error) -> Verdict {
    if error.is_retriable() {
        Verdict::Retry
    } else {
        Verdict::GiveUp
    }
}

#[cfg(test)]
mod tests;
