//! Topics that would be copied round in circles, where flows keep names.
//!
//! ```text
//!        us ── orders ──> eu        orders of us becomes orders of eu, which becomes orders of us:
//!         ^                │        each record is written again and again, without an end
//!         └──── orders ────┘
//! ```
//!
//! The default naming rule reads where a topic came from off its name and stops by itself
//! ([`crate::policy::ReplicationPolicy::is_cycle`]). Where names are kept, they tell nothing; here
//! the flows of the file do. A naming rule keeps a name or makes it longer, so only flows that keep
//! it can lead a topic back to the name it had.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use crate::config::flow::{FlowConfig, FlowRole, Selection};
use crate::filter::TopicFilter;
use crate::ids::{ClusterAlias, Flow};
use crate::pattern::MatchError;
use crate::policy::{Naming, ReplicationPolicy};

/// Which topics a flow takes by their names, and what it calls them on the target.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// The flow.
    pub flow: Flow,
    /// How topics are named.
    pub policy: ReplicationPolicy,
    /// Which topics are wanted.
    pub topics: TopicFilter,
    /// Whether heartbeat topics are taken though the filter rejects them
    /// (`heartbeats.replication.enabled`, KIP-1089).
    pub takes_heartbeats: bool,
}

/// The flows of a file that can be part of a circle: all that are enabled and keep names, those
/// that other processes run included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Circles {
    hops: Vec<Hop>,
}

/// Flows that lead a topic back to where it came from, under its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The flows, each beginning where the one before ends; the last leads to where the first
    /// begins.
    pub flows: Vec<Flow>,
}

impl Hop {
    /// Whether `topic` of the source is taken, as far as this flow alone can tell
    /// (`MirrorSourceConnector.shouldReplicateTopic`).
    pub fn select(&self, topic: &str) -> Result<Selection, MatchError> {
        let heartbeats = self.takes_heartbeats && self.policy.is_heartbeats_topic(topic);
        if !heartbeats && !self.topics.accepts(topic)? {
            return Ok(Selection::NotSelected);
        }
        if self.policy.is_internal_topic(topic) {
            return Ok(Selection::Internal);
        }
        if self.policy.is_cycle(topic, &self.flow.target) {
            return Ok(Selection::Cycle);
        }
        Ok(Selection::Replicate)
    }

    /// Whether `topic` has the same name on the target.
    fn keeps(&self, topic: &str) -> Result<bool, MatchError> {
        Ok(self.select(topic)? == Selection::Replicate
            && self.policy.remote_topic(&self.flow.source, topic).as_str() == topic)
    }
}

impl Circles {
    /// The circles that `flows` may make.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowConfig>) -> Self {
        let may_circle = |flow: &&FlowConfig| {
            flow.role == FlowRole::Replicates && flow.names.policy.naming() == Naming::Identity
        };
        let flows = flows.into_iter().filter(may_circle);
        Circles {
            hops: flows.map(|flow| flow.names.clone()).collect(),
        }
    }

    /// The flows that may be part of a circle.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The shortest circle in which `flow` takes `topic` of its source, if there is one.
    pub fn through(&self, flow: &Flow, topic: &str) -> Result<Option<Circle>, MatchError> {
        if !self.hops.iter().any(|hop| hop.flow == *flow) {
            return Ok(None);
        }
        let mut keeping = Vec::new();
        for hop in &self.hops {
            if hop.keeps(topic)? {
                keeping.push(&hop.flow);
            }
        }
        Ok(if keeping.contains(&flow) {
            shortest(flow, &keeping)
        } else {
            None
        })
    }
}

/// The shortest way from the target of `first` back to its source over `others`.
pub(crate) fn shortest(first: &Flow, others: &[&Flow]) -> Option<Circle> {
    let mut came_by: BTreeMap<&ClusterAlias, &Flow> = BTreeMap::new();
    let mut ends = VecDeque::from([&first.target]);
    while let Some(end) = ends.pop_front() {
        for next in others.iter().copied().filter(|next| next.source == *end) {
            if next.target == first.target || came_by.contains_key(&next.target) {
                continue;
            }
            came_by.insert(&next.target, next);
            ends.push_back(&next.target);
        }
    }
    let mut flows = Vec::new();
    let mut end = &first.source;
    while *end != first.target {
        let last = came_by.get(end)?;
        flows.push((*last).clone());
        end = &last.source;
    }
    flows.push(first.clone());
    flows.reverse();
    Some(Circle { flows })
}

impl Circle {
    /// The keys of which one must leave the topic out, as one would write them.
    pub fn keys(&self) -> String {
        let keys: Vec<_> = self
            .flows
            .iter()
            .map(|flow| format!("`{flow}.topics`"))
            .collect();
        keys.join(" or ")
    }
}

impl fmt::Display for Circle {
    /// `us->eu, eu->us`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.flows.iter().map(Flow::to_string).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{MirrorConfig, check, flow::Selection};

    /// Flows among x, y and z with identity naming, and these further lines.
    fn config(lines: &str) -> MirrorConfig {
        MirrorConfig::parse(&text(lines)).expect("the lines of a test are right")
    }

    fn text(lines: &str) -> String {
        let policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy";
        format!(
            "clusters = x, y, z\nx.bootstrap.servers = x:1\ny.bootstrap.servers = y:1\n\
             z.bootstrap.servers = z:1\nreplication.policy.class = {policy}\n{lines}"
        )
    }

    /// The circle in which the flow takes the topic, or why there is none.
    fn selection(config: &MirrorConfig, flow: &str, topic: &str) -> String {
        let flow = config.flow(flow).expect("a flow of the file");
        match flow.select(topic).expect("simple patterns") {
            Selection::Circle(circle) => circle.to_string(),
            other => format!("{other:?}"),
        }
    }

    const PAIR: &str = "x->y.enabled = true\ny->x.enabled = true\n\
                        x->y.topics = idb.*\ny->x.topics = .*both\n";

    #[test]
    fn a_topic_that_both_directions_select_is_in_a_circle_and_no_other() {
        let config = config(PAIR);

        assert_eq!(selection(&config, "x->y", "idboth"), "x->y, y->x");
        assert_eq!(selection(&config, "y->x", "idboth"), "y->x, x->y");
        assert_eq!(selection(&config, "x->y", "idb"), "Replicate");
        assert_eq!(selection(&config, "y->x", "both"), "Replicate");
        assert_eq!(selection(&config, "y->x", "idb"), "NotSelected");
    }

    #[test]
    fn longer_circles_are_found_and_what_leads_into_one_is_not_part_of_it() {
        let config = config(
            "x->y.enabled = true\ny->z.enabled = true\nz->y.enabled = true\nz->x.enabled = true\n\
             z->x.topics = b.*\nz->y.topics = c.*\nx->y.topics.exclude = b2\n",
        );

        for (flow, circle) in [
            ("x->y", "x->y, y->z, z->x"),
            ("y->z", "y->z, z->x, x->y"),
            ("z->x", "z->x, x->y, y->z"),
        ] {
            assert_eq!(selection(&config, flow, "b1"), circle);
        }
        assert_eq!(selection(&config, "z->x", "b2"), "Replicate");
        assert_eq!(selection(&config, "x->y", "c"), "Replicate");
        assert_eq!(selection(&config, "y->z", "c"), "y->z, z->y");
    }

    #[test]
    fn flows_that_other_processes_run_count_as_well() {
        let only_y = check(text(PAIR).as_bytes(), Some(&["y".to_owned()]));

        let config = only_y.config.expect("no errors");
        assert!(config.flow("y->x").is_none());
        assert_eq!(selection(&config, "x->y", "idboth"), "x->y, y->x");
    }

    #[test]
    fn a_flow_that_is_not_enabled_or_renames_closes_no_circle() {
        let idle = config("x->y.enabled = true\n");
        let renames = config(
            "x->y.enabled = true\ny->x.enabled = true\n\
             y->x.replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy\n",
        );

        assert_eq!(selection(&idle, "x->y", "a"), "Replicate");
        assert_eq!(selection(&renames, "x->y", "a"), "Replicate");
        assert_eq!(selection(&renames, "y->x", "a"), "Replicate");
    }

    #[test]
    fn heartbeats_have_a_rule_of_their_own() {
        let config = config(PAIR);

        assert_eq!(selection(&config, "x->y", "heartbeats"), "Replicate");
        assert_eq!(selection(&config, "y->x", "x.heartbeats"), "Cycle");
    }
}
