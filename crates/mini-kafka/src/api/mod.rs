//! The APIs, one file each, and how a request reaches its file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};
use parking_lot::MutexGuard;

use crate::cluster::Cluster;
use crate::faults::{Fault, Filter, Seen};
use crate::refusal::Refusal;
use crate::state::State;

mod api_versions;
mod cluster_info;
mod configs;
mod create_topics;
mod delete_records;
mod delete_topics;
mod fetch;
mod find_coordinator;
mod groups;
mod list_offsets;
mod metadata;
mod offset_for_leader_epoch;
mod offsets;
mod partitions;
mod produce;
mod producers;
mod transactions;

/// What becomes of a connection after a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// This frame is sent, and the next request read only after the pause.
    Frame(Bytes, Duration),
    /// No answer belongs to this request.
    Nothing,
    /// The connection closes.
    Hangup,
    /// No answer ever comes.
    Silence,
}

/// What a handler says.
#[derive(Debug)]
pub(crate) enum Answer<R> {
    Response(R),
    /// Nothing is sent (acks=0).
    Nothing,
    /// The connection closes, which is how a broker reports the failure of an acks=0 produce.
    Hangup,
}

/// An API that mini-kafka has.
pub(crate) trait Api: Request<Response: Send> + Send + Sync + 'static {
    /// The versions it has of it.
    const OURS: (i16, i16);

    /// The partitions that the request names, for faults that are meant for some of them.
    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        Vec::new()
    }

    /// Serves the request.
    fn answer(&self, call: &Call) -> impl Future<Output = Answer<Self::Response>> + Send;
}

/// An error that a test staged for parts of this request.
#[derive(Debug, Clone)]
enum Injected {
    Nothing,
    Instead(ResponseError, Filter),
    Afterwards(ResponseError, Filter),
}

/// One request on its way: who asked, in which version, and what shall go wrong.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub cluster: Arc<Cluster>,
    pub broker: i32,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: String,
    injected: Injected,
}

impl Call {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.cluster.state.lock()
    }

    /// Does `work` on one partition, unless a staged error takes its place or that of its result.
    pub fn guarded<T>(
        &self,
        topic: &str,
        partition: i32,
        work: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match &self.injected {
            Injected::Instead(code, filter) if filter.covers(topic, partition) => {
                Err((*code).into())
            }
            Injected::Afterwards(code, filter) if filter.covers(topic, partition) => {
                work()?;
                Err((*code).into())
            }
            _ => work(),
        }
    }

    /// The staged error if it is meant for all of the request, for APIs that have one code at the
    /// top.
    pub fn whole<T>(&self, work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        match &self.injected {
            Injected::Nothing => work(),
            Injected::Instead(code, _) => Err((*code).into()),
            Injected::Afterwards(code, _) => {
                work()?;
                Err((*code).into())
            }
        }
    }

    /// The code that a test staged, wherever it is meant to stand.
    pub fn staged_error(&self) -> Option<ResponseError> {
        match &self.injected {
            Injected::Nothing => None,
            Injected::Instead(code, _) | Injected::Afterwards(code, _) => Some(*code),
        }
    }

    /// How long the client is asked to wait.
    pub fn throttle(&self) -> Duration {
        self.state()
            .throttles
            .get(&(self.api as i16))
            .copied()
            .unwrap_or_default()
    }

    /// The same, as responses carry it.
    pub fn throttle_ms(&self) -> i32 {
        self.throttle().as_millis() as i32
    }
}

/// Text as the codec's types hold it.
pub(crate) fn text(from: impl Into<String>) -> StrBytes {
    StrBytes::from_string(from.into())
}

/// A topic's name as the codec's types hold it.
pub(crate) fn topic_name(from: &str) -> TopicName {
    TopicName(text(from))
}

macro_rules! apis {
    ($($api:ident: $request:ty),* $(,)?) => {
        /// All APIs with the versions mini-kafka has.
        pub(crate) const ALL: &[(ApiKey, (i16, i16))] =
            &[$((ApiKey::$api, <$request as Api>::OURS)),*];

        /// Serves one request frame (without its length).
        pub(crate) async fn dispatch(cluster: &Arc<Cluster>, broker: i32, frame: Bytes) -> Reply {
            let Some((call, body)) = open(cluster, broker, frame) else {
                return Reply::Hangup;
            };
            match call.api {
                $(ApiKey::$api => Box::pin(serve::<$request>(call, body)).await,)*
                _ => Reply::Hangup,
            }
        }
    };
}

apis! {
    Produce: ProduceRequest,
    Fetch: FetchRequest,
    ListOffsets: ListOffsetsRequest,
    Metadata: MetadataRequest,
    OffsetCommit: OffsetCommitRequest,
    OffsetFetch: OffsetFetchRequest,
    FindCoordinator: FindCoordinatorRequest,
    JoinGroup: JoinGroupRequest,
    Heartbeat: HeartbeatRequest,
    LeaveGroup: LeaveGroupRequest,
    SyncGroup: SyncGroupRequest,
    DescribeGroups: DescribeGroupsRequest,
    ListGroups: ListGroupsRequest,
    ApiVersions: ApiVersionsRequest,
    CreateTopics: CreateTopicsRequest,
    DeleteTopics: DeleteTopicsRequest,
    DeleteRecords: DeleteRecordsRequest,
    InitProducerId: InitProducerIdRequest,
    OffsetForLeaderEpoch: OffsetForLeaderEpochRequest,
    AddPartitionsToTxn: AddPartitionsToTxnRequest,
    AddOffsetsToTxn: AddOffsetsToTxnRequest,
    EndTxn: EndTxnRequest,
    WriteTxnMarkers: WriteTxnMarkersRequest,
    TxnOffsetCommit: TxnOffsetCommitRequest,
    DescribeConfigs: DescribeConfigsRequest,
    CreatePartitions: CreatePartitionsRequest,
    DeleteGroups: DeleteGroupsRequest,
    IncrementalAlterConfigs: IncrementalAlterConfigsRequest,
    DescribeCluster: DescribeClusterRequest,
    DescribeProducers: DescribeProducersRequest,
}

/// Reads the header; nothing if the API or its version is not one that is offered, for which
/// brokers close the connection. ApiVersions answers every version.
fn open(cluster: &Arc<Cluster>, broker: i32, mut frame: Bytes) -> Option<(Call, Bytes)> {
    let prefix = frame.first_chunk::<4>()?;
    let api = ApiKey::try_from(i16::from_be_bytes([prefix[0], prefix[1]])).ok()?;
    let version = i16::from_be_bytes([prefix[2], prefix[3]]);
    let known = offered(&cluster.state.lock(), api)
        .is_some_and(|(min, max)| (min..=max).contains(&version) || api == ApiKey::ApiVersions);
    if !known {
        return None;
    }
    let header = RequestHeader::decode(&mut frame, api.request_header_version(version)).ok()?;
    let call = Call {
        cluster: Arc::clone(cluster),
        broker,
        api,
        version,
        correlation_id: header.correlation_id,
        client_id: header
            .client_id
            .map_or_else(String::new, |id| id.to_string()),
        injected: Injected::Nothing,
    };
    Some((call, frame))
}

/// The versions that the cluster's options leave of an API.
pub(crate) fn offered(state: &State, api: ApiKey) -> Option<(i16, i16)> {
    let (_, ours) = ALL.iter().find(|(known, _)| *known == api)?;
    state.options.versions.offered(api, *ours)
}

async fn serve<R: Api>(mut call: Call, mut body: Bytes) -> Reply {
    let served_version = call.version.min(R::OURS.1);
    let unknown_version = served_version != call.version;
    let Ok(request) = (if unknown_version {
        R::decode(&mut Bytes::from_static(&[1, 1, 0]), R::OURS.1)
    } else {
        R::decode(&mut body, call.version)
    }) else {
        return Reply::Hangup;
    };
    let (fault, filter) = decide(&call, &request);
    match fault {
        Fault::Disconnect => return Reply::Hangup,
        Fault::Silence => return Reply::Silence,
        Fault::Error(code) => call.injected = Injected::Instead(code, filter),
        Fault::ApplyThenError(code) => call.injected = Injected::Afterwards(code, filter),
        Fault::Delay(time) => tokio::time::sleep(time).await,
        Fault::ApplyLate(time) => {
            apply_late(call, request, time);
            return Reply::Hangup;
        }
        Fault::Pass
        | Fault::Duplicate
        | Fault::AnswerLate(_)
        | Fault::ApplyThenDisconnect
        | Fault::ApplyThenSilence => {}
    }
    let answer = request.answer(&call).await;
    if fault == Fault::Duplicate {
        let _second_answer = request.answer(&call).await;
    }
    if let Fault::AnswerLate(time) = fault {
        tokio::time::sleep(time).await;
    }
    match (fault, answer) {
        (Fault::ApplyThenDisconnect, _) | (_, Answer::Hangup) => Reply::Hangup,
        (Fault::ApplyThenSilence, _) => Reply::Silence,
        (_, Answer::Nothing) => Reply::Nothing,
        (_, Answer::Response(response)) => encode(&call, &response),
    }
}

fn decide<R: Api>(call: &Call, request: &R) -> (Fault, Filter) {
    let nobody_asks = call.cluster.faults.lock().is_empty();
    let partitions = if nobody_asks {
        Vec::new()
    } else {
        request.partitions(call)
    };
    let seen = Seen {
        broker: call.broker,
        api: call.api,
        partitions,
    };
    call.cluster.faults.lock().decide(&seen)
}

fn apply_late<R: Api>(call: Call, request: R, time: Duration) {
    let cluster = Arc::clone(&call.cluster);
    cluster.spawn(async move {
        tokio::time::sleep(time).await;
        let _nobody_listens = request.answer(&call).await;
    });
}

fn encode<R: Encodable>(call: &Call, response: &R) -> Reply {
    // A client that asks for an ApiVersions it cannot have is answered in version 0 (KIP-511).
    let version = match offered(&call.state(), call.api) {
        Some((_, max)) if call.version > max => 0,
        _ => call.version,
    };
    let size = response.compute_size(version).unwrap_or(0);
    let mut frame = BytesMut::with_capacity(size + 16);
    frame.put_u32(0);
    let header = ResponseHeader::default().with_correlation_id(call.correlation_id);
    let encoded = header
        .encode(&mut frame, call.api.response_header_version(version))
        .and_then(|()| response.encode(&mut frame, version));
    if let Err(error) = encoded {
        tracing::error!(api = ?call.api, version, %error, "an answer does not encode");
        return Reply::Hangup;
    }
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Reply::Frame(frame.freeze(), call.throttle())
}

/// Groups `(topic, item)` pairs by topic, topics in order of first mention.
pub(crate) fn by_topic<T>(items: impl IntoIterator<Item = (String, T)>) -> Vec<(String, Vec<T>)> {
    let mut positions = BTreeMap::new();
    let mut grouped: Vec<(String, Vec<T>)> = Vec::new();
    for (topic, item) in items {
        let at = *positions.entry(topic.clone()).or_insert(grouped.len());
        if at == grouped.len() {
            grouped.push((topic, Vec::new()));
        }
        grouped[at].1.push(item);
    }
    grouped
}
