//! Fetch: sessions, limits, long polls, isolation, epochs.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError::{self, NotLeaderOrFollower, OffsetOutOfRange};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProducerId, TopicName};
use tokio::time::{Instant, timeout_at};

use super::{Answer, Api, Call, text, topic_name};
use crate::refusal::Refusal;
use crate::sessions::{Context, TopicRef, Wanted};
use crate::state::{Partition, State};

/// Since this version topics are named by id (KIP-516).
const BY_ID: i16 = 13;
/// Since this version consumers may read from followers (KIP-392).
const FROM_FOLLOWERS: i16 = 11;
/// Since this version an error tells who leads, and where that is (KIP-951).
const TELLS_LEADER: i16 = 16;

const SESSION_ERRORS: [ResponseError; 3] = [
    ResponseError::FetchSessionIdNotFound,
    ResponseError::InvalidFetchSessionEpoch,
    ResponseError::FetchSessionTopicIdError,
];

impl Api for FetchRequest {
    const OURS: (i16, i16) = (4, 17);

    fn partitions(&self, call: &Call) -> Vec<(String, i32)> {
        let state = call.state();
        let by_id = call.version >= BY_ID;
        let named = self.topics.iter().flat_map(|topic| {
            let name = TopicRef::of(topic, by_id);
            topic
                .partitions
                .iter()
                .map(move |part| (name.clone(), part.partition))
        });
        let session = state.broker(call.broker).map_or(&[][..], |broker| {
            if self.session_epoch > 0 {
                broker.sessions.wanted(self.session_id)
            } else {
                &[]
            }
        });
        let remembered = session.iter().map(|w| (w.topic.clone(), w.fetch.partition));
        named
            .chain(remembered)
            .filter_map(|(t, n)| Some((resolve(&state, &t).ok()?, n)))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<FetchResponse> {
        let context = match begin(call, self) {
            Ok(context) => context,
            Err(code) => {
                let response = FetchResponse::default().with_error_code(code.code());
                return Answer::Response(response.with_throttle_time_ms(0));
            }
        };
        let Some(mut changes) = call
            .state()
            .broker(call.broker)
            .map(|b| b.changes.subscribe())
        else {
            return Answer::Hangup;
        };
        let deadline = Instant::now() + Duration::from_millis(self.max_wait_ms.max(0) as u64);
        loop {
            changes.mark_unchanged();
            let read = read_all(call, self, &context);
            if read.is_enough(self) || context.wanted.is_empty() {
                return Answer::Response(respond(call, &context, read));
            }
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return Answer::Response(respond(call, &context, read_all(call, self, &context)));
            }
        }
    }
}

fn begin(call: &Call, request: &FetchRequest) -> Result<Context, ResponseError> {
    // Codes about sessions stand at the top of the answer, all others at partitions.
    if let Some(code) = call
        .staged_error()
        .filter(|code| SESSION_ERRORS.contains(code))
    {
        return Err(code);
    }
    let mut state = call.state();
    // Version 6 and older know no sessions: their requests want all, each time.
    let new_id = (state.random.next() >> 34) as i32 + 1;
    let by_id = call.version >= BY_ID;
    let broker = state.broker_mut(call.broker).ok_or(NotLeaderOrFollower)?;
    if call.version < 7 {
        let sessionless = request.clone().with_session_id(0).with_session_epoch(-1);
        return broker.sessions.begin(&sessionless, by_id, 0);
    }
    broker.sessions.begin(request, by_id, new_id)
}

/// What was read for one partition.
struct Part {
    data: PartitionData,
}

struct ReadAll {
    parts: Vec<Part>,
    bytes: usize,
    /// Something must be said at once: an error, a divergence, another replica to read from.
    urgent: bool,
}

impl ReadAll {
    fn is_enough(&self, request: &FetchRequest) -> bool {
        self.urgent || self.bytes >= usize::try_from(request.min_bytes).unwrap_or(0)
    }
}

fn read_all(call: &Call, request: &FetchRequest, context: &Context) -> ReadAll {
    let state = call.state();
    let mut all = ReadAll {
        parts: Vec::new(),
        bytes: 0,
        urgent: false,
    };
    let mut room = usize::try_from(request.max_bytes).unwrap_or(0);
    for wanted in &context.wanted {
        let name = resolve(&state, &wanted.topic);
        let limit = Limit {
            room,
            at_least_one: all.bytes == 0,
        };
        let outcome = name.clone().and_then(|name| {
            call.guarded(&name, wanted.fetch.partition, || {
                read(call, &state, request, &name, wanted, limit)
            })
        });
        let data = outcome.unwrap_or_else(|refusal| {
            refuse(
                call,
                &state,
                name.as_deref().unwrap_or_default(),
                wanted,
                &refusal,
            )
        });
        let bytes = data.records.as_ref().map_or(0, Bytes::len);
        all.bytes += bytes;
        room = room.saturating_sub(bytes);
        all.urgent |= data.error_code != 0
            || data.diverging_epoch.end_offset >= 0
            || data.preferred_read_replica.0 >= 0;
        all.parts.push(Part { data });
    }
    all
}

#[derive(Clone, Copy)]
struct Limit {
    room: usize,
    at_least_one: bool,
}

fn read(
    call: &Call,
    state: &State,
    request: &FetchRequest,
    topic: &str,
    wanted: &Wanted,
    limit: Limit,
) -> Result<PartitionData, Refusal> {
    let (fetch, index) = (&wanted.fetch, wanted.fetch.partition);
    let partition = state.partition(topic, index)?;
    let follower = call.version >= FROM_FOLLOWERS && partition.replicas.contains(&call.broker);
    if partition.leader != Some(call.broker) && !follower {
        return Err(NotLeaderOrFollower.into());
    }
    partition.check_epoch(fetch.current_leader_epoch)?;
    let log = &partition.log;
    let data = PartitionData::default()
        .with_partition_index(index)
        .with_high_watermark(log.high_watermark())
        .with_last_stable_offset(log.last_stable_offset())
        .with_log_start_offset(log.start())
        .with_records(Some(Bytes::new()));
    if let Some(replica) = closest_replica(call, state, request, partition) {
        return Ok(data.with_preferred_read_replica(BrokerId(replica)));
    }
    if fetch.last_fetched_epoch >= 0 {
        let (epoch, end) = log
            .end_of_epoch(fetch.last_fetched_epoch)
            .ok_or(OffsetOutOfRange)?;
        if epoch < fetch.last_fetched_epoch || end < fetch.fetch_offset {
            let diverging = EpochEndOffset::default()
                .with_epoch(epoch)
                .with_end_offset(end);
            return Ok(data.with_diverging_epoch(diverging));
        }
    }
    if fetch.fetch_offset < log.start() || fetch.fetch_offset > log.end() {
        return Err(OffsetOutOfRange.into());
    }
    let committed_only = request.isolation_level == 1;
    let until = if committed_only {
        log.last_stable_offset()
    } else {
        log.high_watermark()
    };
    let bytes_max = limit
        .room
        .min(usize::try_from(fetch.partition_max_bytes).unwrap_or(0));
    let read = log.read(fetch.fetch_offset, until, bytes_max, limit.at_least_one);
    let aborted = committed_only.then(|| {
        let found = log.producers.aborted_in(fetch.fetch_offset, read.until);
        let entry = |aborted: crate::log::producers::Aborted| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(aborted.producer_id))
                .with_first_offset(aborted.first_offset)
        };
        found.into_iter().map(entry).collect()
    });
    Ok(data
        .with_aborted_transactions(aborted)
        .with_records(Some(read.records)))
}

/// The replica in the consumer's rack, if the leader was asked and is not there itself.
fn closest_replica(
    call: &Call,
    state: &State,
    request: &FetchRequest,
    partition: &Partition,
) -> Option<i32> {
    let asks = state.options.fetch_from_closest_replica
        && call.version >= FROM_FOLLOWERS
        && !request.rack_id.is_empty()
        && partition.leader == Some(call.broker);
    let in_rack = |id: i32| {
        state
            .broker(id)
            .is_some_and(|b| b.up && b.rack.as_deref() == Some(&*request.rack_id))
    };
    if !asks || in_rack(call.broker) {
        return None;
    }
    partition.isr.iter().copied().find(|id| in_rack(*id))
}

fn refuse(
    call: &Call,
    state: &State,
    topic: &str,
    wanted: &Wanted,
    refusal: &Refusal,
) -> PartitionData {
    let mut data = PartitionData::default()
        .with_partition_index(wanted.fetch.partition)
        .with_error_code(refusal.code.code())
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_records(Some(Bytes::new()));
    let leader_is_elsewhere = call.version >= TELLS_LEADER
        && matches!(
            refusal.code,
            NotLeaderOrFollower | ResponseError::FencedLeaderEpoch
        );
    if leader_is_elsewhere && let Ok(partition) = state.partition(topic, wanted.fetch.partition) {
        data.current_leader = LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
            .with_leader_epoch(partition.leader_epoch);
    }
    data
}

fn respond(call: &Call, context: &Context, read: ReadAll) -> FetchResponse {
    let mut state = call.state();
    let had_records: Vec<bool> = read.parts.iter().map(|part| part.has_records()).collect();
    let mut told = context.wanted.clone();
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    let mut endpoints = Vec::new();
    for (part, wanted) in read.parts.into_iter().zip(&mut told) {
        let news = part.is_news(wanted);
        let failed = part.data.error_code != 0;
        wanted.told = if failed { (-1, -1) } else { part.levels() };
        endpoints.extend(leader_endpoint(&state, &part.data));
        if news || !context.incremental {
            add(&mut topics, &wanted.topic, part);
        }
    }
    if let Some(broker) = state.broker_mut(call.broker) {
        broker.sessions.end(context.session_id, told, &had_records);
    }
    drop(state);
    FetchResponse::default()
        .with_throttle_time_ms(call.throttle_ms())
        .with_session_id(context.session_id)
        .with_responses(topics)
        .with_node_endpoints(endpoints)
}

impl Part {
    fn has_records(&self) -> bool {
        self.data
            .records
            .as_ref()
            .is_some_and(|records| !records.is_empty())
    }

    fn levels(&self) -> (i64, i64) {
        (self.data.high_watermark, self.data.log_start_offset)
    }

    /// Whether an incremental answer has to hold it (`FetchSession.CachedPartition`).
    fn is_news(&self, wanted: &Wanted) -> bool {
        self.has_records()
            || self.data.error_code != 0
            || self.data.diverging_epoch.end_offset >= 0
            || self.data.preferred_read_replica.0 >= 0
            || self.levels() != wanted.told
    }
}

fn add(topics: &mut Vec<FetchableTopicResponse>, topic: &TopicRef, part: Part) {
    let (name, id) = match topic {
        TopicRef::Name(name) => (topic_name(name), Default::default()),
        TopicRef::Id(id) => (TopicName::default(), *id),
    };
    match topics.last_mut() {
        Some(last) if last.topic == name && last.topic_id == id => last.partitions.push(part.data),
        _ => topics.push(
            FetchableTopicResponse::default()
                .with_topic(name)
                .with_topic_id(id)
                .with_partitions(vec![part.data]),
        ),
    }
}

fn leader_endpoint(state: &State, data: &PartitionData) -> Option<NodeEndpoint> {
    let leader = state.broker(data.current_leader.leader_id.0)?;
    let endpoint = NodeEndpoint::default()
        .with_node_id(BrokerId(leader.id))
        .with_host(text(leader.host.as_str()))
        .with_port(leader.port.into());
    Some(endpoint.with_rack(leader.rack.as_deref().map(text)))
}

fn resolve(state: &State, topic: &TopicRef) -> Result<String, Refusal> {
    match topic {
        TopicRef::Name(name) => Ok(name.clone()),
        TopicRef::Id(id) => state.topic_name(*id).map(str::to_owned),
    }
}
