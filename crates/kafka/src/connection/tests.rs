//! A connection against a scripted peer, on a paused clock.

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::join;

use super::*;
use crate::error::ErrorCode;
use crate::memory::MemoryBudget;
use crate::testing::{Peer, Received, all_versions, frame, scripted};
use crate::wire::{
    ApiVersionsRequest, ApiVersionsResponse, FetchRequest, FetchResponse, MetadataRequest,
    MetadataResponse,
};

const PIPE_BYTES: usize = 64 << 10;

/// An open connection and its other end.
async fn open(change: impl FnOnce(&mut ClientConfig)) -> (Connection, Peer) {
    let (mut config, transport) = scripted(&["kafka:9092"]);
    change(&mut config);
    let address = config.bootstrap[0].clone();
    let mut peer = transport.expect(&address, PIPE_BYTES);
    let (connection, ()) = join!(Connection::open(&config, &address), peer.agree());
    (connection.expect("an open connection"), peer)
}

/// A question that tells itself from others by its topic, and the answer that repeats it.
fn question(name: &'static str) -> MetadataRequest {
    let topic = wire::metadata_request::MetadataRequestTopic::default()
        .with_name(Some(wire::topic_name(&name.into())));
    MetadataRequest::default().with_topics(Some(vec![topic]))
}

fn answer_to(request: &Received) -> MetadataResponse {
    let topics = request
        .decode::<MetadataRequest>()
        .topics
        .unwrap_or_default();
    let name = topics[0].name.clone().expect("a name");
    MetadataResponse::default().with_cluster_id(Some(name.0))
}

async fn ask(connection: &Connection, name: &'static str) -> Result<String> {
    let response = connection.call(&question(name)).await?;
    Ok(response.cluster_id.expect("an id").to_string())
}

fn is_lost<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Disconnected { .. }))
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_callers() {
    let (connection, mut peer) = open(|_| ()).await;
    let serve = async {
        let requests = [
            peer.receive().await,
            peer.receive().await,
            peer.receive().await,
        ];
        for request in &requests {
            peer.answer::<MetadataRequest>(request, &answer_to(request))
                .await;
        }
    };

    let answers = join!(
        ask(&connection, "a"),
        ask(&connection, "b"),
        ask(&connection, "c"),
        serve
    );

    assert_eq!(
        (answers.0.unwrap(), answers.1.unwrap(), answers.2.unwrap()),
        ("a".into(), "b".into(), "c".into())
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_later_request_proves_the_earlier_one_lost_and_ends_the_connection() {
    for is_abandoned in [false, true] {
        let (connection, mut peer) = open(|_| ()).await;
        let started = Instant::now();
        let first = connection
            .send(&question("a"), CallOptions::default())
            .await
            .unwrap();
        let first = (!is_abandoned).then_some(first);
        let serve = async {
            peer.receive().await;
            let request = peer.receive().await;
            peer.answer::<MetadataRequest>(&request, &answer_to(&request))
                .await;
        };

        let (second, ()) = join!(ask(&connection, "b"), serve);

        assert!(is_lost(&second), "{second:?}");
        if let Some(first) = first {
            let first = first.response().await;
            assert!(is_lost(&first), "{first:?}");
        }
        assert!(connection.is_closed());
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stays_unanswered_ends_the_connection_for_all() {
    let (connection, mut peer) = open(|_| ()).await;
    let started = Instant::now();
    let patient = CallOptions {
        timeout: Some(Duration::from_secs(300)),
        ..CallOptions::default()
    };
    let patient_question = question("b");

    let (impatient, patient, _, _) = join!(
        ask(&connection, "a"),
        connection.call_with(&patient_question, patient),
        peer.receive(),
        connection.closed(),
    );

    assert!(
        matches!(impatient, Err(Error::TimedOut { after, .. }) if after == Duration::from_secs(30))
    );
    assert!(is_lost(&patient), "{patient:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert!(is_lost(&ask(&connection, "c").await));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_caller_leaves_the_connection_in_order() {
    let (connection, mut peer) = open(|_| ()).await;
    let cancelled = connection
        .send(&question("gone"), CallOptions::default())
        .await
        .unwrap();
    drop(cancelled);
    let serve = async {
        for _ in 0..2 {
            let request = peer.receive().await;
            let response = answer_to(&request);
            peer.answer::<MetadataRequest>(&request, &response).await;
        }
    };

    let (answer, ()) = join!(ask(&connection, "next"), serve);

    assert_eq!(answer.unwrap(), "next");
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_the_pipe_is_written_whole_though_its_caller_is_gone() {
    let (connection, mut peer) = open(|_| ()).await;
    let large = Bytes::from(vec![7; 10 * PIPE_BYTES]);
    let body = vec![large.slice(..PIPE_BYTES + 1), large.slice(PIPE_BYTES + 1..)];
    drop(
        connection
            .send_raw::<MetadataRequest>(12, body, CallOptions::default())
            .await
            .unwrap(),
    );
    let serve = async {
        let first = peer.receive().await;
        let second = peer.receive().await;
        let response = answer_to(&second);
        peer.answer::<MetadataRequest>(&first, &response).await;
        peer.answer::<MetadataRequest>(&second, &response).await;
        first
    };

    let (answer, first) = join!(ask(&connection, "next"), serve);

    assert_eq!(first.body_bytes(), large);
    assert_eq!(answer.unwrap(), "next");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_a_large_request_bit_by_bit_shows_that_it_is_there() {
    let (connection, mut peer) = open(|_| ()).await;
    let begun = Instant::now();
    let body = vec![Bytes::from(vec![7; 3 * PIPE_BYTES / 2])];
    let reply = connection.send_raw::<MetadataRequest>(12, body, CallOptions::default());
    drop(reply.await.unwrap());

    tokio::time::sleep(Duration::from_secs(5)).await;
    let while_it_takes_none = connection.last_taken();
    peer.receive().await;

    assert_eq!(while_it_takes_none, begun);
    assert_eq!(connection.last_taken(), begun + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_up_fails_everything_at_once() {
    let (connection, mut peer) = open(|_| ()).await;
    let started = Instant::now();
    let hang_up = async {
        peer.receive().await;
        drop(peer);
    };

    let (first, second, ()) = join!(ask(&connection, "a"), ask(&connection, "b"), hang_up);

    assert!(is_lost(&first) && is_lost(&second), "{first:?}, {second:?}");
    assert!(connection.is_closed());
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_in_the_middle_fails_its_caller_with_the_cause() {
    let (connection, mut peer) = open(|_| ()).await;
    let cut = async {
        let request = peer.receive().await;
        let whole = frame::<MetadataRequest>(
            request.correlation_id,
            request.version,
            &answer_to(&request),
        );
        peer.stream
            .write_all(&whole[..whole.len() - 1])
            .await
            .unwrap();
        drop(peer);
    };

    let (answer, ()) = join!(ask(&connection, "a"), cut);

    let Err(Error::Disconnected { cause, .. }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(cause.kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_answer_end_the_connection() {
    let cases: &[(&str, &[u8])] = &[
        ("larger than allowed", &[0, 16, 0, 1, 0, 0, 0, 1]),
        ("the largest length", &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
        ("a negative length", &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
        ("too short for a number", &[0, 0, 0, 3, 0, 0, 0, 1]),
        ("an answer nobody asked for", &[0, 0, 0, 4, 0, 0, 0, 99]),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ];
    for (what, bytes) in cases {
        let (connection, mut peer) = open(|config| config.frame_bytes_max = 1 << 20).await;
        let answer = async {
            peer.receive().await;
            peer.stream.write_all(bytes).await.unwrap();
        };

        let (asked, ()) = join!(ask(&connection, "a"), answer);

        let Err(Error::Disconnected { cause, .. }) = asked else {
            panic!("{what}: {asked:?}");
        };
        assert_eq!(cause.kind(), io::ErrorKind::InvalidData, "{what}");
        assert!(connection.is_closed(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_decode_is_malformed_and_ends_the_connection() {
    for extra in [&[][..], &[0xff; 40][..]] {
        let (connection, mut peer) = open(|_| ()).await;
        let answer = async {
            let request = peer.receive().await;
            let mut bytes = vec![0, 0, 0, u8::try_from(4 + extra.len()).unwrap()];
            bytes.extend(request.correlation_id.to_be_bytes());
            bytes.extend(extra);
            peer.stream.write_all(&bytes).await.unwrap();
        };

        let (asked, ()) = join!(ask(&connection, "a"), answer);

        assert!(matches!(asked, Err(Error::Malformed { .. })), "{asked:?}");
        assert!(connection.is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_in_flight_than_allowed() {
    let (connection, mut peer) = open(|config| config.max_in_flight = 2).await;
    let first = connection
        .send(&question("a"), CallOptions::default())
        .await
        .unwrap();
    let second = connection
        .send(&question("b"), CallOptions::default())
        .await
        .unwrap();
    let third_question = question("c");
    let mut third = Box::pin(connection.send(&third_question, CallOptions::default()));

    let early = tokio::time::timeout(Duration::from_secs(5), &mut third).await;
    let request = peer.receive().await;
    let response = answer_to(&request);
    peer.answer::<MetadataRequest>(&request, &response).await;
    let late = tokio::time::timeout(Duration::from_secs(5), &mut third).await;

    assert!(early.is_err(), "a third request got through");
    assert!(late.is_ok(), "an answer made no room");
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_is_silent_for_as_long_as_it_was_asked_to_be() {
    let (connection, mut peer) = open(|_| ()).await;
    let serve = async {
        let request = peer.receive().await;
        let response = answer_to(&request).with_throttle_time_ms(3_000);
        peer.answer::<MetadataRequest>(&request, &response).await;
        let answered_at = Instant::now();
        let request = peer.receive().await;
        let silent = answered_at.elapsed();
        let response = answer_to(&request);
        peer.answer::<MetadataRequest>(&request, &response).await;
        silent
    };
    let two = async {
        ask(&connection, "a").await.unwrap();
        ask(&connection, "b").await.unwrap();
    };

    let (silent, ()) = join!(serve, two);

    assert_eq!(silent.as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn requests_queued_while_throttled_keep_their_order() {
    let (connection, mut peer) = open(|_| ()).await;
    connection.mute(Duration::from_secs(3));
    let names = ["a", "b", "c", "d"];
    let mut replies = Vec::new();
    for name in names {
        let question = question(name);
        let reply = connection.send(&question, CallOptions::default()).await;
        replies.push(reply.unwrap());
    }

    let mut order = Vec::new();
    for _ in names {
        order.push(
            answer_to(&peer.receive().await)
                .cluster_id
                .unwrap()
                .to_string(),
        );
    }

    assert_eq!(order, names);
}

#[tokio::test(start_paused = true)]
async fn a_fetched_frame_holds_its_share_of_the_budget_until_its_records_are_dropped() {
    let (connection, mut peer) = open(|_| ()).await;
    let budget = MemoryBudget::new(10 << 20);
    let records = Bytes::from(vec![7; 200_000]);
    let data = wire::fetch_response::PartitionData::default().with_records(Some(records.clone()));
    let topic = wire::fetch_response::FetchableTopicResponse::default().with_partitions(vec![data]);
    let response = FetchResponse::default().with_responses(vec![topic]);
    let serve = async {
        let request = peer.receive().await;
        peer.answer::<FetchRequest>(&request, &response).await;
    };
    let options = CallOptions {
        share: Some(budget.reserve(1 << 20).await),
        ..CallOptions::default()
    };
    let request = FetchRequest::default();

    let (fetched, ()) = join!(connection.call_with(&request, options), serve);
    let mut fetched = fetched.unwrap();
    let got = fetched.responses[0].partitions[0].records.take();
    drop(fetched);
    let held = budget.used();

    assert_eq!(got, Some(records));
    assert!((200_000..300_000).contains(&held), "{held}");
    drop(got);
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_the_newest_question_for_versions_is_asked_in_one_it_knows() {
    for (offered, expected) in [(Some(2), 2), (None, 0)] {
        let (config, transport) = scripted(&["old:9092"]);
        let address = config.bootstrap[0].clone();
        let mut peer = transport.expect(&address, PIPE_BYTES);
        let serve = async {
            let refused = peer.receive().await;
            let mut refusal =
                ApiVersionsResponse::default().with_error_code(ErrorCode::UNSUPPORTED_VERSION.0);
            refusal.api_keys = offered
                .iter()
                .map(|max| {
                    wire::api_versions_response::ApiVersion::default()
                        .with_api_key(ApiVersionsRequest::KEY)
                        .with_max_version(*max)
                })
                .collect();
            let bytes = frame::<ApiVersionsRequest>(refused.correlation_id, 0, &refusal);
            peer.stream.write_all(&bytes).await.unwrap();
            let again = peer.receive().await;
            peer.answer::<ApiVersionsRequest>(&again, &all_versions())
                .await;
            (refused.version, again.version)
        };

        let (opened, versions) = join!(Connection::open(&config, &address), serve);

        opened.unwrap();
        assert_eq!(versions, (4, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_hangs_up_on_the_question_for_versions_is_asked_in_the_oldest() {
    let (config, transport) = scripted(&["old:9092"]);
    let address = config.bootstrap[0].clone();
    let mut first = transport.expect(&address, PIPE_BYTES);
    let mut second = transport.expect(&address, PIPE_BYTES);
    let serve = async {
        first.receive().await;
        drop(first);
        let request = second.receive().await;
        second
            .answer::<ApiVersionsRequest>(&request, &all_versions())
            .await;
        request.version
    };

    let (opened, version) = join!(Connection::open(&config, &address), serve);

    opened.unwrap();
    assert_eq!(version, 0);
}

#[tokio::test(start_paused = true)]
async fn the_highest_common_version_is_used() {
    let (connection, _peer) = open(|_| ()).await;

    assert_eq!(connection.version_of::<FetchRequest>(None).unwrap(), 18);
    assert_eq!(connection.version_of::<FetchRequest>(Some(12)).unwrap(), 12);
    assert!(matches!(
        connection.version_of::<wire::DescribeProducersRequest>(None),
        Err(Error::UnsupportedApi { .. })
    ));
}
