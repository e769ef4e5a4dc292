//! The flows of this process: started together, stopped together, failing alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use twinlog_core::config::flow::{FlowConfig, FlowRole, MirrorConfig};
use twinlog_kafka::memory::MemoryBudget;
use twinlog_mirror::flow::{FlowHandle, FlowWatch, MirrorContext};
use twinlog_mirror::source::clients;
use twinlog_mirror::status::FlowState;

use crate::clock::wall_clock_ms;
use crate::stop::Stop;

/// What fetched records of all flows together may occupy. More does not copy faster, and costs page
/// faults.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// How the flows ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// They stopped when they were asked to.
    Stopped,
    /// Some were refused, or were cut off before all positions were stored.
    Failed,
}

/// Flows that run. Dropping them ends them at once; [`Flows::run_until`] is the clean way.
pub struct Flows {
    flows: Vec<FlowHandle>,
    stop_within: Duration,
}

impl Flows {
    /// Starts all flows of `config` that replicate. Must be called within the runtime.
    pub fn start(config: MirrorConfig) -> Flows {
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
        let budget = MemoryBudget::new(RECORD_BYTES_MAX);
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
        let stopped = tokio::select! {
            biased;
            () = self.shut_down() => true,
            () = stop.at_once().cancelled() => false,
        };
        if !stopped {
            tracing::warn!("stopped at once; the next start asks the target's log how far it was");
        }
        if failed || !stopped {
            Ending::Failed
        } else {
            Ending::Stopped
        }
    }

    async fn shut_down(self) {
        let deadline = Instant::now() + self.stop_within;
        let mut ending = JoinSet::new();
        for flow in self.flows {
            ending.spawn(flow.shutdown(deadline));
        }
        while ending.join_next().await.is_some() {}
    }
}

/// How long a flow may take to stop: its tasks, then storing their positions.
fn stop_within(config: &FlowConfig) -> Duration {
    config.worker.task_shutdown_timeout + config.worker.offset_flush_timeout
}
