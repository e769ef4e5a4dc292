//! A bare client of the wire protocol, for tests that must not depend on the client under test: one
//! connection, one request at a time, requests and responses as the codec has them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The error code UNSUPPORTED_VERSION, as the wire has it.
const UNSUPPORTED_VERSION: [u8; 2] = [0, 35];

/// Text as the codec's types hold it.
pub fn text(from: impl Into<String>) -> StrBytes {
    StrBytes::from_string(from.into())
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// One connection to one broker.
pub struct Wire {
    stream: Box<dyn Stream>,
    correlation_id: i32,
    versions: BTreeMap<i16, (i16, i16)>,
}

impl Wire {
    /// Connects by TCP to `host:port`, and asks which versions there are.
    ///
    /// # Errors
    /// When the broker can't be reached or does not answer.
    pub async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("reach {address}"))?;
        stream.set_nodelay(true)?;
        Self::over(stream).await
    }

    /// Speaks over a connection that is there already.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Self> {
        let versions = BTreeMap::new();
        let mut wire = Wire {
            stream: Box::new(stream),
            correlation_id: 0,
            versions,
        };
        let hello = ApiVersionsRequest::default()
            .with_client_software_name(text("wire"))
            .with_client_software_version(text("1"));
        wire.send(&hello, 3).await?;
        let mut frame = wire.read_frame().await.context("await ApiVersions")?;
        ensure!(frame.len() >= 4, "a frame without a header");
        frame.advance(4);
        // Brokers that do not have version 3 answer in version 0, which begins with the error
        // (KIP-511).
        let version = if frame.starts_with(&UNSUPPORTED_VERSION) {
            0
        } else {
            3
        };
        let offered = ApiVersionsResponse::decode(&mut frame, version)?;
        let range = |api: &_| {
            let api: &kafka_protocol::messages::api_versions_response::ApiVersion = api;
            (api.api_key, (api.min_version, api.max_version))
        };
        wire.versions = offered.api_keys.iter().map(range).collect();
        Ok(wire)
    }

    /// The versions that the broker offers of an API.
    pub fn versions(&self, api: ApiKey) -> Option<(i16, i16)> {
        self.versions.get(&(api as i16)).copied()
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When the connection closes, or the answer does not decode.
    pub async fn call<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response> {
        self.send(request, version).await?;
        self.receive::<R>(version).await
    }

    /// Sends a request; the answer is fetched by [`Wire::receive`], in the order of the requests.
    ///
    /// # Errors
    /// When the connection is closed, or there is no such version.
    pub async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<()> {
        let api = api_of::<R>()?;
        self.correlation_id += 1;
        let mut frame = BytesMut::from(&[0; 4][..]);
        RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(text("wire")))
            .encode(&mut frame, api.request_header_version(version))?;
        request.encode(&mut frame, version)?;
        let length = u32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream
            .write_all(&frame)
            .await
            .with_context(|| format!("send {api:?}"))
    }

    /// Reads the answer to a request that was sent.
    ///
    /// # Errors
    /// When the connection closes, or the answer does not decode.
    pub async fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        let api = api_of::<R>()?;
        let mut frame = self
            .read_frame()
            .await
            .with_context(|| format!("await {api:?}"))?;
        let header = ResponseHeader::decode(&mut frame, api.response_header_version(version))?;
        ensure!(
            header.correlation_id <= self.correlation_id,
            "an answer to nothing"
        );
        R::Response::decode(&mut frame, version)
    }

    /// Sends a frame as it is, without its length.
    ///
    /// # Errors
    /// When the connection is closed.
    pub async fn send_frame(&mut self, frame: &[u8]) -> Result<()> {
        self.stream.write_u32(u32::try_from(frame.len())?).await?;
        Ok(self.stream.write_all(frame).await?)
    }

    /// Reads a frame as it is, without its length.
    ///
    /// # Errors
    /// When the connection closes.
    pub async fn read_frame(&mut self) -> Result<Bytes> {
        let length = self
            .stream
            .read_u32()
            .await
            .context("the connection closed")?;
        let mut frame = vec![0; length as usize];
        self.stream.read_exact(&mut frame).await?;
        Ok(frame.into())
    }

    /// Waits until the broker closes the connection.
    ///
    /// # Errors
    /// When the broker sends something instead.
    pub async fn closed(&mut self) -> Result<()> {
        match self.stream.read_u8().await {
            Ok(_) => bail!("the broker sent something instead of closing the connection"),
            Err(_) => Ok(()),
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("correlation_id", &self.correlation_id)
            .finish_non_exhaustive()
    }
}

fn api_of<R: Request>() -> Result<ApiKey> {
    ApiKey::try_from(R::KEY)
        .ok()
        .with_context(|| format!("unknown API {}", R::KEY))
}
