//! The lines to a broker: connections that its partitions are spread over.
//!
//! One TCP connection carries at most a window per round trip, and Kafka's brokers keep that to
//! 100 KiB unless they are told otherwise (`socket.send.buffer.bytes`,
//! `socket.receive.buffer.bytes`): at 100 ms that makes 1 MB/s, however fast the network is. So a
//! far broker that carries much is given several lines, each with a fetch session, or produce
//! requests, of its own. How many, [`sizes`] says. A quiet broker has one, so that an hour in which
//! nothing happens costs no more requests for it.
//!
//! What happens to a broker (failures, pauses, silence) is told of the broker, however many lines
//! lead to it.
//!
//! Invariant: of one partition nothing is under way on two lines to the same broker. It changes
//! lines when what was asked or sent on the old one is answered: so batches keep their order.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_kafka::client::Purpose;
use twinlog_kafka::connection::Connection;
use twinlog_kafka::error::Result;
use twinlog_kafka::fetch::{FetchOptions, FetchSession};

use super::entry::{Entry, EntryId, Reading};
use super::leaders::Side;
use super::silence::Silence;
use super::{Event, FailureRow, Task, sizes};

/// One of the connections to a broker for fetching, or for producing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub broker: i32,
    pub number: usize,
}

impl Line {
    /// Tells a task's lines from those of others.
    pub fn purpose(self, task: u32) -> u32 {
        let of_a_task = sizes::LINES_MAX as u32;
        task.wrapping_mul(of_a_task)
            .wrapping_add(self.number as u32)
    }
}

/// A connection that was asked for, at `since`.
pub struct Connected {
    pub line: Line,
    pub since: Instant,
    pub result: Result<Connection>,
}

/// One broker of the source.
#[derive(Default)]
pub struct SourceBroker {
    pub lines: Vec<SourceLine>,
    pub spread: Spread,
    pub health: Health,
    /// Partitions to ask for the ends of their logs.
    pub locate: Vec<EntryId>,
    pub is_locating: bool,
}

/// One line to a broker of the source.
pub struct SourceLine {
    pub session: FetchSession,
    pub connection: Option<Connection>,
    pub is_connecting: bool,
    pub is_fetching: bool,
    /// Partitions that wait for their queues to drain.
    pub held: usize,
    /// What the next fetch asks for, if that is not too little.
    pub fetch_bytes: usize,
    /// How many lines there were to be when its partitions were last looked at.
    pub lines: usize,
    /// When to fetch again, if not at once.
    pub next_fetch: Option<Instant>,
}

/// One broker of the target.
#[derive(Default)]
pub struct TargetBroker {
    pub lines: Vec<TargetLine>,
    pub spread: Spread,
    pub health: Health,
    /// Whether it owes an answer.
    pub silence: Silence,
    /// Partitions whose logs are to be looked at.
    pub look: Vec<EntryId>,
    pub is_looking: bool,
}

/// One line to a broker of the target.
#[derive(Default)]
pub struct TargetLine {
    pub connection: Option<Connection>,
    pub is_connecting: bool,
    /// Produce requests under way.
    pub in_flight: usize,
    /// The bytes in them, and how many there may be, if that is not too little.
    pub under_way: usize,
    pub under_way_max: usize,
    /// Partitions that may send.
    pub ready: VecDeque<EntryId>,
}

/// How a broker's partitions are spread over lines.
#[derive(Debug)]
pub struct Spread {
    /// To the broker and back.
    pub distance: Duration,
    lines: usize,
    /// Partitions that have come to the broker so far.
    ranks: usize,
    /// Bytes carried since.
    carried: usize,
    since: Option<Instant>,
}

/// What is carried is counted for this long before it changes the number of lines.
const COUNTED_FOR: Duration = Duration::from_secs(1);

impl Default for Spread {
    fn default() -> Self {
        Spread {
            distance: Duration::ZERO,
            lines: 1,
            ranks: 0,
            carried: 0,
            since: None,
        }
    }
}

impl Spread {
    /// The place in line of a partition that comes to the broker.
    pub fn rank(&mut self) -> usize {
        self.ranks += 1;
        self.ranks - 1
    }

    /// The number of the line that a partition belongs to.
    pub fn number(&self, rank: usize) -> usize {
        rank % self.lines
    }

    /// How many lines there are to be.
    pub fn lines(&self) -> usize {
        self.lines
    }

    fn measured(&mut self, distance: Duration) {
        self.distance = distance;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Takes note of what an answer brought, or acknowledged.
    fn on_carried(&mut self, bytes: usize, most: usize) {
        self.carried += bytes;
        let now = Instant::now();
        let took = now - *self.since.get_or_insert(now);
        if took < COUNTED_FOR {
            return;
        }
        let round_trips = took.as_secs_f64() / self.distance.as_secs_f64().max(1e-6);
        let under_way = (self.carried as f64 / round_trips) as usize;
        let before = self.lines;
        self.lines = sizes::lines(before, under_way, most);
        if self.lines != before {
            let (lines, distance) = (self.lines, self.distance);
            tracing::debug!(
                before,
                lines,
                under_way,
                ?distance,
                "connections to a broker"
            );
        }
        self.carried = 0;
        self.since = Some(now);
    }
}

/// Whether a broker answers, over all lines to it.
#[derive(Debug, Default)]
pub struct Health {
    /// Nothing is asked of it before.
    pub not_before: Option<Instant>,
    /// Failures since something last went well.
    pub failures: u32,
    failed: Option<Instant>,
    row: FailureRow,
}

impl Health {
    /// Whether it may be asked something.
    pub fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }

    /// Takes note of the failure of something begun at `since`, after which the broker is left alone
    /// until `not_before`. It gives back how many failures came before, for the log; `None` if it is
    /// part of one that is known: all that was under way, on all lines, fails with the broker.
    pub fn on_failed(&mut self, since: Instant, not_before: Instant) -> Option<u32> {
        self.not_before = self.not_before.max(Some(not_before));
        if self.failed.is_some_and(|failed| since <= failed) {
            return None;
        }
        self.failed = Some(Instant::now());
        self.failures = self.failures.saturating_add(1);
        Some(self.row.next())
    }
}

impl SourceLine {
    fn new(options: FetchOptions) -> Self {
        SourceLine {
            session: FetchSession::new(options),
            connection: None,
            is_connecting: false,
            is_fetching: false,
            held: 0,
            fetch_bytes: 0,
            lines: 1,
            next_fetch: None,
        }
    }

    /// The connection, if it is open.
    pub fn open(&self) -> Option<Connection> {
        open(self.connection.as_ref())
    }
}

impl TargetLine {
    /// The connection, if it is open.
    pub fn open(&self) -> Option<Connection> {
        open(self.connection.as_ref())
    }

    /// Whether there is anything on its way, or to be sent.
    fn is_used(&self) -> bool {
        self.in_flight > 0 || !self.ready.is_empty()
    }
}

impl SourceBroker {
    /// How many lines have partitions.
    pub fn lines_used(&self) -> usize {
        let used = |line: &&SourceLine| !line.session.is_empty();
        self.lines.iter().filter(used).count()
    }

    /// Takes note of what an answer brought.
    pub fn on_carried(&mut self, bytes: usize, most: usize) {
        self.measure();
        self.spread.on_carried(bytes, most);
    }

    /// Learns how far away it is.
    pub fn measure(&mut self) {
        let lines = self.lines.iter();
        let distance = distance(lines.filter_map(|line| line.connection.as_ref()));
        self.spread.measured(distance);
    }
}

impl TargetBroker {
    /// The line by a number.
    pub fn line(&mut self, number: usize) -> &mut TargetLine {
        grown(&mut self.lines, number, TargetLine::default)
    }

    /// Whether anything asked on any line is unanswered.
    pub fn is_asked(&self) -> bool {
        let asked = |line: &TargetLine| line.in_flight > 0 || line.is_connecting;
        self.lines.iter().any(asked)
    }

    /// When it last took bytes.
    pub fn last_taken(&self) -> Option<Instant> {
        let connections = self.connections();
        connections.map(Connection::last_taken).max()
    }

    /// Takes note of what was acknowledged.
    pub fn on_carried(&mut self, bytes: usize, most: usize) {
        self.measure();
        self.spread.on_carried(bytes, most);
    }

    /// Learns how far away it is.
    pub fn measure(&mut self) {
        self.spread.measured(distance(self.connections()));
    }

    fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.lines
            .iter()
            .filter_map(|line| line.connection.as_ref())
    }
}

impl Task {
    /// Asks for the connection of a line.
    pub(super) fn connect(&mut self, side: Side, line: Line, purpose: Purpose) {
        let client = match side {
            Side::Source => self.context.source.clone(),
            Side::Target => self.context.target.clone(),
        };
        let since = Instant::now();
        self.push(async move {
            let result = client.connection(line.broker, purpose).await;
            let connected = Connected {
                line,
                since,
                result,
            };
            Event::Connected(side, connected)
        });
    }

    pub(super) fn source_broker(&mut self, broker: i32) -> &mut SourceBroker {
        self.sources.entry(broker).or_default()
    }

    pub(super) fn target_broker(&mut self, broker: i32) -> &mut TargetBroker {
        self.targets.entry(broker).or_default()
    }

    pub(super) fn source_line(&mut self, line: Line) -> &mut SourceLine {
        let options = &self.config.fetch;
        let broker = self.sources.entry(line.broker).or_default();
        let new = || SourceLine::new(options.clone());
        grown(&mut broker.lines, line.number, new)
    }

    pub(super) fn target_line(&mut self, line: Line) -> &mut TargetLine {
        self.target_broker(line.broker).line(line.number)
    }

    /// The line a partition is to be fetched on at a broker. While an answer that may bring
    /// something of it is under way, that is the one it is on.
    pub(super) fn line_from(&self, entry: &Entry, broker: i32) -> Line {
        let known = self.sources.get(&broker);
        if let Reading::In(line) = entry.reading
            && line.broker == broker
            && let Some(on) = known.and_then(|broker| broker.lines.get(line.number))
            && on.is_fetching
        {
            return line;
        }
        let number = known.map_or(0, |broker| broker.spread.number(entry.source_rank));
        Line { broker, number }
    }

    /// The least a fetch asks for; what an idle one holds of the budget.
    pub(super) fn source_bytes_min(&self) -> usize {
        let lines = self.sources.values().map(|broker| broker.spread.lines());
        sizes::line_bytes_min(self.context.budget.limit(), lines.sum())
    }

    /// The least that a line may have under way to the target.
    pub(super) fn target_bytes_min(&self) -> usize {
        sizes::line_bytes_min(self.context.budget.limit(), self.target_lines_used())
    }

    /// Lines to brokers of the target on which something is under way, but one a broker at least.
    pub(super) fn target_lines_used(&self) -> usize {
        let used = |broker: &TargetBroker| {
            let used = broker.lines.iter().filter(|line| line.is_used());
            used.count().max(1)
        };
        self.targets.values().map(used).sum()
    }
}

/// The item of a number; those before it are there too then.
fn grown<T>(items: &mut Vec<T>, number: usize, new: impl FnMut() -> T) -> &mut T {
    if items.len() <= number {
        items.resize_with(number + 1, new);
    }
    &mut items[number]
}

fn open(connection: Option<&Connection>) -> Option<Connection> {
    connection
        .filter(|connection| !connection.is_closed())
        .cloned()
}

/// To a broker and back, by whichever line answered soonest.
fn distance<'a>(connections: impl Iterator<Item = &'a Connection>) -> Duration {
    let least = connections.map(Connection::round_trip).min();
    least.unwrap_or_default()
}
