//! What a task knows of one partition, and the table of all of them.

use std::collections::HashMap;

use tokio::time::Instant;
use twinlog_core::ids::{TopicId, TopicPartition, UpstreamOffset};
use twinlog_core::offsets::{TargetMark, TargetTail};
use twinlog_core::records::connect_offset::Position;
use twinlog_kafka::metadata::Leader;

use super::lines::Line;
use super::watching::Progress;
use crate::pipeline::lane::Lane;
use crate::pipeline::planner::Rules;
use crate::pipeline::writer::Frontier;
use crate::status::{PartitionState, PauseReason};
use crate::verdict::Refused;

/// A partition that a task is to mirror.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionSpec {
    /// On the source.
    pub source: TopicPartition,
    /// Its copy.
    pub target: TopicPartition,
    /// The source topic's id, [`TopicId::ZERO`] if its brokers have none.
    pub topic_id: TopicId,
    /// How far it was mirrored, if it was.
    pub stored: Option<Position>,
    /// What the target takes.
    pub rules: Rules,
}

impl PartitionSpec {
    /// Whether a position was reached in another topic by the same name: it says nothing of this
    /// one.
    pub fn is_of_another_topic(&self, position: &Position) -> bool {
        let then = position.topic_id.filter(|then| then.is_known());
        self.topic_id.is_known() && then.is_some_and(|then| then != self.topic_id)
    }
}

/// Names an [`Entry`]; outlives it without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    index: usize,
    generation: u64,
}

/// One partition of the task.
#[derive(Debug)]
pub struct Entry {
    pub spec: PartitionSpec,
    /// Where to begin, until the lane is open.
    pub start: Start,
    pub lane: Option<Lane>,
    pub pause: Option<Pause>,
    /// The reason of the last pause, so that the same one is not reported again and again.
    pub last_pause: Option<PauseReason>,
    /// What the target said about the batch that put the writer in doubt.
    pub objection: Option<Objection>,
    /// What the target's log held when it was first looked at, where one look does not do.
    pub first_look: Option<TargetTail>,
    /// Nothing is sent or asked before.
    pub not_before: Option<Instant>,
    /// Failures since something last went well; they lengthen the waits.
    pub failures: u32,
    /// Batches that were damaged or refused since one was last taken; too many pause the
    /// partition.
    pub strikes: u32,
    pub source_leader: Option<Leader>,
    pub target_leader: Option<Leader>,
    /// The replica that the leader wants us to read from (KIP-392).
    pub preferred_replica: Option<i32>,
    pub reading: Reading,
    /// Its place among those of its source's leader, and of its target's: says which line it is on.
    pub source_rank: usize,
    pub target_rank: usize,
    /// The line to the target that it was sent on last.
    pub writing: Option<Line>,
    /// Whether it is in the ready queue of that line.
    pub is_ready: bool,
    /// The last produce request it was in: a request takes one batch of a partition.
    pub last_request: u64,
    /// Whether its position was read after the target's log had shown records of ours.
    pub is_confirmed: bool,
    /// Whether no position was stored then.
    pub is_without_position: bool,
    /// Whether the source topic took the place of another: positions that do not name it are not
    /// about it.
    pub is_anew: bool,
    /// How often it has begun; tells answers apart that are about an earlier beginning.
    pub beginnings: u32,
    /// Whether a question about it is under way or waiting to be asked.
    pub is_asked: bool,
    /// The source's leader when it was asked: before the answer comes it may be another, and the
    /// topic another one by the same name.
    pub asked_leader: Option<Leader>,
    /// The leader's epoch when records were last read.
    pub read_epoch: Option<i32>,
    /// The end of the source's log as far as it may be read.
    pub log_end: Option<i64>,
    /// What the offsets topic holds.
    pub stored: Option<Frontier>,
    pub is_storing: bool,
    pub progress: Progress,
}

/// Where a partition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The source must be asked for the ends of its log.
    Locate(Locate),
    /// The target's log must be looked at, which `mark` describes as of when the position was
    /// stored.
    Place {
        upstream: UpstreamOffset,
        mark: Option<TargetMark>,
    },
}

/// Why the source is asked for the ends of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locate {
    /// There is no position: begin as configured.
    NoPosition,
    /// The position is not in the log.
    OutOfRange(UpstreamOffset),
    /// It has another leader, whose log may lack what was read: see whether it does.
    Moved,
    /// The copy was made anew: begin with the earliest record.
    Anew,
    /// The source topic was made anew: begin with the earliest record of this one.
    AnotherTopic,
}

/// Whether a partition is being fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// In no session.
    Out,
    /// In the session of this line.
    In(Line),
    /// To be in the session of this line again when its queue has drained.
    Held(Line),
}

/// Why and since when a partition stands still.
#[derive(Debug, Clone)]
pub struct Pause {
    pub reason: PauseReason,
    pub since: Instant,
}

/// A refusal to be acted on when the writer is out of doubt.
#[derive(Debug, Clone)]
pub enum Objection {
    /// It may succeed later.
    Later,
    /// What was fetched is damaged.
    Damaged(String),
    /// It will not succeed as it is.
    Refused(Refused, String),
}

impl Entry {
    pub fn new(spec: PartitionSpec) -> Self {
        let start = match spec.stored.filter(Position::is_set) {
            Some(position) if spec.is_of_another_topic(&position) => {
                Start::Locate(Locate::AnotherTopic)
            }
            Some(position) => Start::Place {
                upstream: position.upstream,
                mark: position.target,
            },
            None => Start::Locate(Locate::NoPosition),
        };
        Entry {
            spec,
            start,
            lane: None,
            pause: None,
            last_pause: None,
            objection: None,
            first_look: None,
            not_before: None,
            failures: 0,
            strikes: 0,
            source_leader: None,
            target_leader: None,
            preferred_replica: None,
            reading: Reading::Out,
            source_rank: 0,
            target_rank: 0,
            writing: None,
            is_ready: false,
            last_request: 0,
            is_confirmed: false,
            is_without_position: false,
            is_anew: false,
            beginnings: 0,
            is_asked: false,
            asked_leader: None,
            read_epoch: None,
            log_end: None,
            stored: None,
            is_storing: false,
            progress: Progress::default(),
        }
    }

    /// The epoch whose end in the source's log tells whether what was read is still there.
    pub fn epoch_in_doubt(&self) -> Option<i32> {
        match self.start {
            Start::Locate(Locate::Moved | Locate::OutOfRange(_)) => self.read_epoch,
            _ => None,
        }
    }

    /// Takes note of another leader of the source: what was read from the one before may be missing
    /// in its log (an unclean election). What was not sent is read again.
    pub fn on_later_epoch(&mut self, epoch: i32) {
        let is_later = self.read_epoch.is_some_and(|read| read < epoch);
        if let Some(lane) = self.lane.as_mut().filter(|_| is_later)
            && matches!(self.start, Start::Place { .. })
        {
            lane.reread();
            self.start = Start::Locate(Locate::Moved);
        }
    }

    /// How far it is mirrored, once that is known.
    pub fn frontier(&self) -> Option<Frontier> {
        self.lane.as_ref().map(|lane| lane.writer.frontier())
    }

    /// Whether a crash from now on could be recovered from: nothing may be sent before the place
    /// where it goes was stored.
    pub fn is_anchored(&self) -> bool {
        self.stored.is_some()
    }

    /// Takes the position as it was read again. While the question was under way the topic may have
    /// been made anew: then the position is no place in the one that is to be read.
    pub fn on_confirmed(&mut self, position: Option<Position>) {
        if !matches!(self.start, Start::Place { .. }) {
            return;
        }
        let position = position.filter(|position| self.goes_by(position));
        self.is_confirmed = true;
        self.is_without_position = position.is_none();
        if let Some(position) = position {
            self.start = Start::Place {
                upstream: position.upstream,
                mark: position.target,
            };
        }
    }

    /// Whether a position that was read again is one in this topic.
    fn goes_by(&self, position: &Position) -> bool {
        let names_it = position.topic_id == Some(self.spec.topic_id);
        position.is_set() && !self.spec.is_of_another_topic(position) && (names_it || !self.is_anew)
    }

    /// Source records that are not mirrored yet.
    pub fn lag(&self) -> Option<u64> {
        let behind = self.log_end? - self.frontier()?.upstream.0;
        Some(behind.max(0).unsigned_abs())
    }

    pub fn state(&self) -> PartitionState {
        match (&self.pause, &self.lane) {
            (Some(pause), _) => PartitionState::Paused(pause.reason.clone()),
            (None, None) => PartitionState::Starting,
            (None, Some(lane)) if lane.writer.is_in_doubt() => PartitionState::Settling,
            // Its place is stored before its first record; without one there is nothing to wait for.
            (None, Some(lane)) if !self.is_anchored() && lane.writer.can_send() => {
                PartitionState::Starting
            }
            (None, Some(_)) => PartitionState::Running,
        }
    }

    /// The span of everything that is logged about it.
    pub fn span(&self) -> tracing::Span {
        let TopicPartition { topic, partition } = &self.spec.source;
        tracing::info_span!("partition", %topic, partition)
    }
}

/// All partitions of a task.
#[derive(Debug, Default)]
pub struct Entries {
    slots: Vec<Option<(u64, Entry)>>,
    free: Vec<usize>,
    next_generation: u64,
    by_source: HashMap<TopicPartition, EntryId>,
    by_target: HashMap<TopicPartition, EntryId>,
}

impl Entries {
    /// Makes room for so many in all, exactly if there are none yet: of thousands much would be left
    /// unused.
    pub fn reserve(&mut self, total: usize) {
        self.slots.reserve(total.saturating_sub(self.slots.len()));
    }

    pub fn insert(&mut self, entry: Entry) -> EntryId {
        let index = self.free.pop().unwrap_or(self.slots.len());
        let generation = self.next_generation;
        self.next_generation += 1;
        let id = EntryId { index, generation };
        self.by_source.insert(entry.spec.source.clone(), id);
        self.by_target.insert(entry.spec.target.clone(), id);
        let slot = Some((generation, entry));
        match self.slots.get_mut(index) {
            Some(empty) => *empty = slot,
            None => self.slots.push(slot),
        }
        id
    }

    pub fn remove(&mut self, id: EntryId) -> Option<Entry> {
        self.get(id)?;
        let (_, entry) = self.slots.get_mut(id.index)?.take()?;
        self.free.push(id.index);
        self.by_source.remove(&entry.spec.source);
        self.by_target.remove(&entry.spec.target);
        Some(entry)
    }

    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        let (generation, entry) = self.slots.get(id.index)?.as_ref()?;
        (*generation == id.generation).then_some(entry)
    }

    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        let (generation, entry) = self.slots.get_mut(id.index)?.as_mut()?;
        (*generation == id.generation).then_some(entry)
    }

    pub fn by_source(&self, partition: &TopicPartition) -> Option<EntryId> {
        self.by_source.get(partition).copied()
    }

    pub fn by_target(&self, partition: &TopicPartition) -> Option<EntryId> {
        self.by_target.get(partition).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let (generation, entry) = slot.as_ref()?;
            let generation = *generation;
            Some((EntryId { index, generation }, entry))
        })
    }

    pub fn ids(&self) -> Vec<EntryId> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_core::ids::Topic;

    #[test]
    fn a_position_read_again_is_not_taken_for_one_in_a_topic_that_was_made_anew_meanwhile() {
        let topic_id = TopicId([1; 16]);
        let partition = TopicPartition::new(Topic::from("orders"), 0);
        let mut entry = Entry::new(PartitionSpec {
            source: partition.clone(),
            target: partition,
            topic_id,
            stored: None,
            rules: Rules {
                batch_bytes_max: 1 << 20,
                recompress: None,
                target_stamps: false,
            },
        });
        let position = Position {
            upstream: UpstreamOffset(7),
            target: None,
            topic_id: Some(topic_id),
        };
        let place = |upstream| Start::Place {
            upstream: UpstreamOffset(upstream),
            mark: None,
        };

        entry.start = place(0);
        entry.on_confirmed(Some(position));
        assert_eq!((entry.start, entry.is_confirmed), (place(7), true));

        entry.is_confirmed = false;
        entry.start = Start::Locate(Locate::AnotherTopic);
        entry.on_confirmed(Some(position));
        assert_eq!(
            (entry.start, entry.is_confirmed),
            (Start::Locate(Locate::AnotherTopic), false)
        );
    }
}
