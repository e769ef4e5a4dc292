//! What runs: connections, listeners, and the tasks that serve them.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::{self, Reply};
use crate::faults::{Direction, Faults, Observer};
use crate::options::Options;
use crate::state::State;

/// `socket.request.max.bytes`.
const REQUEST_BYTES_MAX: usize = 100 * 1024 * 1024;

/// What stands before each frame.
const FRAME_LENGTH_BYTES: usize = 4;

/// The shared inside of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub state: Mutex<State>,
    pub faults: Mutex<Faults>,
    pub observer: Mutex<Observer>,
    /// Ends everything.
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl Cluster {
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Cluster {
            state: Mutex::new(State::new(options)),
            faults: Mutex::default(),
            observer: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
        })
    }

    /// A token that ends with the cluster, or before it.
    pub fn child_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Runs a task until it ends or the cluster does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let mut tasks = self.tasks.lock();
        while let Some(ended) = tasks.try_join_next() {
            report(ended);
        }
        tasks.spawn(async move {
            stop.run_until_cancelled_owned(task).await;
        });
    }

    /// Ends all tasks.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends all tasks and waits for them.
    pub async fn shut_down(&self) {
        self.stop();
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task of mini-kafka failed");
    }
}

/// Accepts connections of one broker until its `life` ends.
pub(crate) async fn listen(
    cluster: Arc<Cluster>,
    broker: i32,
    listener: TcpListener,
    life: CancellationToken,
    closed: tokio::sync::watch::Sender<bool>,
) {
    while let Some(Ok((stream, _))) = life.run_until_cancelled(listener.accept()).await {
        // Without it, small answers wait for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection closed while it was accepted");
            continue;
        }
        let (shared, life) = (Arc::clone(&cluster), life.clone());
        cluster.spawn(serve(shared, broker, stream, life));
    }
    drop(listener);
    closed.send_replace(true);
}

/// Binds a port of 127.0.0.1; 0 takes a free one.
pub(crate) async fn bind(port: u16) -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Serves one connection until the peer closes it or the broker's `life` ends.
pub(crate) async fn serve(
    cluster: Arc<Cluster>,
    broker: i32,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    life: CancellationToken,
) {
    if let Some(Err(error)) = life
        .run_until_cancelled(converse(cluster, broker, stream))
        .await
    {
        tracing::debug!(broker, %error, "connection lost");
    }
}

/// One request at a time, as a broker does on one connection, so that answers keep their order.
async fn converse(
    cluster: Arc<Cluster>,
    broker: i32,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
) -> io::Result<()> {
    while let Some(frame) = read_frame(&mut stream).await? {
        let see = |direction, frame: &[u8]| {
            cluster.observer.lock().see(broker, direction, frame);
        };
        see(Direction::Request, &frame);
        match api::dispatch(&cluster, broker, frame).await {
            Reply::Frame(answer, pause) => {
                see(Direction::Answer, &answer[FRAME_LENGTH_BYTES..]);
                stream.write_all(&answer).await?;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            Reply::Nothing => {}
            Reply::Hangup => break,
            Reply::Silence => {
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
                break;
            }
        }
    }
    Ok(())
}

async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Bytes>> {
    let length = match stream.read_u32().await {
        Ok(length) => length as usize,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > REQUEST_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "request too large",
        ));
    }
    let mut frame = BytesMut::with_capacity(length);
    while frame.len() < length {
        let missing = (length - frame.len()) as u64;
        if (&mut *stream).take(missing).read_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(frame.freeze()))
}
