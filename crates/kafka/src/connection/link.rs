//! The two tasks behind a connection, and what they share with its handles.
//!
//! ```text
//! handles --Outgoing--> writer task --> socket
//!    \--- Pending (correlation id, where the answer goes) ---\
//! Reply <---------------- frame ----------- reader task <--- socket
//! ```
//!
//! Invariants: (A) a pending entry is registered before its request is written, and in the same
//! order, so an answer finds it at the front or the connection is broken. (B) `ended` is set before
//! any pending entry is dropped because of it, so whoever finds its sender gone can say why.
//! (C) Once ended, nothing is registered any more. (D) The entry of a caller that has given up
//! stays until its answer comes, because the broker answers it all the same.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::chunks::Chunks;
use crate::memory::{FrameBuffer, Share};

/// A request that was sent and has no answer yet.
pub(super) struct Pending {
    pub(super) correlation_id: i32,
    pub(super) since: Instant,
    pub(super) answer: oneshot::Sender<Bytes>,
    /// The memory reserved for the answer, for answers that carry records.
    pub(super) share: Option<Share>,
    pub(super) _in_flight: OwnedSemaphorePermit,
}

/// What handles and tasks of one connection share.
pub(super) struct Link {
    state: Mutex<State>,
    closed: CancellationToken,
}

struct State {
    pending: VecDeque<Pending>,
    ended: Option<Arc<io::Error>>,
    muted_until: Option<Instant>,
    last_used: Instant,
    /// When the peer last took bytes.
    last_taken: Instant,
    /// The least time that an answer took.
    round_trip: Option<Duration>,
}

impl Link {
    pub(super) fn new() -> Arc<Link> {
        Arc::new(Link {
            state: Mutex::new(State {
                pending: VecDeque::new(),
                ended: None,
                muted_until: None,
                last_used: Instant::now(),
                last_taken: Instant::now(),
                round_trip: None,
            }),
            closed: CancellationToken::new(),
        })
    }

    /// Registers a request and queues it for writing, which must not block, or says why the
    /// connection ended.
    pub(super) fn register(
        &self,
        pending: Pending,
        queue: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Arc<io::Error>> {
        let mut state = self.state.lock();
        if let Some(cause) = &state.ended {
            return Err(cause.clone());
        }
        state.last_used = Instant::now();
        state.pending.push_back(pending);
        // Under the lock, so that requests are written in the order in which they are registered.
        queue().map_err(|cause| {
            state.pending.pop_back();
            Arc::new(cause)
        })
    }

    /// Ends the connection: the first cause stays, and everything that waits for an answer learns
    /// of it.
    pub(super) fn end(&self, cause: io::Error) {
        let orphans = {
            let mut state = self.state.lock();
            state.ended.get_or_insert_with(|| Arc::new(cause));
            std::mem::take(&mut state.pending)
        };
        self.closed.cancel();
        drop(orphans);
    }

    pub(super) fn ended(&self) -> Option<Arc<io::Error>> {
        self.state.lock().ended.clone()
    }

    pub(super) async fn wait_until_ended(&self) {
        self.closed.cancelled().await;
    }

    /// When the connection was last used; `None` while requests wait for an answer.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.pending.is_empty().then_some(state.last_used)
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.state.lock().round_trip
    }

    pub(super) fn last_taken(&self) -> Instant {
        self.state.lock().last_taken
    }

    pub(super) fn mute(&self, until: Instant) {
        let mut state = self.state.lock();
        state.muted_until = state.muted_until.max(Some(until));
    }

    pub(super) fn muted_until(&self) -> Option<Instant> {
        let until = self.state.lock().muted_until?;
        (until > Instant::now()).then_some(until)
    }

    /// The request that is answered. Brokers answer in order: an answer to a later request proves
    /// that the one to the first was lost.
    fn answered(&self, correlation_id: i32) -> io::Result<Pending> {
        let mut state = self.state.lock();
        let Some(first) = state.pending.pop_front() else {
            return Err(invalid(format!(
                "an answer to request {correlation_id}, which nobody asked"
            )));
        };
        if first.correlation_id != correlation_id {
            let due = first.correlation_id;
            // Invariant B: it goes with the others, once there is a cause.
            state.pending.push_front(first);
            return Err(invalid(format!(
                "an answer to request {correlation_id} where one to {due} was due"
            )));
        }
        let now = Instant::now();
        let took = now.duration_since(first.since);
        state.round_trip = Some(state.round_trip.map_or(took, |least| least.min(took)));
        state.last_used = now;
        Ok(first)
    }
}

/// Ends the link when its task ends, whichever way.
struct EndOnDrop(Arc<Link>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(io::Error::other("the connection was dropped"));
    }
}

/// Writes requests until the link ends. Whatever is queued goes out together, without copying.
pub(super) async fn write_requests<W>(
    mut writer: W,
    mut outgoing: mpsc::Receiver<Vec<Bytes>>,
    link: Arc<Link>,
) where
    W: AsyncWrite + Unpin,
{
    let link = EndOnDrop(link);
    while let Some(request) = outgoing.recv().await {
        if let Some(until) = link.0.muted_until() {
            sleep_until(until).await;
        }
        let mut chunks = Chunks::from(request);
        while let Ok(next) = outgoing.try_recv() {
            chunks.extend(next);
        }
        let written = write_all(&mut writer, &mut chunks, &link.0);
        if let Err(error) = written.await {
            link.0.end(error);
            return;
        }
    }
}

/// Writes it all, and takes note of each part that the peer has taken: on a slow line that is the
/// only sign of life for a while.
async fn write_all<W>(writer: &mut W, chunks: &mut Chunks, link: &Link) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while chunks.has_remaining() {
        if writer.write_buf(chunks).await? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        link.state.lock().last_taken = Instant::now();
    }
    writer.flush().await
}

/// Reads answers until the link ends.
pub(super) async fn read_answers<R>(mut reader: R, frame_bytes_max: usize, link: Arc<Link>)
where
    R: AsyncRead + Unpin,
{
    let link = EndOnDrop(link);
    let mut head = BytesMut::with_capacity(HEAD_BYTES);
    loop {
        if let Err(error) = read_answer(&mut reader, &mut head, frame_bytes_max, &link.0).await {
            link.0.end(error);
            return;
        }
    }
}

/// Frames shorter than this cost one read; of longer ones this much at most is copied.
const HEAD_BYTES: usize = 8 << 10;

async fn read_answer<R>(
    reader: &mut R,
    head: &mut BytesMut,
    frame_bytes_max: usize,
    link: &Link,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
{
    while head.len() < 8 {
        head.reserve(HEAD_BYTES - head.len());
        if reader.read_buf(head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let length = head.get_i32();
    let correlation_id = head.get_i32();
    let body = usize::try_from(length)
        .ok()
        .filter(|length| *length <= frame_bytes_max)
        .and_then(|length| length.checked_sub(4))
        .ok_or_else(|| invalid(format!("an answer claims {length} bytes")))?;
    let mut pending = link.answered(correlation_id)?;
    let mut frame = match pending.share.take() {
        Some(share) => share.into_buffer(body),
        None => FrameBuffer::plain(body),
    };
    let known = body.min(head.len());
    frame.buffer.put_slice(&head[..known]);
    head.advance(known);
    while frame.buffer.len() < body {
        let rest = body - frame.buffer.len();
        let read = reader.read_buf(&mut (&mut frame.buffer).limit(rest)).await;
        if let Err(error) = read.and_then(not_the_end) {
            // Invariant B: the cause first, then `pending` goes.
            link.end(error);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    // Nobody waits any more when the caller was cancelled; the frame's memory goes back at once.
    drop(pending.answer.send(frame.freeze()));
    Ok(())
}

fn not_the_end(bytes: usize) -> io::Result<()> {
    match bytes {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn invalid(detail: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail)
}
