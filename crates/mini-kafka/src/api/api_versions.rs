//! ApiVersions: what the broker offers (KIP-35, KIP-511, features by KIP-584).

use kafka_protocol::ResponseError::UnsupportedVersion;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};

use super::{ALL, Answer, Api, Call, offered, text};

/// `transaction.version`, the one feature that clients look at.
const TRANSACTION_FEATURE: &str = "transaction.version";

impl Api for ApiVersionsRequest {
    const OURS: (i16, i16) = (0, 4);

    async fn answer(&self, call: &Call) -> Answer<ApiVersionsResponse> {
        let state = call.state();
        let unsupported =
            offered(&state, ApiKey::ApiVersions).is_none_or(|(_, max)| call.version > max);
        let api_keys = ALL
            .iter()
            .filter_map(|(api, _)| {
                let (min, max) = offered(&state, *api)?;
                let entry = ApiVersion::default().with_api_key(*api as i16);
                Some(entry.with_min_version(min).with_max_version(max))
            })
            .collect();
        let level = state.options.transaction_version;
        let mut response = ApiVersionsResponse::default().with_api_keys(api_keys);
        if unsupported {
            response.error_code = UnsupportedVersion.code();
        } else if level > 0 && call.version >= 3 {
            response.supported_features = vec![
                SupportedFeatureKey::default()
                    .with_name(text(TRANSACTION_FEATURE))
                    .with_max_version(2),
            ];
            response.finalized_features_epoch = 1;
            response.finalized_features = vec![
                FinalizedFeatureKey::default()
                    .with_name(text(TRANSACTION_FEATURE))
                    .with_max_version_level(level)
                    .with_min_version_level(level),
            ];
        }
        Answer::Response(response)
    }
}
