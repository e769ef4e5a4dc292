//! The client against an in-memory cluster whose faults are staged, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use mini_kafka::{Fault, MiniKafka, Options, Unflushed, Versions};
use testkit::InMemory;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_kafka::admin::{OffsetQuery, View, list_offsets};
use twinlog_kafka::client::Client;
use twinlog_kafka::metadata::Topics;
use twinlog_kafka::retry::{Backoff, Retry, while_retriable};
use twinlog_kafka::topic_log::{KeyValue, LogRecord, append, read_to_end};

const PARTITIONS: i32 = 5;
/// Longer than any fault that is staged here; the clock is paused.
const PATIENCE: Duration = Duration::from_secs(300);

/// A cluster of three brokers with a topic of five partitions, led by different brokers.
fn cluster(change: impl FnOnce(&mut Options)) -> (Arc<MiniKafka>, Client) {
    let mut options = Options {
        brokers: 3,
        ..Options::default()
    };
    change(&mut options);
    let cluster = Arc::new(MiniKafka::start(options));
    cluster.create_topic("log", PARTITIONS, 3);
    let client = Client::new(InMemory::client_config(&cluster).unwrap());
    (cluster, client)
}

fn retry() -> Retry {
    Retry::new(Backoff::default(), CancellationToken::new(), 1)
}

fn records(count: usize) -> Vec<KeyValue> {
    let value = vec![b'v'; 1_000];
    (0..count)
        .map(|n| (format!("key-{n}").into(), Some(value.clone().into())))
        .collect()
}

async fn write(client: &Client, records: &[KeyValue]) {
    let topic = Topic::from("log");
    let mut retry = retry();
    let written = append(client, &topic, records, 7, &mut retry, while_retriable);
    timeout(PATIENCE, written).await.unwrap().unwrap();
}

async fn read(client: &Client) -> Vec<LogRecord> {
    let topic = Topic::from("log");
    let mut retry = retry();
    let read = read_to_end(client, &topic, &mut retry, while_retriable);
    timeout(PATIENCE, read).await.unwrap().unwrap()
}

/// Keys and values, sorted: what was written, wherever it lies.
fn content(read: Vec<LogRecord>) -> Vec<KeyValue> {
    let pairs = read
        .into_iter()
        .map(|record| (record.key.unwrap(), record.value));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    pairs
}

fn sorted(mut records: Vec<KeyValue>) -> Vec<KeyValue> {
    records.sort();
    records
}

#[tokio::test(start_paused = true)]
async fn brokers_of_every_generation_are_written_to_and_read_from() {
    for versions in [
        Versions::kafka_4_3(),
        Versions::kafka_2_8(),
        Versions::kafka_1_1(),
    ] {
        let (_cluster, client) = cluster(|options| options.versions = versions);

        write(&client, &records(2_000)).await;

        assert_eq!(content(read(&client).await), sorted(records(2_000)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_without_room_for_sessions_is_read_with_full_requests() {
    let (_cluster, client) = cluster(|options| options.fetch_sessions_max = 0);
    write(&client, &records(5_000)).await;

    assert_eq!(content(read(&client).await), sorted(records(5_000)));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_whole_whatever_happens_to_its_requests() {
    for (api, fault) in [
        (ApiKey::Fetch, Fault::Disconnect),
        (ApiKey::Fetch, Fault::Silence),
        (ApiKey::Fetch, Fault::ApplyThenDisconnect),
        (
            ApiKey::Fetch,
            Fault::Error(ResponseError::NotLeaderOrFollower),
        ),
        (
            ApiKey::Fetch,
            Fault::Error(ResponseError::KafkaStorageError),
        ),
        (ApiKey::ListOffsets, Fault::Disconnect),
        (ApiKey::ListOffsets, Fault::Silence),
        (
            ApiKey::ListOffsets,
            Fault::Error(ResponseError::LeaderNotAvailable),
        ),
        (ApiKey::Metadata, Fault::Disconnect),
        (ApiKey::Metadata, Fault::Silence),
        (ApiKey::ApiVersions, Fault::Disconnect),
    ] {
        let (cluster, client) = cluster(|_| ());
        write(&client, &records(1_000)).await;
        let reader = Client::new(client.config().clone());
        cluster.on(api).times(2, fault);

        let read = content(read(&reader).await);

        assert!(
            read == sorted(records(1_000)),
            "{api:?} {fault:?}: {} records",
            read.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_was_written_is_lost_whatever_happens_to_its_requests() {
    for fault in [
        Fault::Disconnect,
        Fault::Silence,
        Fault::ApplyThenDisconnect,
        Fault::Error(ResponseError::NotLeaderOrFollower),
        Fault::Error(ResponseError::NotEnoughReplicas),
        Fault::ApplyThenError(ResponseError::RequestTimedOut),
    ] {
        let (cluster, client) = cluster(|_| ());
        cluster.on(ApiKey::Produce).times(2, fault);

        write(&client, &records(1_000)).await;

        let mut read = content(read(&client).await);
        // A lost answer doubles a record, which replaces itself: this append is not idempotent.
        read.dedup();
        assert!(
            read == sorted(records(1_000)),
            "{fault:?}: {} records",
            read.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn leaders_that_move_are_followed() {
    let (cluster, client) = cluster(|_| ());
    write(&client, &records(100)).await;
    for partition in 0..PARTITIONS {
        let leader = cluster.partition("log", partition).unwrap().leader.unwrap();
        cluster.move_leader("log", partition, leader % 3 + 1);
    }

    write(&client, &records(200)[100..]).await;

    assert_eq!(content(read(&client).await), sorted(records(200)));
}

#[tokio::test(start_paused = true)]
async fn a_crashed_broker_costs_no_more_than_moments() {
    let (cluster, client) = cluster(|_| ());
    write(&client, &records(100)).await;
    let started = Instant::now();

    cluster.crash(1, Unflushed::Kept);
    write(&client, &records(200)[100..]).await;
    let read = content(read(&client).await);

    assert_eq!(read, sorted(records(200)));
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_leaders_own_log_end_is_seen_before_replicas_have_it() {
    let (cluster, client) = cluster(|_| ());
    write(&client, &records(100)).await;
    let partition = TopicPartition::new("log", 0);
    let before = cluster.partition("log", 0).unwrap().log_end;
    cluster.hold_high_watermark("log", 0, true);
    let more = records(200);
    let topic = Topic::from("log");
    let mut retrying = retry();
    let stuck = append(
        &client,
        &topic,
        &more[100..],
        7,
        &mut retrying,
        while_retriable,
    );
    let stuck = timeout(Duration::from_secs(5), stuck).await;

    let ask = async |view| {
        let query = [(partition.clone(), OffsetQuery::Latest)];
        let listed = list_offsets(&client, query, view).await;
        listed[&partition].as_ref().unwrap().offset.unwrap()
    };
    let leader = ask(View::Leader).await;
    let consumer = ask(View::Consumer(Default::default())).await;

    assert!(stuck.is_err(), "acknowledged without replicas");
    assert_eq!(consumer, before);
    assert_eq!(leader, cluster.partition("log", 0).unwrap().log_end);
    assert!(leader > consumer);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_throttled_is_asked_again_when_it_said() {
    let (cluster, client) = cluster(|_| ());
    client.refresh(&Topics::All).await.unwrap();
    cluster.throttle(ApiKey::Metadata, Duration::from_secs(4));
    client.refresh(&Topics::All).await.unwrap();
    let started = Instant::now();
    cluster.throttle(ApiKey::Metadata, Duration::ZERO);

    for _ in 0..3 {
        client.refresh(&Topics::All).await.unwrap();
    }

    assert!(
        started.elapsed() >= Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
}
