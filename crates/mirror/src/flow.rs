//! The way in for a process: start a flow, look at it, stop it.

use std::fmt;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;
use twinlog_core::config::flow::FlowConfig;
use twinlog_core::ids::Flow;
use twinlog_kafka::memory::MemoryBudget;

use crate::heavy_work::HeavyWork;
use crate::source::clients::TransportOf;
use crate::source::connector::{ConnectorStatus, SourceConnector};
use crate::source::positions::WallClock;
use crate::source::presence::Outage;
use crate::status::{Away, FlowState, FlowStatus};

/// What all flows of a process share.
#[derive(Clone)]
pub struct MirrorContext {
    /// How brokers are reached.
    pub transport_of: TransportOf,
    /// Bounds what fetched records occupy in the whole process.
    pub budget: MemoryBudget,
    /// The time for records that carry one.
    pub wall_clock: WallClock,
    /// What all random choices are drawn from (order of brokers, jitter of pauses): a test fixes
    /// it, so that a run repeats itself.
    pub seed: u64,
    /// Where large batches are rebuilt.
    pub heavy_work: HeavyWork,
}

impl MirrorContext {
    /// What a process uses: random choices differ from start to start, and heavy work has threads.
    pub fn new(transport_of: TransportOf, budget: MemoryBudget, wall_clock: WallClock) -> Self {
        MirrorContext {
            transport_of,
            budget,
            wall_clock,
            seed: fastrand::u64(..),
            heavy_work: HeavyWork::OnThreads,
        }
    }
}

/// A flow that runs. Dropping it ends the flow at once; [`FlowHandle::shutdown`] is the clean way.
pub struct FlowHandle {
    watch: FlowWatch,
    stop: Option<oneshot::Sender<Instant>>,
    running: JoinSet<()>,
}

/// Looks at a flow from elsewhere, also while it stops; cloning it is a reference count.
#[derive(Clone)]
pub struct FlowWatch {
    flow: Flow,
    status: watch::Receiver<ConnectorStatus>,
}

impl FlowHandle {
    /// Starts to mirror. Clusters that do not answer are waited for. Needs a tokio runtime around
    /// it.
    pub fn start(config: FlowConfig, context: &MirrorContext) -> FlowHandle {
        let flow = config.flow.clone();
        let (connector, status) = SourceConnector::new(config, context);
        let (stop, stopped) = oneshot::channel();
        let mut running = JoinSet::new();
        let span = tracing::info_span!("flow", %flow);
        running.spawn(connector.run(stopped).instrument(span));
        FlowHandle {
            watch: FlowWatch { flow, status },
            stop: Some(stop),
            running,
        }
    }

    /// Which flow it is.
    pub fn flow(&self) -> &Flow {
        &self.watch.flow
    }

    /// How it stands; see [`FlowWatch::status`].
    pub fn status(&self) -> FlowStatus {
        self.watch.status()
    }

    /// A way to look at it that outlives it.
    pub fn watch(&self) -> FlowWatch {
        self.watch.clone()
    }

    /// Stops fetching, waits until `deadline` for what is on its way, stores positions. Returns how
    /// the flow stood at its end, soon after the deadline at the latest.
    pub async fn shutdown(mut self, deadline: Instant) -> FlowStatus {
        if let Some(stop) = self.stop.take() {
            // If it has ended already there is nobody to tell.
            let _ = stop.send(deadline);
        }
        while let Some(ended) = self.running.join_next().await {
            if let Err(lost) = ended {
                tracing::error!(flow = %self.watch.flow, error = %lost, "the flow ended by a panic");
            }
        }
        self.status()
    }
}

impl FlowWatch {
    /// Which flow it is.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// How it stands. Cheap enough to be asked ten times a second.
    pub fn status(&self) -> FlowStatus {
        let status = self.status.borrow();
        FlowStatus {
            state: status.state.clone(),
            topics: status.topics,
            troubles: status.troubles.clone(),
            source_away: away(&status.source_outage),
            target_away: away(&status.target_outage),
            tasks_cut_off: status.tasks_cut_off,
            tasks: status
                .tasks
                .iter()
                .map(|task| task.borrow().clone())
                .collect(),
        }
    }

    /// Waits until the flow is refused for good: nothing will change until somebody acts.
    /// Cancel-safe.
    pub async fn refused(&self) {
        let mut status = self.status.clone();
        let refused = |status: &ConnectorStatus| matches!(status.state, FlowState::Refused { .. });
        match status.wait_for(refused).await {
            Ok(_) => {}
            // It ended in another way.
            Err(_) => std::future::pending().await,
        }
    }
}

fn away(outage: &watch::Receiver<Option<Outage>>) -> Option<Away> {
    let outage = outage.borrow();
    outage.as_ref().map(|outage| Away {
        since: outage.since.elapsed(),
        reason: outage.reason.clone(),
    })
}

impl fmt::Debug for FlowHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowHandle({})", self.watch.flow)
    }
}
