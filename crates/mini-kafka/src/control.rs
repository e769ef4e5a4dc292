//! The handle of a cluster: connections in, and everything a test may do to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use parking_lot::Mutex;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::{self, Cluster};
use crate::faults::{On, Traffic};
use crate::log::Compaction;
use crate::options::Options;
use crate::state::Partition;

/// Bytes that an in-memory connection holds in each direction.
const DUPLEX_BYTES: usize = 1024 * 1024;

/// What a crash does to records that no disk had seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unflushed {
    /// The page cache survives, as it does when only the process dies.
    Kept,
    /// The last batches of every partition that the broker led are gone, and no other replica had
    /// them.
    LostBatches(usize),
}

/// What a partition looks like from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// The leader, if there is one.
    pub leader: Option<i32>,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// Offset of the first record.
    pub log_start: i64,
    /// Up to where consumers may read.
    pub high_watermark: i64,
    /// Up to where read_committed consumers may read.
    pub last_stable_offset: i64,
    /// The offset that the next record gets.
    pub log_end: i64,
}

#[derive(Debug)]
struct Port {
    number: u16,
    closed: watch::Receiver<bool>,
}

/// A running cluster. Dropping it ends its tasks; [`MiniKafka::shut_down`] also waits for them.
#[derive(Debug)]
pub struct MiniKafka {
    cluster: Arc<Cluster>,
    lives: Mutex<BTreeMap<i32, CancellationToken>>,
    ports: Mutex<BTreeMap<i32, Port>>,
}

impl MiniKafka {
    /// Starts a cluster that can be reached in memory; [`MiniKafka::listen_tcp`] opens it to
    /// others. Must be called within a tokio runtime.
    pub fn start(options: Options) -> MiniKafka {
        let brokers = options.brokers;
        let cluster = Cluster::new(options);
        let lives = (1..=brokers)
            .map(|id| (id, cluster.child_token()))
            .collect();
        MiniKafka {
            cluster,
            lives: Mutex::new(lives),
            ports: Mutex::default(),
        }
    }

    /// Opens a connection to a broker in memory. To a broker that is down or unknown it fails like
    /// a refused connection.
    pub fn connect(&self, broker: i32) -> io::Result<DuplexStream> {
        let life = self.life(broker).ok_or(io::ErrorKind::ConnectionRefused)?;
        let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
        let shared = Arc::clone(&self.cluster);
        self.cluster
            .spawn(cluster::serve(shared, broker, ours, life));
        Ok(theirs)
    }

    /// Opens a connection to the broker that advertises this address.
    pub fn connect_to(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        let advertised = |id: &i32| self.address(*id) == (host.to_owned(), port);
        let broker = self.broker_ids().into_iter().find(advertised);
        self.connect(broker.ok_or(io::ErrorKind::ConnectionRefused)?)
    }

    /// Listens on 127.0.0.1, and advertises that. `ports` are those of broker 1, 2 and so on; 0 or
    /// a missing one takes a free port. Answers the bootstrap addresses.
    pub async fn listen_tcp(&self, ports: &[u16]) -> io::Result<Vec<String>> {
        for (at, broker) in self.broker_ids().into_iter().enumerate() {
            self.listen(broker, ports.get(at).copied().unwrap_or(0))
                .await?;
        }
        Ok(self.bootstrap())
    }

    /// The brokers' ids.
    pub fn broker_ids(&self) -> Vec<i32> {
        self.cluster
            .state
            .lock()
            .brokers
            .iter()
            .map(|broker| broker.id)
            .collect()
    }

    /// What a broker advertises as its host and port.
    pub fn address(&self, broker: i32) -> (String, u16) {
        let state = self.cluster.state.lock();
        state
            .broker(broker)
            .map_or_else(Default::default, |b| (b.host.clone(), b.port))
    }

    /// The advertised addresses as `bootstrap.servers` has them.
    pub fn bootstrap(&self) -> Vec<String> {
        let address = |id| self.address(id);
        self.broker_ids()
            .into_iter()
            .map(address)
            .map(|(h, p)| format!("{h}:{p}"))
            .collect()
    }

    /// Ends all connections and tasks, and waits for them.
    pub async fn shut_down(self) {
        self.cluster.shut_down().await;
    }

    /// Stages a fault for requests of one API.
    pub fn on(&self, api: ApiKey) -> On<'_> {
        On::new(&self.cluster.faults, Some(api))
    }

    /// Stages a fault for requests of any API.
    pub fn on_any(&self) -> On<'_> {
        On::new(&self.cluster.faults, None)
    }

    /// Takes back all staged faults.
    pub fn clear_faults(&self) {
        self.cluster.faults.lock().clear();
    }

    /// Shows every frame that comes or goes from now on, in the order in which they do.
    pub fn observe(&self, observer: impl FnMut(Traffic<'_>) + Send + 'static) {
        self.cluster.observer.lock().0 = Some(Box::new(observer));
    }

    /// How many requests of an API came, those that faults hit included.
    pub fn requests(&self, api: ApiKey) -> u64 {
        self.cluster.faults.lock().count(api)
    }

    /// Adds a topic, with replicas on the first `replication_factor` brokers that are up.
    pub fn create_topic(&self, name: &str, partitions: i32, replication_factor: i16) {
        self.create_topic_with(name, partitions, replication_factor, &[]);
    }

    /// Adds a topic with settings.
    pub fn create_topic_with(
        &self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
        configs: &[(&str, &str)],
    ) {
        let mut state = self.cluster.state.lock();
        let assignments = state.spread(0, partitions, replication_factor);
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        state.add_topic(name, assignments, configs.iter().map(own).collect());
    }

    /// Deletes a topic; answers whether there was one. Made again, it has another id.
    pub fn delete_topic(&self, name: &str) -> bool {
        self.cluster.state.lock().remove_topic(name).is_some()
    }

    /// What a partition looks like, if there is one.
    pub fn partition(&self, topic: &str, index: i32) -> Option<PartitionView> {
        let state = self.cluster.state.lock();
        state
            .partition(topic, index)
            .ok()
            .map(|partition| PartitionView {
                leader: partition.leader,
                leader_epoch: partition.leader_epoch,
                log_start: partition.log.start(),
                high_watermark: partition.log.high_watermark(),
                last_stable_offset: partition.log.last_stable_offset(),
                log_end: partition.log.end(),
            })
    }

    /// The stored batches of a partition, each with all its bytes.
    pub fn batches(&self, topic: &str, index: i32) -> Vec<bytes::Bytes> {
        let state = self.cluster.state.lock();
        let partition = state.partition(topic, index).ok();
        partition.map_or_else(Vec::new, |p| {
            p.log.batches().map(|b| b.bytes.clone()).collect()
        })
    }

    /// Makes `broker` the leader of a partition, in a new epoch; it becomes a replica if it was
    /// none. Answers whether there is such a partition.
    pub fn move_leader(&self, topic: &str, index: i32, broker: i32) -> bool {
        self.with_partition(topic, index, |partition| {
            for replicas in [&mut partition.replicas, &mut partition.isr] {
                if !replicas.contains(&broker) {
                    replicas.push(broker);
                }
            }
            partition.elect(Some(broker));
        })
    }

    /// Kills a broker: its connections and listener close, its sessions are forgotten, and other
    /// replicas lead where there are any.
    pub fn crash(&self, broker: i32, unflushed: Unflushed) {
        let mut state = self.cluster.state.lock();
        if let Some(down) = state.broker_mut(broker) {
            down.up = false;
            down.sessions.clear();
        }
        for partition in state
            .topics
            .values_mut()
            .flat_map(|topic| &mut topic.partitions)
        {
            partition.lose(broker, unflushed);
        }
        state.transactions.coordinator_epoch += 1;
        state.groups.coordinator_moved();
        state.changed();
        drop(state);
        if let Some(life) = self.lives.lock().get(&broker) {
            life.cancel();
        }
    }

    /// Starts a crashed broker again, on its old port if it had one. It leads again what nobody
    /// else leads.
    pub async fn restart(&self, broker: i32) -> io::Result<()> {
        self.lives.lock().insert(broker, self.cluster.child_token());
        let port = self.ports.lock().remove(&broker);
        if let Some(mut port) = port {
            // An error means that the listener's task is gone, and the listener with it.
            let _gone = port.closed.wait_for(|closed| *closed).await;
            self.listen(broker, port.number).await?;
        }
        let mut state = self.cluster.state.lock();
        if let Some(up) = state.broker_mut(broker) {
            up.up = true;
        }
        for partition in state
            .topics
            .values_mut()
            .flat_map(|topic| &mut topic.partitions)
        {
            partition.regain(broker);
        }
        state.changed();
        Ok(())
    }

    /// Cuts a partition's log back to `offset` in a new leader epoch, as an unclean election does.
    pub fn truncate(&self, topic: &str, index: i32, offset: i64) -> bool {
        self.with_partition(topic, index, |partition| {
            partition.log.truncate(offset);
            let leader = partition.leader;
            partition.elect(leader);
        })
    }

    /// Advances a partition's log start, as retention does.
    pub fn delete_records(&self, topic: &str, index: i32, before: i64) -> bool {
        self.with_partition(topic, index, |partition| {
            partition.log.delete_before(before);
        })
    }

    /// Compacts a partition now.
    pub fn compact(&self, topic: &str, index: i32, how: Compaction) -> bool {
        self.with_partition(topic, index, |partition| partition.log.compact(how))
    }

    /// Holds a partition's high watermark where it is, as followers that stopped do: acks=all
    /// waits. `false` lets them catch up.
    pub fn hold_high_watermark(&self, topic: &str, index: i32, hold: bool) -> bool {
        self.with_partition(topic, index, |partition| {
            partition.log.hold_high_watermark(hold);
        })
    }

    /// Forgets the producers of all partitions whose last record is older than `age`, as brokers do
    /// every ten minutes with an age of a day.
    pub fn expire_producers(&self, age: Duration) {
        let mut state = self.cluster.state.lock();
        let now = state.now_ms();
        for partition in state
            .topics
            .values_mut()
            .flat_map(|topic| &mut topic.partitions)
        {
            partition.log.producers.expire(now, age.as_millis() as i64);
        }
    }

    /// Answers of `api` ask clients to wait, and their connection is read no further for that time.
    /// Zero ends it.
    pub fn throttle(&self, api: ApiKey, wait: Duration) {
        self.cluster.state.lock().throttles.insert(api as i16, wait);
    }

    /// The transaction coordinator answers 51 CONCURRENT_TRANSACTIONS until this is called with
    /// `false`.
    pub fn coordinator_busy(&self, busy: bool) {
        self.cluster.state.lock().transactions.busy = busy;
    }

    fn life(&self, broker: i32) -> Option<CancellationToken> {
        self.lives
            .lock()
            .get(&broker)
            .filter(|life| !life.is_cancelled())
            .cloned()
    }

    async fn listen(&self, broker: i32, port: u16) -> io::Result<()> {
        let (listener, number) = cluster::bind(port).await?;
        let life = self.life(broker).ok_or(io::ErrorKind::NotConnected)?;
        if let Some(advertised) = self.cluster.state.lock().broker_mut(broker) {
            (advertised.host, advertised.port) = ("127.0.0.1".to_owned(), number);
        }
        let (closing, closed) = watch::channel(false);
        self.ports.lock().insert(broker, Port { number, closed });
        let shared = Arc::clone(&self.cluster);
        self.cluster
            .spawn(cluster::listen(shared, broker, listener, life, closing));
        Ok(())
    }

    fn with_partition(&self, topic: &str, index: i32, work: impl FnOnce(&mut Partition)) -> bool {
        let mut state = self.cluster.state.lock();
        let Ok(partition) = state.partition_mut(topic, index) else {
            return false;
        };
        work(partition);
        state.changed();
        true
    }
}

impl Drop for MiniKafka {
    fn drop(&mut self) {
        self.cluster.stop();
    }
}

impl Partition {
    /// `broker` is down: it leaves the replicas in sync, and another one leads if there is one.
    fn lose(&mut self, broker: i32, unflushed: Unflushed) {
        let led = self.leader == Some(broker);
        if self.isr.len() > 1 {
            self.isr.retain(|id| *id != broker);
        }
        if !led {
            return;
        }
        if let Unflushed::LostBatches(count) = unflushed {
            let kept = self.log.before_last_batches(count);
            self.log.truncate(kept);
        }
        let next = self.isr.iter().copied().find(|id| *id != broker);
        self.elect(next);
    }

    fn regain(&mut self, broker: i32) {
        if !self.replicas.contains(&broker) {
            return;
        }
        if !self.isr.contains(&broker) {
            self.isr.push(broker);
        }
        if self.leader.is_none() {
            self.elect(Some(broker));
        }
    }
}
