//! A long line on the clock of a test: in-memory streams whose answers come later, for tests that
//! pause the clock and count what waiting for answers costs.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use twinlog_kafka::transport::{BoxFuture, Stream, Transport};

/// The most bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A transport over another one, on which every byte of an answer comes one round trip later, in
/// order and however many are under way.
pub struct LongLine {
    line: Arc<dyn Transport>,
    round_trip: Duration,
}

impl LongLine {
    /// As `line`, but so much longer.
    pub fn over(line: Arc<dyn Transport>, round_trip: Duration) -> Self {
        LongLine { line, round_trip }
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
            let Stream { reader, writer } = self.line.connect(host, port).await?;
            let reader = Late {
                reader,
                delay: self.round_trip,
                under_way: VecDeque::new(),
                has_ended: false,
                due: Box::pin(sleep_until(Instant::now())),
            };
            Ok(Stream {
                reader: Box::new(reader),
                writer,
            })
        })
    }
}

/// Gives out what it reads after a delay.
struct Late {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    delay: Duration,
    /// What was read, and when it is due.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    has_ended: bool,
    due: Pin<Box<Sleep>>,
}

impl Late {
    /// Takes in whatever has come, to be woken when there is more.
    fn take_in(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.has_ended {
            let mut chunk = vec![0; CHUNK_BYTES];
            let mut buffer = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.reader).poll_read(context, &mut buffer) {
                Poll::Pending => return Ok(()),
                Poll::Ready(read) => read?,
            }
            let length = buffer.filled().len();
            self.has_ended = length == 0;
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
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InMemory;
    use anyhow::Result;
    use mini_kafka::{MiniKafka, Options};
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
}
