//! What a client needs to know about one cluster. Names and defaults are those of Kafka's clients.

use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::transport::{Tcp, Transport};

/// Settings of a [`Client`](crate::client::Client).
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `bootstrap.servers`: tried in random order until one answers, and again when no known
    /// broker does.
    pub bootstrap: Vec<Address>,
    /// `client.id`: shown in the broker's logs and quotas.
    pub client_id: String,
    /// `client.rack`: lets brokers point a fetch at a replica nearby (KIP-392); empty for none.
    pub rack: String,
    /// `request.timeout.ms`: a request unanswered for this long ends its connection.
    pub request_timeout: Duration,
    /// `reconnect.backoff.ms`: pause after a first failed attempt to reach a broker.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`: the pause's limit.
    pub reconnect_backoff_max: Duration,
    /// `metadata.max.age.ms`: metadata older than this is refreshed when next needed.
    pub metadata_max_age: Duration,
    /// `connections.max.idle.ms`: a connection unused for this long is replaced when next needed.
    pub connections_max_idle: Duration,
    /// `max.in.flight.requests.per.connection`: further requests wait.
    pub max_in_flight: usize,
    /// A longer answer ends the connection before memory is taken for it.
    pub frame_bytes_max: usize,
    /// How brokers are reached.
    pub transport: Arc<dyn Transport>,
    /// Seed of all random choices (order of brokers, jitter), so that a test can repeat a run.
    pub seed: u64,
}

impl ClientConfig {
    /// Kafka's defaults for a cluster reached through `bootstrap` over TCP.
    pub fn new(bootstrap: Vec<Address>) -> Self {
        ClientConfig {
            bootstrap,
            client_id: "twinlog".to_owned(),
            rack: String::new(),
            request_timeout: Duration::from_secs(30),
            reconnect_backoff: Duration::from_millis(50),
            reconnect_backoff_max: Duration::from_secs(1),
            metadata_max_age: Duration::from_secs(300),
            connections_max_idle: Duration::from_secs(540),
            max_in_flight: 100,
            frame_bytes_max: 128 << 20,
            transport: Arc::new(Tcp::default()),
            seed: fastrand::u64(..),
        }
    }
}
