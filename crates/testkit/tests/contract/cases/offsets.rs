//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

use anyhow::Result;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    BrokerId, DeleteRecordsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, TopicName,
};
use testkit::wire::{Wire, text};

use crate::batch::{Batch, Record};
use crate::lab::{Ask, Bench, Lab, expect};
use crate::now_ms;

super::cases! {
    earliest_and_latest_are_the_ends_of_the_log,
    offsets_are_found_by_time,
    the_largest_timestamp_is_found,
    a_log_without_such_a_time_answers_minus_one,
    unknown_places_are_refused,
    only_the_leader_tells_offsets,
    epochs_tell_where_they_ended,
    records_are_deleted_up_to_an_offset,
    records_are_deleted_up_to_the_high_watermark,
    nothing_is_deleted_beyond_the_end_or_from_compacted_topics,
}

async fn earliest_and_latest_are_the_ends_of_the_log(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(3)]).await?;

    for (timestamp, expected) in [(-2, 0), (-1, 3), (-4, 0)] {
        let answer = if timestamp == -4 {
            bench_offset_v8(&mut bench, timestamp).await?
        } else {
            let answer = bench.offset(timestamp).await?;
            (answer.offset, answer.timestamp, answer.leader_epoch)
        };
        expect("offset, timestamp, epoch", answer, (expected, -1, 0))?;
    }
    expect(
        "the debugging replica",
        bench.offset_as(-2, 0, -1).await?.offset,
        3,
    )
}

async fn bench_offset_v8(bench: &mut Bench, timestamp: i64) -> Result<(i64, i64, i32)> {
    let response = bench
        .wire
        .call(&list(&bench.topic, 0, timestamp), 8)
        .await?;
    let part = &response.topics[0].partitions[0];
    Ok((part.offset, part.timestamp, part.leader_epoch))
}

fn list(topic: &TopicName, index: i32, timestamp: i64) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(index)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(topic.clone())
        .with_partitions(vec![partition]);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic])
}

/// Records of one batch, `after_ms` after `base`.
fn timed(base: i64, after_ms: &[i64]) -> Batch {
    let record = |after: &i64| Record {
        after_ms: *after,
        ..Record::new("k", "v")
    };
    Batch::with(after_ms.iter().map(record).collect()).at(base)
}

async fn offsets_are_found_by_time(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let base = now_ms() - 100_000;
    bench
        .fill(&[timed(base, &[0, 100, 50]), timed(base + 200, &[0]).codec(4)])
        .await?;

    for (after, expected) in [(0, (0, 0)), (1, (1, 100)), (60, (1, 100)), (101, (3, 200))] {
        let answer = bench.offset(base + after).await?;
        let found = (answer.offset, answer.timestamp - base);
        expect(&format!("{after} ms after the first"), found, expected)?;
    }
    Ok(())
}

async fn the_largest_timestamp_is_found(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let base = now_ms() - 100_000;
    bench
        .fill(&[timed(base, &[0, 100, 50, 100]), timed(base + 50, &[0])])
        .await?;

    let answer = bench.offset(-3).await?;

    expect(
        "offset and time",
        (answer.offset, answer.timestamp - base),
        (1, 100),
    )
}

async fn a_log_without_such_a_time_answers_minus_one(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    expect("max of an empty log", bench.offset(-3).await?.offset, -1)?;
    bench.fill(&[Batch::of(1)]).await?;

    let answer = bench.offset(now_ms() + 1_000_000).await?;

    let found = (
        answer.error_code,
        answer.offset,
        answer.timestamp,
        answer.leader_epoch,
    );
    expect("code, offset, time, epoch", found, (0, -1, -1, -1))
}

async fn unknown_places_are_refused(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;

    let partition = bench.wire.call(&list(&bench.topic, 9, -1), 7).await?;
    let topic = bench
        .wire
        .call(&list(&TopicName(text("no-such-topic")), 0, -1), 7)
        .await?;

    expect("partition", partition.topics[0].partitions[0].error_code, 3)?;
    expect("offset", partition.topics[0].partitions[0].offset, -1)?;
    expect("topic", topic.topics[0].partitions[0].error_code, 3)
}

async fn only_the_leader_tells_offsets(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut other = lab.other_broker(&bench).await?;

    let refused = other.call(&list(&bench.topic, 0, -1), 7).await?;

    expect("code", refused.topics[0].partitions[0].error_code, 6)
}

async fn epochs_tell_where_they_ended(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(4)]).await?;
    let request = |epoch| {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(-1)
            .with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(bench.topic.clone())
            .with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(vec![topic])
    };

    for (epoch, expected) in [(0, (0, 0, 4)), (12, (0, -1, -1)), (-1, (0, -1, -1))] {
        let mut wire = Wire::connect(&bench.leader_address).await?;
        let response = wire.call(&request(epoch), 4).await?;
        let part = &response.topics[0].partitions[0];
        let found = (part.error_code, part.leader_epoch, part.end_offset);
        expect(&format!("epoch {epoch}"), found, expected)?;
    }
    Ok(())
}

/// DeleteRecords of partition 0: the code and the low watermark.
async fn delete(bench: &mut Bench, offset: i64) -> Result<(i16, i64)> {
    let partition = DeleteRecordsPartition::default().with_offset(offset);
    let topic = DeleteRecordsTopic::default()
        .with_name(bench.topic.clone())
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000);
    let response = bench.wire.call(&request, 2).await?;
    let part = &response.topics[0].partitions[0];
    Ok((part.error_code, part.low_watermark))
}

async fn records_are_deleted_up_to_an_offset(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(3), Batch::of(3)]).await?;

    expect("DeleteRecords", delete(&mut bench, 4).await?, (0, 4))?;

    expect("earliest", bench.offset(-2).await?.offset, 4)?;
    expect(
        "below the start",
        bench.fetch(Ask::from(3)).await?.error_code,
        1,
    )?;
    let batches = bench.batches(4).await?;
    expect("the batch that holds the start", batches[0].base_offset, 3)?;
    expect("a lower offset", delete(&mut bench, 2).await?, (0, 4))
}

async fn records_are_deleted_up_to_the_high_watermark(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(3)]).await?;

    expect("DeleteRecords", delete(&mut bench, -1).await?, (0, 3))?;

    expect("earliest", bench.offset(-2).await?.offset, 3)?;
    expect("next", bench.produce(&Batch::of(1)).await?, (0, 3))
}

async fn nothing_is_deleted_beyond_the_end_or_from_compacted_topics(lab: &Lab) -> Result<()> {
    let mut plain = lab.bench(&[]).await?;
    let mut compacted = lab.bench(&[("cleanup.policy", "compact")]).await?;
    let mut both = lab.bench(&[("cleanup.policy", "compact,delete")]).await?;
    for bench in [&mut plain, &mut compacted, &mut both] {
        bench.fill(&[Batch::of(3)]).await?;
    }

    expect("beyond the end", delete(&mut plain, 4).await?, (1, -1))?;
    expect("compact", delete(&mut compacted, 1).await?, (44, -1))?;
    expect("compact,delete", delete(&mut both, 1).await?, (0, 1))
}
