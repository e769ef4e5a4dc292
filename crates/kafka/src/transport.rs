//! How bytes reach a broker: a trait with TCP behind it, so that TLS and in-memory networks fit
//! without the rest noticing.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connected byte stream, already cut into its two directions, which are driven by two tasks.
///
/// The writer should forward vectored writes: record batches are written from where they lie.
pub struct Stream {
    /// What the broker sends.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What the broker receives.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Stream {
    /// Cuts any duplex stream in two. TCP has a cheaper way of its own.
    pub fn split<S>(stream: S) -> Stream
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        Stream {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// Opens byte streams to brokers.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// Whatever kept it from doing so; the caller wraps it with the address and retries.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>>;
}

/// Plain TCP.
#[derive(Debug, Clone)]
pub struct Tcp {
    /// `socket.connection.setup.timeout.ms`: for each address that the name resolves to.
    pub setup_timeout: Duration,
    /// `send.buffer.bytes`: `SO_SNDBUF`, `None` for what the kernel chooses.
    pub send_buffer_bytes: Option<usize>,
    /// `receive.buffer.bytes`: `SO_RCVBUF`, `None` for what the kernel chooses.
    pub receive_buffer_bytes: Option<usize>,
    /// After this long without an answer to data or probes the kernel drops the connection.
    pub dead_peer_timeout: Duration,
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp {
            setup_timeout: Duration::from_secs(10),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            dead_peer_timeout: Duration::from_secs(20),
        }
    }
}

impl Transport for Tcp {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(self.connect_any(host, port))
    }
}

impl Tcp {
    /// Tries all addresses of the name in turn (`client.dns.lookup=use_all_dns_ips`).
    async fn connect_any(&self, host: &str, port: u16) -> io::Result<Stream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let resolved = timeout(self.setup_timeout, tokio::net::lookup_host((host, port)));
        for address in resolved.await?? {
            match timeout(self.setup_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return self.prepare(stream),
                Ok(Err(error)) => last = error,
                Err(elapsed) => last = elapsed.into(),
            }
        }
        Err(last)
    }

    fn prepare(&self, stream: TcpStream) -> io::Result<Stream> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        // Idle for half the time, then four probes in the other half.
        let half = (self.dead_peer_timeout / 2).max(Duration::from_secs(1));
        let probe = (half / 4).max(Duration::from_secs(1));
        let keepalive = TcpKeepalive::new().with_time(half).with_interval(probe);
        #[cfg(not(windows))]
        let keepalive = keepalive.with_retries(4);
        socket.set_tcp_keepalive(&keepalive)?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(self.dead_peer_timeout))?;
        if let Some(bytes) = self.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        let (reader, writer) = stream.into_split();
        Ok(Stream {
            reader: Box::new(reader),
            writer: Box::new(writer),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn all_addresses_of_a_name_are_tried() {
        // `localhost` may resolve to ::1 first, where nobody listens.
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tcp = Tcp::default();

        let (stream, accepted) = tokio::join!(tcp.connect("localhost", port), listener.accept());
        let (mut ours, (mut theirs, _)) = (stream.unwrap(), accepted.unwrap());
        ours.writer.write_all(b"ping").await.unwrap();
        let mut heard = [0; 4];
        theirs.read_exact(&mut heard).await.unwrap();

        assert_eq!(&heard, b"ping");
        assert!(
            ours.writer.is_write_vectored(),
            "record batches would be copied"
        );
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_an_error_at_once() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);

        let refused = Tcp::default().connect("127.0.0.1", port).await;

        assert_eq!(
            refused.unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
