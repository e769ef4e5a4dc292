//! The source connector: keeps the target's topics in step with the source's and spreads partitions
//! over tasks.
//!
//! It owns its tasks. A change of the partition set reaches those it concerns as a message; nothing
//! is restarted for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;
use twinlog_core::assign::assign;
use twinlog_core::config::flow::{self, FlowConfig, FlowRole};
use twinlog_core::ids::{Flow, Topic, TopicId, TopicPartition};
use twinlog_core::offsets::producer_id;
use twinlog_core::plan::topics::SourceTopic;
use twinlog_kafka::admin::{ConfigResource, describe_configs};
use twinlog_kafka::batch::Compression;
use twinlog_kafka::error::{Class, Error, ErrorCode, Result};
use twinlog_kafka::fetch::{FetchOptions, Isolation};
use twinlog_kafka::metadata::Topics;
use twinlog_kafka::retry::{Backoff, is_told};

use super::clients::Clients;
use super::copies::Shortage;
use super::discovery::{Discovery, discover, named};
use super::offsets_topic::Readiness;
use super::positions::PositionStore;
use super::presence::{self, Outage};
use super::rules::RulesConfig;
use super::task::{Message, PartitionSpec, Task, TaskConfig, TaskContext};
use crate::flow::MirrorContext;
use crate::pipeline::planner::Rules;
use crate::status::{FlowState, TaskStatus, TopicTrouble};
use crate::verdict::{Refused, Verdict, verdict};

/// How long a task is given, past the deadline, to notice it.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How soon a round that failed is repeated.
const FAILED_ROUND_PAUSE: Duration = Duration::from_secs(1);
/// Rounds that fail in a row before that is more than a cluster that changes its mind.
const QUIET_ROUNDS: u32 = 4;
/// How many messages may wait for a task.
const INBOX_LEN: usize = 16;
/// Topics whose settings are asked for at once.
const TOPICS_A_REQUEST: usize = 200;

/// How a connector stands.
#[derive(Debug, Clone)]
pub struct ConnectorStatus {
    /// What it is doing.
    pub state: FlowState,
    /// Topics that are mirrored.
    pub topics: usize,
    /// Topics that should be and are not.
    pub troubles: Vec<TopicTrouble>,
    /// Whether the source is away.
    pub source_outage: watch::Receiver<Option<Outage>>,
    /// Whether the target is away.
    pub target_outage: watch::Receiver<Option<Outage>>,
    /// Its tasks' own words.
    pub tasks: Vec<watch::Receiver<TaskStatus>>,
    /// Tasks that did not end in time and were cut off.
    pub tasks_cut_off: usize,
}

/// The connector of one flow.
pub struct SourceConnector {
    config: Arc<FlowConfig>,
    clients: Clients,
    context: MirrorContext,
    positions: PositionStore,
    random: fastrand::Rng,
    status: watch::Sender<ConnectorStatus>,
    /// Where it is kept whether source and target answer.
    outages: [watch::Sender<Option<Outage>>; 2],
    watching: JoinSet<Infallible>,
    running: JoinSet<()>,
    tasks: Vec<RunningTask>,
    /// What each task mirrors.
    assignment: Vec<Vec<TopicPartition>>,
    specs: HashMap<TopicPartition, PartitionSpec>,
    rules: HashMap<Topic, Rules>,
    /// The ids of the target's topics as of the last round, [`TopicId::ZERO`] where brokers have
    /// none.
    target_ids: HashMap<Topic, TopicId>,
    /// The offsets topic's id as of the last round.
    offsets_topic_id: Option<TopicId>,
    next_generation: u64,
}

/// How far a round of discovery came.
enum Round {
    /// Everything that can be mirrored is assigned.
    Complete,
    /// Something was not to be learned yet: the next round should come soon.
    Partial,
}

struct RunningTask {
    inbox: mpsc::Sender<Message>,
    status: watch::Receiver<TaskStatus>,
    id: Id,
}

impl SourceConnector {
    /// The connector of a flow, and its status. Nothing is contacted before
    /// [`SourceConnector::run`].
    pub fn new(
        config: FlowConfig,
        context: &MirrorContext,
    ) -> (Self, watch::Receiver<ConnectorStatus>) {
        // Flows of one process go their own ways.
        let seed = context.seed ^ producer_id(&config.flow).unsigned_abs();
        let mut random = fastrand::Rng::with_seed(seed);
        let clients = Clients::new(&config, &context.transport_of, &mut random);
        let (source_outage, source_watched) = watch::channel(None);
        let (target_outage, target_watched) = watch::channel(None);
        let (status, watched) = watch::channel(ConnectorStatus {
            state: FlowState::Connecting { trouble: None },
            topics: 0,
            troubles: Vec::new(),
            source_outage: source_watched,
            target_outage: target_watched,
            tasks: Vec::new(),
            tasks_cut_off: 0,
        });
        let positions = PositionStore::new(
            clients.worker.clone(),
            config.worker.offsets_topic.clone(),
            &config.source_connector_name,
            &config.flow,
            context.wall_clock.clone(),
        );
        let connector = SourceConnector {
            config: Arc::new(config),
            clients,
            context: context.clone(),
            positions,
            random,
            status,
            outages: [source_outage, target_outage],
            watching: JoinSet::new(),
            running: JoinSet::new(),
            tasks: Vec::new(),
            assignment: Vec::new(),
            specs: HashMap::new(),
            rules: HashMap::new(),
            target_ids: HashMap::new(),
            offsets_topic_id: None,
            next_generation: 1,
        };
        (connector, watched)
    }

    /// Mirrors until `stop` says by when to end, or its other half is dropped.
    pub async fn run(mut self, mut stop: oneshot::Receiver<Instant>) {
        let deadline = tokio::select! {
            biased;
            deadline = &mut stop => deadline,
            never = self.mirror() => match never {},
        };
        self.watching.abort_all();
        self.stop_tasks(deadline.unwrap_or_else(|_| Instant::now()))
            .await;
        self.set_state(FlowState::Stopped);
        tracing::info!("stopped");
    }

    async fn mirror(&mut self) -> Infallible {
        if self.config.role == FlowRole::HeartbeatsOnly {
            self.set_state(FlowState::Running);
            return std::future::pending().await;
        }
        self.connect().await;
        self.watch_presence();
        tracing::info!(
            source = %self.config.flow.source,
            target = %self.config.flow.target,
            tasks_max = self.config.tasks_max,
            "mirroring"
        );
        let mut failures = 0_u32;
        loop {
            let pause = match self.refresh().await {
                Ok(Round::Complete) => {
                    failures = 0;
                    self.config.refresh_topics
                }
                Ok(Round::Partial) => Some(FAILED_ROUND_PAUSE),
                Err(error) => {
                    failures = failures.saturating_add(1);
                    log_failed_round(&error, failures);
                    Some(FAILED_ROUND_PAUSE)
                }
            };
            tokio::select! {
                biased;
                Some(ended) = self.running.join_next_with_id(), if !self.running.is_empty() => {
                    self.on_task_ended(ended).await;
                }
                () = wait(pause) => {}
            }
        }
    }

    /// Has an outage of either cluster noticed from now on.
    fn watch_presence(&mut self) {
        let Flow { source, target } = self.config.flow.clone();
        let [source_outage, target_outage] = self.outages.clone();
        let (at_source, at_target) = (
            self.clients.source_admin.clone(),
            self.clients.target_admin.clone(),
        );
        let span = tracing::Span::current();
        let watch = presence::watch(at_source, source, source_outage).instrument(span.clone());
        self.watching.spawn(watch);
        let watch = presence::watch(at_target, target, target_outage).instrument(span);
        self.watching.spawn(watch);
    }

    /// Waits until both clusters answer and the offsets topic is there. A flow that must not run
    /// waits for its end here.
    async fn connect(&mut self) {
        let backoff = backoff(self.config.worker.client.retry_backoff);
        let mut told = None;
        for failures in 0.. {
            let checked = self.check_clusters().await;
            let kind = std::mem::discriminant(&checked);
            let is_news = told.replace(kind) != Some(kind);
            match checked {
                Ok(Readiness::Ready) => return self.set_state(FlowState::Running),
                Ok(Readiness::Refused(reason)) => {
                    tracing::error!(%reason, "this flow is not mirrored");
                    self.set_state(FlowState::Refused { reason });
                    return std::future::pending().await;
                }
                Ok(Readiness::Blocked(Shortage { reason, remedy })) => {
                    if is_news {
                        tracing::error!(%reason, %remedy, "positions cannot be stored");
                    }
                    self.set_state(FlowState::Blocked { reason, remedy });
                }
                Err(trouble) => {
                    if is_news {
                        let error = &trouble as &dyn std::error::Error;
                        tracing::warn!(error, "waiting for the clusters");
                    }
                    let trouble = Some(trouble.to_string());
                    self.set_state(FlowState::Connecting { trouble });
                }
            }
            sleep(backoff.pause(failures, &mut self.random)).await;
        }
    }

    /// Whether the flow may run.
    async fn check_clusters(&self) -> Result<Readiness> {
        use twinlog_kafka::admin::describe_cluster;
        let source = describe_cluster(&self.clients.source_admin).await?;
        let target = describe_cluster(&self.clients.target_admin).await?;
        if let Some(id) = source
            .cluster_id
            .filter(|id| Some(id) == target.cluster_id.as_ref())
        {
            return Ok(Readiness::Refused(format!(
                "source and target are one cluster ({id}): its topics would be copied onto themselves; check bootstrap.servers"
            )));
        }
        self.positions.ensure().await
    }

    /// One round of discovery, and what follows from it.
    async fn refresh(&mut self) -> Result<Round> {
        let discovery = discover(&self.config, &self.clients).await?;
        self.log_new_troubles(&discovery.troubles);
        // Told once, also if the round fails later on.
        let troubles = discovery.troubles.clone();
        self.status.send_modify(|status| status.troubles = troubles);
        let mut partitions = partitions_of(&discovery.topics);
        let made_anew = self.learn_target_ids(&discovery);
        self.tell_left(&discovery).await;
        self.keep_offsets_topic().await?;
        self.learn_rules(&discovery.topics).await?;
        self.learn_specs(&discovery.topics, &partitions).await?;
        let all = partitions.len();
        partitions.retain(|partition| self.specs.contains_key(partition));
        let round = match partitions.len() < all {
            true => Round::Partial,
            false => Round::Complete,
        };
        let assignment = assign(&self.assignment, &partitions, self.config.tasks_max);
        self.apply_assignment(assignment).await;
        self.tell_made_anew(made_anew).await;
        let tasks = self.tasks.iter().map(|task| task.status.clone()).collect();
        self.status.send_modify(|status| {
            status.topics = discovery.topics.len();
            status.tasks = tasks;
        });
        Ok(round)
    }

    /// Says of topics that are no longer mirrored why that is.
    async fn tell_left(&self, discovery: &Discovery) {
        let stay: HashSet<&Topic> = discovery.topics.iter().map(|topic| &topic.name).collect();
        let topics = self.specs.keys().map(|partition| &partition.topic);
        let left: BTreeSet<&Topic> = topics.filter(|topic| !stay.contains(topic)).collect();
        if left.is_empty() {
            return;
        }
        // Asked by name, a broker tells a topic that may not be seen from one that is not there.
        let named = Topics::Named(left.iter().copied().cloned().collect());
        let seen = self.clients.source_admin.refresh(&named).await;
        for topic in left {
            let reason = match seen.as_ref().map(|seen| seen.topic(topic)) {
                Ok(Some(known)) if known.error == ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                    "the permission to see it on the source (DESCRIBE) is missing"
                }
                Ok(Some(known)) if known.error == ErrorCode::NONE => {
                    "it is on the source, but its copy is not on the target"
                }
                Ok(_) => "it was deleted on the source",
                Err(_) => "it was deleted on the source, or the permission to see it is missing",
            };
            tracing::warn!(%topic, reason, "not mirrored any more");
        }
    }

    /// Makes the offsets topic again if it is gone, and has all positions stored in one that is
    /// another than in the last round.
    async fn keep_offsets_topic(&mut self) -> Result<()> {
        let name = &self.config.worker.offsets_topic.name;
        let seen = self.clients.target_admin.metadata();
        let is_gone = seen.topic(name).is_none();
        if is_gone {
            self.positions.ensure().await?;
        }
        let metadata = match is_gone {
            true => self.clients.worker.metadata(),
            false => seen,
        };
        let now = metadata.topic(name).map_or(TopicId::ZERO, |topic| topic.id);
        let then = self.offsets_topic_id.replace(now);
        if then.is_some_and(|then| is_gone || then != now) {
            for task in &self.tasks {
                // One that is gone reads its positions when it is started again.
                let _ = task.inbox.send(Message::StoreAgain).await;
            }
        }
        Ok(())
    }

    fn log_new_troubles(&self, troubles: &[TopicTrouble]) {
        let known = self.status.borrow().troubles.clone();
        let mut by_remedy: BTreeMap<_, Vec<&Topic>> = BTreeMap::new();
        for trouble in troubles.iter().filter(|trouble| !known.contains(trouble)) {
            let TopicTrouble {
                topic,
                reason,
                remedy,
            } = trouble;
            match remedy {
                Some(remedy) => by_remedy.entry(remedy).or_default().push(topic),
                None => tracing::warn!(%topic, reason, "not mirrored, others go on"),
            }
        }
        // What a person has to do once is told once, however many topics wait for it.
        for (remedy, topics) in by_remedy {
            let is_first =
                |trouble: &&TopicTrouble| Some(&trouble.topic) == topics.first().copied();
            let reason = troubles
                .iter()
                .find(is_first)
                .map(|trouble| trouble.reason.as_str());
            let (topics, more) = named(topics.iter().copied());
            tracing::error!(topics, more, reason, remedy, "not mirrored, others go on");
        }
    }

    /// The target topics that were deleted and made again since the last round, by us or by others.
    fn learn_target_ids(&mut self, discovery: &Discovery) -> BTreeSet<Topic> {
        let metadata = self.clients.target_admin.metadata();
        let mut made_anew = BTreeSet::new();
        for SourceTopic { remote, .. } in &discovery.topics {
            let now = metadata
                .topic(remote)
                .map_or(TopicId::ZERO, |topic| topic.id);
            let Some(then) = self.target_ids.insert(remote.clone(), now) else {
                continue;
            };
            let is_another = then.is_known() && now.is_known() && then != now;
            if is_another || discovery.created.contains(remote) {
                // Its settings are not those we knew.
                self.rules.remove(remote);
                made_anew.insert(remote.clone());
            }
        }
        made_anew
    }

    /// A topic that was made anew is empty, which a task would notice with the next record only.
    async fn tell_made_anew(&self, topics: BTreeSet<Topic>) {
        if topics.is_empty() {
            return;
        }
        for task in &self.tasks {
            // A task that is gone looks at the target's logs when it is started again.
            let _ = task
                .inbox
                .send(Message::TargetMadeAnew(topics.clone()))
                .await;
        }
    }

    /// Reads what new target topics take.
    async fn learn_rules(&mut self, topics: &[SourceTopic]) -> Result<()> {
        let config = rules_config(&self.config);
        let unknown = topics
            .iter()
            .filter(|topic| !self.rules.contains_key(&topic.remote));
        let unknown: Vec<_> = unknown
            .map(|topic| ConfigResource::Topic(topic.remote.clone()))
            .collect();
        for resources in unknown.chunks(TOPICS_A_REQUEST) {
            for (resource, settings) in
                describe_configs(&self.clients.target_admin, resources).await?
            {
                let ConfigResource::Topic(topic) = resource else {
                    continue;
                };
                let rules = match settings {
                    Ok(settings) => config.rules(&settings),
                    Err(error) if error.class() == Class::Authorization => config.rules(&[]),
                    Err(_) => continue,
                };
                self.rules.insert(topic, rules);
            }
        }
        Ok(())
    }

    /// Says of new partitions where they begin.
    async fn learn_specs(
        &mut self,
        topics: &[SourceTopic],
        partitions: &[TopicPartition],
    ) -> Result<()> {
        let wanted: HashSet<&TopicPartition> = partitions.iter().collect();
        self.specs.retain(|partition, _| wanted.contains(partition));
        if partitions
            .iter()
            .all(|partition| self.specs.contains_key(partition))
        {
            return Ok(());
        }
        let stored = self.positions.read().await?;
        let ids = self.clients.source_admin.metadata();
        let remotes: HashMap<&Topic, &SourceTopic> =
            topics.iter().map(|topic| (&topic.name, topic)).collect();
        for source in partitions {
            let Some(topic) = remotes
                .get(&source.topic)
                .filter(|_| !self.specs.contains_key(source))
            else {
                continue;
            };
            // Its settings could not be read: the next round knows more.
            let Some(rules) = self.rules.get(&topic.remote) else {
                continue;
            };
            let position = stored.get(source).copied();
            let topic_id = ids.topic(&source.topic).map(|topic| topic.id);
            let spec = PartitionSpec {
                source: source.clone(),
                target: TopicPartition::new(topic.remote.clone(), source.partition),
                topic_id: topic_id.unwrap_or(TopicId::ZERO),
                stored: position,
                rules: *rules,
            };
            if position.is_some_and(|position| spec.is_of_another_topic(&position)) {
                tracing::warn!(partition = %source, "the source topic was made anew while nobody looked: beginning with its earliest record");
            }
            self.specs.insert(source.clone(), spec);
        }
        Ok(())
    }

    /// Tells each task whose partitions changed, and starts those that are missing.
    async fn apply_assignment(&mut self, assignment: Vec<Vec<TopicPartition>>) {
        for (index, partitions) in assignment.iter().enumerate() {
            if index == self.tasks.len() {
                let task = self.start_task(index);
                self.tasks.push(task);
            } else if self.assignment.get(index) == Some(partitions) {
                continue;
            }
            self.reconfigure(index, partitions).await;
        }
        self.assignment = assignment;
    }

    async fn reconfigure(&self, index: usize, partitions: &[TopicPartition]) {
        let specs = partitions
            .iter()
            .filter_map(|partition| self.specs.get(partition).cloned());
        // A task that is gone is started again when its end is noticed.
        let _ = self.tasks[index]
            .inbox
            .send(Message::Reconfigure(specs.collect()))
            .await;
    }

    fn start_task(&mut self, index: usize) -> RunningTask {
        let generation = self.next_generation;
        self.next_generation += 1;
        let (inbox, messages) = mpsc::channel(INBOX_LEN);
        let (status, watched) = watch::channel(TaskStatus::default());
        let context = TaskContext {
            source: self.clients.source_reader.clone(),
            target: self.clients.target_writer.clone(),
            budget: self.context.budget.clone(),
            positions: self.positions.clone(),
            wall_clock: self.context.wall_clock.clone(),
            heavy_work: self.context.heavy_work,
            random: self.random.fork(),
        };
        let config = task_config(&self.config, index, generation);
        let task = Task::new(config, context, messages, status);
        let span = tracing::info_span!("task", task = index);
        let id = self.running.spawn(task.run().instrument(span)).id();
        RunningTask {
            inbox,
            status: watched,
            id,
        }
    }

    /// A task ends early only if it panics: it is started anew from what it stored.
    async fn on_task_ended(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(lost) => lost.id(),
        };
        let Some(index) = self.tasks.iter().position(|task| task.id == id) else {
            return;
        };
        let error = ended.err().map(|lost| lost.to_string());
        tracing::error!(
            task = index,
            error,
            "a task ended unexpectedly: starting it anew"
        );
        sleep(FAILED_ROUND_PAUSE).await;
        self.tasks[index] = self.start_task(index);
        // Their positions are read again with the next round.
        for partition in std::mem::take(&mut self.assignment[index]) {
            self.specs.remove(&partition);
        }
    }

    async fn stop_tasks(&mut self, deadline: Instant) {
        for task in &self.tasks {
            let stop = task.inbox.send(Message::Stop { deadline });
            if timeout_at(deadline, stop).await.is_err() {
                tracing::warn!("a task does not listen");
            }
        }
        let all = async { while self.running.join_next().await.is_some() {} };
        if timeout_at(deadline + STOP_GRACE, all).await.is_err() {
            let late = self.running.len();
            self.status
                .send_modify(|status| status.tasks_cut_off = late);
            tracing::warn!(
                tasks = late,
                "stopped before they were done; the next start asks the target's log"
            );
            self.running.shutdown().await;
        }
    }

    fn set_state(&self, state: FlowState) {
        self.status.send_modify(|status| status.state = state);
    }
}

/// Says that a round failed, and what a person has to do if it will fail until then.
fn log_failed_round(error: &Error, failures: u32) {
    let is_forbidden = verdict(error) == Verdict::Pause(Refused::Permission);
    let error = error as &dyn std::error::Error;
    if !is_told(failures) {
        tracing::debug!(error, failures, "could not compare topics, trying again");
    } else if is_forbidden {
        let remedy = "grant what is missing to the user of this client; it is tried again";
        tracing::error!(error, failures, remedy, "could not compare topics");
    } else if failures <= QUIET_ROUNDS {
        // New topics take a moment until their leaders know that they are.
        tracing::info!(error, failures, "could not compare topics, trying again");
    } else {
        tracing::warn!(error, failures, "could not compare topics, trying again");
    }
}

fn partitions_of(topics: &[SourceTopic]) -> Vec<TopicPartition> {
    let partitions = topics.iter().flat_map(|topic| {
        (0..topic.partitions).map(|partition| TopicPartition::new(topic.name.clone(), partition))
    });
    partitions.collect()
}

async fn wait(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}

fn backoff(config: flow::Backoff) -> Backoff {
    Backoff {
        first: config.initial,
        max: config.max,
    }
}

fn rules_config(config: &FlowConfig) -> RulesConfig {
    RulesConfig {
        recompress: config.writer.compression.map(codec),
        request_bytes_max: config.writer.max_request_bytes.map(|bytes| bytes as usize),
    }
}

/// The codec; its level is not followed yet.
fn codec(compression: flow::Compression) -> Compression {
    match compression {
        flow::Compression::None => Compression::None,
        flow::Compression::Gzip(_) => Compression::Gzip,
        flow::Compression::Snappy => Compression::Snappy,
        flow::Compression::Lz4(_) => Compression::Lz4,
        flow::Compression::Zstd(_) => Compression::Zstd,
    }
}

fn task_config(config: &FlowConfig, index: usize, generation: u64) -> TaskConfig {
    let consumer = &config.source.consumer;
    TaskConfig {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        generation,
        producer_id: producer_id(&config.flow),
        fetch: FetchOptions {
            max_wait: consumer.fetch_max_wait,
            min_bytes: i32::try_from(consumer.fetch_min_bytes).unwrap_or(i32::MAX),
            partition_max_bytes: i32::try_from(consumer.max_partition_fetch_bytes)
                .unwrap_or(i32::MAX),
            isolation: match consumer.isolation {
                flow::Isolation::ReadCommitted => Isolation::ReadCommitted,
                flow::Isolation::ReadUncommitted => Isolation::ReadUncommitted,
            },
            rack: consumer.client_rack.clone().unwrap_or_default(),
        },
        fetch_bytes_max: consumer.fetch_max_bytes as usize,
        auto_offset_reset: consumer.auto_offset_reset,
        flush_interval: config.worker.offset_flush_interval,
        backoff: backoff(consumer.client.retry_backoff),
        rules: rules_config(config),
    }
}
