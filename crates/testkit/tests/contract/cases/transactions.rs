//! Transactions: markers, isolation, fencing.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic,
};
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, EndTxnResponse, FindCoordinatorRequest,
    InitProducerIdRequest, ProducerId, TransactionalId, WriteTxnMarkersRequest,
};
use testkit::wire::{Wire, text};

use super::idempotence::producers;
use crate::batch::{Batch, read};
use crate::lab::{Ask, Bench, Lab, expect, produce_request};

super::cases! {
    an_empty_transaction_adds_one_marker,
    a_version_5_end_bumps_the_epoch,
    what_was_rolled_back_is_listed,
    an_open_transaction_holds_back_read_committed,
    transactional_batches_need_their_transaction,
    produce_version_12_adds_the_partition,
    a_plain_batch_does_not_fit_into_a_transaction,
    a_new_owner_rolls_back_and_fences,
    ending_nothing_is_refused,
    markers_are_written_without_the_coordinator,
    a_marker_alone_makes_the_next_sequence_zero,
    old_coordinators_and_producers_are_fenced,
    unknown_partitions_keep_the_others_out,
}

const CONCURRENT_TRANSACTIONS: i16 = 51;
const NOT_READY: [i16; 4] = [CONCURRENT_TRANSACTIONS, 14, 15, 16];
const COORDINATOR_TRIES: usize = 600;

/// A transactional producer and its coordinator.
struct Producer {
    id: TransactionalId,
    producer: (i64, i16),
    coordinator: Wire,
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

impl Producer {
    async fn new(lab: &Lab) -> Result<Self> {
        let id = TransactionalId(text(format!("id-{}", &*lab.new_name())));
        let coordinator = find_coordinator(lab, &id).await?;
        let mut producer = Producer {
            id,
            producer: (-1, -1),
            coordinator,
        };
        producer.init().await?;
        Ok(producer)
    }

    /// Takes the transactional id over.
    async fn init(&mut self) -> Result<()> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(self.id.clone()))
            .with_transaction_timeout_ms(60_000);
        for _ in 0..COORDINATOR_TRIES {
            let response = self.coordinator.call(&request, 4).await?;
            if response.error_code == 0 {
                self.producer = (response.producer_id.0, response.producer_epoch);
                return Ok(());
            }
            ensure!(
                NOT_READY.contains(&response.error_code),
                "InitProducerId: {response:?}"
            );
            pause().await;
        }
        bail!("the coordinator stays busy")
    }

    /// Adds partitions of one topic; answers their codes.
    async fn add(&mut self, bench: &Bench, partitions: &[i32]) -> Result<Vec<i16>> {
        let topic = AddPartitionsToTxnTopic::default()
            .with_name(bench.topic.clone())
            .with_partitions(partitions.to_vec());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(self.id.clone())
            .with_v3_and_below_producer_id(ProducerId(self.producer.0))
            .with_v3_and_below_producer_epoch(self.producer.1)
            .with_v3_and_below_topics(vec![topic]);
        for _ in 0..COORDINATOR_TRIES {
            let response = self.coordinator.call(&request, 3).await?;
            let topic = response
                .results_by_topic_v3_and_below
                .first()
                .context("a topic")?;
            let mut parts = topic.results_by_partition.clone();
            parts.sort_by_key(|part| part.partition_index);
            let codes: Vec<i16> = parts.iter().map(|part| part.partition_error_code).collect();
            if !codes.contains(&CONCURRENT_TRANSACTIONS) {
                return Ok(codes);
            }
            pause().await;
        }
        bail!("the coordinator stays busy")
    }

    async fn add_partition(&mut self, bench: &Bench) -> Result<()> {
        expect("AddPartitionsToTxn", self.add(bench, &[0]).await?, vec![0])
    }

    async fn end(&mut self, committed: bool, version: i16) -> Result<EndTxnResponse> {
        let request = EndTxnRequest::default()
            .with_transactional_id(self.id.clone())
            .with_producer_id(ProducerId(self.producer.0))
            .with_producer_epoch(self.producer.1)
            .with_committed(committed);
        for _ in 0..COORDINATOR_TRIES {
            let response = self.coordinator.call(&request, version).await?;
            if response.error_code != CONCURRENT_TRANSACTIONS {
                return Ok(response);
            }
            pause().await;
        }
        bail!("the coordinator stays busy")
    }

    /// Ends the transaction in the old way, and waits until its marker is written.
    async fn finish(&mut self, bench: &mut Bench, committed: bool) -> Result<()> {
        let before = log_end(bench).await?;
        expect("EndTxn", self.end(committed, 3).await?.error_code, 0)?;
        until_end(bench, before + 1).await
    }

    fn batch(&self, count: usize, sequence: i32) -> Batch {
        Batch::of(count).by(self.producer, sequence).transactional()
    }

    async fn produce(&self, bench: &mut Bench, batch: &Batch, version: i16) -> Result<i16> {
        self.produce_as(Some(self.id.clone()), bench, batch.bytes(), version)
            .await
    }

    async fn produce_as(
        &self,
        id: Option<TransactionalId>,
        bench: &mut Bench,
        bytes: Bytes,
        version: i16,
    ) -> Result<i16> {
        let request = produce_request(&bench.topic, Some(bytes)).with_transactional_id(id);
        for _ in 0..COORDINATOR_TRIES {
            let code = bench.send_request(&request, version).await?.error_code;
            // The last transaction's markers may be on their way still.
            if !NOT_READY.contains(&code) {
                return Ok(code);
            }
            pause().await;
        }
        bail!("the coordinator stays busy")
    }
}

async fn find_coordinator(lab: &Lab, id: &TransactionalId) -> Result<Wire> {
    let mut wire = lab.wire().await?;
    let request = FindCoordinatorRequest::default()
        .with_key_type(1)
        .with_coordinator_keys(vec![id.0.clone()]);
    for _ in 0..COORDINATOR_TRIES {
        let response = wire.call(&request, 4).await?;
        let found = response.coordinators.first().context("a coordinator")?;
        if found.error_code == 0 {
            return Wire::connect(&format!("{}:{}", &*found.host, found.port)).await;
        }
        pause().await;
    }
    bail!("no coordinator is found")
}

async fn log_end(bench: &mut Bench) -> Result<i64> {
    Ok(bench.offset_as(-2, 0, -1).await?.offset)
}

async fn until_end(bench: &mut Bench, end: i64) -> Result<()> {
    for _ in 0..COORDINATOR_TRIES {
        if bench.offset(-1).await?.offset >= end {
            return expect("log end", log_end(bench).await?, end);
        }
        pause().await;
    }
    bail!("no marker is written")
}

async fn an_empty_transaction_adds_one_marker(lab: &Lab) -> Result<()> {
    for committed in [true, false] {
        let mut bench = lab.bench(&[]).await?;
        let mut producer = Producer::new(lab).await?;
        producer.add_partition(&bench).await?;

        producer.finish(&mut bench, committed).await?;

        let marker = bench
            .batches(0)
            .await?
            .into_iter()
            .next()
            .context("the marker")?;
        expect("its size", marker.bytes.len(), 78)?;
        expect("its attributes", marker.attributes, 0x30)?;
        expect("its outcome", marker.marker()?.0, committed)?;
        expect("its producer", marker.producer, producer.producer)?;
        expect(
            "its sequence and count",
            (marker.base_sequence, marker.count),
            (-1, 1),
        )?;
        expect(
            "last stable offset",
            bench.offset_as(-1, 1, -1).await?.offset,
            1,
        )?;
    }
    Ok(())
}

async fn a_version_5_end_bumps_the_epoch(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;
    let (id, epoch) = producer.producer;
    producer.add_partition(&bench).await?;

    let ended = producer.end(true, 5).await?;
    let again = producer.end(true, 5).await?;

    expect("code", ended.error_code, 0)?;
    expect(
        "producer from now on",
        (ended.producer_id.0, ended.producer_epoch),
        (id, epoch + 1),
    )?;
    until_end(&mut bench, 1).await?;
    expect(
        "the marker's epoch",
        bench.batches(0).await?[0].producer,
        (id, epoch + 1),
    )?;
    let repeated = (again.error_code, again.producer_id.0, again.producer_epoch);
    expect("a repeated request", repeated, (0, id, epoch + 1))?;
    producer.producer.1 = epoch + 1;
    let free = producer.end(false, 5).await?;
    expect(
        "abort of nothing",
        (free.error_code, free.producer_epoch),
        (0, epoch + 2),
    )?;
    expect("log end", log_end(&mut bench).await?, 1)
}

async fn what_was_rolled_back_is_listed(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;
    bench.fill(&[Batch::of(1)]).await?;
    for (sequence, committed) in [(0, true), (2, false)] {
        producer.add_partition(&bench).await?;
        let batch = producer.batch(2, sequence);
        expect(
            "Produce",
            producer.produce(&mut bench, &batch, 11).await?,
            0,
        )?;
        producer.finish(&mut bench, committed).await?;
    }

    let committed = bench
        .fetch(Ask {
            committed: true,
            ..Ask::from(0)
        })
        .await?;
    let plain = bench.fetch(Ask::from(0)).await?;
    let later = bench
        .fetch(Ask {
            committed: true,
            ..Ask::from(7)
        })
        .await?;

    let aborted = committed.aborted_transactions.context("the list")?;
    expect("how many", aborted.len(), 1)?;
    let first = (aborted[0].producer_id.0, aborted[0].first_offset);
    expect("producer and first offset", first, (producer.producer.0, 4))?;
    let (batches, _) = read(&committed.records.unwrap_or_default());
    let shape: Vec<_> = batches
        .iter()
        .map(|b| (b.base_offset, b.is_control()))
        .collect();
    let expected = vec![(0, false), (1, false), (3, true), (4, false), (6, true)];
    expect("batches", shape, expected)?;
    ensure!(
        plain
            .aborted_transactions
            .is_none_or(|list| list.is_empty()),
        "only for committed"
    );
    expect(
        "behind it",
        later.aborted_transactions.unwrap_or_default().len(),
        0,
    )
}

async fn an_open_transaction_holds_back_read_committed(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;
    bench.fill(&[Batch::of(3)]).await?;
    producer.add_partition(&bench).await?;
    expect(
        "Produce",
        producer
            .produce(&mut bench, &producer.batch(2, 0), 11)
            .await?,
        0,
    )?;
    bench.fill(&[Batch::of(1)]).await?;

    let committed = bench
        .fetch(Ask {
            committed: true,
            ..Ask::from(0)
        })
        .await?;
    let all = bench.fetch(Ask::from(0)).await?;

    let levels = (committed.last_stable_offset, committed.high_watermark);
    expect("last stable offset and high watermark", levels, (3, 6))?;
    expect(
        "committed batches",
        read(&committed.records.unwrap_or_default()).0.len(),
        1,
    )?;
    expect(
        "all batches",
        read(&all.records.unwrap_or_default()).0.len(),
        3,
    )?;
    expect(
        "latest for read_committed",
        bench.offset_as(-1, 1, -1).await?.offset,
        3,
    )?;
    let open = producers(&mut bench).await?[0].current_txn_start_offset;
    expect("DescribeProducers", open, 3)?;
    producer.finish(&mut bench, true).await?;
    expect("after the end", bench.offset_as(-1, 1, -1).await?.offset, 7)
}

async fn transactional_batches_need_their_transaction(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let producer = Producer::new(lab).await?;
    let batch = producer.batch(1, 0).bytes();
    let other = Some(TransactionalId(text(format!(
        "unknown-{}",
        &*lab.new_name()
    ))));
    let own = Some(producer.id.clone());

    let without_id = producer
        .produce_as(None, &mut bench, batch.clone(), 11)
        .await?;
    let unknown_id = producer
        .produce_as(other, &mut bench, batch.clone(), 11)
        .await?;
    let not_added_before_11 = producer
        .produce_as(own.clone(), &mut bench, batch.clone(), 10)
        .await?;
    let not_added = producer.produce_as(own, &mut bench, batch, 11).await?;

    expect("without an id", without_id, 53)?;
    expect("with an unknown id", unknown_id, 49)?;
    expect(
        "not part of the transaction, before 11",
        not_added_before_11,
        48,
    )?;
    expect("not part of the transaction", not_added, 120)?;
    expect("log end", log_end(&mut bench).await?, 0)
}

async fn produce_version_12_adds_the_partition(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;

    expect(
        "Produce",
        producer
            .produce(&mut bench, &producer.batch(2, 0), 12)
            .await?,
        0,
    )?;
    let ended = producer.end(true, 5).await?;

    expect("EndTxn", ended.error_code, 0)?;
    until_end(&mut bench, 3).await
}

async fn a_plain_batch_does_not_fit_into_a_transaction(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;
    producer.add_partition(&bench).await?;
    expect(
        "Produce",
        producer
            .produce(&mut bench, &producer.batch(1, 0), 11)
            .await?,
        0,
    )?;

    let plain = Batch::of(1).by(producer.producer, 1);

    expect(
        "plain batch",
        producer.produce(&mut bench, &plain, 11).await?,
        48,
    )
}

async fn a_new_owner_rolls_back_and_fences(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;
    let old = producer.producer;
    producer.add_partition(&bench).await?;
    expect(
        "Produce",
        producer
            .produce(&mut bench, &producer.batch(1, 0), 11)
            .await?,
        0,
    )?;

    producer.init().await?;

    until_end(&mut bench, 2).await?;
    expect("rolled back", bench.batches(1).await?[0].marker()?.0, false)?;
    ensure!(
        producer.producer.0 != old.0 || producer.producer.1 > old.1,
        "the epoch goes up"
    );
    producer.producer = old;
    let zombie = producer
        .produce(&mut bench, &producer.batch(1, 1), 11)
        .await?;
    expect("the old owner's batch", zombie, 47)?;
    expect(
        "the old owner's end",
        producer.end(true, 3).await?.error_code,
        90,
    )
}

async fn ending_nothing_is_refused(lab: &Lab) -> Result<()> {
    let mut producer = Producer::new(lab).await?;

    expect("version 3", producer.end(true, 3).await?.error_code, 48)?;
    expect("version 5", producer.end(true, 5).await?.error_code, 48)
}

/// WriteTxnMarkers to partition 0; answers the codes.
async fn mark(bench: &mut Bench, markers: &[((i64, i16), i32, bool)]) -> Result<Vec<i16>> {
    let markers = markers
        .iter()
        .map(|(producer, coordinator_epoch, committed)| {
            let topic = WritableTxnMarkerTopic::default()
                .with_name(bench.topic.clone())
                .with_partition_indexes(vec![0]);
            WritableTxnMarker::default()
                .with_producer_id(ProducerId(producer.0))
                .with_producer_epoch(producer.1)
                .with_coordinator_epoch(*coordinator_epoch)
                .with_transaction_result(*committed)
                .with_topics(vec![topic])
        });
    let request = WriteTxnMarkersRequest::default().with_markers(markers.collect());
    let response = bench.wire.call(&request, 1).await?;
    let topics = response.markers.iter().flat_map(|marker| &marker.topics);
    Ok(topics
        .flat_map(|topic| &topic.partitions)
        .map(|part| part.error_code)
        .collect())
}

const WRITER: (i64, i16) = (1 << 60, 0);

async fn markers_are_written_without_the_coordinator(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    bench.fill(&[Batch::of(2).by(WRITER, 0)]).await?;

    let codes = mark(&mut bench, &[(WRITER, 3, false), (WRITER, 3, false)]).await?;

    expect("one answer for the producer", codes, vec![0])?;
    expect("log end", log_end(&mut bench).await?, 4)?;
    let batches = bench.batches(2).await?;
    expect("the marker", batches[0].marker()?, (false, 3))?;
    let next = bench.produce(&Batch::of(1).by(WRITER, 2)).await?;
    expect("the sequence goes on", next, (0, 4))?;
    let producers = producers(&mut bench).await?;
    let state = (producers[0].last_sequence, producers[0].coordinator_epoch);
    expect("sequence and coordinator epoch", state, (2, 3))
}

async fn a_marker_alone_makes_the_next_sequence_zero(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;

    expect(
        "marker",
        mark(&mut bench, &[(WRITER, 0, true)]).await?,
        vec![0],
    )?;

    expect(
        "described",
        producers(&mut bench).await?[0].last_sequence,
        -1,
    )?;
    expect(
        "sequence 5",
        bench.produce(&Batch::of(1).by(WRITER, 5)).await?.0,
        45,
    )?;
    expect(
        "sequence 0",
        bench.produce(&Batch::of(1).by(WRITER, 0)).await?,
        (0, 1),
    )
}

async fn old_coordinators_and_producers_are_fenced(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench(&[]).await?;
    let with_epoch = |epoch| (WRITER.0, epoch);
    expect(
        "first",
        mark(&mut bench, &[(with_epoch(2), 5, true)]).await?,
        vec![0],
    )?;

    for (what, epoch, coordinator, expected) in [
        ("an older coordinator", 2, 4, 52),
        ("an older producer", 1, 5, 47),
        ("the same again", 2, 5, 0),
        ("a newer producer", 3, 5, 0),
    ] {
        let codes = mark(&mut bench, &[(with_epoch(epoch), coordinator, true)]).await?;
        expect(what, codes, vec![expected])?;
    }
    expect("log end", log_end(&mut bench).await?, 3)
}

async fn unknown_partitions_keep_the_others_out(lab: &Lab) -> Result<()> {
    let bench = lab.bench(&[]).await?;
    let mut producer = Producer::new(lab).await?;

    expect("codes", producer.add(&bench, &[0, 7]).await?, vec![55, 3])
}
