//! Sequences: what is recognised, what is out of order, and what is forgotten.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::{
    DeleteRecordsRequest, DescribeProducersRequest, InitProducerIdRequest,
};

use crate::batch::Batch;
use crate::lab::{Bench, Lab, expect};

super::cases! {
    the_last_five_batches_are_recognised_with_their_base_offset,
    only_the_next_sequence_is_taken,
    an_unknown_producer_begins_anywhere,
    epochs_only_go_up_and_begin_at_zero,
    sequences_wrap_to_zero,
    a_batch_that_wraps_is_recognised_too,
    the_producer_state_outlives_its_records,
    producers_are_described,
    producer_ids_are_handed_out,
}

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const ID_TRIES: usize = 200;
/// Outside of what brokers hand out.
const PRODUCER: i64 = 1 << 60;

fn batch(count: usize, epoch: i16, sequence: i32) -> Batch {
    Batch::of(count).by((PRODUCER, epoch), sequence)
}

async fn the_last_five_batches_are_recognised_with_their_base_offset(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let sent: Vec<Batch> = (0..6).map(|n| batch(2, 0, n * 2)).collect();
    bench.fill(&sent).await?;

    for (at, repeated) in sent.iter().enumerate().skip(1) {
        expect(
            "a repeated batch",
            bench.produce(repeated).await?,
            (0, at as i64 * 2),
        )?;
    }
    expect("the sixth last", bench.produce(&sent[0]).await?.0, 45)?;
    expect(
        "cut differently",
        bench.produce(&batch(1, 0, 10)).await?.0,
        45,
    )?;
    expect("log end", bench.offset(-1).await?.offset, 12)
}

async fn only_the_next_sequence_is_taken(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[batch(5, 0, 0)]).await?;

    expect("ahead", bench.produce(&batch(1, 0, 6)).await?.0, 45)?;
    expect("behind", bench.produce(&batch(1, 0, 4)).await?.0, 45)?;
    expect("next", bench.produce(&batch(1, 0, 5)).await?, (0, 5))
}

async fn an_unknown_producer_begins_anywhere(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;

    expect("first", bench.produce(&batch(3, 9, 1_000)).await?, (0, 0))?;
    expect("next", bench.produce(&batch(1, 9, 1_003)).await?, (0, 3))
}

async fn epochs_only_go_up_and_begin_at_zero(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[batch(1, 5, 0)]).await?;

    expect("lower epoch", bench.produce(&batch(1, 4, 1)).await?.0, 47)?;
    expect(
        "higher epoch, sequence 1",
        bench.produce(&batch(1, 6, 1)).await?.0,
        45,
    )?;
    expect(
        "higher epoch, sequence 0",
        bench.produce(&batch(1, 6, 0)).await?,
        (0, 1),
    )?;
    expect("the old epoch", bench.produce(&batch(1, 5, 1)).await?.0, 47)
}

async fn sequences_wrap_to_zero(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[batch(1, 0, i32::MAX)]).await?;

    expect("next", bench.produce(&batch(1, 0, 0)).await?, (0, 1))
}

async fn a_batch_that_wraps_is_recognised_too(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let wraps = batch(4, 0, i32::MAX - 1);
    bench.fill(std::slice::from_ref(&wraps)).await?;

    expect("repeated", bench.produce(&wraps).await?, (0, 0))?;
    expect("next", bench.produce(&batch(1, 0, 2)).await?, (0, 4))
}

async fn the_producer_state_outlives_its_records(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[batch(3, 0, 0)]).await?;
    let partition = DeleteRecordsPartition::default().with_offset(-1);
    let topic = DeleteRecordsTopic::default()
        .with_name(bench.topic.clone())
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000);

    bench.wire.call(&request, 2).await?;

    expect("out of order", bench.produce(&batch(1, 0, 7)).await?.0, 45)?;
    expect("next", bench.produce(&batch(1, 0, 3)).await?, (0, 3))
}

pub async fn producers(bench: &mut Bench) -> Result<Vec<ProducerState>> {
    let topic = TopicRequest::default()
        .with_name(bench.topic.clone())
        .with_partition_indexes(vec![0]);
    let request = DescribeProducersRequest::default().with_topics(vec![topic]);
    let response = bench.wire.call(&request, 0).await?;
    let partition = response.topics[0]
        .partitions
        .first()
        .context("the partition")?;
    expect("DescribeProducers", partition.error_code, 0)?;
    Ok(partition.active_producers.clone())
}

async fn producers_are_described(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let last = batch(4, 2, 10);
    bench.fill(&[batch(10, 2, 0), last.clone()]).await?;

    let producers = producers(&mut bench).await?;

    expect("how many", producers.len(), 1)?;
    let only = &producers[0];
    expect("id", only.producer_id.0, PRODUCER)?;
    expect(
        "epoch and last sequence",
        (only.producer_epoch, only.last_sequence),
        (2, 13),
    )?;
    expect("last timestamp", only.last_timestamp, last.base_timestamp)?;
    expect("coordinator epoch", only.coordinator_epoch, -1)?;
    expect("no transaction", only.current_txn_start_offset, -1)
}

async fn producer_ids_are_handed_out(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(1_000);

    let mut first = wire.call(&request, 4).await?;
    // A broker that has just started has to fetch a block of ids first.
    for _ in 0..ID_TRIES {
        if first.error_code != COORDINATOR_LOAD_IN_PROGRESS {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        first = wire.call(&request, 4).await?;
    }
    let second = wire.call(&request, 4).await?;

    expect("codes", (first.error_code, second.error_code), (0, 0))?;
    expect(
        "epochs",
        (first.producer_epoch, second.producer_epoch),
        (0, 0),
    )?;
    ensure!(first.producer_id != second.producer_id, "the ids differ");
    ensure!(first.producer_id.0 < PRODUCER, "the ids are small");
    Ok(())
}
