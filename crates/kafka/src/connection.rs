//! One multiplexed connection to one broker.
//!
//! Requests are numbered, written in the order they were sent and may be many at a time; answers
//! come in the same order, or the connection ends: one that is missing was lost. A request that stays unanswered for its time ends the connection,
//! as in Java's client, so that a dead peer costs seconds. A caller that is cancelled changes
//! nothing for the others: its request is written to the end, its answer dropped.
//!
//! The broker serves one request of a connection at a time, so a long poll delays whatever is sent
//! behind it: use another connection for that ([`Purpose`](crate::client::Purpose)).

mod chunks;
mod handshake;
mod link;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

pub use self::handshake::BrokerVersions;
use self::link::{Link, Pending};
use crate::address::Address;
use crate::config::ClientConfig;
use crate::error::{Error, Result};
use crate::memory::Share;
use crate::wire::{self, Api, ApiKey, Request, Throttle};

/// A handle to a connection; clones share it, and the last one to go closes it.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    peer: Address,
    client_id: String,
    request_timeout: Duration,
    next_correlation_id: AtomicI32,
    in_flight: Arc<Semaphore>,
    outgoing: mpsc::Sender<Vec<Bytes>>,
    link: Arc<Link>,
    versions: OnceLock<BrokerVersions>,
    /// Aborted with the last handle, so that no task outlives its connection.
    _tasks: JoinSet<()>,
}

/// What is special about one request.
#[derive(Debug, Default)]
pub struct CallOptions {
    /// Use no version above this one.
    pub version_max: Option<i16>,
    /// Wait this long for the answer instead of `request.timeout.ms`.
    pub timeout: Option<Duration>,
    /// Read the answer into memory of this share, which the answer's slices then keep.
    pub share: Option<Share>,
}

/// An answer that is on its way. Dropping it does not disturb the connection.
#[must_use = "the answer is what the request was for"]
pub struct Reply<R> {
    connection: Connection,
    version: i16,
    deadline: Instant,
    after: Duration,
    answer: oneshot::Receiver<Bytes>,
    request: PhantomData<fn() -> R>,
}

impl Connection {
    /// Connects and agrees on versions.
    ///
    /// # Errors
    /// [`Error::Connect`], and what the exchange of versions can fail with.
    pub async fn open(config: &ClientConfig, peer: &Address) -> Result<Connection> {
        handshake::open(config, peer).await
    }

    async fn connect(config: &ClientConfig, peer: &Address) -> Result<Connection> {
        let stream = config.transport.connect(&peer.host, peer.port).await;
        let stream = stream.map_err(|cause| Error::Connect {
            peer: peer.clone(),
            cause: Arc::new(cause),
        })?;
        let link = Link::new();
        let in_flight = config.max_in_flight.max(1);
        // A permit is held from before a request is queued, so the queue is never full.
        let (outgoing, requests) = mpsc::channel(in_flight);
        let mut tasks = JoinSet::new();
        tasks.spawn(link::write_requests(stream.writer, requests, link.clone()));
        tasks.spawn(link::read_answers(
            stream.reader,
            config.frame_bytes_max,
            link.clone(),
        ));
        Ok(Connection {
            shared: Arc::new(Shared {
                peer: peer.clone(),
                client_id: config.client_id.clone(),
                request_timeout: config.request_timeout,
                next_correlation_id: AtomicI32::new(0),
                in_flight: Arc::new(Semaphore::new(in_flight)),
                outgoing,
                link,
                versions: OnceLock::new(),
                _tasks: tasks,
            }),
        })
    }

    /// The broker's address.
    pub fn peer(&self) -> &Address {
        &self.shared.peer
    }

    /// What the broker said it can do.
    pub fn versions(&self) -> &BrokerVersions {
        self.shared.versions.get_or_init(BrokerVersions::default)
    }

    /// The highest version of request `R` that both sides know, at most `version_max`.
    ///
    /// # Errors
    /// [`Error::UnsupportedApi`] if there is none.
    pub fn version_of<R: Request>(&self, version_max: Option<i16>) -> Result<i16> {
        self.versions().negotiate::<R>(version_max, self.peer())
    }

    /// Whether the connection has ended; a handle is then of no more use.
    pub fn is_closed(&self) -> bool {
        self.shared.link.ended().is_some()
    }

    /// Waits until the connection has ended. Cancel-safe.
    pub async fn closed(&self) {
        self.shared.link.wait_until_ended().await;
    }

    /// How long nothing was asked of the connection; zero while something is in flight.
    pub fn idle_for(&self) -> Duration {
        let since = self.shared.link.idle_since();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How far away the broker is: the least time in which it answered anything on this connection,
    /// zero before it did. What waits in queues of ours and of the broker's lengthens answers, but
    /// hardly each of them; the first of all, to the question for versions, finds none.
    pub fn round_trip(&self) -> Duration {
        self.shared.link.round_trip().unwrap_or_default()
    }

    /// When the broker last took bytes of a request: one that does is there, though on a slow line
    /// its answers to large requests take long.
    pub fn last_taken(&self) -> Instant {
        self.shared.link.last_taken()
    }

    /// Sends nothing more for `duration`, because the broker asked for it (KIP-219). Typed answers
    /// do so by themselves.
    pub fn mute(&self, duration: Duration) {
        tracing::debug!(peer = %self.peer(), ?duration, "throttled by the broker");
        self.shared.link.mute(Instant::now() + duration);
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`Error::UnsupportedApi`], [`Error::Disconnected`], [`Error::TimedOut`],
    /// [`Error::Malformed`]. Error codes inside the answer are the caller's to look at.
    pub async fn call<R>(&self, request: &R) -> Result<R::Response>
    where
        R: Request + Sync,
        R::Response: Throttle,
    {
        self.call_with(request, CallOptions::default()).await
    }

    /// As [`call`](Self::call), with options.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_with<R>(&self, request: &R, options: CallOptions) -> Result<R::Response>
    where
        R: Request + Sync,
        R::Response: Throttle,
    {
        self.send(request, options).await?.response().await
    }

    /// Queues a request for writing. Waits only while too many are in flight; otherwise it is done
    /// when first polled, and requests are written in the order of their first polls.
    ///
    /// # Errors
    /// [`Error::UnsupportedApi`], [`Error::Encode`], [`Error::Disconnected`].
    pub async fn send<R>(&self, request: &R, options: CallOptions) -> Result<Reply<R>>
    where
        R: Request + Sync,
    {
        let version = self.version_of::<R>(options.version_max)?;
        let body = wire::encode_body(request, version).map_err(|detail| Error::Encode {
            api: Api::of::<R>(),
            version,
            detail,
        })?;
        self.send_raw(version, vec![body], options).await
    }

    /// As [`send`](Self::send), for a body already encoded in `version`, whose slices are written
    /// without copying.
    ///
    /// # Errors
    /// [`Error::Encode`] for a body above 2 GiB, [`Error::Disconnected`].
    pub async fn send_raw<R: Request>(
        &self,
        version: i16,
        body: Vec<Bytes>,
        options: CallOptions,
    ) -> Result<Reply<R>> {
        let api = Api::of::<R>();
        let shared = &self.shared;
        // With room nothing waits in here, so that requests keep the order of the calls.
        let permit = match shared.in_flight.clone().try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => shared.in_flight.clone().acquire_owned().await,
        };
        let permit = permit.map_err(|_| self.lost(api, io::ErrorKind::NotConnected.into()))?;
        let correlation_id = shared.next_correlation_id.fetch_add(1, Ordering::Relaxed);
        let frame = self.frame::<R>(version, correlation_id, body)?;
        let (answer, receiver) = oneshot::channel();
        let pending = Pending {
            correlation_id,
            since: Instant::now(),
            answer,
            share: options.share,
            _in_flight: permit,
        };
        let queue = || {
            let queued = shared.outgoing.try_send(frame);
            queued.map_err(|_| io::ErrorKind::BrokenPipe.into())
        };
        let registered = shared.link.register(pending, queue);
        registered.map_err(|cause| self.lost_because(api, cause))?;
        let after = options.timeout.unwrap_or(shared.request_timeout);
        let written_from = shared.link.muted_until().unwrap_or_else(Instant::now);
        Ok(Reply {
            connection: self.clone(),
            version,
            deadline: written_from + after,
            after,
            answer: receiver,
            request: PhantomData,
        })
    }

    fn frame<R: Request>(
        &self,
        version: i16,
        correlation_id: i32,
        body: Vec<Bytes>,
    ) -> Result<Vec<Bytes>> {
        let api = Api::of::<R>();
        let header_version =
            ApiKey::try_from(R::KEY).map_or(1, |key| key.request_header_version(version));
        let client_id = &self.shared.client_id;
        let mut head = wire::begin_frame(api, version, header_version, correlation_id, client_id);
        let length = body.iter().map(Bytes::len).sum();
        wire::finish_frame(&mut head, length).ok_or_else(|| Error::Encode {
            api,
            version,
            detail: format!("{length} bytes are more than a frame can hold"),
        })?;
        let mut frame = Vec::with_capacity(1 + body.len());
        frame.push(head.freeze());
        frame.extend(body);
        Ok(frame)
    }

    /// The error for a request whose connection is gone, with the first cause if there is one.
    fn lost(&self, api: Api, otherwise: io::Error) -> Error {
        let cause = self.shared.link.ended();
        self.lost_because(api, cause.unwrap_or_else(|| Arc::new(otherwise)))
    }

    fn lost_because(&self, api: Api, cause: Arc<io::Error>) -> Error {
        Error::Disconnected {
            peer: self.peer().clone(),
            api,
            cause,
        }
    }
}

impl<R: Request> Reply<R> {
    /// The version the request was sent in.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Waits for the answer, decodes it and honours its throttle time.
    ///
    /// # Errors
    /// [`Error::Disconnected`]; [`Error::TimedOut`] and [`Error::Malformed`], both of which end the
    /// connection.
    pub async fn response(self) -> Result<R::Response>
    where
        R::Response: Throttle,
    {
        let connection = self.connection.clone();
        let version = self.version;
        let response = connection.decode::<R>(self.frame().await?, version)?;
        let throttled = u64::try_from(response.throttle_time_ms()).unwrap_or(0);
        if throttled > 0 {
            connection.mute(Duration::from_millis(throttled));
        }
        Ok(response)
    }

    /// Waits for the answer's bytes behind the correlation id.
    async fn frame(self) -> Result<Bytes> {
        let api = Api::of::<R>();
        let connection = &self.connection;
        match timeout_at(self.deadline, self.answer).await {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(_)) => Err(connection.lost(api, io::ErrorKind::ConnectionAborted.into())),
            Err(_) => {
                let cause = format!("{api} stayed unanswered for {:?}", self.after);
                let cause = io::Error::new(io::ErrorKind::TimedOut, cause);
                connection.shared.link.end(cause);
                Err(Error::TimedOut {
                    peer: connection.peer().clone(),
                    api,
                    after: self.after,
                })
            }
        }
    }
}

impl Connection {
    /// A broker whose bytes make no sense is not asked again: the connection ends.
    fn decode<R: Request>(&self, frame: Bytes, version: i16) -> Result<R::Response> {
        wire::decode_response::<R>(frame, version).map_err(|detail| {
            let cause = io::Error::new(io::ErrorKind::InvalidData, detail.clone());
            self.shared.link.end(cause);
            Error::Malformed {
                peer: self.peer().clone(),
                api: Api::of::<R>(),
                detail,
            }
        })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_closed() { "closed" } else { "open" };
        write!(f, "Connection({}, {state})", self.peer())
    }
}

#[cfg(test)]
mod tests;
