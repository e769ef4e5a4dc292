//! One cluster as a client sees it: its brokers, its leaders, and connections to them.
//!
//! Nothing runs in the background. A snapshot of [`Metadata`] is there at once; refreshing and
//! connecting happen when asked for, one at a time for each thing asked: whoever asks meanwhile
//! waits for that one and shares what came of it. There is no retrying in here beyond trying the
//! next broker: that is [`retry`](crate::retry)'s.

mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use twinlog_core::ids::TopicPartition;

use self::slot::{Slot, Standing};
use crate::address::Address;
use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::metadata::{self, Leader, Metadata, Topics};
use crate::wire::{MetadataRequest, MetadataResponse};

/// What a connection is for. Brokers serve the requests of one connection one after the other, so
/// whatever waits at the broker gets a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Everything that is answered at once.
    General,
    /// Long polls; the number tells apart those who poll the same broker.
    Fetch(u32),
    /// Produce requests, answered when all replicas have them.
    Produce(u32),
}

/// A broker that has not answered a question about metadata for this long may be stuck.
const SLOW_ANSWER: Duration = Duration::from_secs(2);

/// A cluster. Clones share everything; connections close when the last clone and the last user of
/// each are gone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    config: ClientConfig,
    metadata: watch::Sender<Arc<Metadata>>,
    /// Held by the one refresh under way.
    refreshing: Semaphore,
    state: Mutex<State>,
}

struct State {
    slots: BTreeMap<(Node, Purpose), Arc<Slot>>,
    random: fastrand::Rng,
    last_refresh: Option<Refresh>,
    /// An answer showed that the snapshot is behind the cluster.
    stale: bool,
}

/// The refresh that made the current snapshot.
struct Refresh {
    generation: u64,
    topics: Topics,
    at: Instant,
}

/// Something to connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Broker(i32),
    Bootstrap(Address),
}

impl Client {
    /// A client of the cluster behind `config.bootstrap`. Nothing is contacted yet.
    pub fn new(config: ClientConfig) -> Client {
        let (metadata, _) = watch::channel(Arc::default());
        let state = State {
            slots: BTreeMap::new(),
            random: fastrand::Rng::with_seed(config.seed),
            last_refresh: None,
            stale: false,
        };
        Client {
            inner: Arc::new(Inner {
                config,
                metadata,
                refreshing: Semaphore::new(1),
                state: Mutex::new(state),
            }),
        }
    }

    /// The settings.
    pub fn config(&self) -> &ClientConfig {
        &self.inner.config
    }

    /// The newest snapshot; generation 0 and empty before the first refresh.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.inner.metadata.borrow().clone()
    }

    /// Follows the snapshots.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Metadata>> {
        self.inner.metadata.subscribe()
    }

    /// Asks a broker about `topics` and merges the answer into the snapshot.
    ///
    /// Calls that overlap share one request where its topics cover theirs.
    ///
    /// # Errors
    /// [`Error::NoBroker`] if neither a known broker nor a bootstrap address answers.
    pub async fn refresh(&self, topics: &Topics) -> Result<Arc<Metadata>> {
        let seen = self.metadata().generation;
        let _refreshing = self.inner.refreshing.acquire().await;
        if self.was_refreshed_since(seen, topics) {
            return Ok(self.metadata());
        }
        let response = self.ask_any(topics).await?;
        Ok(self.take_answer(&response, topics))
    }

    /// Says that an answer contradicts the snapshot, so that whoever needs it next refreshes it
    /// first.
    pub fn mark_stale(&self) {
        self.inner.state.lock().stale = true;
    }

    /// The snapshot if it has `topics`, is not marked stale and is younger than
    /// `metadata.max.age.ms`, otherwise a refreshed one.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub async fn current(&self, topics: &Topics) -> Result<Arc<Metadata>> {
        let fresh = {
            let state = self.inner.state.lock();
            let age = state
                .last_refresh
                .as_ref()
                .map(|refresh| refresh.at.elapsed());
            !state.stale && age.is_some_and(|age| age < self.inner.config.metadata_max_age)
        };
        let metadata = self.metadata();
        let has_all = match topics {
            Topics::None => true,
            Topics::All => self.was_refreshed_since(0, &Topics::All),
            Topics::Named(names) => names.iter().all(|name| metadata.topics.contains_key(name)),
        };
        if fresh && has_all {
            return Ok(metadata);
        }
        self.refresh(topics).await
    }

    /// Who leads a partition, from the snapshot, or after one refresh if it does not say.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], [`Error::NoLeader`], and as [`refresh`](Self::refresh).
    pub async fn leader(&self, partition: &TopicPartition) -> Result<Leader> {
        let topics = Topics::Named(BTreeSet::from([partition.topic.clone()]));
        if let Some(leader) = self.current(&topics).await?.leader(partition) {
            return Ok(leader);
        }
        self.refresh(&topics).await?.require_leader(partition)
    }

    /// An open connection to a broker, made if there is none, after the reconnect backoff if the
    /// last attempt failed.
    ///
    /// # Errors
    /// [`Error::UnknownBroker`] and what [`Connection::open`] fails with.
    pub async fn connection(&self, broker: i32, purpose: Purpose) -> Result<Connection> {
        let metadata = self.metadata();
        let known = metadata.brokers.get(&broker);
        let address = &known.ok_or(Error::UnknownBroker { broker })?.address;
        let slot = self.slot(Node::Broker(broker), purpose);
        let connection = slot.connection(&self.inner.config, address).await;
        if connection.is_err() {
            // It may be gone for good, and its partitions with another leader.
            self.mark_stale();
        }
        connection
    }

    /// A connection to any broker that answers: those already connected first, then the others,
    /// then the bootstrap addresses anew (KIP-1102).
    ///
    /// # Errors
    /// [`Error::NoBroker`].
    pub async fn any_connection(&self) -> Result<Connection> {
        let mut failure = None;
        let nodes = self.nodes();
        for (node, address) in &nodes {
            let slot = self.slot(node.clone(), Purpose::General);
            match slot.connection(&self.inner.config, address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = Some(error),
            }
        }
        Err(no_broker(&nodes, failure))
    }

    /// A connection to the controller, to which brokers before KRaft want changes to be sent.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh) and [`connection`](Self::connection).
    pub async fn controller(&self) -> Result<Connection> {
        let mut metadata = self.metadata();
        if metadata.controller.is_none() {
            metadata = self.refresh(&Topics::None).await?;
        }
        match metadata.controller {
            Some(broker) if metadata.brokers.contains_key(&broker) => {
                self.connection(broker, Purpose::General).await
            }
            _ => self.any_connection().await,
        }
    }

    /// Asks one node after the other. The next is asked when one fails, and also when one is slow:
    /// it may be stuck, and the others are not.
    async fn ask_any(&self, topics: &Topics) -> Result<MetadataResponse> {
        let request = metadata::build_request(topics);
        let nodes = self.nodes();
        let mut to_ask = nodes.iter();
        let mut asked = JoinSet::new();
        let mut failure = None;
        loop {
            if let Some((node, address)) = to_ask.next() {
                let slot = self.slot(node.clone(), Purpose::General);
                let (client, request) = (self.clone(), request.clone());
                let address = address.clone();
                asked.spawn(async move { client.ask(&slot, &address, &request).await });
            } else if asked.is_empty() {
                return Err(no_broker(&nodes, failure));
            }
            let answer = asked.join_next();
            let answer = match to_ask.len() {
                0 => answer.await,
                _ => timeout(SLOW_ANSWER, answer).await.unwrap_or(None),
            };
            match answer {
                Some(Ok(Ok(response))) => return Ok(response),
                Some(Ok(Err(error))) => failure = Some(error),
                Some(Err(lost)) => {
                    if let Ok(panic) = lost.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
                None => {}
            }
        }
    }

    async fn ask(
        &self,
        slot: &Slot,
        address: &Address,
        request: &MetadataRequest,
    ) -> Result<MetadataResponse> {
        let answer = async {
            let connection = slot.connection(&self.inner.config, address).await?;
            let response = connection.call(request).await?;
            Error::check(response.error_code, None, || "refresh metadata".to_owned())?;
            Ok(response)
        };
        answer.await.inspect_err(|error: &Error| {
            let error = error as &dyn std::error::Error;
            tracing::debug!(broker = %address, error, "no metadata from this broker");
        })
    }

    fn take_answer(&self, response: &MetadataResponse, topics: &Topics) -> Arc<Metadata> {
        let merged = Arc::new(self.metadata().merged(response, topics));
        let mut state = self.inner.state.lock();
        state.stale = false;
        state.last_refresh = Some(Refresh {
            generation: merged.generation,
            topics: topics.clone(),
            at: Instant::now(),
        });
        state.slots.retain(|(node, _), _| match node {
            Node::Broker(id) => merged.brokers.contains_key(id),
            Node::Bootstrap(_) => merged.brokers.is_empty(),
        });
        self.inner.metadata.send_replace(merged.clone());
        merged
    }

    fn was_refreshed_since(&self, generation: u64, topics: &Topics) -> bool {
        let state = self.inner.state.lock();
        state.last_refresh.as_ref().is_some_and(|refresh| {
            refresh.generation > generation && covers(&refresh.topics, topics)
        })
    }

    fn slot(&self, node: Node, purpose: Purpose) -> Arc<Slot> {
        let mut state = self.inner.state.lock();
        if let Some(slot) = state.slots.get(&(node.clone(), purpose)) {
            return slot.clone();
        }
        let seed = state.random.u64(..);
        let slot = Arc::new(Slot::new(seed));
        state.slots.insert((node, purpose), slot.clone());
        slot
    }

    /// Everything that may answer, the likeliest first: connected brokers, others, bootstrap
    /// addresses, and last whatever failed when it was last tried.
    fn nodes(&self) -> Vec<(Node, Address)> {
        let metadata = self.metadata();
        let known = metadata.brokers.iter();
        let mut nodes: Vec<_> = known
            .map(|(id, broker)| (Node::Broker(*id), broker.address.clone()))
            .collect();
        let addresses = self.inner.config.bootstrap.iter();
        let mut bootstrap: Vec<_> = addresses
            .map(|address| (Node::Bootstrap(address.clone()), address.clone()))
            .collect();
        let mut state = self.inner.state.lock();
        state.random.shuffle(&mut nodes);
        state.random.shuffle(&mut bootstrap);
        nodes.extend(bootstrap);
        nodes.sort_by_key(|(node, _)| {
            let slot = state.slots.get(&(node.clone(), Purpose::General));
            let standing = slot.map_or(Standing::Untried, |slot| slot.standing());
            (standing, matches!(node, Node::Bootstrap(_)))
        });
        nodes
    }
}

fn covers(asked: &Topics, wanted: &Topics) -> bool {
    match (asked, wanted) {
        (Topics::All, _) | (_, Topics::None) => true,
        (Topics::Named(asked), Topics::Named(wanted)) => wanted.is_subset(asked),
        (Topics::None | Topics::Named(_), _) => false,
    }
}

fn no_broker(nodes: &[(Node, Address)], failure: Option<Error>) -> Error {
    let tried: Vec<_> = nodes
        .iter()
        .map(|(_, address)| address.to_string())
        .collect();
    Error::NoBroker {
        tried: tried.join(", "),
        cause: failure.map(Box::new),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bootstrap = &self.inner.config.bootstrap;
        write!(f, "Client({bootstrap:?})")
    }
}

#[cfg(test)]
mod tests;
