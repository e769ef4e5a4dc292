//! The two clusters, and the configuration that mirrors one to the other.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mini_kafka::{MiniKafka, Options};
use twinlog_kafka::address::Address;
use twinlog_kafka::client::Client;
use twinlog_kafka::config::ClientConfig;

use super::topics::TOPICS;

/// Brokers of each cluster; leaders are spread over them.
const BROKERS: i32 = 3;

/// Two clusters that listen on free ports of 127.0.0.1; dropping it ends them.
pub struct Clusters {
    source: Cluster,
    target: Cluster,
    folder: Folder,
}

/// One of them.
struct Cluster {
    kafka: MiniKafka,
    bootstrap: Vec<String>,
}

impl Clusters {
    /// Starts both, makes the source's topics, and writes an `mm2.properties` into a folder of its
    /// own.
    ///
    /// # Errors
    /// When there is no free port or no room for a file.
    pub async fn start(now_ms: i64) -> anyhow::Result<Clusters> {
        let source = Cluster::start("demo-source", now_ms).await?;
        let target = Cluster::start("demo-target", now_ms).await?;
        for topic in &TOPICS {
            source
                .kafka
                .create_topic_with(topic.name, topic.partitions, 2, topic.configs);
        }
        let folder = Folder::create()?;
        let clusters = Clusters {
            source,
            target,
            folder,
        };
        let file = clusters.file();
        fs::write(&file, clusters.properties())
            .with_context(|| format!("write {}", file.display()))?;
        Ok(clusters)
    }

    /// Where the configuration is.
    pub fn file(&self) -> PathBuf {
        self.folder.0.join("mm2.properties")
    }

    /// Bootstrap servers of the source.
    pub fn source_bootstrap(&self) -> String {
        self.source.bootstrap.join(",")
    }

    /// Bootstrap servers of the target.
    pub fn target_bootstrap(&self) -> String {
        self.target.bootstrap.join(",")
    }

    /// A client of the source, apart from those of the mirror.
    ///
    /// # Errors
    /// When an address is none.
    pub fn source_client(&self, client_id: &str) -> anyhow::Result<Client> {
        self.source.client(client_id)
    }

    /// A client of the target, apart from those of the mirror.
    ///
    /// # Errors
    /// When an address is none.
    pub fn target_client(&self, client_id: &str) -> anyhow::Result<Client> {
        self.target.client(client_id)
    }

    fn properties(&self) -> String {
        format!(
            "# Written by `twinlog demo`, in whose process both clusters run.\n\
             clusters = us, eu\n\
             us.bootstrap.servers = {}\n\
             eu.bootstrap.servers = {}\n\
             us->eu.enabled = true\n\
             us->eu.topics = .*\n",
            self.source_bootstrap(),
            self.target_bootstrap()
        )
    }
}

impl Cluster {
    async fn start(id: &str, now_ms: i64) -> anyhow::Result<Cluster> {
        let options = Options {
            brokers: BROKERS,
            cluster_id: id.to_owned(),
            wall_clock_ms: now_ms,
            ..Options::default()
        };
        let kafka = MiniKafka::start(options);
        let bootstrap = kafka.listen_tcp(&[]).await.context("listen on 127.0.0.1")?;
        Ok(Cluster { kafka, bootstrap })
    }

    fn client(&self, client_id: &str) -> anyhow::Result<Client> {
        let addresses = self
            .bootstrap
            .iter()
            .map(|address| Ok(address.parse::<Address>()?));
        let mut config = ClientConfig::new(addresses.collect::<anyhow::Result<_>>()?);
        config.client_id = client_id.to_owned();
        Ok(Client::new(config))
    }
}

/// A folder that goes away with its owner.
struct Folder(PathBuf);

impl Folder {
    fn create() -> anyhow::Result<Folder> {
        let path = std::env::temp_dir().join(format!("twinlog-demo-{}", std::process::id()));
        // An existing one is not taken: it may be somebody else's, or a link to something dear.
        fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let path: &Path = &self.0;
        if let Err(error) = fs::remove_dir_all(path) {
            tracing::debug!(%error, folder = %path.display(), "left behind");
        }
    }
}
