//! twinlog's client on mini-kafka without sockets, so that tests may pause the clock.

use std::future::ready;
use std::io;
use std::sync::Arc;

use anyhow::Result;
use mini_kafka::MiniKafka;
use twinlog_kafka::config::ClientConfig;
use twinlog_kafka::transport::{BoxFuture, Stream, Transport};

/// Streams to the brokers of one [`MiniKafka`], which are found by the addresses they advertise.
#[derive(Debug, Clone)]
pub struct InMemory(Arc<MiniKafka>);

impl InMemory {
    /// Settings of a client of `cluster`, with a fixed seed, so that a run repeats itself.
    ///
    /// # Errors
    /// When the cluster advertises something that is no address.
    pub fn client_config(cluster: &Arc<MiniKafka>) -> Result<ClientConfig> {
        let addresses = cluster.bootstrap();
        let bootstrap = addresses
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?;
        let mut config = ClientConfig::new(bootstrap);
        config.transport = Arc::new(Self(Arc::clone(cluster)));
        config.seed = 1;
        Ok(config)
    }
}

impl Transport for InMemory {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(ready(self.0.connect_to(host, port).map(Stream::split)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini_kafka::Options;
    use twinlog_kafka::client::Client;
    use twinlog_kafka::metadata::Topics;

    #[tokio::test(start_paused = true)]
    async fn a_client_finds_all_brokers_in_memory() -> Result<()> {
        let cluster = Arc::new(MiniKafka::start(Options {
            brokers: 3,
            ..Options::default()
        }));

        let client = Client::new(InMemory::client_config(&cluster)?);
        let metadata = client.refresh(&Topics::None).await?;

        assert_eq!(metadata.brokers.len(), 3);
        Ok(())
    }
}
