//! Tells those who wait that something happened.
//!
//! Like tokio's `watch`, which however wakes several waiting tasks in an order left to chance: here
//! they are woken in the order in which they came, so that a run repeats itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts what happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    count: AtomicU64,
    waiting: Notify,
}

/// One who waits for changes.
#[derive(Debug)]
pub(crate) struct Watcher {
    inner: Arc<Inner>,
    seen: u64,
}

impl Changes {
    /// Something happened: wakes all who wait.
    pub fn happened(&self) {
        self.inner.count.fetch_add(1, Ordering::Relaxed);
        self.inner.waiting.notify_waiters();
    }

    /// Watches from now on.
    pub fn subscribe(&self) -> Watcher {
        Watcher {
            inner: Arc::clone(&self.inner),
            seen: self.inner.count.load(Ordering::Relaxed),
        }
    }
}

impl Watcher {
    /// Takes everything until now for seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.inner.count.load(Ordering::Relaxed);
    }

    /// Waits until something has happened that is not seen yet, and takes it for seen. Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            // Before the look at the count, so that nothing in between is missed.
            let woken = self.inner.waiting.notified();
            let count = self.inner.count.load(Ordering::Relaxed);
            if count != self.seen {
                self.seen = count;
                return;
            }
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_woken_in_the_order_they_came() {
        let (changes, woken) = (Changes::default(), Arc::new(Mutex::new(Vec::new())));
        let mut waiting = JoinSet::new();
        for number in 0..50 {
            let (mut watcher, woken) = (changes.subscribe(), Arc::clone(&woken));
            waiting.spawn(async move {
                watcher.changed().await;
                woken.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;

        changes.happened();
        while waiting.join_next().await.is_some() {}

        assert_eq!(*woken.lock().unwrap(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_happened_before_the_wait_ends_it_once() {
        let changes = Changes::default();
        let mut watcher = changes.subscribe();

        changes.happened();
        watcher.changed().await;
        let again = tokio::time::timeout(std::time::Duration::from_secs(1), watcher.changed());

        assert!(again.await.is_err());
    }
}
