//! Where a partition begins to read: at its position, or where the source's log begins if there is
//! none, if the log does not have it (any more), or if the topic was made anew on either side.

use std::collections::BTreeSet;

use twinlog_core::config::flow::OffsetReset;
use twinlog_core::ids::{Topic, UpstreamOffset};

use super::Task;
use super::asking::Located;
use super::entry::{Entry, EntryId, Locate, Start};
use super::leaders::Side;
use crate::pipeline::lane::Lane;
use crate::source::logs::LogEnds;
use crate::status::PauseReason;

impl Task {
    pub(super) fn on_located(&mut self, located: Located) {
        self.source_broker(located.broker).is_locating = false;
        for (id, result) in located.results {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            entry.is_asked = false;
            match result {
                Ok(_) if entry.source_leader != entry.asked_leader => self.touch(id),
                Ok(ends) => self.begin(id, ends),
                Err(error) => {
                    self.on_question_failed(id, Side::Source, "ask for the ends of a log", &error);
                }
            }
        }
    }

    /// Chooses where to read, now that the log's ends are known.
    fn begin(&mut self, id: EntryId, ends: LogEnds) {
        let reset = self.config.auto_offset_reset;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Start::Locate(why) = entry.start else {
            if let Some(lane) = &mut entry.lane {
                lane.on_source_end(ends.readable_end);
            }
            return self.touch(id);
        };
        if entry.lane.as_ref().is_some_and(|lane| !lane.is_drained()) {
            return self.touch(id);
        }
        // Since it was found out of range, it may have moved back to the frontier.
        let position = entry.lane.as_ref().map(Lane::next_read);
        let why = match (why, position) {
            (Locate::OutOfRange(_), Some(position)) => Locate::OutOfRange(position),
            (why, _) => why,
        };
        if let Some(position) = position
            && entry.epoch_in_doubt().is_some()
            && let Some(cut) = ends.epoch_end.filter(|cut| *cut < position)
        {
            return self.on_source_cut(id, position, cut.max(ends.start));
        }
        let span = entry.span().entered();
        let by_reset = match reset {
            OffsetReset::Earliest => Some(ends.start),
            OffsetReset::Latest => Some(ends.end),
            OffsetReset::None => None,
        };
        let begin = match why {
            Locate::Anew => Some(ends.start),
            // Whatever the old one's log start was.
            Locate::AnotherTopic => Some(UpstreamOffset(0)),
            Locate::NoPosition => by_reset,
            Locate::Moved => position,
            Locate::OutOfRange(position) if (ends.start..=ends.end).contains(&position) => {
                Some(position)
            }
            Locate::OutOfRange(position) if position < ends.start => by_reset,
            Locate::OutOfRange(position) => {
                tracing::warn!(%position, log_end = %ends.end, "the source's log ends before the position: it was cut or made anew");
                by_reset
            }
        };
        let Some(upstream) = begin else {
            drop(span);
            let offset = match why {
                Locate::OutOfRange(position) => position,
                Locate::NoPosition | Locate::Moved | Locate::Anew | Locate::AnotherTopic => {
                    ends.start
                }
            };
            return self.pause(id, PauseReason::NoPosition { offset });
        };
        match why {
            Locate::AnotherTopic => {
                self.counters.sources_made_anew += 1;
                entry.begin_another_topic();
            }
            // Another log, of which no position tells.
            Locate::OutOfRange(position) if upstream < position => {
                self.counters.sources_cut += 1;
                entry.begin_another_topic();
                entry.is_confirmed = true;
            }
            Locate::OutOfRange(_) | Locate::NoPosition | Locate::Moved | Locate::Anew => {}
        }
        let mark = entry.frontier().map(|frontier| frontier.mark);
        entry.start = Start::Place { upstream, mark };
        if let Some(lane) = &mut entry.lane {
            let position = lane.next_read();
            let lost = lane.jump_to(upstream);
            if lost > 0 {
                self.counters.lost_records += lost;
                tracing::warn!(%position, log_start = %ends.start, lost, "the source deleted records before they were copied");
                // A crash is bounded by this place better than by one before the gap.
                self.storing.flush();
            }
        }
        drop(span);
        self.touch(id);
    }

    /// The source's log lacks records that were read: what was written in their place is copied, and
    /// they stay in the copy.
    fn on_source_cut(&mut self, id: EntryId, position: UpstreamOffset, cut: UpstreamOffset) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if self.config.auto_offset_reset == OffsetReset::None {
            return self.pause(id, PauseReason::NoPosition { offset: position });
        }
        let span = entry.span().entered();
        self.counters.sources_cut += 1;
        let replaced = position.0 - cut.0;
        tracing::warn!(
            %position,
            %cut,
            replaced,
            "the source's log was cut behind what was copied, as by an unclean leader election: \
             going on from there; the records that it lost stay in the copy"
        );
        entry.begin_another_topic();
        entry.is_confirmed = true;
        entry.read_epoch = None;
        entry.start = Start::Place {
            upstream: cut,
            mark: None,
        };
        drop(span);
        self.touch(id);
    }

    /// Asks the logs of target topics that were made anew, whether or not there is something to
    /// write.
    pub(super) fn on_target_made_anew(&mut self, topics: BTreeSet<Topic>) {
        for id in self.entries.ids() {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            if !topics.contains(&entry.spec.target.topic) {
                continue;
            }
            entry.pause = None;
            if let Some(lane) = &mut entry.lane {
                lane.writer.suspect();
            }
            self.touch(id);
        }
        for topic in &topics {
            self.ask_rules(topic.clone());
        }
        self.target_view.stale.extend(topics);
    }
}

impl Entry {
    /// Leaves the old topic behind. The new one is anchored before its first record is sent, so that
    /// after a crash nothing of the old one is taken for a record of this one.
    fn begin_another_topic(&mut self) {
        if let Some(leader) = self
            .source_leader
            .filter(|leader| leader.topic_id.is_known())
        {
            self.spec.topic_id = leader.topic_id;
        }
        self.is_anew = true;
        self.is_confirmed = false;
        self.lane = None;
        self.stored = None;
        self.beginnings += 1;
    }
}
