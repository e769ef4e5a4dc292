//! A client against scripted brokers, on a paused clock.

use std::cell::RefCell;

use tokio::join;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::Topic;

use super::*;
use crate::admin::{OffsetQuery, View, list_offsets};
use crate::fetch::{FetchOptions, FetchSession};
use crate::produce::{self, ProduceOptions};
use crate::retry::{Backoff, Retry, while_retriable};
use crate::testing::{Peer, Scripted, scripted};
use crate::topic_log::{append, read_to_end};
use crate::wire;
use crate::wire::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};

const PIPE_BYTES: usize = 64 << 10;

fn address(text: &str) -> Address {
    text.parse().expect("host:port")
}

/// A cluster of the brokers `1` at `one:1`, `2` at `two:2`, and so on, with a topic `t` that broker
/// 1 leads.
fn cluster(brokers: &[(i32, &str)]) -> MetadataResponse {
    let brokers = brokers.iter().map(|(id, place)| {
        let place = address(place);
        MetadataResponseBroker::default()
            .with_node_id((*id).into())
            .with_host(wire::text(&place.host))
            .with_port(place.port.into())
    });
    let partition = MetadataResponsePartition::default().with_leader_id(1.into());
    let topic = MetadataResponseTopic::default()
        .with_name(Some(wire::topic_name(&"t".into())))
        .with_partitions(vec![partition]);
    MetadataResponse::default()
        .with_controller_id(1.into())
        .with_brokers(brokers.collect())
        .with_topics(vec![topic])
}

/// Answers metadata requests until the client hangs up; how many there were.
async fn serve(mut peer: Peer, response: &RefCell<MetadataResponse>) -> usize {
    peer.agree().await;
    let mut served = 0;
    while let Ok(request) = peer.try_receive().await {
        let asked = request.decode::<MetadataRequest>();
        assert!(!asked.allow_auto_topic_creation);
        let response = response.borrow().clone();
        peer.answer::<MetadataRequest>(&request, &response).await;
        served += 1;
    }
    served
}

fn client(bootstrap: &[&str]) -> (Client, Arc<Scripted>) {
    let (config, transport) = scripted(bootstrap);
    (Client::new(config), transport)
}

#[tokio::test(start_paused = true)]
async fn the_first_bootstrap_address_that_answers_is_enough() {
    let (client, transport) = client(&["away:9", "one:1"]);
    let peer = transport.expect(&address("one:1"), PIPE_BYTES);
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let mut snapshots = client.subscribe();
    let test = async {
        let metadata = client.refresh(&Topics::All).await;
        drop(client);
        metadata
    };

    let (metadata, served) = join!(test, serve(peer, &response));

    let metadata = metadata.unwrap();
    assert_eq!(
        (metadata.generation, metadata.brokers.len(), served),
        (1, 1, 1)
    );
    assert_eq!(*snapshots.borrow_and_update(), metadata);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_stuck_is_overtaken_by_another() {
    let (client, transport) = client(&["one:1", "two:2"]);
    let response = RefCell::new(cluster(&[(1, "one:1"), (2, "two:2")]));
    let mut stuck = transport.expect(&address("one:1"), PIPE_BYTES);
    let peer = transport.expect(&address("two:2"), PIPE_BYTES);
    let started = Instant::now();
    let get_stuck = async {
        stuck.agree().await;
        std::future::pending::<()>().await;
    };

    let metadata = tokio::select! {
        metadata = client.refresh(&Topics::All) => metadata,
        _ = async { join!(serve(peer, &response), get_stuck) } => panic!("the client hung up"),
    };

    assert_eq!(metadata.unwrap().brokers.len(), 2);
    let elapsed = started.elapsed();
    assert!(elapsed <= SLOW_ANSWER, "{elapsed:?}");
    assert_eq!(
        transport.left(),
        0,
        "the stuck broker was not asked first: choose another seed"
    );
}

#[tokio::test(start_paused = true)]
async fn without_any_broker_the_error_names_what_was_tried() {
    let (client, _) = client(&["away:9", "gone:9"]);

    let failed = client.refresh(&Topics::None).await.unwrap_err();

    let Error::NoBroker { tried, cause } = &failed else {
        panic!("{failed}");
    };
    assert!(
        tried.contains("away:9") && tried.contains("gone:9"),
        "{tried}"
    );
    assert!(matches!(cause.as_deref(), Some(Error::Connect { .. })));
}

#[tokio::test(start_paused = true)]
async fn refreshes_that_overlap_share_one_request() {
    let (client, transport) = client(&["one:1"]);
    let peer = transport.expect(&address("one:1"), PIPE_BYTES);
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let named = Topics::Named(BTreeSet::from(["t".into()]));
    let test = async {
        let (a, b, c) = join!(
            client.refresh(&Topics::All),
            client.refresh(&named),
            client.refresh(&Topics::None),
        );
        drop(client);
        [a, b, c].map(|metadata| metadata.unwrap().generation)
    };

    let (generations, served) = join!(test, serve(peer, &response));

    assert_eq!((generations, served), ([1, 1, 1], 1));
}

#[tokio::test(start_paused = true)]
async fn when_no_known_broker_answers_the_bootstrap_addresses_are_asked_again() {
    let (client, transport) = client(&["seed:1"]);
    let seed = transport.expect(&address("seed:1"), PIPE_BYTES);
    let old = RefCell::new(cluster(&[(1, "old:1")]));
    let new = RefCell::new(cluster(&[(2, "new:2")]));
    let test = async {
        client.refresh(&Topics::None).await.unwrap();
        let seed = transport.expect(&address("seed:1"), PIPE_BYTES);
        let again = async { client.refresh(&Topics::None).await };
        tokio::select! {
            metadata = again => metadata,
            _ = serve(seed, &new) => panic!("the client hung up"),
        }
    };

    let (metadata, _) = join!(test, serve(seed, &old));

    let brokers: Vec<_> = metadata.unwrap().brokers.keys().copied().collect();
    assert_eq!((brokers, transport.left()), (vec![2], 0));
}

/// A client that knows broker 1, and its first connection there.
async fn with_one_broker(response: &RefCell<MetadataResponse>) -> (Client, Arc<Scripted>) {
    let (client, transport) = client(&["seed:9"]);
    let seed = transport.expect(&address("seed:9"), PIPE_BYTES);
    tokio::select! {
        metadata = client.refresh(&Topics::All) => drop(metadata.unwrap()),
        _ = serve(seed, response) => panic!("the client hung up"),
    }
    (client, transport)
}

async fn connected(
    client: &Client,
    transport: &Scripted,
    place: &str,
    purpose: Purpose,
) -> (Connection, Peer) {
    let mut peer = transport.expect(&address(place), PIPE_BYTES);
    let (connection, ()) = join!(client.connection(1, purpose), peer.agree());
    (connection.unwrap(), peer)
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_its_purpose() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, transport) = with_one_broker(&response).await;

    let (_fetch, _peer) = connected(&client, &transport, "one:1", Purpose::Fetch(0)).await;
    let again = client.connection(1, Purpose::Fetch(0)).await;
    let other = client.connection(1, Purpose::Fetch(1)).await;

    assert!(again.is_ok());
    assert!(
        matches!(other, Err(Error::Connect { .. })),
        "a second lane needs a second connection"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_followed_by_a_pause_that_grows() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, _) = with_one_broker(&response).await;
    let mut waited = Vec::new();

    for _ in 0..7 {
        let started = Instant::now();
        client.connection(1, Purpose::General).await.unwrap_err();
        waited.push(started.elapsed());
    }

    assert_eq!(waited[0], Duration::ZERO);
    assert!(
        (Duration::from_millis(40)..=Duration::from_millis(51)).contains(&waited[1]),
        "{waited:?}"
    );
    assert!(
        (Duration::from_millis(800)..=Duration::from_millis(1_001)).contains(&waited[6]),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_attempt_shares_its_failure() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, _) = with_one_broker(&response).await;
    client.connection(1, Purpose::General).await.unwrap_err();
    let started = Instant::now();

    let (a, b, c) = join!(
        client.connection(1, Purpose::General),
        client.connection(1, Purpose::General),
        client.connection(1, Purpose::General),
    );

    assert!(a.is_err() && b.is_err() && c.is_err());
    assert!(
        started.elapsed() < Duration::from_millis(60),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_moved_is_connected_anew() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, transport) = with_one_broker(&response).await;
    let (old, peer) = connected(&client, &transport, "one:1", Purpose::General).await;
    let moved = cluster(&[(1, "elsewhere:1")]);
    client.take_answer(&moved, &Topics::All);

    let (new, _peer) = connected(&client, &transport, "elsewhere:1", Purpose::General).await;

    assert_eq!(new.peer(), &address("elsewhere:1"));
    drop((old, peer));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_idle_for_long_is_not_trusted() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, transport) = with_one_broker(&response).await;
    let (_old, _peer) = connected(&client, &transport, "one:1", Purpose::General).await;

    tokio::time::sleep(client.config().connections_max_idle).await;
    let (_new, _peer) = connected(&client, &transport, "one:1", Purpose::General).await;

    assert_eq!(transport.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_partition_is_looked_up_once() {
    let response = RefCell::new(cluster(&[(1, "one:1")]));
    let (client, transport) = client(&["seed:9"]);
    let seed = transport.expect(&address("seed:9"), PIPE_BYTES);
    let one = transport.expect(&address("one:1"), PIPE_BYTES);
    let test = async {
        let known = client.leader(&TopicPartition::new("t", 0)).await;
        let no_such_partition = client.leader(&TopicPartition::new("t", 5)).await;
        drop(client);
        (known, no_such_partition)
    };

    let ((known, unknown), at_seed, at_one) =
        join!(test, serve(seed, &response), serve(one, &response));

    assert_eq!(known.unwrap().broker, 1);
    assert!(
        matches!(unknown, Err(Error::UnknownTopic { .. })),
        "{unknown:?}"
    );
    assert_eq!((at_seed, at_one), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stale_snapshot_is_refreshed_before_it_is_used() {
    let response = RefCell::new(cluster(&[(1, "one:1"), (2, "two:2")]));
    let (client, transport) = with_one_broker(&response).await;
    let one = transport.expect(&address("one:1"), PIPE_BYTES);
    let two = transport.expect(&address("two:2"), PIPE_BYTES);
    let mut moved = response.borrow().clone();
    moved.topics[0].partitions[0].leader_id = 2.into();
    response.replace(moved);
    let test = async {
        let before = client.leader(&TopicPartition::new("t", 0)).await.unwrap();
        client.mark_stale();
        let after = client.leader(&TopicPartition::new("t", 0)).await.unwrap();
        (before.broker, after.broker)
    };

    let leaders = tokio::select! {
        leaders = test => leaders,
        _ = async { join!(serve(one, &response), serve(two, &response)) } => {
            panic!("the client hung up")
        }
    };

    assert_eq!(leaders, (1, 2));
}

/// The engine runs its tasks on several threads; this stops compiling where a future can't move.
#[test]
fn futures_may_move_between_threads() {
    fn moves<T: Send>(future: T) {
        drop(future);
    }
    let (client, _) = client(&["one:1"]);
    let topic = Topic::from("t");
    let partition = TopicPartition::new("t", 0);
    let queries = [(partition.clone(), OffsetQuery::Latest)];
    let mut retry = Retry::new(Backoff::default(), CancellationToken::new(), 1);
    let mut session = FetchSession::new(FetchOptions::default());

    moves(client.refresh(&Topics::All));
    moves(client.leader(&partition));
    moves(client.connection(1, Purpose::General));
    moves(list_offsets(&client, queries, View::Leader));
    moves(read_to_end(&client, &topic, &mut retry, while_retriable));
    moves(append(&client, &topic, &[], 0, &mut retry, while_retriable));
    moves(async {
        let connection = client.any_connection().await?;
        let request = MetadataRequest::default();
        connection.call(&request).await?;
        session.fetch(&connection, 1, None).await?;
        let options = ProduceOptions::default();
        let reply = produce::send(&connection, &options, Vec::new()).await?;
        reply.results().await
    });
}
