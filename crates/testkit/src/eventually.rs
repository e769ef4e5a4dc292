//! Waiting for a condition instead of for time.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long to wait between two looks at a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An error that ends [`eventually`] at once: what is awaited can't come any more.
#[derive(Debug)]
pub struct GiveUp(pub String);

impl fmt::Display for GiveUp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for GiveUp {}

/// Looks at `condition` until it holds, and returns its value.
///
/// The condition says *why* it doesn't hold yet by its error; `ensure!` writes that shortest.
///
/// # Errors
/// The condition's last error, when it didn't hold `within` the time or returned [`GiveUp`].
pub fn eventually<T>(within: Duration, mut condition: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = now() + within;
    loop {
        let error = match condition() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if error.is::<GiveUp>() {
            return Err(error);
        }
        if now() >= deadline {
            return Err(error).with_context(|| format!("still not so after {within:?}"));
        }
        pause();
    }
}

/// [`eventually`] for conditions that are async, on tokio's clock.
///
/// # Errors
/// As [`eventually`].
pub async fn eventually_async<T>(
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let deadline = tokio::time::Instant::now() + within;
    loop {
        let error = match condition().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if error.is::<GiveUp>() {
            return Err(error);
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(error).with_context(|| format!("still not so after {within:?}"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "real processes live in real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one sleep all waiting is made of"
)]
fn pause() {
    thread::sleep(LOOK_AGAIN);
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{bail, ensure};

    #[test]
    fn the_value_is_returned_when_the_condition_holds() {
        let mut looks = 0;

        let value = eventually(Duration::from_secs(10), || {
            looks += 1;
            ensure!(looks == 3, "only {looks} looks");
            Ok(looks)
        });

        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn the_last_reason_is_told_when_time_is_up() {
        let error = eventually(Duration::ZERO, || -> Result<()> { bail!("no leader") });

        assert!(format!("{:#}", error.unwrap_err()).contains("no leader"));
    }

    #[test]
    fn giving_up_ends_the_wait_at_once() {
        let mut looks = 0;

        let result = eventually(Duration::from_secs(3600), || -> Result<()> {
            looks += 1;
            bail!(GiveUp("the process is gone".into()))
        });

        assert!(result.unwrap_err().is::<GiveUp>());
        assert_eq!(looks, 1);
    }
}
