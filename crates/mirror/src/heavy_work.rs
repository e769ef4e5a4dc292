//! Where work runs that would hold up everything else.

use std::time::Duration;

use tokio::task::{spawn_blocking, yield_now};
use tokio::time::sleep;

/// Where large batches are taken apart and encoded again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeavyWork {
    /// On threads of its own, so that nothing else waits.
    #[default]
    OnThreads,
    /// Where it is wanted, and then taking so long on tokio's clock: under a paused clock a run
    /// repeats itself, which threads would spoil.
    Simulated {
        /// How long it takes.
        takes: Duration,
    },
}

impl HeavyWork {
    /// Does the work. If it panics, so does this.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self {
            HeavyWork::OnThreads => spawn_blocking(work)
                .await
                .unwrap_or_else(|lost| std::panic::resume_unwind(lost.into_panic())),
            HeavyWork::Simulated { takes } => {
                match takes.is_zero() {
                    true => yield_now().await,
                    false => sleep(takes).await,
                }
                work()
            }
        }
    }
}
