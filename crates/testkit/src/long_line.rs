//! A long line on the clock of a test: in-memory streams whose answers come later, for tests that
//! pause the clock and count what waiting for answers costs. It may have a window, as a TCP
//! connection has: so many bytes of each direction may be under way at a time.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use twinlog_kafka::transport::{BoxFuture, Stream, Transport};

/// The most bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A transport over another one, on which every byte of an answer comes one round trip later, in
/// order and however many are under way.
pub struct LongLine {
    line: Arc<dyn Transport>,
    round_trip: Duration,
    window: usize,
}

impl LongLine {
    /// As `line`, but so much longer.
    pub fn over(line: Arc<dyn Transport>, round_trip: Duration) -> Self {
        LongLine {
            line,
            round_trip,
            window: usize::MAX,
        }
    }

    /// Each connection carries at most so many bytes a round trip, in each direction.
    pub fn with_window(self, bytes: usize) -> Self {
        LongLine {
            window: bytes,
            ..self
        }
    }
}

impl fmt::Debug for LongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongLine({:?}, {:?})", self.round_trip, self.line)
    }
}

impl Transport for LongLine {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(async move {
            let stream = self.line.connect(host, port).await?;
            Ok(stretched(stream, self.round_trip, self.window))
        })
    }
}

fn stretched(stream: Stream, round_trip: Duration, window: usize) -> Stream {
    let Stream { reader, writer } = stream;
    let now = || Box::pin(sleep_until(Instant::now()));
    Stream {
        reader: Box::new(Late {
            reader,
            delay: round_trip,
            room: window,
            under_way: VecDeque::new(),
            has_ended: false,
            due: now(),
        }),
        writer: Box::new(Windowed {
            writer,
            delay: round_trip,
            room: window,
            under_way: VecDeque::new(),
            due: now(),
        }),
    }
}

/// Gives out what it reads after a delay.
struct Late {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    delay: Duration,
    /// What the window leaves.
    room: usize,
    /// What was read, and when it is due.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    has_ended: bool,
    due: Pin<Box<Sleep>>,
}

impl Late {
    /// Takes in whatever has come, to be woken when there is more.
    fn take_in(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.has_ended && self.room > 0 {
            let mut chunk = vec![0; CHUNK_BYTES.min(self.room)];
            let mut buffer = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.reader).poll_read(context, &mut buffer) {
                Poll::Pending => return Ok(()),
                Poll::Ready(read) => read?,
            }
            let length = buffer.filled().len();
            self.has_ended = length == 0;
            self.room -= length;
            chunk.truncate(length);
            self.under_way
                .push_back((Instant::now() + self.delay, chunk));
        }
        Ok(())
    }
}

impl AsyncRead for Late {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.take_in(context)?;
        let Some((at, _)) = self.under_way.front() else {
            return match self.has_ended {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            };
        };
        let at = *at;
        self.due.as_mut().reset(at);
        ready!(self.due.as_mut().poll(context));
        if let Some((_, chunk)) = self.under_way.front_mut() {
            let length = chunk.len().min(buffer.remaining());
            buffer.put_slice(&chunk[..length]);
            chunk.drain(..length);
            if chunk.is_empty() {
                self.under_way.pop_front();
            }
            self.room += length;
        }
        Poll::Ready(Ok(()))
    }
}

/// Takes no more than a window of bytes in the time of a round trip.
struct Windowed {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    delay: Duration,
    room: usize,
    /// What was taken, and when that is known here.
    under_way: VecDeque<(Instant, usize)>,
    due: Pin<Box<Sleep>>,
}

impl AsyncWrite for Windowed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        while let Some((at, length)) = self.under_way.front().copied() {
            if at > Instant::now() {
                break;
            }
            self.room += length;
            self.under_way.pop_front();
        }
        if let Some((at, _)) = self.under_way.front().copied()
            && self.room == 0
        {
            self.due.as_mut().reset(at);
            ready!(self.due.as_mut().poll(context));
            return self.poll_write(context, bytes);
        }
        let length = bytes.len().min(self.room);
        let written = ready!(Pin::new(&mut self.writer).poll_write(context, &bytes[..length]))?;
        let at = Instant::now() + self.delay;
        self.room -= written;
        self.under_way.push_back((at, written));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InMemory;
    use anyhow::Result;
    use mini_kafka::{MiniKafka, Options};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use twinlog_kafka::client::{Client, Purpose};
    use twinlog_kafka::metadata::Topics;
    use twinlog_kafka::wire::ApiVersionsRequest;

    #[tokio::test(start_paused = true)]
    async fn answers_come_a_round_trip_later_and_requests_need_not_wait_for_each_other()
    -> Result<()> {
        let cluster = Arc::new(MiniKafka::start(Options::default()));
        let round_trip = Duration::from_millis(100);
        let mut config = InMemory::client_config(&cluster)?;
        config.transport = Arc::new(LongLine::over(config.transport, round_trip));
        let client = Client::new(config);
        client.refresh(&Topics::None).await?;
        let broker = cluster.broker_ids()[0];
        let connection = client.connection(broker, Purpose::General).await?;

        let before = Instant::now();
        let request = ApiVersionsRequest::default();
        let (first, second) = tokio::join!(connection.call(&request), connection.call(&request));

        first.and(second)?;
        assert_eq!(before.elapsed(), round_trip);
        assert_eq!(connection.round_trip(), round_trip);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_is_what_a_connection_carries_in_a_round_trip() -> Result<()> {
        let round_trip = Duration::from_millis(100);
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let Stream {
            mut reader,
            mut writer,
        } = stretched(Stream::split(near), round_trip, 1_000);

        let before = Instant::now();
        writer.write_all(&[1; 10_000]).await?;
        let written = before.elapsed();
        far.write_all(&[2; 10_000]).await?;
        let before = Instant::now();
        reader.read_exact(&mut [0; 10_000]).await?;

        assert_eq!(written, 9 * round_trip);
        assert_eq!(before.elapsed(), 10 * round_trip);
        Ok(())
    }
}
