//! A long line to a broker: bytes arrive later, but no fewer of them.
//!
//! ```text
//!   client ──> reader ──[chunk, when it is due]──> writer ──> broker     one pair of threads
//!          <── writer <──[chunk, when it is due]── reader <──            for either direction
//! ```
//!
//! Every byte is passed on one delay after it came, in order, however many are under way. What a
//! TCP window would hold back on a real line of this length is not modelled: what is measured
//! through it is what a client itself makes of waiting for answers.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::eventually::now;

/// The most bytes that are read at once.
const CHUNK_BYTES: usize = 128 * 1024;
/// Chunks that may be under way in one direction of a connection: 1 GiB if all are full.
const CHUNKS_MAX: usize = 8 * 1024;

/// Bytes, and when they come out at the other end.
type Chunk = (Instant, Vec<u8>);

/// A listener whose connections lead to another address, with a delay in both directions.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl SlowLink {
    /// Listens for connections that are to lead to `target`; it needs not listen yet. A request and
    /// its answer take twice `one_way` longer than without.
    ///
    /// # Errors
    /// When there is no port to listen on.
    pub fn start(target: &str, one_way: Duration) -> Result<Self> {
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
                if let Err(error) = client.and_then(|client| join(client, &target, one_way)) {
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
fn join(client: TcpStream, target: &str, one_way: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(client.try_clone()?, server.try_clone()?, one_way);
    carry(server, client, one_way);
    Ok(())
}

/// One direction.
fn carry(from: TcpStream, to: TcpStream, one_way: Duration) {
    let (sender, receiver) = sync_channel(CHUNKS_MAX);
    thread::spawn(move || read(from, &sender, one_way));
    thread::spawn(move || write(to, &receiver));
}

/// Stamps what comes in, until there is no more or nobody wants it.
fn read(mut from: TcpStream, chunks: &SyncSender<Chunk>, one_way: Duration) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A connection that breaks looks like one that ends.
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        if chunks
            .send((now() + one_way, buffer[..read].to_vec()))
            .is_err()
        {
            from.shutdown(Shutdown::Read).ok();
            return;
        }
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
        let link = SlowLink::start(&echo(), ONE_WAY).unwrap();
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
    fn a_link_to_nowhere_closes_its_connections() {
        let gone = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = gone.local_addr().unwrap().to_string();
        drop(gone);
        let link = SlowLink::start(&address, ONE_WAY).unwrap();

        let mut client = TcpStream::connect(link.address()).unwrap();

        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    }
}
