//! Faults that tests stage: which request they hit, and what happens to it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it is served. Lets a script skip requests.
    Pass,
    /// It is refused with this code, and changes nothing.
    Error(ResponseError),
    /// It is served this much later.
    Delay(Duration),
    /// The connection closes; the request changes nothing.
    Disconnect,
    /// It changes nothing and is never answered; the connection stays open.
    Silence,
    /// It is served, but the connection closes instead of the answer.
    ApplyThenDisconnect,
    /// It is served, but answered with this code.
    ApplyThenError(ResponseError),
    /// It is served, but never answered.
    ApplyThenSilence,
    /// The connection closes at once, and the request is served this much later: requests outlive
    /// their connection.
    ApplyLate(Duration),
    /// It is served twice, and answered once.
    Duplicate,
    /// It is served at once, and answered this much later, as a slow disk or a slow replica has it.
    AnswerLate(Duration),
}

/// What a request is about, for those who decide its fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The broker that it was sent to.
    pub broker: i32,
    /// The API.
    pub api: ApiKey,
    /// The partitions it names, if the API is one about partitions.
    pub partitions: Vec<(String, i32)>,
}

/// A frame that passed a broker, without its length.
#[derive(Debug, Clone, Copy)]
pub struct Traffic<'a> {
    /// The broker.
    pub broker: i32,
    /// Where the frame went.
    pub direction: Direction,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From a client to the broker.
    Request,
    /// From the broker to a client.
    Answer,
}

type Observe = Box<dyn FnMut(Traffic<'_>) + Send>;

/// Who looks at all traffic, if somebody does.
#[derive(Default)]
pub(crate) struct Observer(pub Option<Observe>);

impl Observer {
    pub fn see(&mut self, broker: i32, direction: Direction, frame: &[u8]) {
        if let Some(observe) = &mut self.0 {
            observe(Traffic {
                broker,
                direction,
                frame,
            });
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observer({})", self.0.is_some())
    }
}

type Decide = Box<dyn FnMut(&Seen) -> Fault + Send>;

/// Which partition errors apply to: all of a request's, or those of a rule's filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    broker: Option<i32>,
    topic: Option<String>,
    partition: Option<i32>,
}

impl Filter {
    /// Whether a part of a request is meant.
    pub fn covers(&self, topic: &str, partition: i32) -> bool {
        self.topic.as_deref().is_none_or(|wanted| wanted == topic)
            && self.partition.is_none_or(|wanted| wanted == partition)
    }

    fn matches(&self, seen: &Seen) -> bool {
        let any = self.topic.is_none() && self.partition.is_none();
        self.broker.is_none_or(|wanted| wanted == seen.broker)
            && (any
                || seen
                    .partitions
                    .iter()
                    .any(|(topic, index)| self.covers(topic, *index)))
    }
}

/// How often a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Times(usize),
    Always,
}

struct Rule {
    api: Option<ApiKey>,
    filter: Filter,
    decide: Decide,
    left: Left,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.api, self.filter, self.left)
    }
}

/// All staged faults, and how many requests came.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    requests: BTreeMap<i16, u64>,
}

impl Faults {
    pub fn count(&self, api: ApiKey) -> u64 {
        self.requests.get(&(api as i16)).copied().unwrap_or(0)
    }

    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts the request, and decides by the first rule that matches.
    pub fn decide(&mut self, seen: &Seen) -> (Fault, Filter) {
        *self.requests.entry(seen.api as i16).or_default() += 1;
        let matches = |r: &Rule| r.api.is_none_or(|api| api == seen.api) && r.filter.matches(seen);
        let Some(at) = self.rules.iter().position(matches) else {
            return (Fault::Pass, Filter::default());
        };
        let rule = &mut self.rules[at];
        let decided = ((rule.decide)(seen), rule.filter.clone());
        if let Left::Times(left) = &mut rule.left {
            *left -= 1;
            if *left == 0 {
                self.rules.remove(at);
            }
        }
        decided
    }

    /// Whether anybody wants to know which partitions a request names.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// A rule in the making: narrow it, then say what happens. Rules are asked in the order they were
/// made, and the first that matches decides.
#[must_use = "say what happens: once, times, always or decide"]
pub struct On<'a> {
    faults: &'a parking_lot::Mutex<Faults>,
    api: Option<ApiKey>,
    filter: Filter,
}

impl<'a> On<'a> {
    pub(crate) fn new(faults: &'a parking_lot::Mutex<Faults>, api: Option<ApiKey>) -> Self {
        On {
            faults,
            api,
            filter: Filter::default(),
        }
    }

    /// Only requests to this broker.
    pub fn broker(mut self, broker: i32) -> Self {
        self.filter.broker = Some(broker);
        self
    }

    /// Only requests that name this topic; errors hit its partitions alone.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.filter.topic = Some(topic.into());
        self
    }

    /// Only requests that name this partition number; errors hit those partitions alone.
    pub fn partition(mut self, partition: i32) -> Self {
        self.filter.partition = Some(partition);
        self
    }

    /// The next request that matches.
    pub fn once(self, fault: Fault) {
        self.times(1, fault);
    }

    /// The next `times` requests that match.
    pub fn times(self, times: usize, fault: Fault) {
        if times > 0 {
            self.add(Left::Times(times), Box::new(move |_| fault));
        }
    }

    /// Every request that matches, until the rules are cleared.
    pub fn always(self, fault: Fault) {
        self.add(Left::Always, Box::new(move |_| fault));
    }

    /// Asks `decide` for every request that matches, until the rules are cleared: the place for a
    /// seeded scheduler.
    pub fn decide(self, decide: impl FnMut(&Seen) -> Fault + Send + 'static) {
        self.add(Left::Always, Box::new(decide));
    }

    fn add(self, left: Left, decide: Decide) {
        let rule = Rule {
            api: self.api,
            filter: self.filter,
            decide,
            left,
        };
        self.faults.lock().rules.push(rule);
    }
}

impl fmt::Debug for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "On {:?} {:?}", self.api, self.filter)
    }
}
