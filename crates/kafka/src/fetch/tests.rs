//! The two halves of a session, driven against each other as a broker would.

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{
    FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};

use super::*;
use crate::error::Class;

const BY_ID: i16 = 17;
const BY_NAME: i16 = 12;

fn at(topic_id: u8, offset: i64) -> FetchPosition {
    FetchPosition {
        topic_id: TopicId([topic_id; 16]),
        offset,
        leader_epoch: 3,
        max_bytes: None,
    }
}

fn tp(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

/// What a request asks for: `session/epoch`, then each partition as `topic-partition@offset`, then
/// `-topic-partition` for those forgotten. Topics by id are written as the id's first byte.
fn shown(request: &FetchRequest) -> String {
    let topic = |name: &str, id: wire::Uuid| match name {
        "" => format!("#{}", id.as_bytes()[0]),
        name => name.to_owned(),
    };
    let mut words = vec![format!("{}/{}", request.session_id, request.session_epoch)];
    for asked in &request.topics {
        let name = topic(&asked.topic, asked.topic_id);
        words.extend(
            asked.partitions.iter().map(|partition| {
                format!("{name}-{}@{}", partition.partition, partition.fetch_offset)
            }),
        );
    }
    for forgotten in &request.forgotten_topics_data {
        let name = topic(&forgotten.topic, forgotten.topic_id);
        words.extend(
            forgotten
                .partitions
                .iter()
                .map(|number| format!("-{name}-{number}")),
        );
    }
    words.join(" ")
}

fn granted(session_id: i32) -> FetchResponse {
    FetchResponse::default().with_session_id(session_id)
}

/// A session of `a-0` and `b-1` that the broker has granted as 77.
fn session(version: i16) -> FetchSession {
    let mut session = FetchSession::new(FetchOptions::default());
    session.set(&tp("a", 0), at(1, 10));
    session.set(&tp("b", 1), at(2, 20));
    session.build(version, 1 << 20);
    session.interpret(granted(77)).unwrap();
    session
}

#[test]
fn the_first_request_names_everything_and_the_next_nothing() {
    let mut session = FetchSession::new(FetchOptions::default());
    session.set(&tp("a", 0), at(1, 10));
    session.set(&tp("a", 1), at(1, 11));

    let first = shown(&session.build(BY_NAME, 1 << 20));
    session.interpret(granted(77)).unwrap();
    let second = shown(&session.build(BY_NAME, 1 << 20));
    session.interpret(granted(77)).unwrap();
    let third = shown(&session.build(BY_NAME, 1 << 20));

    assert_eq!(first, "0/0 a-1@11 a-0@10");
    assert_eq!((&*second, &*third), ("77/1", "77/2"));
}

#[test]
fn later_requests_name_only_what_changed() {
    type Change = fn(&mut FetchSession);
    let cases: &[(&str, Change, &str, &str)] = &[
        (
            "moved",
            |s| s.set(&tp("a", 0), at(1, 15)),
            "77/1 #1-0@15",
            "77/1 a-0@15",
        ),
        (
            "not moved",
            |s| s.set(&tp("a", 0), at(1, 10)),
            "77/1",
            "77/1",
        ),
        (
            "added",
            |s| s.set(&tp("a", 5), at(1, 0)),
            "77/1 #1-5@0",
            "77/1 a-5@0",
        ),
        (
            "removed",
            |s| assert!(s.remove(&tp("a", 0))),
            "77/1 -#1-0",
            "77/1 -a-0",
        ),
        (
            "removed and back",
            |s| {
                s.remove(&tp("a", 0));
                s.set(&tp("a", 0), at(1, 12));
            },
            "77/1 #1-0@12",
            "77/1 a-0@12",
        ),
        (
            "added and removed",
            |s| {
                s.set(&tp("c", 0), at(3, 12));
                s.remove(&tp("c", 0));
            },
            "77/1 -#3-0",
            "77/1 -c-0",
        ),
        (
            "the topic made anew",
            |s| s.set(&tp("a", 0), at(9, 0)),
            "77/1 #9-0@0 -#1-0",
            "77/1 a-0@0",
        ),
    ];
    for (what, change, by_id, by_name) in cases {
        for (version, expected) in [(BY_ID, by_id), (BY_NAME, by_name)] {
            let mut session = session(version);

            change(&mut session);

            assert_eq!(
                shown(&session.build(version, 1 << 20)),
                **expected,
                "{what}"
            );
        }
    }
}

#[test]
fn ten_thousand_idle_partitions_cost_an_empty_request() {
    let mut session = FetchSession::new(FetchOptions::default());
    for number in 0..10_000 {
        session.set(&tp("a-topic-with-a-name", number), at(1, 0));
    }
    let full = session.build(BY_NAME, 1 << 20);
    session.interpret(granted(77)).unwrap();

    let idle = session.build(BY_NAME, 1 << 20);

    let size = |request| wire::encode_body(request, BY_NAME).unwrap().len();
    assert!(size(&full) > 300_000, "{}", size(&full));
    assert!(size(&idle) < 50, "{}", size(&idle));
}

#[test]
fn a_change_while_a_request_is_under_way_goes_into_the_next() {
    let mut session = session(BY_NAME);
    session.build(BY_NAME, 1 << 20);
    session.set(&tp("a", 0), at(1, 30));

    session.interpret(granted(77)).unwrap();

    assert_eq!(shown(&session.build(BY_NAME, 1 << 20)), "77/2 a-0@30");
}

#[test]
fn a_lost_session_starts_over_with_everything() {
    for (code, expected) in [
        (ErrorCode::FETCH_SESSION_ID_NOT_FOUND, "0/0 a-0@10 b-1@20"),
        (ErrorCode::INVALID_FETCH_SESSION_EPOCH, "77/0 a-0@10 b-1@20"),
        (
            ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR,
            "77/0 a-0@10 b-1@20",
        ),
    ] {
        let mut session = session(BY_NAME);
        session.build(BY_NAME, 1 << 20);

        let failed = session.interpret(FetchResponse::default().with_error_code(code.0));
        session.requests = 1;
        let next = shown(&session.build(BY_NAME, 1 << 20));

        assert_eq!(failed.unwrap_err().class(), Class::ResetFetchSession);
        assert_eq!(next, expected, "{code}");
    }
}

#[test]
fn a_request_whose_fate_is_unknown_starts_over_and_closes_the_old_session() {
    let mut session = session(BY_NAME);
    session.remove(&tp("b", 1));
    session.build(BY_NAME, 1 << 20);

    session.reset();

    assert_eq!(shown(&session.build(BY_NAME, 1 << 20)), "77/0 a-0@10");
}

#[test]
fn a_broker_that_grants_no_session_gets_full_requests_in_turning_order() {
    let mut session = FetchSession::new(FetchOptions::default());
    for topic in ["a", "b", "c"] {
        session.set(&tp(topic, 0), at(1, 0));
    }

    let mut next = || {
        let request = shown(&session.build(BY_NAME, 1 << 20));
        session.interpret(granted(0)).unwrap();
        request
    };

    assert_eq!(next(), "0/0 b-0@0 c-0@0 a-0@0");
    assert_eq!(next(), "0/0 c-0@0 a-0@0 b-0@0");
    assert_eq!(next(), "0/0 a-0@0 b-0@0 c-0@0");
}

#[test]
fn the_epoch_of_a_session_wraps_to_one() {
    let mut session = session(BY_NAME);
    session.epoch = i32::MAX;

    session.interpret(granted(77)).unwrap();

    assert_eq!(session.epoch, 1);
}

#[test]
fn topics_go_by_id_only_if_all_have_one() {
    let mut session = session(BY_ID);
    let all_have_one = session.version_max();
    session.set(
        &tp("old", 0),
        FetchPosition {
            topic_id: TopicId::ZERO,
            ..at(0, 0)
        },
    );
    let one_has_none = session.version_max();
    let by_name = shown(&session.build(one_has_none, 1 << 20));
    session.remove(&tp("old", 0));

    assert_eq!((all_have_one, one_has_none), (BY_ID, BY_NAME));
    assert!(by_name.starts_with("77/0 "), "{by_name}");
    assert_eq!(session.version_max(), BY_ID);
}

#[test]
fn requests_encode_in_every_version_we_use() {
    for version in 4..=VERSION_MAX {
        let mut session = FetchSession::new(FetchOptions {
            rack: "rack-1".to_owned(),
            isolation: Isolation::ReadCommitted,
            ..FetchOptions::default()
        });
        session.set(&tp("a", 0), at(1, 10));

        let full = session.build(version, 1 << 20);
        session.interpret(granted(77)).unwrap();
        session.remove(&tp("a", 0));
        let incremental = session.build(version, 1 << 20);

        for request in [full, incremental] {
            wire::encode_body(&request, version)
                .unwrap_or_else(|error| panic!("{version}: {error}"));
        }
    }
}

#[test]
fn an_answer_says_for_each_partition_what_it_got() {
    let mut session = session(BY_ID);
    let data = PartitionData::default()
        .with_partition_index(0)
        .with_high_watermark(100)
        .with_last_stable_offset(90)
        .with_log_start_offset(5)
        .with_aborted_transactions(Some(vec![
            wire::fetch_response::AbortedTransaction::default()
                .with_producer_id(8.into())
                .with_first_offset(12),
        ]))
        .with_preferred_read_replica(4.into())
        .with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(2.into())
                .with_leader_epoch(6),
        )
        .with_records(Some(Bytes::from_static(b"records")));
    let gone = PartitionData::default().with_partition_index(9);
    let topic = FetchableTopicResponse::default()
        .with_topic_id(wire::uuid(TopicId([1; 16])))
        .with_partitions(vec![data, gone]);
    let unknown = FetchableTopicResponse::default()
        .with_topic_id(wire::uuid(TopicId([8; 16])))
        .with_partitions(vec![PartitionData::default()]);
    let response = granted(77)
        .with_throttle_time_ms(250)
        .with_responses(vec![topic, unknown]);

    let fetched = session.interpret(response).unwrap();

    let [got] = &fetched.partitions[..] else {
        panic!("{fetched:?}");
    };
    assert_eq!(fetched.throttle, Duration::from_millis(250));
    assert_eq!((&got.partition, got.fetch_offset), (&tp("a", 0), 10));
    assert_eq!(
        (
            got.high_watermark,
            got.last_stable_offset,
            got.log_start_offset
        ),
        (100, 90, 5)
    );
    assert_eq!(
        (got.preferred_read_replica, got.current_leader),
        (Some(4), Some((2, 6)))
    );
    assert_eq!((got.diverging, &got.records[..]), (None, &b"records"[..]));
    assert_eq!(
        got.aborted,
        [AbortedTransaction {
            producer_id: 8,
            first_offset: 12
        }]
    );
}
