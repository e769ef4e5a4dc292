//! Records on their way through the client.

use anyhow::Result;
use bytes::Bytes;
use testkit::{dump_topic, shared_pair};
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_kafka::admin::{OffsetQuery, View, describe_producers, list_offsets};
use twinlog_kafka::batch::{
    Compression, DecodeLimits, Entry, ProducerStamp, RawBatch, Record, decode, encode, join,
    restamp, walk,
};
use twinlog_kafka::client::{Client, Purpose};
use twinlog_kafka::error::ErrorCode;
use twinlog_kafka::fetch::{FetchOptions, FetchPosition, FetchSession};
use twinlog_kafka::memory::MemoryBudget;
use twinlog_kafka::produce::{self, ProduceItem, ProduceOptions, Produced};
use twinlog_kafka::retry::while_retriable;
use twinlog_kafka::topic_log::{KeyValue, append, partition_of_key, read_to_end};

use super::{client, leader, make_topic, retry};

/// Outside what brokers give out.
const PRODUCER_ID: i64 = (1 << 60) + 17;

fn records(count: usize, value_bytes: usize) -> Vec<KeyValue> {
    let value = Bytes::from(vec![b'v'; value_bytes]);
    (0..count)
        .map(|n| (format!("key-{n}").into(), Some(value.clone())))
        .collect()
}

/// All batches of a partition, through a fetch session that holds memory of a budget.
async fn fetch_all(
    client: &Client,
    partition: &TopicPartition,
    budget: &MemoryBudget,
) -> Vec<RawBatch> {
    let led = leader(client, partition).await;
    let query = [(partition.clone(), OffsetQuery::Latest)];
    let ends = list_offsets(client, query, View::Leader).await;
    let end = ends[partition].as_ref().unwrap().offset.unwrap();
    let connection = client
        .connection(led.broker, Purpose::Fetch(0))
        .await
        .unwrap();
    let mut session = FetchSession::new(FetchOptions::default());
    let mut position = FetchPosition {
        topic_id: led.topic_id,
        offset: 0,
        leader_epoch: led.epoch,
        max_bytes: None,
    };
    let mut batches = Vec::new();
    while position.offset < end {
        session.set(partition, position);
        let share = budget.reserve(1 << 20).await;
        let fetched = session
            .fetch(&connection, 1 << 20, Some(share))
            .await
            .unwrap();
        for answer in fetched.partitions {
            assert_eq!(answer.error, ErrorCode::NONE);
            for entry in walk(answer.records) {
                let Entry::Batch(batch) = entry.unwrap() else {
                    panic!("an old message set");
                };
                position.offset = batch.next_offset();
                batches.push(batch);
            }
        }
    }
    batches
}

async fn send(
    client: &Client,
    partition: &TopicPartition,
    batch: &RawBatch,
    sequence: i32,
) -> Produced {
    let led = leader(client, partition).await;
    let connection = client
        .connection(led.broker, Purpose::Produce(0))
        .await
        .unwrap();
    let stamp = ProducerStamp {
        producer_id: PRODUCER_ID,
        producer_epoch: 0,
        base_sequence: sequence,
    };
    let item = ProduceItem {
        topic: partition.topic.clone(),
        topic_id: led.topic_id,
        partition: partition.partition,
        header: restamp(batch, stamp),
        body: batch.body(),
    };
    let reply = produce::send(&connection, &ProduceOptions::default(), vec![item]).await;
    reply.unwrap().results().await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_pass_through_unchanged_and_their_memory_comes_back() -> Result<()> {
    let pair = shared_pair()?;
    let (source, target) = (client(&pair.source), client(&pair.target));
    let from = TopicPartition::new(make_topic(&source, "data-from", 1, 1).await, 0);
    let to = TopicPartition::new(make_topic(&target, "data-to", 1, 1).await, 0);
    append(
        &source,
        &from.topic,
        &records(3_000, 1_000),
        1_700_000_000_000,
        &mut retry(),
        while_retriable,
    )
    .await?;
    let budget = MemoryBudget::new(64 << 20);

    let batches = fetch_all(&source, &from, &budget).await;
    let mut next = 0;
    for batch in &batches {
        let produced = send(&target, &to, batch, next).await;
        assert_eq!(
            (produced.error, produced.base_offset),
            (ErrorCode::NONE, i64::from(next))
        );
        next += i32::try_from(batch.next_offset() - batch.header().base_offset)?;
    }
    let copies = fetch_all(&target, &to, &budget).await;

    let bodies = |batches: &[RawBatch]| batches.iter().map(RawBatch::body).collect::<Vec<_>>();
    assert!(batches.len() > 1, "one batch proves little");
    assert_eq!(next, 3_000);
    assert_eq!(bodies(&copies), bodies(&batches));
    assert!(budget.used() > 3_000_000, "{}", budget.used());
    drop((batches, copies));
    assert_eq!(budget.used(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn joined_batches_are_taken_and_hold_what_their_parts_held() -> Result<()> {
    let pair = shared_pair()?;
    let target = client(&pair.target);
    let budget = MemoryBudget::new(64 << 20);
    let record = |number: i64| Record {
        timestamp: 1_700_000_000_000 + number * 977 % 100_000,
        key: (number % 3 > 0).then(|| number.to_string().into()),
        value: Some("value ".repeat(number as usize % 40).into()),
        headers: vec![("header".into(), None)],
        ..Record::default()
    };
    for codec in Compression::ALL {
        let to = TopicPartition::new(
            make_topic(&target, &format!("joined-{codec}"), 1, 1).await,
            0,
        );
        let all: Vec<Record> = (0..1_000).map(record).collect();
        let small: Vec<RawBatch> = all
            .chunks(7)
            .map(|part| encode(part, codec).unwrap().unwrap())
            .collect();

        let joined = join(&small, 1 << 20, &budget).unwrap();
        let produced = send(&target, &to, &joined.batch, 0).await;
        let copies = fetch_all(&target, &to, &budget).await;

        assert_eq!(joined.count, small.len());
        assert_eq!(
            (produced.error, produced.base_offset),
            (ErrorCode::NONE, 0),
            "{codec}: {produced:?}"
        );
        let [copy] = &copies[..] else {
            panic!("{codec}: {copies:?}");
        };
        assert_eq!(copy.body(), joined.batch.body(), "{codec}");
        let mut read = decode(copy, DecodeLimits::default())?;
        read.iter_mut().for_each(|record| record.offset = 0);
        assert_eq!(read, all, "{codec}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_producer_id_makes_a_send_a_compare_and_swap() -> Result<()> {
    let pair = shared_pair()?;
    let (source, target) = (client(&pair.source), client(&pair.target));
    let from = TopicPartition::new(make_topic(&source, "swap-from", 1, 1).await, 0);
    let to = TopicPartition::new(make_topic(&target, "swap-to", 1, 1).await, 0);
    append(
        &source,
        &from.topic,
        &records(10, 10),
        1_700_000_000_000,
        &mut retry(),
        while_retriable,
    )
    .await?;
    let budget = MemoryBudget::new(64 << 20);
    let batch = fetch_all(&source, &from, &budget).await.remove(0);

    let first = send(&target, &to, &batch, 0).await;
    let repeated = send(&target, &to, &batch, 0).await;
    let ahead = send(&target, &to, &batch, 20).await;
    let producers = describe_producers(&target, [to.clone()]).await;

    assert_eq!((first.error, first.base_offset), (ErrorCode::NONE, 0));
    assert_eq!((repeated.error, repeated.base_offset), (ErrorCode::NONE, 0));
    assert_eq!(ahead.error, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    let [producer] = &producers[&to].as_ref().unwrap()[..] else {
        panic!("{producers:?}");
    };
    assert_eq!(
        (producer.producer_id, producer.last_sequence),
        (PRODUCER_ID, 9)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_topic_is_read_whole_as_another_client_reads_it() -> Result<()> {
    let cluster = &shared_pair()?.source;
    let client = client(cluster);
    let topic = make_topic(&client, "log-small", 3, 1).await;
    let mut written = records(2_000, 1_000);
    written.push(("key-7".into(), None));

    append(
        &client,
        &topic,
        &written,
        1_700_000_000_000,
        &mut retry(),
        while_retriable,
    )
    .await?;
    let read = read_to_end(&client, &topic, &mut retry(), while_retriable).await?;

    let mut ours: Vec<_> = read
        .iter()
        .map(|record| {
            (
                record.partition,
                record.offset,
                record.key.clone(),
                record.value.clone(),
            )
        })
        .collect();
    let mut theirs: Vec<_> = dump_topic(&cluster.bootstrap(), &topic)?
        .into_iter()
        .map(|record| {
            let (key, value) = (record.key.map(Bytes::from), record.value.map(Bytes::from));
            (record.partition, record.offset, key, value)
        })
        .collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours.len(), written.len());
    assert!(ours == theirs, "the two readings differ");
    for (partition, _, key, _) in ours {
        assert_eq!(partition, partition_of_key(&key.unwrap(), 3));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_not_there_is_not_read_as_empty() -> Result<()> {
    let client = client(&shared_pair()?.source);
    let topic = Topic::from("log-missing");
    let give_up = |_: &_| twinlog_kafka::retry::Verdict::GiveUp;

    let read = read_to_end(&client, &topic, &mut retry(), give_up).await;

    assert!(read.is_err(), "{read:?}");
    Ok(())
}
