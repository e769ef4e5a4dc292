//! Lanes against a model of a target partition that loses, delays and repeats requests, forgets
//! producers, takes records of others, and is written to by several processes that crash. Whatever
//! happens, the log holds each record once and in order.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use twinlog_core::ids::{DownstreamOffset, UpstreamOffset};
use twinlog_core::offsets::{Expects, Sequence, TailCount, TailCounter, TargetMark, TargetTail};
use twinlog_kafka::batch::{DecodeLimits, decode};
use twinlog_kafka::memory::MemoryBudget;

use super::joining::Joining;
use super::lane::{Lane, Wanted};
use super::overlap::print;
use super::planner::Rules;
use super::testing::{batch, batch_from, data, marker, raw, values};
use super::writer::{Acked, Frontier, Outgoing, Resumed};
use crate::status::Counters;

const PRODUCER: i64 = 1 << 60;
/// The step at which a request arrives that its sender has given up.
const LATE: u8 = 23;

/// The part of a broker that decides about appends (`ProducerStateManager`, `ProducerAppendInfo`).
#[derive(Default)]
struct Broker {
    /// The values and sequence numbers of our records; those of others are none.
    log: Vec<Option<(i64, Sequence)>>,
    /// The prints of our records; those of others are none.
    prints: Vec<Option<u64>>,
    last_sequence: Option<Sequence>,
    /// First sequence, record count and base offset of the last batches.
    recent: VecDeque<(Sequence, i64, i64)>,
}

impl Broker {
    fn append(&mut self, outgoing: &Outgoing) -> Result<i64, ()> {
        let values = values(&outgoing.batch);
        let count = values.len() as i64;
        let first = Sequence::new(outgoing.stamp.base_sequence).unwrap();
        let known = |(sequence, records, _): &&(Sequence, i64, i64)| {
            (*sequence, *records) == (first, count)
        };
        if let Some((_, _, base)) = self.recent.iter().find(known) {
            return Ok(*base);
        }
        if self.last_sequence.is_some_and(|last| last.plus(1) != first) {
            return Err(());
        }
        let base = self.log.len() as i64;
        let records = decode(&outgoing.batch, DecodeLimits::default()).unwrap();
        let prints = records.iter().map(|record| Some(print(record, true)));
        self.prints.extend(prints);
        let numbered = values.into_iter().zip(0..);
        self.log
            .extend(numbered.map(|(value, at)| Some((value, first.plus(at)))));
        self.last_sequence = Some(first.plus(count - 1));
        self.recent.push_back((first, count, base));
        if self.recent.len() > 5 {
            self.recent.pop_front();
        }
        Ok(base)
    }

    /// The entry of our producer expires.
    fn forget(&mut self) {
        self.last_sequence = None;
        self.recent.clear();
    }

    fn tail(&self) -> TargetTail {
        let expects = match self.last_sequence {
            Some(last) => Expects::Exactly(last.plus(1)),
            None => Expects::Anything,
        };
        TargetTail {
            log_end: DownstreamOffset(self.log.len() as i64),
            expects,
        }
    }
}

/// One process that mirrors the partition, and its connection.
struct Process {
    lane: Lane,
    wire: VecDeque<Outgoing>,
    answers: VecDeque<(u64, Result<i64, ()>)>,
}

impl Process {
    fn start(stored: Frontier) -> Self {
        let rules = Rules {
            batch_bytes_max: 300,
            recompress: None,
            target_stamps: false,
        };
        Process {
            lane: Lane::new(PRODUCER, stored, rules),
            wire: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    /// Fetches up to two batches, or what must be known first.
    fn fetch(&mut self, source: &[(i64, Bytes)], log_start: i64, broker: &Broker) {
        match self.lane.wanted() {
            Some(Wanted::SourceEnd) => {
                let end = source.last().map_or(0, |(end, _)| *end);
                self.lane.on_source_end(UpstreamOffset(end));
            }
            Some(Wanted::Prints { from, to, round }) => {
                let (from, to) = (from.0 as usize, to.0 as usize);
                let prints = broker.prints[from..to].iter().flatten().copied();
                self.lane.on_prints(round, prints.collect());
            }
            None => {}
        }
        assert!(self.lane.feed(&mut Counters::default()).is_none());
        if self.lane.next_read().0 < log_start {
            if self.lane.is_drained() && !self.lane.writer.is_in_doubt() {
                self.lane.jump_to(UpstreamOffset(log_start));
            }
            return;
        }
        let from = self.lane.next_read().0;
        let batches = source.iter().filter(|(end, _)| *end > from).take(2);
        let bytes: Vec<Bytes> = batches.map(|(_, bytes)| bytes.clone()).collect();
        self.lane.on_fetched(bytes.concat().into(), &[]).unwrap();
        assert!(self.lane.feed(&mut Counters::default()).is_none());
    }

    fn send(&mut self, budget: &MemoryBudget) -> Option<Outgoing> {
        self.lane.writer.send(&Joining {
            size_max: self.lane.rules().batch_bytes_max,
            round_trip: Duration::from_millis(100),
            budget,
        })
    }

    fn answer(&mut self) {
        match self.answers.pop_front() {
            Some((ticket, Ok(base))) => drop(self.lane.writer.on_ack(ticket, base)),
            Some((ticket, Err(()))) => self.lane.writer.on_doubt(ticket),
            None => {}
        }
    }

    /// The connection breaks; what was on it may or may not arrive later.
    fn lose(&mut self, late: &mut Vec<Outgoing>) {
        for (ticket, _) in self.answers.drain(..) {
            self.lane.writer.on_doubt(ticket);
        }
        for outgoing in self.wire.drain(..) {
            self.lane.writer.on_doubt(outgoing.ticket);
            late.push(outgoing);
        }
    }

    fn settle(&mut self, broker: &Broker) {
        if !self.lane.writer.wants_settling() {
            return;
        }
        let mark = self.lane.writer.frontier().mark;
        let since = &broker.log[usize::try_from(mark.downstream.0).unwrap()..];
        let resumed = match self.lane.writer.on_tail(broker.tail()) {
            Resumed::LookCloser => {
                let mut counter = TailCounter::new(mark);
                for record in since {
                    let (at, sequence) = (counter.at(), record.map(|(_, sequence)| sequence));
                    counter.add(at, at.plus(1), sequence).unwrap();
                }
                let TailCount { ours, foreign } = counter.count();
                self.lane
                    .writer
                    .on_counted(ours, foreign, broker.tail().expects)
            }
            resumed => resumed,
        };
        match resumed {
            Resumed::Continues { .. } => {}
            Resumed::Replays { .. } => self.lane.reread(),
            other => panic!("a log that only grows was judged {other:?}"),
        }
    }
}

struct World {
    source: Vec<(i64, Bytes)>,
    log_start: i64,
    /// Whether the source's log is another one than at the beginning.
    has_changed: bool,
    broker: Broker,
    budget: MemoryBudget,
    processes: [Process; 2],
    late: Vec<Outgoing>,
    stored: Frontier,
    /// Records are older than brokers remember.
    is_old: bool,
}

impl World {
    fn new(lengths: &[(i64, u8)]) -> Self {
        let (mut source, mut at) = (Vec::new(), 0);
        for (length, kind) in lengths {
            let end = at + length;
            let bytes = match kind {
                0 => marker(end - 1, 9, true),
                1 => batch(&[at], end, 0, -1),
                _ => data(at, end),
            };
            source.push((end, bytes));
            at = end;
        }
        let stored = Frontier {
            upstream: UpstreamOffset(0),
            mark: TargetMark {
                downstream: DownstreamOffset(0),
                sequence: Sequence::ZERO.plus(-3),
            },
        };
        World {
            source,
            log_start: 0,
            has_changed: false,
            broker: Broker::default(),
            budget: MemoryBudget::new(1 << 20),
            processes: [Process::start(stored), Process::start(stored)],
            late: Vec::new(),
            stored,
            is_old: false,
        }
    }

    fn of_old_records(mut self) -> Self {
        self.is_old = true;
        self
    }

    fn step(&mut self, who: usize, what: u8) {
        let process = &mut self.processes[who];
        if self.is_old {
            process.lane.writer.set_old_before(i64::MAX);
        }
        if what == LATE && self.has_changed {
            return;
        }
        match what {
            0..=3 => {
                process.fetch(&self.source, self.log_start, &self.broker);
                if process.lane.writer.take_overlap_ended() {
                    self.stored = process.lane.writer.frontier();
                }
            }
            4..=8 => {
                let sent = process.send(&self.budget);
                process.wire.extend(sent);
            }
            9..=13 => {
                if let Some(outgoing) = process.wire.pop_front() {
                    let answer = self.broker.append(&outgoing);
                    process.answers.push_back((outgoing.ticket, answer));
                }
            }
            14..=18 => process.answer(),
            19..=21 => {
                if self.is_old {
                    // A doubt about old records is settled when what is late is there or lost.
                    self.late.clear();
                }
                process.settle(&self.broker);
            }
            22 => process.lose(&mut self.late),
            LATE => {
                if let Some(outgoing) = self.late.pop() {
                    let _ = self.broker.append(&outgoing);
                }
            }
            24 => self.stored = process.lane.writer.frontier(),
            25 => {
                process.lose(&mut self.late);
                *process = Process::start(self.stored);
            }
            26 => {
                self.broker.log.push(None);
                self.broker.prints.push(None);
            }
            // Damaged on its way: the broker refuses it.
            27 => {
                if let Some(outgoing) = process.wire.pop_front() {
                    process.answers.push_back((outgoing.ticket, Err(())));
                }
            }
            // An entry of old records goes at any time.
            28 if self.is_old => {
                if self.late.is_empty() {
                    self.broker.forget();
                }
            }
            // Entries expire minutes after what was on its way has arrived or is gone, and protect
            // nobody from others.
            _ => {
                if self.late.is_empty() && self.processes.iter().all(|p| p.wire.is_empty()) {
                    self.broker.forget();
                    self.processes
                        .iter_mut()
                        .for_each(|p| p.lane.writer.suspect());
                }
            }
        }
    }

    /// The source deletes what lies before the `at`th batch, or compacts it, or takes one more.
    /// Deleting takes longer than any request lives, and finds at most one process: whoever has read
    /// something else would take the records of the other for its own.
    fn change_source(&mut self, at: usize, how: u8, alone: bool) {
        self.late.clear();
        self.has_changed = true;
        if !alone {
            for process in &mut self.processes {
                *process = Process::start(self.stored);
            }
        }
        let at = at % self.source.len();
        let base = at.checked_sub(1).map_or(0, |before| self.source[before].0);
        let (end, bytes) = self.source[at].clone();
        let old = raw(bytes);
        match how {
            0 => self.log_start = self.log_start.max(base),
            1 if at + 1 < self.source.len() => drop(self.source.remove(at)),
            2 if !old.is_control() => {
                let left: Vec<i64> = values(&old).into_iter().filter(|n| n % 3 != 0).collect();
                self.source[at].1 = batch_from(old.header().base_offset, &left, end, 0, -1);
            }
            _ => {
                let (last, _) = self.source[self.source.len() - 1];
                self.source.push((last + 3, data(last, last + 3)));
            }
        }
    }

    /// No more faults: the first process finishes.
    fn finish(&mut self) {
        self.late.clear();
        self.processes[1].lose(&mut Vec::new());
        for _ in 0..500 {
            for what in [0, 4, 9, 14, 19] {
                self.step(0, what);
            }
        }
    }

    fn expected(&self) -> Vec<i64> {
        let data = self.source.iter().map(|(_, bytes)| raw(bytes.clone()));
        data.filter(|batch| !batch.is_control())
            .flat_map(|batch| values(&batch))
            .collect()
    }

    /// Expects each record once and in order, and a frontier that fits.
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.copied(), self.expected());
        let frontier = self.processes[0].lane.writer.frontier();
        prop_assert_eq!(frontier.upstream.0, self.source.last().unwrap().0);
        let before_mark = &self.broker.log[..usize::try_from(frontier.mark.downstream.0).unwrap()];
        prop_assert_eq!(before_mark.iter().flatten().count(), self.copied().len());
        Ok(())
    }

    fn copied(&self) -> Vec<i64> {
        let ours = self.broker.log.iter().flatten();
        ours.map(|(value, _)| *value).collect()
    }
}

proptest! {

    #[test]
    fn whatever_is_lost_the_log_holds_each_record_once_and_in_order(
        lengths in prop::collection::vec((1..40i64, 0..6u8), 1..25),
        steps in prop::collection::vec((0..2usize, 0..30u8), 0..400),
    ) {
        let mut world = World::new(&lengths);
        for (who, what) in steps {
            world.step(who, what);
        }
        world.finish();

        world.check()?;
    }

    /// One process: where the broker has forgotten us, nothing protects one from another.
    #[test]
    fn old_records_are_copied_once_and_in_order_though_the_broker_may_forget_us_at_any_time(
        lengths in prop::collection::vec((1..40i64, 0..6u8), 1..25),
        steps in prop::collection::vec(0..30u8, 0..400),
    ) {
        let mut world = World::new(&lengths).of_old_records();
        for what in steps {
            world.step(0, what);
        }
        world.finish();

        world.check()?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_the_source_deletes_nothing_that_it_still_holds_is_lost(
        lengths in prop::collection::vec((1..40i64, 0..6u8), 1..25),
        steps in prop::collection::vec((0..2usize, 0..28u8, 0..200usize, 0..4u8), 0..400),
        alone in any::<bool>(),
    ) {
        let mut world = World::new(&lengths);
        for (who, what, at, how) in steps {
            world.step(if alone { 0 } else { who }, what);
            if at < 25 {
                world.change_source(at, how, alone);
            }
        }
        world.finish();

        let copied: HashSet<i64> = world.copied().into_iter().collect();
        let start = world.log_start;
        let lost: Vec<i64> = world
            .expected()
            .into_iter()
            .filter(|record| *record >= start && !copied.contains(record))
            .collect();
        prop_assert_eq!(lost, Vec::<i64>::new());
    }
}

#[test]
fn records_of_others_shift_our_offsets_and_cost_nothing() {
    let mut world = World::new(&[(3, 5), (4, 5)]);
    for what in [19, 0, 4, 26, 9] {
        world.step(0, what);
    }
    let (ticket, base) = world.processes[0].answers.pop_front().unwrap();

    let acked = world.processes[0].lane.writer.on_ack(ticket, base.unwrap());

    let size = world.source[0].1.len();
    assert_eq!(
        acked,
        Acked::InPlace {
            records: 3,
            bytes: size,
            foreign: 1
        }
    );
    world.finish();
    assert_eq!(world.copied(), (0..7).collect::<Vec<_>>());
}

#[test]
fn an_answer_from_far_beyond_the_log_is_not_believed() {
    let mut world = World::new(&[(3, 5), (4, 5)]);
    for what in [19, 0, 4, 9] {
        world.step(0, what);
    }
    let (ticket, base) = world.processes[0].answers.pop_front().unwrap();

    let damaged = base.unwrap() ^ 1 << 43;
    let acked = world.processes[0].lane.writer.on_ack(ticket, damaged);

    assert_eq!(acked, Acked::Doubt);
    world.finish();
    assert_eq!(world.copied(), (0..7).collect::<Vec<_>>());
}

#[test]
fn at_most_five_batches_of_a_partition_are_on_their_way_and_one_where_the_broker_knows_nothing() {
    let mut world = World::new(&[(20, 5); 10]);
    let send_all = |world: &mut World| {
        for what in [0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4] {
            world.step(0, what);
        }
        world.processes[0].wire.len()
    };

    world.step(0, 19);
    let unknown = send_all(&mut world);
    for what in [9, 14] {
        world.step(0, what);
    }
    let known = send_all(&mut world);

    assert_eq!((unknown, known), (1, 5));
}

#[test]
fn batches_that_wait_for_those_on_their_way_go_out_as_one() {
    let mut world = World::new(&[(1, 5); 20]);
    let mut sent = Vec::new();
    world.step(0, 19);
    for what in [0, 0, 0, 0, 0, 0, 0, 4, 9, 14, 4, 4, 4] {
        world.step(0, what);
        if what == 4 {
            sent.extend(world.processes[0].wire.back().map(|out| values(&out.batch)));
        }
    }

    // The last two may both be under way: they go as they are.
    assert_eq!(
        sent,
        [
            vec![0, 1, 2, 3],
            vec![4, 5, 6, 7],
            vec![8, 9, 10, 11],
            vec![12]
        ]
    );
    world.finish();
    assert_eq!(world.copied(), (0..20).collect::<Vec<_>>());
}

#[test]
fn what_is_sent_again_is_what_was_sent_so_that_the_broker_recognises_it() {
    let mut world = World::new(&[(1, 5); 20]);
    world.step(0, 19);
    for what in [0, 0, 0, 0, 4] {
        world.step(0, what);
    }
    let first = values(&world.processes[0].wire[0].batch);
    for what in [22, 0, 0, 19, 4] {
        world.step(0, what);
    }

    let again = values(&world.processes[0].wire[0].batch);

    assert_eq!((first.len(), again), (4, first));
    world.step(0, LATE);
    world.finish();
    assert_eq!(world.copied(), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_joined_batch_that_is_refused_is_taken_apart_up_to_the_record_that_is_the_cause() {
    let mut world = World::new(&[(1, 5); 12]);
    world.step(0, 19);
    for what in [0, 0, 0, 0, 4, 27, 14, 19] {
        world.step(0, what);
    }
    let sends = |world: &mut World| {
        world.step(0, 0);
        world.step(0, 4);
        let sent = world.processes[0].wire.back();
        let sent = sent.map(|out| values(&out.batch)).unwrap_or_default();
        world.step(0, 9);
        world.step(0, 14);
        sent
    };

    let was_joined = world.processes[0].lane.unjoin();
    for _ in 0..4 {
        world.step(0, 0);
    }
    let alone: Vec<_> = (0..4).map(|_| sends(&mut world)).collect();
    let is_joined = world.processes[0].lane.unjoin();

    assert_eq!((was_joined, is_joined), (true, false));
    assert_eq!(alone, [[0], [1], [2], [3]]);
    world.finish();
    assert_eq!(world.copied(), (0..12).collect::<Vec<_>>());
}
