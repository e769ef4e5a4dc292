//! What a person wants to know about a flow: how each partition stands, why it stands still, and
//! what was done.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use twinlog_core::ids::{Topic, TopicPartition, UpstreamOffset};

use crate::pipeline::planner::{FillReason, RebuildReason};

/// The state of one partition.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionState {
    /// Its position and the target's log are being looked up.
    Starting,
    /// Records are copied as they come.
    Running,
    /// Something was lost on the way: the target's log is asked what it holds.
    Settling,
    /// Nothing goes on until a condition changes; others are not affected.
    Paused(PauseReason),
}

/// Why a partition stands still. Its text is the reason, [`PauseReason::remedy`] the way out.
#[derive(Debug, Clone, PartialEq)]
pub enum PauseReason {
    /// A record that the target does not take, however it is sent.
    RecordTooLarge {
        /// Where it is on the source.
        offset: UpstreamOffset,
        /// Its size in bytes as a batch of its own.
        size: usize,
        /// What the target takes in bytes.
        limit: usize,
    },
    /// The target refuses the time of a record.
    Timestamp {
        /// Where the batch begins on the source.
        offset: UpstreamOffset,
        /// The target's words.
        message: String,
    },
    /// The target refuses the records: a compacted topic takes none without a key.
    Record {
        /// Where the batch begins on the source.
        offset: UpstreamOffset,
        /// The target's words.
        message: String,
    },
    /// A permission is missing.
    Permission {
        /// What was attempted, and where.
        message: String,
    },
    /// The log on the target cannot be explained by what we wrote.
    ForeignWriter {
        /// What was found.
        message: String,
    },
    /// The target's log holds records of ours that do not follow on: some are missing, or are there
    /// twice.
    OutOfSequence {
        /// What was found.
        message: String,
    },
    /// The target lost records that it had acknowledged, and more than can be found again.
    TargetTruncated {
        /// How many.
        records: i64,
    },
    /// The source's bytes cannot be read, again and again.
    Damaged {
        /// Where.
        offset: UpstreamOffset,
        /// What is wrong.
        message: String,
    },
    /// Records leave us whole and reach the target damaged, again and again.
    DamagedOnTheWay {
        /// Where they begin on the source.
        offset: UpstreamOffset,
        /// The target's words.
        message: String,
    },
    /// The position is not in the source's log, and `auto.offset.reset` is `none`.
    NoPosition {
        /// The position.
        offset: UpstreamOffset,
    },
    /// The target refused for another reason.
    Refused {
        /// The target's words.
        message: String,
    },
}

impl PauseReason {
    /// Whether the copy is not, or may not be, what it should be.
    pub fn is_grave(&self) -> bool {
        matches!(
            self,
            PauseReason::OutOfSequence { .. } | PauseReason::TargetTruncated { .. }
        )
    }

    /// A short name of the kind, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            PauseReason::RecordTooLarge { .. } => "record-too-large",
            PauseReason::Timestamp { .. } => "timestamp-refused",
            PauseReason::Record { .. } => "record-refused",
            PauseReason::Permission { .. } => "permission-missing",
            PauseReason::ForeignWriter { .. } => "foreign-writer",
            PauseReason::OutOfSequence { .. } => "out-of-sequence",
            PauseReason::TargetTruncated { .. } => "target-truncated",
            PauseReason::Damaged { .. } => "damaged",
            PauseReason::DamagedOnTheWay { .. } => "damaged-on-the-way",
            PauseReason::NoPosition { .. } => "no-position",
            PauseReason::Refused { .. } => "refused",
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PauseReason::RecordTooLarge { .. } => {
                "raise max.message.bytes of the target topic; it is looked at again every half minute"
            }
            PauseReason::Timestamp { .. } => {
                "raise message.timestamp.after.max.ms or message.timestamp.before.max.ms of the target topic"
            }
            PauseReason::Record { .. } => {
                "set cleanup.policy=delete on the target topic if its source holds records without keys"
            }
            PauseReason::Permission { .. } => "grant it; it is tried again every half minute",
            PauseReason::ForeignWriter { .. } => "let nothing else write to the target topic",
            PauseReason::OutOfSequence { .. } | PauseReason::TargetTruncated { .. } => {
                "delete the target topic, so that it is filled again from the source"
            }
            PauseReason::Damaged { .. } => {
                "check the source's disks; delete the damaged records (kafka-delete-records) to go on behind them"
            }
            PauseReason::DamagedOnTheWay { .. } => {
                "check the network to the target and the target's memory; it is tried again every half minute"
            }
            PauseReason::NoPosition { .. } => "set auto.offset.reset to earliest or latest",
            PauseReason::Refused { .. } => {
                "see the target's words; it is tried again every half minute"
            }
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PauseReason::RecordTooLarge {
                offset,
                size,
                limit,
            } => write!(
                f,
                "the record at offset {offset} takes {size} bytes and the target topic takes {limit}"
            ),
            PauseReason::Timestamp { offset, message } => {
                write!(
                    f,
                    "the target refuses the time of records from offset {offset}: {message}"
                )
            }
            PauseReason::Record { offset, message } => {
                write!(
                    f,
                    "the target refuses the records from offset {offset}: {message}"
                )
            }
            PauseReason::Permission { message } => write!(f, "not permitted: {message}"),
            PauseReason::ForeignWriter { message } => {
                write!(f, "something else writes to the target topic: {message}")
            }
            PauseReason::OutOfSequence { message } => {
                write!(
                    f,
                    "records of ours on the target are missing or there twice: {message}"
                )
            }
            PauseReason::TargetTruncated { records } => {
                write!(f, "the target lost {records} records it had acknowledged")
            }
            PauseReason::Damaged { offset, message } => {
                write!(
                    f,
                    "the source's records at offset {offset} cannot be read: {message}"
                )
            }
            PauseReason::DamagedOnTheWay { offset, message } => {
                write!(
                    f,
                    "the records from offset {offset} reach the target damaged: {message}"
                )
            }
            PauseReason::NoPosition { offset } => {
                write!(f, "offset {offset} is not in the source's log")
            }
            PauseReason::Refused { message } => write!(f, "refused: {message}"),
        }
    }
}

/// A partition that stands still.
#[derive(Debug, Clone, PartialEq)]
pub struct Paused {
    /// Which, by its name on the source.
    pub partition: TopicPartition,
    /// Why.
    pub reason: PauseReason,
    /// For how long.
    pub since: Duration,
}

/// A partition that is not up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Which, by its name on the source.
    pub partition: TopicPartition,
    /// Source records not yet acknowledged by the target.
    pub records: u64,
}

/// Why positions are not stored, which a person must change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoringTrouble {
    /// What was attempted, and the answer.
    pub reason: String,
    /// The way out.
    pub remedy: String,
    /// For how long.
    pub since: Duration,
}

/// An outage: no broker of a cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// For how long.
    pub since: Duration,
    /// What was tried, and how it ended.
    pub reason: String,
}

/// What a task that was stopped could not finish in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Partitions with records on their way that the target has not acknowledged.
    pub unanswered: usize,
    /// Partitions whose positions were not stored.
    pub unstored: usize,
}

/// A topic of the source that is wanted and not mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicTrouble {
    /// Which.
    pub topic: Topic,
    /// Why.
    pub reason: String,
    /// What a person must do, where that is known.
    pub remedy: Option<String>,
}

/// What was done since the start. All count upwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records acknowledged by the target.
    pub records: u64,
    /// Bytes acknowledged by the target, compressed as they are.
    pub bytes: u64,
    /// Batches sent as they came.
    pub batches_forwarded: u64,
    /// Batches taken apart and encoded again, by [`RebuildReason::ALL`].
    pub batches_rebuilt: [u64; RebuildReason::ALL.len()],
    /// Source offsets passed over because they hold nothing to write, by [`FillReason::ALL`].
    pub offsets_passed_over: [u64; FillReason::ALL.len()],
    /// Times that the target's log was asked what it holds after something went wrong.
    pub settlings: u64,
    /// Requests that failed and were repeated.
    pub retries: u64,
    /// Records that others wrote to our target partitions.
    pub foreign_records: u64,
    /// Records of ours that were found on the target twice.
    pub doubled_records: u64,
    /// Records that the source deleted before they could be copied.
    pub lost_records: u64,
    /// Partitions of source topics that were deleted and made again.
    pub sources_made_anew: u64,
    /// Source logs that were found to be cut behind what was read already.
    pub sources_cut: u64,
    /// Copies that were deleted or emptied and are filled again.
    pub copies_refilled: u64,
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.batches_forwarded += other.batches_forwarded;
        self.settlings += other.settlings;
        self.retries += other.retries;
        self.foreign_records += other.foreign_records;
        self.doubled_records += other.doubled_records;
        self.lost_records += other.lost_records;
        self.sources_made_anew += other.sources_made_anew;
        self.sources_cut += other.sources_cut;
        self.copies_refilled += other.copies_refilled;
        add_each(&mut self.batches_rebuilt, &other.batches_rebuilt);
        add_each(&mut self.offsets_passed_over, &other.offsets_passed_over);
    }
}

fn add_each<const N: usize>(sums: &mut [u64; N], others: &[u64; N]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

/// How the partitions of a task stand, taken some ten times a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskStatus {
    /// Rises with every start of the task and never by a reconfiguration.
    pub generation: u64,
    /// What was done.
    pub counters: Counters,
    /// Partitions by state.
    pub starting: usize,
    /// Partitions that copy.
    pub running: usize,
    /// Partitions in doubt.
    pub settling: usize,
    /// Partitions that stand still.
    pub paused: Vec<Paused>,
    /// Source records not yet acknowledged by the target, over all partitions whose end is known.
    pub lag_records: u64,
    /// The partition with most of them, if there are any.
    pub furthest_behind: Option<Behind>,
    /// Why positions are not stored, if a person must act.
    pub storing_trouble: Option<StoringTrouble>,
    /// What was left undone, once it has stopped.
    pub unfinished: Unfinished,
}

/// How a flow stands.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStatus {
    /// What the flow as a whole is doing.
    pub state: FlowState,
    /// Topics that are mirrored.
    pub topics: usize,
    /// Topics that should be and are not.
    pub troubles: Vec<TopicTrouble>,
    /// Whether no broker of the source answers.
    pub source_away: Option<Away>,
    /// Whether no broker of the target answers.
    pub target_away: Option<Away>,
    /// One for each task.
    pub tasks: Vec<TaskStatus>,
    /// Tasks that did not end in time and were cut off.
    pub tasks_cut_off: usize,
}

/// What a flow as a whole is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowState {
    /// It connects, or waits until it can.
    Connecting {
        /// Why it could not yet.
        trouble: Option<String>,
    },
    /// Both clusters answer, and it waits until somebody acts. It is tried again and again.
    Blocked {
        /// What is wrong.
        reason: String,
        /// What a person can do about it.
        remedy: String,
    },
    /// It mirrors.
    Running,
    /// It will not: somebody must act.
    Refused {
        /// Why.
        reason: String,
    },
    /// It was stopped.
    Stopped,
}

impl FlowStatus {
    /// What all tasks did.
    pub fn counters(&self) -> Counters {
        self.tasks
            .iter()
            .fold(Counters::default(), |mut sum, task| {
                sum += &task.counters;
                sum
            })
    }

    /// What its tasks could not finish before they were stopped.
    pub fn unfinished(&self) -> Unfinished {
        let sum = |part: fn(&Unfinished) -> usize| {
            let parts = self.tasks.iter().map(|task| part(&task.unfinished));
            parts.sum()
        };
        Unfinished {
            unanswered: sum(|left| left.unanswered),
            unstored: sum(|left| left.unstored),
        }
    }

    /// The partition that is furthest behind.
    pub fn furthest_behind(&self) -> Option<&Behind> {
        let behind = self
            .tasks
            .iter()
            .filter_map(|task| task.furthest_behind.as_ref());
        behind.max_by_key(|behind| behind.records)
    }

    /// Source records not yet acknowledged by the target.
    pub fn lag_records(&self) -> u64 {
        self.tasks.iter().map(|task| task.lag_records).sum()
    }
}
