//! Agreeing on versions (KIP-35, KIP-511), the first thing on each connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::{Buf, Bytes};

use super::{CallOptions, Connection, Reply};
use crate::address::Address;
use crate::config::ClientConfig;
use crate::error::{Error, ErrorCode, Result};
use crate::wire::{
    self, Api, ApiVersionsRequest, ApiVersionsResponse, Message, Request, VersionRange,
};

/// The versions and features a broker offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerVersions {
    apis: BTreeMap<Api, VersionRange>,
    features: BTreeMap<String, i16>,
}

impl BrokerVersions {
    fn from_response(response: &ApiVersionsResponse) -> BrokerVersions {
        let range = |min, max| VersionRange { min, max };
        let apis = response.api_keys.iter();
        let features = response.finalized_features.iter();
        BrokerVersions {
            apis: apis
                .map(|api| (Api(api.api_key), range(api.min_version, api.max_version)))
                .collect(),
            features: features
                .map(|feature| (feature.name.to_string(), feature.max_version_level))
                .collect(),
        }
    }

    /// The versions offered of an API, `None` if the broker does not know it.
    pub fn offered(&self, api: Api) -> Option<VersionRange> {
        self.apis.get(&api).copied()
    }

    /// The finalized level of a feature such as `transaction.version` (KIP-584).
    pub fn feature(&self, name: &str) -> Option<i16> {
        self.features.get(name).copied()
    }

    pub(super) fn negotiate<R: Request>(
        &self,
        version_max: Option<i16>,
        peer: &Address,
    ) -> Result<i16> {
        let api = Api::of::<R>();
        let ours = <R as Message>::VERSIONS;
        let ours = VersionRange {
            min: ours.min,
            max: version_max.map_or(ours.max, |max| ours.max.min(max)),
        };
        let offered = self.offered(api);
        let common = offered.map(|offered| offered.intersect(&ours));
        match common.filter(|common| !common.is_empty()) {
            Some(common) => Ok(common.max),
            None => Err(Error::UnsupportedApi {
                peer: peer.clone(),
                api,
                offered: offered.map_or("none".to_owned(), |range| {
                    let mut text = String::new();
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{} to {}", range.min, range.max);
                    text
                }),
            }),
        }
    }
}

/// Connects and asks for the broker's versions.
///
/// A broker that does not know our version of the question answers in version 0 with error 35, and
/// since 2.4 says which it knows (KIP-511). Some peers hang up instead; they are asked once more,
/// in version 0.
pub(super) async fn open(config: &ClientConfig, peer: &Address) -> Result<Connection> {
    let connection = Connection::connect(config, peer).await?;
    let newest = <ApiVersionsRequest as Message>::VERSIONS.max;
    match agree(&connection, newest).await {
        Ok(()) => Ok(connection),
        Err(Error::Disconnected { .. }) => {
            let connection = Connection::connect(config, peer).await?;
            agree(&connection, 0).await?;
            Ok(connection)
        }
        Err(error) => Err(error),
    }
}

async fn agree(connection: &Connection, newest: i16) -> Result<()> {
    let mut response = ask(connection, newest).await?;
    if ErrorCode(response.error_code) == ErrorCode::UNSUPPORTED_VERSION {
        let api = Api::of::<ApiVersionsRequest>();
        let offered = BrokerVersions::from_response(&response).offered(api);
        let known = offered.map_or(0, |range| range.max.clamp(0, newest));
        response = ask(connection, known).await?;
    }
    Error::check(response.error_code, None, || {
        format!("agree on versions with {}", connection.peer())
    })?;
    let versions = BrokerVersions::from_response(&response);
    connection.shared.versions.get_or_init(|| versions);
    Ok(())
}

async fn ask(connection: &Connection, version: i16) -> Result<ApiVersionsResponse> {
    let mut request = ApiVersionsRequest::default();
    if version >= 3 {
        request = request
            .with_client_software_name(wire::text("twinlog"))
            .with_client_software_version(wire::text(env!("CARGO_PKG_VERSION")));
    }
    let api = Api::of::<ApiVersionsRequest>();
    let body = wire::encode_body(&request, version).map_err(|detail| Error::Encode {
        api,
        version,
        detail,
    })?;
    let options = CallOptions::default();
    let reply: Reply<ApiVersionsRequest> =
        connection.send_raw(version, vec![body], options).await?;
    let frame = reply.frame().await?;
    let answered_in = if says_unsupported(&frame) { 0 } else { version };
    connection.decode::<ApiVersionsRequest>(frame, answered_in)
}

/// The error code comes first in every version, and this error is always answered in version 0.
fn says_unsupported(frame: &Bytes) -> bool {
    frame.len() >= 2 && (&frame[..2]).get_i16() == ErrorCode::UNSUPPORTED_VERSION.0
}
