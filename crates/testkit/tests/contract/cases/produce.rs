//! Produce: what is stored as it was sent, and what is refused.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, TopicName};
use testkit::wire::text;
use uuid::Uuid;

use crate::batch::{Batch, HEADER_BYTES, Record};
use crate::lab::{Bench, Lab, expect, produce_request};
use crate::now_ms;

super::cases! {
    every_codec_is_stored_as_it_was_sent,
    malformed_batches_are_refused,
    inner_offsets_are_looked_at_in_compressed_batches_only,
    the_size_limit_is_the_whole_batch,
    a_batch_larger_than_a_segment_is_refused,
    a_compacted_topic_needs_keys,
    timestamps_have_limits,
    append_time_is_set_by_the_broker,
    odd_but_harmless_fields_are_taken,
    another_compression_type_recompresses,
    the_same_compression_type_keeps_the_bytes,
    acks_are_minus_one_zero_or_one,
    a_failed_produce_without_acks_closes_the_connection,
    unknown_places_are_refused_one_by_one,
    topics_are_named_by_id_since_version_13,
    zstd_needs_version_7,
    only_the_leader_takes_records,
}

async fn every_codec_is_stored_as_it_was_sent(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    for codec in 0..5 {
        let sent = Batch::of(10)
            .codec(codec)
            .by((1 << 61, 3), i32::from(codec) * 10);
        let (code, base) = bench.produce(&sent).await?;
        expect("Produce", (code, base), (0, i64::from(codec) * 10))?;

        let stored = bench
            .batches(base)
            .await?
            .into_iter()
            .next()
            .context("the batch")?;

        expect("base offset", stored.base_offset, base)?;
        expect("leader epoch", stored.leader_epoch, 0)?;
        ensure!(stored.crc_fits, "codec {codec}: the checksum fits");
        expect(
            "all from the magic on",
            stored.bytes.slice(16..),
            sent.bytes().slice(16..),
        )?;
    }
    Ok(())
}

/// Sends each batch, and reports all whose code is another one.
async fn expect_codes(bench: &mut Bench, rows: Vec<(&str, Bytes, i16)>) -> Result<()> {
    let mut wrong = Vec::new();
    for (what, bytes, expected) in rows {
        let code = bench.send(Some(bytes)).await?.error_code;
        if code != expected {
            wrong.push(format!("{what}: {code}, not {expected}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

async fn malformed_batches_are_refused(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let one = || Batch::of(1);
    let change = |change: fn(&mut Batch)| Batch::of(3).change(change).bytes();
    let good = one().bytes();
    let broken = |at: usize| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    let with_magic = |magic| {
        let mut bytes = good.to_vec();
        bytes[16] = magic;
        Bytes::from(bytes)
    };
    let and = |more: &[u8]| Bytes::from([&good[..], more].concat());
    let rows = vec![
        ("base offset 1", change(|b| b.base_offset = 1), 87),
        (
            "last offset delta 999 of 3",
            change(|b| b.last_offset_delta = Some(999)),
            87,
        ),
        (
            "last offset delta 0 of 3",
            change(|b| b.last_offset_delta = Some(0)),
            87,
        ),
        (
            "count and delta beyond the records",
            { change(|b| (b.count, b.last_offset_delta) = (Some(1000), Some(999))) },
            87,
        ),
        (
            "count and delta below the records",
            { change(|b| (b.count, b.last_offset_delta) = (Some(2), Some(1))) },
            87,
        ),
        ("count 0", change(|b| b.count = Some(0)), 87),
        ("count -1", change(|b| b.count = Some(-1)), 87),
        ("empty", Batch::with(Vec::new()).bytes(), 87),
        ("control", change(|b| b.attributes = 1 << 5), 87),
        (
            "a producer without a sequence",
            change(|b| b.producer = (5, 0)),
            87,
        ),
        ("two batches", and(&good), 87),
        ("a second batch of length zero", and(&[0; 70]), 2),
        ("a cut batch", good.slice(..good.len() - 1), 87),
        ("nothing", Bytes::new(), 87),
        ("magic 1", with_magic(1), 87),
        ("a wrong checksum", broken(good.len() - 3), 2),
        ("a changed header field", broken(40), 2),
    ];
    expect_codes(&mut bench, rows).await?;
    expect("log end", bench.offset(-1).await?.offset, 0)?;
    let rows = vec![
        ("five more bytes", and(&[0; 5]), 0),
        ("a second batch that is cut", and(&good[..70]), 0),
    ];
    expect_codes(&mut bench, rows).await?;
    let sizes: Vec<usize> = bench
        .batches(0)
        .await?
        .iter()
        .map(|b| b.bytes.len())
        .collect();
    expect(
        "what follows a batch is not stored",
        sizes,
        vec![good.len(); 2],
    )
}

async fn inner_offsets_are_looked_at_in_compressed_batches_only(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let holes = |codec| {
        let mut batch = Batch::of(3).codec(codec);
        for (record, delta) in batch.records.iter_mut().zip([0, 2, 5]) {
            record.delta = Some(delta);
        }
        batch.bytes()
    };

    let rows = vec![
        ("zstd", holes(4), -1),
        ("lz4", holes(3), -1),
        ("none", holes(0), 0),
    ];

    expect_codes(&mut bench, rows).await
}

async fn the_size_limit_is_the_whole_batch(lab: &Lab) -> Result<()> {
    let batch = Batch::sized(2_000);
    let size = batch.bytes().len();
    let limit = (size - 1).to_string();
    let mut exact = lab
        .bench(&[("max.message.bytes", &size.to_string())])
        .await?;
    let mut small = lab.bench(&[("max.message.bytes", &limit)]).await?;

    expect("just large enough", exact.produce(&batch).await?.0, 0)?;
    expect("one byte over", small.produce(&batch).await?.0, 10)?;
    expect("log end", small.offset(-1).await?.offset, 0)
}

async fn a_batch_larger_than_a_segment_is_refused(lab: &Lab) -> Result<()> {
    let settings = [
        ("segment.bytes", "1048576"),
        ("max.message.bytes", "3000000"),
    ];
    let mut bench = lab.bench(&settings).await?;

    expect("code", bench.produce(&Batch::sized(1_500_000)).await?.0, 18)
}

async fn a_compacted_topic_needs_keys(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[("cleanup.policy", "compact")]).await?;
    let keyless = Record {
        key: None,
        ..Record::new("", "v")
    };
    let mixed = Batch::with(vec![Record::new("a", "v"), keyless.clone(), keyless]);

    let refused = bench.send(Some(mixed.bytes())).await?;

    expect("code", refused.error_code, 87)?;
    let at: Vec<i32> = refused
        .record_errors
        .iter()
        .map(|error| error.batch_index)
        .collect();
    expect("records at fault", at, vec![1, 2])?;
    expect(
        "an empty key",
        bench
            .produce(&Batch::with(vec![Record::new("", "v")]))
            .await?
            .0,
        0,
    )
}

async fn timestamps_have_limits(lab: &Lab) -> Result<()> {
    let mut bench = lab
        .bench(&[("message.timestamp.before.max.ms", "60000")])
        .await?;
    let now = now_ms();
    let at = |timestamp| Batch::of(1).at(timestamp).bytes();

    let rows = vec![
        ("now", at(now), 0),
        ("two hours ahead", at(now + 7_200_000), 32),
        ("half an hour ahead", at(now + 1_800_000), 0),
        ("ten minutes ago", at(now - 600_000), 32),
        ("no timestamp", at(-1), 0),
    ];

    expect_codes(&mut bench, rows).await
}

async fn append_time_is_set_by_the_broker(lab: &Lab) -> Result<()> {
    let mut by_broker = lab
        .bench(&[("message.timestamp.type", "LogAppendTime")])
        .await?;
    let mut by_client = lab.bench(&[]).await?;
    let before = now_ms();
    let flagged = || Batch::of(2).change(|batch| batch.attributes = 1 << 3);

    let answer = by_broker.send(Some(Batch::of(2).at(1_000).bytes())).await?;
    let stored = by_broker.batches(0).await?.remove(0);

    expect("code", answer.error_code, 0)?;
    ensure!(
        answer.log_append_time_ms >= before - 1_000,
        "the answer holds the append time"
    );
    expect(
        "max timestamp",
        stored.max_timestamp,
        answer.log_append_time_ms,
    )?;
    expect("base timestamp", stored.base_timestamp, 1_000)?;
    expect("the bit", stored.attributes & 1 << 3, 1 << 3)?;
    ensure!(stored.crc_fits, "the checksum fits");
    expect(
        "flagged by a client",
        by_broker.produce(&flagged()).await?.0,
        32,
    )?;
    let answer = by_client.send(Some(flagged().bytes())).await?;
    expect("flagged in a CreateTime topic", answer.error_code, 0)?;
    expect(
        "append time of a CreateTime topic",
        answer.log_append_time_ms,
        -1,
    )?;
    expect(
        "its bit",
        by_client.batches(0).await?[0].attributes & 1 << 3,
        0,
    )
}

async fn odd_but_harmless_fields_are_taken(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let now = now_ms();
    let rows = vec![
        (
            "an invented producer",
            Batch::of(1).by((1 << 61, 7), 12_345).bytes(),
            0,
        ),
        (
            "leader epoch 77",
            Batch::of(1).change(|b| b.leader_epoch = 77).bytes(),
            0,
        ),
        (
            "the delete horizon bit",
            Batch::of(1).change(|b| b.attributes = 0x40).bytes(),
            0,
        ),
        (
            "unused bits",
            Batch::of(1).change(|b| b.attributes = 0x7f80).bytes(),
            0,
        ),
        (
            "a negative producer",
            Batch::of(1).by((-9, 3), 4).bytes(),
            0,
        ),
        (
            "a wrong max timestamp",
            Batch::of(1)
                .at(now)
                .change(|b| b.max_timestamp = Some(5))
                .bytes(),
            0,
        ),
    ];

    expect_codes(&mut bench, rows).await?;

    let stored = bench.batches(0).await?;
    expect("leader epoch", stored[1].leader_epoch, 0)?;
    expect("delete horizon bit", stored[2].attributes, 0x40)?;
    expect("unused bits", stored[3].attributes, 0x7f80)?;
    expect("max timestamp", stored[5].max_timestamp, now)?;
    ensure!(
        stored.iter().all(|batch| batch.crc_fits),
        "the checksums fit"
    );
    Ok(())
}

async fn another_compression_type_recompresses(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[("compression.type", "gzip")]).await?;
    let sent = Batch::of(5).codec(4);

    bench.fill(&[Batch::of(1), sent.clone()]).await?;

    let stored = bench.batches(0).await?;
    let shape: Vec<_> = stored
        .iter()
        .map(|b| (b.base_offset, b.attributes, b.count))
        .collect();
    expect("offset, codec, count", shape, vec![(0, 1, 1), (1, 1, 5)])?;
    expect(
        "base timestamp",
        stored[1].base_timestamp,
        sent.base_timestamp,
    )?;
    ensure!(
        stored.iter().all(|batch| batch.crc_fits),
        "the checksums fit"
    );
    Ok(())
}

async fn the_same_compression_type_keeps_the_bytes(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[("compression.type", "zstd")]).await?;
    let sent = Batch::of(5).codec(4);

    bench.fill(std::slice::from_ref(&sent)).await?;

    let stored = bench.batches(0).await?.remove(0);
    expect(
        "the records",
        stored.bytes.slice(HEADER_BYTES..),
        sent.bytes().slice(HEADER_BYTES..),
    )
}

async fn acks_are_minus_one_zero_or_one(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let request = produce_request(&bench.topic, Some(Batch::of(1).bytes()));

    for (acks, expected) in [(1, 0), (-1, 0), (2, 21), (-2, 21)] {
        let answer = bench
            .send_request(&request.clone().with_acks(acks), 9)
            .await?;
        ensure!(
            answer.error_code == expected,
            "acks {acks}: {}",
            answer.error_code
        );
    }
    bench.wire.send(&request.with_acks(0), 9).await?;
    // The answer to the next request shows that the one without acks had none.
    expect("log end", bench.offset(-1).await?.offset, 3)
}

async fn a_failed_produce_without_acks_closes_the_connection(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let request = produce_request(
        &bench.topic,
        Some(Batch::of(1).change(|b| b.base_offset = 1).bytes()),
    );

    bench.wire.send(&request.with_acks(0), 9).await?;

    bench.wire.closed().await
}

async fn unknown_places_are_refused_one_by_one(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let part = |index| {
        let records = Some(Batch::of(1).bytes());
        PartitionProduceData::default()
            .with_index(index)
            .with_records(records)
    };
    let topic = |name: TopicName, parts| {
        TopicProduceData::default()
            .with_name(name)
            .with_partition_data(parts)
    };
    let topics = vec![
        topic(bench.topic.clone(), vec![part(0), part(7)]),
        topic(TopicName(text("no-such-topic")), vec![part(0)]),
    ];
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(10_000);

    let response = bench.wire.call(&request.with_topic_data(topics), 9).await?;

    let parts = response.responses.iter().flat_map(|topic| {
        topic
            .partition_responses
            .iter()
            .map(|p| (topic.name.to_string(), p.index, p.error_code))
    });
    let mut codes: Vec<_> = parts.collect();
    codes.sort();
    let own = bench.topic.to_string();
    let expected = vec![
        (own.clone(), 0, 0),
        (own, 7, 3),
        ("no-such-topic".to_owned(), 0, 3),
    ];
    expect("codes", codes, expected)
}

async fn topics_are_named_by_id_since_version_13(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let request = |id| {
        let mut request = produce_request(&TopicName::default(), Some(Batch::of(1).bytes()));
        request.topic_data[0].topic_id = id;
        request
    };

    let known = bench.send_request(&request(bench.id), 13).await?;
    let unknown = bench
        .send_request(&request(Uuid::from_u128(42)), 13)
        .await?;

    expect("known id", known.error_code, 0)?;
    expect("unknown id", unknown.error_code, 100)
}

async fn zstd_needs_version_7(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let request = produce_request(&bench.topic, Some(Batch::of(1).codec(4).bytes()));

    expect(
        "version 6",
        bench.send_request(&request, 6).await?.error_code,
        76,
    )?;
    expect(
        "version 7",
        bench.send_request(&request, 7).await?.error_code,
        0,
    )
}

async fn only_the_leader_takes_records(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut other = lab.other_broker(&bench).await?;
    let request = produce_request(&bench.topic, Some(Batch::of(1).bytes()));

    let response = other.call(&request, 10).await?;

    let part = &response.responses[0].partition_responses[0];
    expect("code", part.error_code, 6)?;
    expect(
        "current leader",
        part.current_leader.leader_id.0,
        bench.leader_id,
    )?;
    let endpoint = response
        .node_endpoints
        .first()
        .context("the leader's address")?;
    let address = format!("{}:{}", &*endpoint.host, endpoint.port);
    expect("the leader's address", address, bench.leader_address)
}
