//! The broker's end of a connection, played by a test.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Encodable, HeaderVersion};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::address::Address;
use crate::config::ClientConfig;
use crate::transport::{BoxFuture, Stream, Transport};
use crate::wire::api_versions_response::ApiVersion;
use crate::wire::{Api, ApiVersionsRequest, ApiVersionsResponse, Message, Request};

/// A transport that hands out prepared streams, and refuses when there is none left for the
/// address.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    prepared: Mutex<VecDeque<(Address, DuplexStream)>>,
}

impl Scripted {
    /// Prepares one connection to `address`, with room for `pipe_bytes` in each direction.
    pub(crate) fn expect(&self, address: &Address, pipe_bytes: usize) -> Peer {
        let (ours, theirs) = tokio::io::duplex(pipe_bytes);
        self.prepared.lock().push_back((address.clone(), ours));
        Peer { stream: theirs }
    }

    /// How many prepared connections were not asked for.
    pub(crate) fn left(&self) -> usize {
        self.prepared.lock().len()
    }
}

impl Transport for Scripted {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>> {
        let address = Address::new(host, port);
        let mut prepared = self.prepared.lock();
        let index = prepared
            .iter()
            .position(|(expected, _)| *expected == address);
        let stream = index.and_then(|index| prepared.remove(index));
        Box::pin(async move {
            let stream = stream.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(Stream::split(stream.1))
        })
    }
}

/// A configuration over a scripted transport.
pub(crate) fn scripted(bootstrap: &[&str]) -> (ClientConfig, Arc<Scripted>) {
    let transport = Arc::new(Scripted::default());
    let bootstrap = bootstrap
        .iter()
        .map(|text| text.parse().expect("host:port"));
    let mut config = ClientConfig::new(bootstrap.collect());
    config.transport = transport.clone();
    config.seed = 1;
    (config, transport)
}

/// A request as the broker sees it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) api: Api,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    body: Bytes,
}

impl Received {
    pub(crate) fn body_bytes(&self) -> Bytes {
        self.body.clone()
    }

    pub(crate) fn decode<R: Request>(&self) -> R {
        let mut body = self.body.clone();
        let request = R::decode(&mut body, self.version).expect("a request we wrote");
        assert!(
            body.is_empty(),
            "{} bytes are left behind the request",
            body.len()
        );
        request
    }
}

/// The broker's end of a connection.
pub(crate) struct Peer {
    pub(crate) stream: DuplexStream,
}

impl Peer {
    /// The next request; panics when the client hangs up.
    pub(crate) async fn receive(&mut self) -> Received {
        self.try_receive().await.expect("another request")
    }

    pub(crate) async fn try_receive(&mut self) -> io::Result<Received> {
        let length = self.stream.read_i32().await?;
        let mut frame = vec![0; usize::try_from(length).expect("a length")];
        self.stream.read_exact(&mut frame).await?;
        let mut frame = Bytes::from(frame);
        let (api, version) = (Api(frame.get_i16()), frame.get_i16());
        let correlation_id = frame.get_i32();
        let client_id = usize::try_from(frame.get_i16()).expect("a client id");
        frame.advance(client_id);
        let key = crate::wire::ApiKey::try_from(api.0).expect("a known API");
        if key.request_header_version(version) >= 2 {
            assert_eq!(frame.get_u8(), 0, "tagged fields in the header");
        }
        Ok(Received {
            api,
            version,
            correlation_id,
            body: frame,
        })
    }

    pub(crate) async fn answer<R: Request>(&mut self, request: &Received, response: &R::Response) {
        let frame = frame::<R>(request.correlation_id, request.version, response);
        self.stream
            .write_all(&frame)
            .await
            .expect("the client listens");
    }

    /// Answers the question for versions with all that the codec knows.
    pub(crate) async fn agree(&mut self) {
        let request = self.receive().await;
        assert_eq!(request.api, Api::of::<ApiVersionsRequest>());
        let response = all_versions();
        self.answer::<ApiVersionsRequest>(&request, &response).await;
    }
}

/// An answer as it travels.
pub(crate) fn frame<R: Request>(
    correlation_id: i32,
    version: i16,
    response: &R::Response,
) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    frame.put_i32(correlation_id);
    if R::Response::header_version(version) >= 1 {
        frame.put_u8(0);
    }
    response
        .encode(&mut frame, version)
        .expect("an answer we made");
    let length = i32::try_from(frame.len() - 4).expect("a short answer");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

pub(crate) fn all_versions() -> ApiVersionsResponse {
    fn range<R: Request>() -> ApiVersion {
        let versions = <R as Message>::VERSIONS;
        ApiVersion::default()
            .with_api_key(R::KEY)
            .with_min_version(versions.min)
            .with_max_version(versions.max)
    }
    ApiVersionsResponse::default().with_api_keys(vec![
        range::<ApiVersionsRequest>(),
        range::<crate::wire::MetadataRequest>(),
        range::<crate::wire::FetchRequest>(),
        range::<crate::wire::ProduceRequest>(),
        range::<crate::wire::ListOffsetsRequest>(),
    ])
}
