//! Apache Kafka, with KRaft or ZooKeeper as the release has it, as real processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::jars::{Jars, KafkaVersion};
use crate::node::Node;
use crate::process::{ManagedProcess, Signal};
use crate::quick_start::{Jvm, QuickStart};
use crate::{Admin, Line, ScratchDir, SlowLink, eventually, kraft, zookeeper};

/// How long a broker may take until it answers, on a machine that is busy with other tests.
const START: Duration = Duration::from_secs(60);
/// How long a clean stop may take.
const STOP: Duration = Duration::from_secs(60);
/// How often a start is tried when the port was taken between choosing and listening.
const START_TRIES: usize = 3;

/// How a cluster is to be.
#[derive(Debug, Clone)]
pub struct RealKafkaBuilder {
    version: KafkaVersion,
    pub(crate) brokers: usize,
    properties: Vec<(String, String)>,
    pub(crate) heap: String,
    pub(crate) jvm: Jvm,
    pub(crate) slow_link: Option<Line>,
}

impl RealKafkaBuilder {
    /// This release instead of 4.3.1; with ZooKeeper where it has no KRaft.
    #[must_use]
    pub fn version(mut self, version: KafkaVersion) -> Self {
        self.version = version;
        self
    }

    /// This many brokers. From two on, KRaft's controller is a process of its own and survives
    /// them, as ZooKeeper always is and does.
    #[must_use]
    pub fn brokers(mut self, brokers: usize) -> Self {
        self.brokers = brokers;
        self
    }

    /// Adds a line to every `server.properties`; it wins over the kit's own.
    #[must_use]
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// With ACLs (KRaft only); the anonymous user may do everything, others what nobody restricted.
    #[must_use]
    pub fn authorizer(self) -> Self {
        let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
        self.property("authorizer.class.name", class)
            .property("super.users", "User:ANONYMOUS")
            .property("allow.everyone.if.no.acl.found", "true")
    }

    /// Notices a dead broker, and takes a killed one back, after 3 s instead of 9.
    ///
    /// Not the default: a broker that stalls as long on a busy machine would lose its leaders.
    #[must_use]
    pub fn quick_failover(self) -> Self {
        self.property("broker.session.timeout.ms", "3000")
            .property("broker.heartbeat.interval.ms", "500")
            .property("zookeeper.session.timeout.ms", "3000")
    }

    /// The JVM's heap, as `-Xmx` takes it; `512m` unless said.
    #[must_use]
    pub fn heap(mut self, heap: &str) -> Self {
        self.heap = heap.to_owned();
        self
    }

    /// Gives every broker a second listener that is reached through a [`SlowLink`] (KRaft only), see
    /// [`RealKafka::far_bootstrap`].
    #[must_use]
    pub fn slow_link(mut self, line: Line) -> Self {
        self.slow_link = Some(line);
        self
    }

    /// Starts the JVM as production does, for benchmarks: slow to start, fast when warm.
    #[must_use]
    pub fn full_speed(mut self) -> Self {
        self.jvm = Jvm::FullSpeed;
        self
    }

    /// Starts it so that it leaves an archive of its classes when it stops.
    pub(crate) fn learning_classes(mut self) -> Self {
        self.jvm = Jvm::LearningClasses;
        self
    }

    /// Lines for every `server.properties`.
    pub(crate) fn extra_properties(&self) -> String {
        self.properties
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }

    /// Starts the cluster and waits until every broker answers and knows all the others.
    ///
    /// # Errors
    /// When Kafka can't be had or doesn't start; the message has the end of its log.
    pub fn start(self) -> Result<RealKafka> {
        let jars = Jars::resolve(self.version)?;
        let kraft = !self.version.uses_zookeeper();
        ensure!(kraft || self.slow_link.is_none(), "a slow link needs KRaft");
        let quick_start = kraft.then(|| QuickStart::prepare(&jars)).transpose()?;
        let mut tries = 1;
        loop {
            match RealKafka::launch(&self, &jars, quick_start.as_ref()) {
                Err(error) if tries < START_TRIES && port_was_taken(&error) => tries += 1,
                result => return result,
            }
        }
    }
}

fn port_was_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("Address already in use")
}

/// A running cluster; dropping it kills it and removes its data.
#[derive(Debug)]
pub struct RealKafka {
    /// Brokers in order of their id, then the controller or ZooKeeper if it is apart.
    nodes: Vec<Node>,
    brokers: usize,
    _scratch: ScratchDir,
}

impl RealKafka {
    /// One broker of 4.3.1, unless told otherwise.
    pub fn builder() -> RealKafkaBuilder {
        RealKafkaBuilder {
            version: KafkaVersion::V4_3_1,
            brokers: 1,
            properties: Vec::new(),
            heap: "512m".to_owned(),
            jvm: Jvm::Quick,
            slow_link: None,
        }
    }

    /// Starts one broker of 4.3.1.
    ///
    /// # Errors
    /// As [`RealKafkaBuilder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// One try to start: a port may have been taken meanwhile. Without a quick start it is a
    /// release with ZooKeeper.
    pub(crate) fn launch(
        wanted: &RealKafkaBuilder,
        jars: &Jars,
        quick_start: Option<&QuickStart>,
    ) -> Result<Self> {
        let scratch = ScratchDir::new("kafka")?;
        let nodes = match quick_start {
            Some(quick_start) => kraft::lay_out(wanted, jars, quick_start, scratch.path())?,
            None => zookeeper::lay_out(wanted, jars, scratch.path())?,
        };
        let mut cluster = Self {
            nodes,
            brokers: wanted.brokers,
            _scratch: scratch,
        };
        // Brokers look for the one that is apart.
        for node in cluster.nodes.iter_mut().rev() {
            node.launch()?;
        }
        for broker in &mut cluster.nodes[..wanted.brokers] {
            broker.wait_until_it_sees(wanted.brokers, START)?;
        }
        Ok(cluster)
    }

    /// All brokers, as `bootstrap.servers` takes them.
    pub fn bootstrap(&self) -> String {
        let brokers = self.nodes[..self.brokers].iter();
        brokers
            .map(|node| node.address())
            .collect::<Vec<_>>()
            .join(",")
    }

    /// All brokers as they are reached through slow links, and stay reached: they advertise those.
    ///
    /// # Errors
    /// When the cluster was not started with [`RealKafkaBuilder::slow_link`].
    pub fn far_bootstrap(&self) -> Result<String> {
        let links = self.nodes[..self.brokers].iter().map(|node| &node.link);
        let addresses: Option<Vec<_>> = links
            .map(|link| link.as_ref().map(SlowLink::address))
            .collect();
        Ok(addresses
            .context("the cluster has no slow links")?
            .join(","))
    }

    /// Topics and offsets of this cluster.
    pub fn admin(&self) -> Admin {
        Admin::new(&self.bootstrap())
    }

    /// Kills a broker (they count from 1) as a crash does.
    ///
    /// # Errors
    /// When there is no such broker, or it isn't running.
    pub fn kill(&mut self, broker: usize) -> Result<()> {
        self.running(broker)?.kill()?;
        self.node(broker)?.process = None;
        Ok(())
    }

    /// Stops a broker cleanly and waits for its end.
    ///
    /// # Errors
    /// As [`Self::kill`], or when it doesn't end in time.
    pub fn stop(&mut self, broker: usize) -> Result<()> {
        let process = self.running(broker)?;
        process.signal(Signal::TERM)?;
        process.wait(STOP)?;
        self.node(broker)?.process = None;
        Ok(())
    }

    /// Stops a broker where it stands (SIGSTOP): connections stay open and nobody answers.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn freeze(&mut self, broker: usize) -> Result<()> {
        self.running(broker)?.signal(Signal::STOP)
    }

    /// Lets a frozen broker go on.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn thaw(&mut self, broker: usize) -> Result<()> {
        self.running(broker)?.signal(Signal::CONT)
    }

    /// Starts a killed or stopped broker on its port and its data, and waits until it answers.
    ///
    /// # Errors
    /// When it is running, or doesn't come back.
    pub fn restart(&mut self, broker: usize) -> Result<()> {
        let node = self.node(broker)?;
        ensure!(node.process.is_none(), "broker {broker} is running");
        node.launch()?;
        let started = node.wait_until_it_sees(1, START);
        if started.is_ok() || !node.jars.version().uses_zookeeper() {
            return started;
        }
        // ZooKeeper refuses a broker that was killed, which then ends, until its session has
        // expired.
        eventually(START, || {
            node.launch()?;
            node.wait_until_it_sees(1, START)
                .map_err(|error| anyhow!("{error:#}"))
        })
    }

    /// Bytes of a topic's segments on the disks of all brokers, indexes left out.
    ///
    /// # Errors
    /// When a folder can't be read.
    pub fn stored_bytes(&self, topic: &str) -> Result<u64> {
        let mut bytes = 0;
        for node in &self.nodes[..self.brokers] {
            for folder in list(&Node::data(&node.folder))? {
                let name = folder
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                if name.rsplit_once('-').is_none_or(|(of, _)| of != topic) {
                    continue;
                }
                for file in list(&folder)? {
                    if file.extension().is_some_and(|kind| kind == "log") {
                        bytes += file.metadata().context("look at a segment")?.len();
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// The end of a broker's log, for failure messages.
    pub fn log_tail(&self, broker: usize) -> String {
        let process = self
            .nodes
            .get(broker.wrapping_sub(1))
            .and_then(|node| node.process.as_ref());
        process.map_or_else(
            || format!("broker {broker} is down"),
            ManagedProcess::log_tail,
        )
    }

    fn node(&mut self, broker: usize) -> Result<&mut Node> {
        ensure!(
            (1..=self.brokers).contains(&broker),
            "there is no broker {broker}"
        );
        Ok(&mut self.nodes[broker - 1])
    }

    fn running(&mut self, broker: usize) -> Result<&mut ManagedProcess> {
        let process = self.node(broker)?.process.as_mut();
        process.with_context(|| format!("broker {broker} is down"))
    }
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(context)?;
    entries
        .map(|entry| Ok(entry.with_context(context)?.path()))
        .collect()
}
