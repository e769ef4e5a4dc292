//! The flows of this process: started together, stopped together, failing alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use twinlog_core::config::flow::{FlowConfig, FlowRole, MirrorConfig};
use twinlog_core::ids::Flow;
use twinlog_kafka::memory::MemoryBudget;
use twinlog_mirror::flow::{FlowHandle, FlowWatch, MirrorContext};
use twinlog_mirror::source::clients;
use twinlog_mirror::status::{FlowState, FlowStatus, Unfinished};

use crate::clock::wall_clock_ms;
use crate::stop::Stop;

/// How the flows ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// They stopped when they were asked to.
    Stopped,
    /// Some were refused.
    Refused,
    /// They were stopped before everything on its way was acknowledged and stored.
    CutOff,
}

/// Flows that run. Dropping them ends them at once; [`Flows::run_until`] is the clean way.
pub struct Flows {
    flows: Vec<FlowHandle>,
    stop_within: Duration,
}

impl Flows {
    /// Starts all flows of `config` that replicate. Must be called within the runtime.
    pub fn start(config: MirrorConfig) -> Flows {
        let budget = MemoryBudget::new(config.buffer_memory_bytes);
        let replicates = |flow: &FlowConfig| flow.role == FlowRole::Replicates;
        let configs: Vec<_> = config.flows.into_iter().filter(replicates).collect();
        let names: Vec<_> = configs
            .iter()
            .map(|config| config.flow.to_string())
            .collect();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            flows = names.join(", "),
            "start"
        );
        let context = MirrorContext::new(clients::tcp(), budget, Arc::new(wall_clock_ms));
        let stop_within = configs.iter().map(stop_within).max().unwrap_or_default();
        let start = |config| FlowHandle::start(config, &context);
        Flows {
            flows: configs.into_iter().map(start).collect(),
            stop_within,
        }
    }

    /// Ways to look at them.
    pub fn watches(&self) -> Vec<FlowWatch> {
        self.flows.iter().map(FlowHandle::watch).collect()
    }

    /// Lets them run until `stop`, or until none of them can; then stops them within a bounded
    /// time.
    pub async fn run_until(self, stop: &Stop) -> Ending {
        let watches = self.watches();
        let all_refused = async {
            for watch in &watches {
                watch.refused().await;
            }
        };
        let refused = tokio::select! {
            biased;
            () = stop.begun().cancelled() => false,
            () = all_refused => true,
        };
        let is_refused =
            |watch: &FlowWatch| matches!(watch.status().state, FlowState::Refused { .. });
        let failed = refused || watches.iter().any(is_refused);
        let is_whole = tokio::select! {
            biased;
            is_whole = self.shut_down() => is_whole,
            () = stop.at_once().cancelled() => {
                tracing::warn!("stopped at once; the next start asks the target's log how far it was");
                false
            }
        };
        match (failed, is_whole) {
            (true, _) => Ending::Refused,
            (false, false) => Ending::CutOff,
            (false, true) => Ending::Stopped,
        }
    }

    /// Stops all flows, and tells whether everything on its way was finished.
    async fn shut_down(self) -> bool {
        let deadline = Instant::now() + self.stop_within;
        let mut ending = JoinSet::new();
        for flow in self.flows {
            ending.spawn(async move {
                let name = flow.flow().clone();
                (name, flow.shutdown(deadline).await)
            });
        }
        let mut is_whole = true;
        while let Some(ended) = ending.join_next().await {
            // A flow's own panic was told by its handle.
            is_whole &= ended.is_ok_and(|(flow, status)| is_finished(&flow, &status));
        }
        is_whole
    }
}

/// Whether a flow that was stopped finished everything; says what it did not.
fn is_finished(flow: &Flow, status: &FlowStatus) -> bool {
    let Unfinished {
        unanswered,
        unstored,
    } = status.unfinished();
    let tasks_cut_off = status.tasks_cut_off;
    let is_finished = unanswered == 0 && unstored == 0 && tasks_cut_off == 0;
    if !is_finished {
        tracing::warn!(
            %flow,
            partitions_unanswered = unanswered,
            partitions_unstored = unstored,
            tasks_cut_off,
            "stopped before everything was finished; the next start asks the target's log"
        );
    }
    is_finished
}

/// How long a flow may take to stop: its tasks, then storing their positions.
fn stop_within(config: &FlowConfig) -> Duration {
    config.worker.task_shutdown_timeout + config.worker.offset_flush_timeout
}
