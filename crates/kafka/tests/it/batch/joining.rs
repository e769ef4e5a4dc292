//! Small batches joined: the same records in one batch.

use proptest::collection::vec;
use proptest::prelude::*;
use twinlog_kafka::batch::{
    Compression, DecodeLimits, HEADER_LEN, RawBatch, Record, decode, encode, join,
};
use twinlog_kafka::memory::MemoryBudget;

use super::properties::{codec, counted, records};
use super::single;

fn budget() -> MemoryBudget {
    MemoryBudget::new(16 << 20)
}

/// A batch as a source's log holds it: somewhere in the log, with flags of its own.
fn stored(records: &[Record], codec: Compression, base_offset: i64, flags: i16) -> RawBatch {
    let batch = encode(records, codec).unwrap().unwrap();
    let mut bytes = batch.bytes().to_vec();
    bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
    bytes[21..23].copy_from_slice(&(flags << 3 | i16::from(codec.id())).to_be_bytes());
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> RawBatch {
    let crc = crc_fast::crc32_iscsi(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    single(bytes.into())
}

fn decoded<'a>(batches: impl IntoIterator<Item = &'a RawBatch>) -> Vec<Record> {
    let all = batches
        .into_iter()
        .flat_map(|batch| decode(batch, DecodeLimits::default()).unwrap());
    counted(all.collect(), 0)
}

fn numbered(count: usize) -> Vec<RawBatch> {
    let batch = |offset: usize| {
        let record = Record {
            timestamp: 1_000,
            value: Some(offset.to_string().into()),
            ..Record::default()
        };
        stored(&[record], Compression::None, offset as i64, 0)
    };
    (0..count).map(batch).collect()
}

proptest! {
    #[test]
    fn a_joined_batch_holds_the_records_of_its_parts_in_order_and_nothing_else(
        parts in vec((records(1..20), 0..1_000i64, 0..4i16), 2..20),
        codec in codec(),
        size_max in 200..40_000usize,
    ) {
        let mut at = 0;
        let parts: Vec<RawBatch> = parts
            .into_iter()
            .map(|(records, gap, flags)| {
                let batch = stored(&records, codec, at + gap, flags);
                at = batch.next_offset();
                batch
            })
            .collect();

        let Some(joined) = join(&parts, size_max, &budget()) else {
            let both = parts[0].size() + parts[1].size() - HEADER_LEN;
            // Compression may make more of the whole than of its parts.
            prop_assert!(codec != Compression::None || both + 64 > size_max / 2);
            return Ok(());
        };

        prop_assert!(joined.count >= 2);
        prop_assert!(joined.batch.size() <= size_max);
        let batch = single(joined.batch.bytes().clone());
        prop_assert_eq!(&batch, &joined.batch);
        prop_assert_eq!(batch.verify_crc(), Ok(()));
        prop_assert!(batch.is_contiguous());
        prop_assert_eq!(batch.compression(), codec);
        let own = &parts[..joined.count];
        prop_assert_eq!(decoded([&batch]), decoded(own));
        let latest = own.iter().map(|part| part.header().max_timestamp).max();
        prop_assert_eq!(Some(batch.header().max_timestamp), latest);
        let producer = (batch.header().producer_id, batch.header().base_sequence);
        prop_assert_eq!(producer, (-1, -1));
        prop_assert!(!batch.is_transactional() && !batch.header().attributes.is_append_time());
    }

    /// The damage must not get a checksum that is right.
    #[test]
    fn a_damaged_batch_and_what_follows_it_is_left_out(
        damaged in 0..6usize,
        at in any::<prop::sample::Index>(),
        flipped in 1..=255u8,
    ) {
        let mut parts = numbered(6);
        let mut bytes = parts[damaged].bytes().to_vec();
        let body = bytes.len() - HEADER_LEN;
        bytes[HEADER_LEN..][at.index(body)] ^= flipped;
        parts[damaged] = single(bytes.into());

        let joined = join(&parts, 1 << 20, &budget());

        let count = joined.map_or(0, |joined| joined.count);
        prop_assert_eq!(count, if damaged < 2 { 0 } else { damaged });
    }

    /// Checksums say that bytes are as they were written, not that they were written well.
    #[test]
    fn nonsense_under_a_right_checksum_is_left_out(body in vec(any::<u8>(), 0..40)) {
        let mut parts = numbered(4);
        let mut bytes = parts[2].bytes()[..HEADER_LEN].to_vec();
        bytes.extend(&body);
        let length = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        parts[2] = sealed(bytes);
        prop_assume!(decode(&parts[2], DecodeLimits::default()).is_err());

        let joined = join(&parts, 1 << 20, &budget()).unwrap();

        // What is inside a record is for its readers, and for the target, to judge.
        prop_assert!(joined.count == 2 || joined.batch.body().ends_with(parts[3].body().split_at(4).1));
    }
}

#[test]
fn batches_that_cannot_go_as_they_are_end_the_row() {
    let whole = numbered(5);
    let control = stored(&decoded([&whole[2]]), Compression::None, 2, 4);
    let packed = stored(&decoded([&whole[2]]), Compression::Lz4, 2, 0);
    let mut gap = whole[2].bytes().to_vec();
    gap[23..27].copy_from_slice(&1i32.to_be_bytes());
    for odd in [control, packed, sealed(gap)] {
        let mut parts = whole.clone();
        parts[2] = odd;

        assert_eq!(join(&parts, 1 << 20, &budget()).unwrap().count, 2);
    }
}

#[test]
fn without_memory_nothing_is_joined_and_what_is_held_comes_back() {
    let budget = MemoryBudget::new(1 << 20);
    let parts = numbered(3);
    let held = budget.take(1 << 20);

    let without = join(&parts, 1 << 20, &budget);
    drop(held);
    let joined = join(&parts, 1 << 20, &budget).unwrap();

    assert!(without.is_none());
    assert!(budget.used() >= joined.batch.size());
    drop(joined);
    assert_eq!(budget.used(), 0);
}
