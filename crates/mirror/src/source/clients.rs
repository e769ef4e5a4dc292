//! The clients of a flow: one for each kind of work, shared where the settings are equal.

use std::sync::Arc;
use std::time::Duration;

use twinlog_core::config::flow::{self, FlowConfig};
use twinlog_core::ids::Flow;
use twinlog_kafka::address::Address;
use twinlog_kafka::client::Client;
use twinlog_kafka::config::ClientConfig;
use twinlog_kafka::transport::{Tcp, Transport};

/// Chooses how brokers are reached, by the settings of a client.
pub type TransportOf = Arc<dyn Fn(&flow::ClientConfig) -> Arc<dyn Transport> + Send + Sync>;

/// Plain TCP with the buffers and timeouts of the settings.
pub fn tcp() -> TransportOf {
    Arc::new(|config| {
        Arc::new(Tcp {
            setup_timeout: config.connection_setup_timeout.initial,
            send_buffer_bytes: config.send_buffer_bytes.map(|bytes| bytes as usize),
            receive_buffer_bytes: config.receive_buffer_bytes.map(|bytes| bytes as usize),
            ..Tcp::default()
        })
    })
}

/// The clients of one flow.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Looks at the source's topics.
    pub source_admin: Client,
    /// Reads records.
    pub source_reader: Client,
    /// Looks at the target's topics and makes them.
    pub target_admin: Client,
    /// Writes records.
    pub target_writer: Client,
    /// Keeps positions on the target.
    pub worker: Client,
}

impl Clients {
    /// Makes the clients that a flow needs. Nothing is contacted. What each draws its random choices
    /// from is drawn from `random`.
    pub fn new(
        config: &FlowConfig,
        transport_of: &TransportOf,
        random: &mut fastrand::Rng,
    ) -> Self {
        let mut pool = Pool {
            flow: &config.flow,
            transport_of,
            random,
            clients: Vec::new(),
        };
        let rack = config.source.consumer.client_rack.as_deref();
        Clients {
            source_reader: pool.client(Cluster::Source, &config.source.consumer.client, rack),
            source_admin: pool.client(Cluster::Source, &config.source.admin, rack),
            target_writer: pool.client(Cluster::Target, &config.writer.client, None),
            target_admin: pool.client(Cluster::Target, &config.target.admin, None),
            worker: pool.client(Cluster::Target, &config.worker.client, None),
        }
    }
}

/// Names the role for the brokers' logs and dashboards, as MirrorMaker 2 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cluster {
    Source,
    Target,
}

struct Pool<'a> {
    flow: &'a Flow,
    transport_of: &'a TransportOf,
    random: &'a mut fastrand::Rng,
    clients: Vec<(Cluster, flow::ClientConfig, Client)>,
}

impl Pool<'_> {
    fn client(
        &mut self,
        cluster: Cluster,
        config: &flow::ClientConfig,
        rack: Option<&str>,
    ) -> Client {
        let known = self
            .clients
            .iter()
            .find(|(known, settings, _)| *known == cluster && settings == config);
        if let Some((_, _, client)) = known {
            return client.clone();
        }
        let addresses = config
            .bootstrap
            .iter()
            .map(|at| Address::new(&at.host, at.port));
        let role = match cluster {
            Cluster::Source => "replication-consumer",
            Cluster::Target => "replication-producer",
        };
        let user = config
            .client_id
            .as_ref()
            .map(|id| format!("{id}|"))
            .unwrap_or_default();
        let settings = ClientConfig {
            client_id: format!("{user}{}|MirrorSourceConnector|{role}", self.flow),
            rack: rack.unwrap_or_default().to_owned(),
            request_timeout: config.request_timeout,
            reconnect_backoff: config.reconnect_backoff.initial,
            reconnect_backoff_max: config.reconnect_backoff.max,
            metadata_max_age: config.metadata_max_age,
            connections_max_idle: config.connections_max_idle.unwrap_or(Duration::MAX),
            transport: (self.transport_of)(config),
            seed: self.random.u64(..),
            ..ClientConfig::new(addresses.collect())
        };
        let client = Client::new(settings);
        self.clients.push((cluster, config.clone(), client.clone()));
        client
    }
}
