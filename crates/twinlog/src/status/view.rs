//! What is shown of the flows: numbers and sentences, no decisions left.

use std::time::Duration;

use twinlog_core::ids::Flow;
use twinlog_mirror::status::{Behind, FlowState, FlowStatus, TaskStatus};

use super::numbers;

/// All that a table shows at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// What runs: the file, as a rule.
    pub title: String,
    /// Since when.
    pub uptime: Duration,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// Lines that stay under the title, such as addresses to connect to.
    pub notes: Vec<String>,
    /// The flows.
    pub flows: Vec<FlowView>,
}

/// One flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowView {
    /// `us->eu`.
    pub flow: String,
    /// How it is going, in words.
    pub state: String,
    /// Whether a person should look.
    pub health: Health,
    /// What flows; none while there is nothing to count.
    pub traffic: Option<Traffic>,
    /// What stands still and why, longest first.
    pub troubles: Vec<Trouble>,
}

/// How much flows, and how much is still to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Records per second that the target acknowledged.
    pub records_per_second: f64,
    /// Their bytes per second, compressed as they are.
    pub bytes_per_second: f64,
    /// Source records not yet acknowledged by the target.
    pub lag_records: u64,
}

/// How a flow is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// As it should.
    Good,
    /// Not yet, or not everywhere.
    Troubled,
    /// Not at all, until somebody acts.
    Bad,
}

/// Something that stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A partition or topic.
    pub what: String,
    /// A short name of the kind of reason, for counting.
    pub kind: &'static str,
    /// For how long, where that is known.
    pub since: Option<Duration>,
    /// Why.
    pub reason: String,
    /// What a person can do, where there is something.
    pub remedy: Option<String>,
}

/// What is shown of a flow that stands at `status`.
pub fn flow(flow: &Flow, status: &FlowStatus, traffic: Traffic) -> FlowView {
    let (state, health) = match &status.state {
        FlowState::Connecting { trouble: None } => ("connecting".to_owned(), Health::Good),
        FlowState::Connecting {
            trouble: Some(trouble),
        } => (format!("connecting: {trouble}"), Health::Troubled),
        FlowState::Blocked { reason, remedy } => {
            (format!("blocked: {reason}: {remedy}"), Health::Bad)
        }
        FlowState::Running => mirroring(status),
        FlowState::Refused { reason } => (format!("refused: {reason}"), Health::Bad),
        FlowState::Stopped => ("stopped".to_owned(), Health::Good),
    };
    FlowView {
        flow: flow.to_string(),
        state,
        health,
        traffic: (status.state == FlowState::Running).then_some(traffic),
        troubles: troubles(status),
    }
}

/// `48 partitions of 12 topics, 2 paused`: what is not as usual is named.
fn mirroring(status: &FlowStatus) -> (String, Health) {
    let Partitions {
        starting,
        running,
        settling,
        paused,
    } = Partitions::of(status);
    let all = starting + running + settling + paused;
    let mut words = format!(
        "{} of {}",
        numbers::counted(all, "partition"),
        numbers::counted(status.topics, "topic")
    );
    for (number, name) in [
        (starting, "starting"),
        (settling, "settling"),
        (paused, "paused"),
    ] {
        if number > 0 {
            words.push_str(&format!(", {} {name}", numbers::count(number as u64)));
        }
    }
    let sides = [
        ("source", &status.source_away),
        ("target", &status.target_away),
    ];
    if let Some(far) = behind(status) {
        let records = numbers::count(far.records);
        words.push_str(&format!(", {} is {records} behind", far.partition));
    }
    let mut is_away = false;
    for (side, away) in sides {
        if let Some(away) = away {
            is_away = true;
            let since = numbers::duration(away.since);
            words.push_str(&format!(", {side} away for {since}: {}", away.reason));
        }
    }
    let troubled = is_away || paused > 0 || !status.troubles.is_empty();
    (
        words,
        if troubled {
            Health::Troubled
        } else {
            Health::Good
        },
    )
}

/// With less behind, a partition is merely at work.
const BEHIND_MIN: u64 = 1_000;

/// The partition that is furthest behind, where that is worth a word.
pub fn behind(status: &FlowStatus) -> Option<&Behind> {
    let furthest = status.furthest_behind();
    furthest.filter(|behind| behind.records >= BEHIND_MIN)
}

/// Partitions of a flow by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    /// Their positions are being looked up.
    pub starting: usize,
    /// They copy.
    pub running: usize,
    /// The target's log is being asked what it holds.
    pub settling: usize,
    /// They stand still.
    pub paused: usize,
}

impl Partitions {
    /// Those of all tasks.
    pub fn of(status: &FlowStatus) -> Self {
        let sum = |number: fn(&TaskStatus) -> usize| status.tasks.iter().map(number).sum();
        Partitions {
            starting: sum(|task| task.starting),
            running: sum(|task| task.running),
            settling: sum(|task| task.settling),
            paused: sum(|task| task.paused.len()),
        }
    }
}

/// What stands still, longest first.
pub fn troubles(status: &FlowStatus) -> Vec<Trouble> {
    let paused = status
        .tasks
        .iter()
        .flat_map(|task| &task.paused)
        .map(|paused| Trouble {
            what: paused.partition.to_string(),
            kind: paused.reason.name(),
            since: Some(paused.since),
            reason: paused.reason.to_string(),
            remedy: Some(paused.reason.remedy().to_owned()),
        });
    let topics = status.troubles.iter().map(|trouble| Trouble {
        what: trouble.topic.to_string(),
        kind: "topic-not-mirrored",
        since: None,
        reason: trouble.reason.clone(),
        remedy: trouble.remedy.clone(),
    });
    let storing = status.tasks.iter().filter_map(|task| {
        let trouble = task.storing_trouble.as_ref()?;
        Some(Trouble {
            what: "positions".to_owned(),
            kind: "positions-not-stored",
            since: Some(trouble.since),
            reason: trouble.reason.clone(),
            remedy: Some(trouble.remedy.clone()),
        })
    });
    let mut all: Vec<_> = topics.chain(storing).chain(paused).collect();
    // Topics, whose time is not known, come first: a whole topic weighs more than a partition.
    all.sort_by_key(|trouble| std::cmp::Reverse(trouble.since.unwrap_or(Duration::MAX)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_core::ids::{Topic, TopicPartition, UpstreamOffset};
    use twinlog_mirror::status::{Away, PauseReason, Paused, TopicTrouble};

    const NOTHING: Traffic = Traffic {
        records_per_second: 0.0,
        bytes_per_second: 0.0,
        lag_records: 0,
    };

    fn status(state: FlowState, task: TaskStatus) -> FlowStatus {
        FlowStatus {
            state,
            topics: 1,
            troubles: Vec::new(),
            source_away: None,
            target_away: None,
            tasks_cut_off: 0,
            tasks: vec![task],
        }
    }

    fn shown(status: &FlowStatus) -> FlowView {
        flow(&Flow::new("us", "eu"), status, NOTHING)
    }

    fn paused(partition: i32, seconds: u64) -> Paused {
        Paused {
            partition: TopicPartition::new("orders", partition),
            reason: PauseReason::NoPosition {
                offset: UpstreamOffset(42),
            },
            since: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_flow_that_mirrors_names_only_what_is_not_as_usual() {
        let usual = TaskStatus {
            running: 1,
            ..TaskStatus::default()
        };
        let unusual = TaskStatus {
            starting: 2,
            paused: vec![paused(0, 1)],
            ..usual.clone()
        };

        let usual = shown(&status(FlowState::Running, usual));
        let unusual = shown(&status(FlowState::Running, unusual));

        assert_eq!(
            (usual.state.as_str(), usual.health),
            ("1 partition of 1 topic", Health::Good)
        );
        assert_eq!(
            unusual.state,
            "4 partitions of 1 topic, 2 starting, 1 paused"
        );
        assert_eq!(unusual.health, Health::Troubled);
    }

    #[test]
    fn a_cluster_that_is_away_and_the_partition_furthest_behind_are_named() {
        let behind = |number, records| TaskStatus {
            running: 1,
            furthest_behind: Some(Behind {
                partition: TopicPartition::new("orders", number),
                records,
            }),
            ..TaskStatus::default()
        };
        let mut status = status(FlowState::Running, behind(0, 999));
        assert_eq!(shown(&status).state, "1 partition of 1 topic");

        status.tasks.push(behind(1, 12_345));
        status.source_away = Some(Away {
            since: Duration::from_secs(61),
            reason: "no broker answered".to_owned(),
        });

        let shown = shown(&status);
        assert_eq!(
            shown.state,
            "2 partitions of 1 topic, orders-1 is 12,345 behind, \
             source away for 1m01s: no broker answered"
        );
        assert_eq!(shown.health, Health::Troubled);
    }

    #[test]
    fn a_flow_that_does_not_mirror_says_why_and_counts_nothing() {
        let trouble = Some("no broker answered".to_owned());
        for (state, words, health) in [
            (
                FlowState::Connecting { trouble: None },
                "connecting",
                Health::Good,
            ),
            (
                FlowState::Connecting { trouble },
                "connecting: no broker answered",
                Health::Troubled,
            ),
            (
                FlowState::Refused {
                    reason: "no".to_owned(),
                },
                "refused: no",
                Health::Bad,
            ),
            (
                FlowState::Blocked {
                    reason: "1 broker".to_owned(),
                    remedy: "set it to 1".to_owned(),
                },
                "blocked: 1 broker: set it to 1",
                Health::Bad,
            ),
            (FlowState::Stopped, "stopped", Health::Good),
        ] {
            let shown = shown(&status(state, TaskStatus::default()));

            assert_eq!((shown.state.as_str(), shown.health), (words, health));
            assert_eq!(shown.traffic, None);
        }
    }

    #[test]
    fn topics_that_are_not_mirrored_come_before_paused_partitions_and_those_by_age() {
        let task = TaskStatus {
            paused: vec![paused(0, 1), paused(1, 9)],
            ..TaskStatus::default()
        };
        let mut status = status(FlowState::Running, task);
        status.troubles = vec![TopicTrouble {
            topic: Topic::from("clicks"),
            reason: "not permitted".to_owned(),
            remedy: None,
        }];

        let names: Vec<_> = shown(&status)
            .troubles
            .into_iter()
            .map(|t| t.what)
            .collect();

        assert_eq!(names, ["clicks", "orders-1", "orders-0"]);
    }
}
