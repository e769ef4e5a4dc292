//! What a cluster is.

use std::sync::Arc;

use crate::client::Client;
use crate::error::Result;
use crate::metadata::Topics;

/// A cluster's identity and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The id it was given when it was formatted; two addresses with the same id are one cluster.
    pub cluster_id: Option<Arc<str>>,
    /// The broker that takes changes to topics.
    pub controller: Option<i32>,
    /// How many brokers are alive.
    pub brokers: usize,
}

/// Asks a broker what its cluster is. (Metadata says it on every version; the DescribeCluster API
/// only since 2.8.)
///
/// # Errors
/// [`Error::NoBroker`](crate::error::Error::NoBroker).
pub async fn describe_cluster(client: &Client) -> Result<ClusterDescription> {
    let metadata = client.refresh(&Topics::None).await?;
    Ok(ClusterDescription {
        cluster_id: metadata.cluster_id.clone(),
        controller: metadata.controller,
        brokers: metadata.brokers.len(),
    })
}
