//! The hand-written encoder against the codec's, byte for byte, and the interpreter.

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};

use super::*;

fn item(topic: &str, id: u8, partition: i32, body_bytes: usize) -> ProduceItem {
    let fill = u8::try_from(partition).unwrap();
    ProduceItem {
        topic: topic.into(),
        topic_id: TopicId([id; 16]),
        partition,
        header: [fill; HEADER_LEN],
        body: vec![fill ^ 0xff; body_bytes].into(),
    }
}

fn by_codec(version: i16, options: &ProduceOptions, topics: &[&[ProduceItem]]) -> Bytes {
    let topics = topics.iter().map(|items| {
        let partitions = items.iter().map(|item| {
            let records = [&item.header[..], &item.body[..]].concat();
            PartitionProduceData::default()
                .with_index(item.partition)
                .with_records(Some(records.into()))
        });
        let topic = TopicProduceData::default().with_partition_data(partitions.collect());
        if version >= 13 {
            topic.with_topic_id(wire::uuid(items[0].topic_id))
        } else {
            topic.with_name(wire::topic_name(&items[0].topic))
        }
    });
    let id = options.transactional_id.as_deref();
    let request = ProduceRequest::default()
        .with_transactional_id(id.map(|id| wire::text(id).into()))
        .with_acks(options.acks)
        .with_timeout_ms(i32::try_from(options.timeout.as_millis()).unwrap())
        .with_topic_data(topics.collect());
    wire::encode_body(&request, version).unwrap()
}

#[test]
fn requests_are_those_of_the_codec_in_every_version() {
    let plain = ProduceOptions::default();
    let transactional = ProduceOptions {
        transactional_id: Some("connect-cluster-1".to_owned()),
        acks: 1,
        timeout: Duration::from_millis(1_500),
    };
    let a = [
        item("a", 1, 0, 0),
        item("a", 1, 2, 1_024),
        item("a", 1, 7, 70_000),
    ];
    let b = [item("b-topic", 2, 3, 1_025)];
    for version in 3..=13 {
        for options in [&plain, &transactional] {
            let given = vec![a[2].clone(), b[0].clone(), a[0].clone(), a[1].clone()];

            let slices = encode(version, options, given);

            assert_eq!(
                slices.concat(),
                by_codec(version, options, &[&a, &b]),
                "version {version}"
            );
        }
    }
}

#[test]
fn a_request_of_many_topics_has_lengths_of_more_than_one_byte() {
    let topics: Vec<_> = (0..300)
        .map(|number| [item(&format!("topic-{number:03}"), 1, 0, 10)])
        .collect();
    let topics: Vec<_> = topics.iter().map(|items| &items[..]).collect();
    let options = ProduceOptions::default();

    let slices = encode(9, &options, topics.concat());

    assert_eq!(slices.concat(), by_codec(9, &options, &topics));
}

#[test]
fn large_bodies_are_not_copied() {
    let large = item("a", 1, 0, 100_000);
    let body = large.body.clone();

    let slices = encode(9, &ProduceOptions::default(), vec![large]);

    assert!(slices.iter().any(|slice| slice.as_ptr() == body.as_ptr()));
}

#[test]
fn each_partition_gets_its_own_outcome() {
    let failed = PartitionProduceResponse::default()
        .with_index(1)
        .with_error_code(ErrorCode::INVALID_RECORD.0)
        .with_base_offset(-1)
        .with_error_message(Some(wire::text("no")))
        .with_record_errors(vec![
            BatchIndexAndErrorMessage::default()
                .with_batch_index(3)
                .with_batch_index_error_message(Some(wire::text("null key"))),
        ])
        .with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(5.into())
                .with_leader_epoch(9),
        );
    let fine = PartitionProduceResponse::default()
        .with_index(0)
        .with_base_offset(42)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(7);
    let topic = TopicProduceResponse::default()
        .with_topic_id(wire::uuid(TopicId([1; 16])))
        .with_partition_responses(vec![fine, failed]);
    let response = ProduceResponse::default().with_responses(vec![topic]);

    let produced = interpret(response, |id| (id == TopicId([1; 16])).then(|| "a".into()));

    let fine = Produced {
        partition: TopicPartition::new("a", 0),
        error: ErrorCode::NONE,
        base_offset: 42,
        log_append_time: -1,
        log_start_offset: 7,
        message: None,
        record_errors: vec![],
        current_leader: None,
    };
    let failed = Produced {
        partition: TopicPartition::new("a", 1),
        error: ErrorCode::INVALID_RECORD,
        base_offset: -1,
        log_start_offset: -1,
        message: Some("no".to_owned()),
        record_errors: vec![(3, Some("null key".to_owned()))],
        current_leader: Some((5, 9)),
        ..fine
    };
    assert_eq!(produced, [fine, failed]);
}
