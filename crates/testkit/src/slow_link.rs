//! A long line to a broker: bytes arrive later, but no fewer of them.
//!
//! ```text
//!   client ──> reader ──[chunk, when it is due]──> writer ──> broker     one pair of threads
//!          <── writer <──[chunk, when it is due]── reader <──            for either direction
//! ```
//!
//! Every byte is passed on one delay after it came, in order, however many are under way, unless the
//! line has a window: then a connection carries no more than that in a round trip, as where a socket
//! buffer of that size is at either end.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use socket2::SockRef;

use crate::eventually::now;

/// The most bytes that are read at once.
const CHUNK_BYTES: usize = 128 * 1024;
/// Chunks that may be under way in one direction of a connection: 1 GiB if all are full.
const CHUNKS_MAX: usize = 8 * 1024;

/// Bytes, and when they come out at the other end.
type Chunk = (Instant, Vec<u8>);

/// What a link is like.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    one_way: Duration,
    window: usize,
}

impl Line {
    /// A request and its answer take twice `one_way` longer than without.
    pub fn of(one_way: Duration) -> Self {
        Self {
            one_way,
            window: usize::MAX,
        }
    }

    /// Each connection carries at most so many bytes a round trip, in each direction.
    #[must_use]
    pub fn with_window(self, bytes: usize) -> Self {
        Self {
            window: bytes,
            ..self
        }
    }
}

/// A listener whose connections lead to another address, with a delay in both directions.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl SlowLink {
    /// Listens for connections that are to lead to `target`; it needs not listen yet.
    ///
    /// # Errors
    /// When there is no port to listen on.
    pub fn start(target: &str, line: Line) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("listen for a slow link")?;
        let address = listener.local_addr().context("address of a slow link")?;
        let target = target.to_owned();
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let accepting = thread::spawn(move || {
            for client in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                // A connection that fails is closed, and whoever made it sees that.
                if let Err(error) = client.and_then(|client| join(client, &target, line)) {
                    tracing::debug!(%error, target, "a slow link leads nowhere");
                }
            }
        });
        Ok(Self {
            address,
            closing,
            accepting: Some(accepting),
        })
    }

    /// Where it listens, `127.0.0.1:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for SlowLink {
    /// Takes no more connections. Those there are end with their ends.
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address).ok();
        self.accepting.take().map(JoinHandle::join);
    }
}

/// Leads a connection to `target`.
fn join(client: TcpStream, target: &str, line: Line) -> std::io::Result<()> {
    let server = TcpStream::connect(target)?;
    if line.window < usize::MAX {
        // Or these would take in what waits for room on the line.
        SockRef::from(&client).set_recv_buffer_size(line.window)?;
        SockRef::from(&server).set_recv_buffer_size(line.window)?;
    }
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(client.try_clone()?, server.try_clone()?, line);
    carry(server, client, line);
    Ok(())
}

/// One direction.
fn carry(from: TcpStream, to: TcpStream, line: Line) {
    let (sender, receiver) = sync_channel(CHUNKS_MAX);
    thread::spawn(move || read(from, &sender, line));
    thread::spawn(move || write(to, &receiver));
}

/// Stamps what comes in, until there is no more or nobody wants it.
fn read(mut from: TcpStream, chunks: &SyncSender<Chunk>, line: Line) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut window = Window::of(line);
    loop {
        let room = window.wait_for_room().min(CHUNK_BYTES);
        let read = match from.read(&mut buffer[..room]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A connection that breaks looks like one that ends.
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        window.take(read);
        if chunks
            .send((now() + line.one_way, buffer[..read].to_vec()))
            .is_err()
        {
            from.shutdown(Shutdown::Read).ok();
            return;
        }
    }
}

/// The bytes of a connection that are under way in one direction.
struct Window {
    line: Line,
    room: usize,
    /// When there is room for more again.
    under_way: VecDeque<(Instant, usize)>,
}

impl Window {
    fn of(line: Line) -> Self {
        Self {
            line,
            room: line.window,
            under_way: VecDeque::new(),
        }
    }

    fn take(&mut self, bytes: usize) {
        self.room -= bytes;
        // There and back: only then is known here that they came.
        self.under_way
            .push_back((now() + 2 * self.line.one_way, bytes));
    }

    fn wait_for_room(&mut self) -> usize {
        while let Some((due, bytes)) = self.under_way.front().copied() {
            if self.room == 0 {
                wait_until(due);
            } else if due > now() {
                break;
            }
            self.room += bytes;
            self.under_way.pop_front();
        }
        self.room
    }
}

/// Passes on what is due, then the end.
fn write(mut to: TcpStream, chunks: &Receiver<Chunk>) {
    for (due, bytes) in chunks {
        wait_until(due);
        if to.write_all(&bytes).is_err() {
            to.shutdown(Shutdown::Both).ok();
            return;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the delay of a line is real time, not a wait for something"
)]
fn wait_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_WAY: Duration = Duration::from_millis(30);

    /// A server that sends back what it gets, until the end.
    fn echo() -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut from, _) = listener.accept().unwrap();
            let mut to = from.try_clone().unwrap();
            std::io::copy(&mut from, &mut to).unwrap();
            to.shutdown(Shutdown::Write).unwrap();
        });
        address
    }

    #[test]
    fn an_answer_takes_the_delay_twice_and_is_whole() {
        let link = SlowLink::start(&echo(), Line::of(ONE_WAY)).unwrap();
        let mut client = TcpStream::connect(link.address()).unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut writing = client.try_clone().unwrap();
        let copy = sent.clone();

        let started = now();
        let writer = thread::spawn(move || {
            writing.write_all(&copy).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();

        writer.join().unwrap();
        assert!(started.elapsed() >= 2 * ONE_WAY);
        assert!(answer == sent, "{} bytes came back", answer.len());
    }

    #[test]
    fn a_window_is_what_a_connection_carries_in_a_round_trip() {
        const WINDOW: usize = 100_000;
        let line = Line::of(ONE_WAY).with_window(WINDOW);
        let link = SlowLink::start(&echo(), line).unwrap();
        let mut client = TcpStream::connect(link.address()).unwrap();

        let started = now();
        client.write_all(&[7; 5 * WINDOW]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();

        assert_eq!(answer.len(), 5 * WINDOW);
        // The fifth waits for four, and then goes there and back.
        assert!(started.elapsed() >= 5 * 2 * ONE_WAY);
    }

    #[test]
    fn a_link_to_nowhere_closes_its_connections() {
        let gone = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = gone.local_addr().unwrap().to_string();
        drop(gone);
        let link = SlowLink::start(&address, Line::of(ONE_WAY)).unwrap();

        let mut client = TcpStream::connect(link.address()).unwrap();

        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    }
}
