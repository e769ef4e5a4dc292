//! The runtime everything runs on.

use std::time::Duration;

use anyhow::Context as _;

/// How long the end of the process waits for what can't be cancelled: a name that is being looked
/// up.
const LOOK_UPS_END_WITHIN: Duration = Duration::from_millis(100);

/// Runs `work` to its end.
///
/// One thread: batches are passed on as they are, which costs so little CPU that waking other
/// threads for them would cost more than they could take over.
///
/// # Errors
/// When the system refuses what a runtime needs, or `work` fails.
pub fn run<T, E: From<anyhow::Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().context("start the runtime")?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(LOOK_UPS_END_WITHIN);
    result
}
