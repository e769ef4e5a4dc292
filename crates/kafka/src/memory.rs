//! One bound for the memory that fetched records occupy, and the buffers they are read into.
//!
//! A fetch reserves a [`Share`] before it is sent. The answer's frame is read into a pooled buffer
//! that owns the share; dropping the last slice of the frame returns both. So backpressure needs no
//! bookkeeping by whoever holds records: memory is free again when nobody looks at it.
//!
//! Invariants: (A) `used` is the sum of all live shares. (B) Waiters are served in the order they
//! came, so that a large reservation is not starved by small ones. (C) Idle buffers together stay
//! below a quarter of the limit, and whenever more is used, below what is left of the limit.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// A bound on bytes shared by all clients of a process. Cloning it is a reference count.
#[derive(Clone)]
pub struct MemoryBudget {
    inner: Arc<Inner>,
}

struct Inner {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: usize,
    waiting: VecDeque<(usize, oneshot::Sender<Share>)>,
    idle: Vec<Vec<u8>>,
    idle_bytes: usize,
}

/// Bytes of the budget that are spoken for, until it is dropped.
pub struct Share {
    budget: MemoryBudget,
    bytes: usize,
}

impl State {
    /// Counts `bytes` as used. Idle buffers make room for them.
    fn take(&mut self, bytes: usize, limit: usize) {
        self.used += bytes;
        while self.idle_bytes > 0 && self.used + self.idle_bytes > limit {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if !self.idle.is_empty() {
            self.idle_bytes -= self.idle.remove(0).capacity();
        }
    }
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        MemoryBudget {
            inner: Arc::new(Inner {
                limit: limit_bytes.max(1),
                state: Mutex::default(),
            }),
        }
    }

    /// The bound in bytes.
    pub fn limit(&self) -> usize {
        self.inner.limit
    }

    /// Bytes that are spoken for; above the limit by what single batches larger than their
    /// reservation took.
    pub fn used(&self) -> usize {
        self.inner.state.lock().used
    }

    /// Bytes that are free.
    pub fn available(&self) -> usize {
        self.inner.limit.saturating_sub(self.used())
    }

    /// Waits until `bytes` (at most the limit) are free, in the order of the calls. Cancel-safe.
    pub async fn reserve(&self, bytes: usize) -> Share {
        let bytes = bytes.min(self.inner.limit);
        let granted = {
            let mut state = self.inner.state.lock();
            if state.waiting.is_empty() && state.used + bytes <= self.inner.limit {
                return self.grant(state, bytes);
            }
            let (grant, granted) = oneshot::channel();
            state.waiting.push_back((bytes, grant));
            granted
        };
        match granted.await {
            Ok(share) => share,
            // The sender lives in the queue that `self` keeps alive, and leaves it only to grant.
            Err(_) => self.take(bytes),
        }
    }

    /// As [`reserve`](Self::reserve), but only if it need not wait.
    pub fn try_reserve(&self, bytes: usize) -> Option<Share> {
        let bytes = bytes.min(self.inner.limit);
        let state = self.inner.state.lock();
        if !state.waiting.is_empty() || state.used + bytes > self.inner.limit {
            return None;
        }
        Some(self.grant(state, bytes))
    }

    /// As [`try_reserve`](Self::try_reserve), but before those who wait: for what lets go of memory
    /// soon, so that they need not wait for long.
    pub fn try_take(&self, bytes: usize) -> Option<Share> {
        let state = self.inner.state.lock();
        (state.used + bytes <= self.inner.limit).then(|| self.grant(state, bytes))
    }

    /// Takes `bytes` without asking; the budget may be exceeded and recovers before it grants
    /// again.
    pub fn take(&self, bytes: usize) -> Share {
        self.grant(self.inner.state.lock(), bytes)
    }

    fn grant(&self, mut state: MutexGuard<'_, State>, bytes: usize) -> Share {
        state.take(bytes, self.inner.limit);
        drop(state);
        self.share(bytes)
    }

    fn share(&self, bytes: usize) -> Share {
        Share {
            budget: self.clone(),
            bytes,
        }
    }

    fn give_back(&self, bytes: usize) {
        let mut granted = Vec::new();
        {
            let mut state = self.inner.state.lock();
            state.used -= bytes;
            while let Some((wanted, _)) = state.waiting.front() {
                if state.used + wanted > self.inner.limit {
                    break;
                }
                if let Some((wanted, grant)) = state.waiting.pop_front() {
                    state.take(wanted, self.inner.limit);
                    granted.push((grant, self.share(wanted)));
                }
            }
        }
        for (grant, share) in granted {
            // A waiter that is gone hands its share back through this drop, outside the lock.
            drop(grant.send(share));
        }
    }

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        let mut state = self.inner.state.lock();
        let fitting = |buffer: &Vec<u8>| (bytes..=bytes + bytes / 2).contains(&buffer.capacity());
        let best = (0..state.idle.len())
            .filter(|&index| fitting(&state.idle[index]))
            .min_by_key(|&index| state.idle[index].capacity());
        match best {
            Some(index) => {
                let buffer = state.idle.remove(index);
                state.idle_bytes -= buffer.capacity();
                buffer
            }
            None => {
                drop(state);
                Vec::with_capacity(bytes.next_multiple_of(BUFFER_STEP))
            }
        }
    }

    fn put_buffer(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let idle_max = self.inner.limit / 4;
        if buffer.capacity() > idle_max {
            return;
        }
        let mut state = self.inner.state.lock();
        // Sizes change with the load: what nobody took for longest makes room, or the pool would
        // silt up.
        while state.idle_bytes + buffer.capacity() > idle_max {
            state.drop_oldest();
        }
        state.idle_bytes += buffer.capacity();
        state.idle.push(buffer);
    }
}

/// Buffers are multiples of this, so that frames of similar size share them.
const BUFFER_STEP: usize = 64 << 10;
/// Smaller frames get memory of their own from the allocator, which is quicker than the pool.
const POOLED_BYTES_MIN: usize = 32 << 10;

impl Share {
    /// The bytes it stands for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows (without asking) or shrinks it.
    pub fn resize(&mut self, bytes: usize) {
        if bytes > self.bytes {
            let inner = &self.budget.inner;
            inner.state.lock().take(bytes - self.bytes, inner.limit);
        } else if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// An empty buffer with room for exactly `bytes`, which the share is resized to.
    pub(crate) fn into_buffer(mut self, bytes: usize) -> FrameBuffer {
        let buffer = if bytes < POOLED_BYTES_MIN {
            Vec::with_capacity(bytes)
        } else {
            self.budget.buffer(bytes)
        };
        self.resize(buffer.capacity());
        FrameBuffer {
            buffer,
            share: Some(self),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({} bytes)", self.bytes)
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryBudget({} of {} bytes)", self.used(), self.limit())
    }
}

/// The memory of one frame, with its share of the budget if it has one.
pub(crate) struct FrameBuffer {
    pub(crate) buffer: Vec<u8>,
    share: Option<Share>,
}

impl FrameBuffer {
    /// A buffer outside any budget, for answers that carry no records.
    pub(crate) fn plain(bytes: usize) -> FrameBuffer {
        FrameBuffer {
            buffer: Vec::with_capacity(bytes),
            share: None,
        }
    }

    pub(crate) fn freeze(mut self) -> Bytes {
        if let Some(share) = &mut self.share {
            // It may have grown while it was filled.
            share.resize(self.buffer.capacity());
        }
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for FrameBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for FrameBuffer {
    fn drop(&mut self) {
        if let Some(share) = &self.share
            && self.buffer.capacity() >= POOLED_BYTES_MIN
        {
            share.budget.put_buffer(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_last_slice_of_a_frame_gives_its_memory_back() {
        let budget = MemoryBudget::new(1 << 20);
        let mut frame = budget.take(100_000).into_buffer(100_000);
        frame.buffer.resize(100_000, 7);
        let frame = frame.freeze();
        let slice = frame.slice(10..20);

        drop(frame);
        let while_held = budget.used();
        drop(slice);

        assert_eq!((while_held, budget.used()), (131_072, 0));
    }

    #[test]
    fn a_returned_buffer_serves_the_next_frame_of_its_size() {
        let budget = MemoryBudget::new(1 << 20);
        let first = budget.take(0).into_buffer(100_000);
        let memory = first.buffer.as_ptr();

        drop(first.freeze());
        let second = budget.take(0).into_buffer(90_000);

        assert_eq!(second.buffer.as_ptr(), memory);
        assert!(second.buffer.is_empty());
    }

    #[test]
    fn idle_buffers_stay_below_a_quarter_of_the_limit() {
        let budget = MemoryBudget::new(1 << 20);
        let frames: Vec<_> = (0..10)
            .map(|_| budget.take(0).into_buffer(128 << 10))
            .collect();

        drop(frames);

        assert_eq!(budget.inner.state.lock().idle_bytes, 256 << 10);
    }

    #[test]
    fn buffers_of_a_size_that_is_no_longer_asked_for_make_room() {
        let budget = MemoryBudget::new(1 << 20);
        let small: Vec<_> = (0..4)
            .map(|_| budget.take(0).into_buffer(64 << 10))
            .collect();
        drop(small);
        let large = budget.take(0).into_buffer(200 << 10);
        let memory = large.buffer.as_ptr();

        drop(large);
        let next = budget.take(0).into_buffer(200 << 10);

        assert_eq!(next.buffer.as_ptr(), memory);
    }

    #[tokio::test]
    async fn reservations_are_granted_in_the_order_they_were_asked_for() {
        let budget = MemoryBudget::new(100);
        let held = budget.reserve(60).await;
        let mut large = Box::pin(budget.reserve(80));
        let mut small = Box::pin(budget.reserve(10));
        let pending = futures_are_pending(&mut large, &mut small).await;

        drop(held);
        let large = large.await;

        assert!(pending);
        assert_eq!((large.bytes(), budget.used()), (80, 90));
        assert_eq!(small.await.bytes(), 10);
    }

    #[test]
    fn idle_buffers_make_room_for_what_is_used() {
        let budget = MemoryBudget::new(1 << 20);
        drop(budget.take(0).into_buffer(200_000).freeze());
        let idle = budget.inner.state.lock().idle_bytes;

        let fits = budget.take((1 << 20) - idle);
        let still_idle = budget.inner.state.lock().idle_bytes;
        let more = budget.take(1);

        assert!(idle >= 200_000);
        assert_eq!(still_idle, idle);
        assert_eq!(budget.inner.state.lock().idle_bytes, 0);
        drop((fits, more));
    }

    #[tokio::test]
    async fn a_cancelled_waiter_does_not_keep_its_share() {
        let budget = MemoryBudget::new(100);
        let held = budget.reserve(60).await;
        let mut gone = Box::pin(budget.reserve(80));
        let mut next = Box::pin(budget.reserve(100));
        futures_are_pending(&mut gone, &mut next).await;

        drop(gone);
        drop(held);

        assert_eq!(next.await.bytes(), 100);
    }

    #[tokio::test]
    async fn more_than_the_limit_is_granted_as_the_limit() {
        let budget = MemoryBudget::new(100);

        assert_eq!(budget.reserve(1_000).await.bytes(), 100);
        assert!(budget.try_reserve(1).is_some());
    }

    async fn futures_are_pending<A: Future + Unpin, B: Future + Unpin>(
        first: &mut A,
        second: &mut B,
    ) -> bool {
        std::future::poll_fn(|context| {
            let first = std::pin::Pin::new(&mut *first).poll(context).is_pending();
            let second = std::pin::Pin::new(&mut *second).poll(context).is_pending();
            std::task::Poll::Ready(first && second)
        })
        .await
    }
}
