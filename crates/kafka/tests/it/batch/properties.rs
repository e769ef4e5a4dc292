//! Arbitrary records, there and back.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use twinlog_kafka::batch::{
    Compression, DecodeLimits, HEADER_LEN, ProducerStamp, RawBatch, Record, TooLarge, decode,
    encode, encode_split, restamp,
};

use super::single;

proptest! {
    #[test]
    fn records_come_back_as_they_were(records in records(1..40), codec in codec()) {
        let batch = encode(&records, codec).unwrap().unwrap();

        let batch = single(batch.bytes().clone());
        prop_assert_eq!(decode(&batch, DecodeLimits::default()).unwrap(), counted(records, 0));
        prop_assert!(batch.is_contiguous());
        prop_assert_eq!(batch.compression(), codec);
    }

    #[test]
    fn split_batches_keep_the_limit_and_the_order(
        records in records(0..60),
        codec in codec(),
        size_max in 100..3000usize,
    ) {
        match encode_split(&records, codec, size_max) {
            Ok(batches) => {
                let mut read = Vec::new();
                for batch in batches {
                    prop_assert!(batch.size() <= size_max, "{} bytes", batch.size());
                    let part = decode(&batch, DecodeLimits::default()).unwrap();
                    prop_assert!(!part.is_empty());
                    read.extend(part);
                }
                prop_assert_eq!(without_offsets(read), without_offsets(records));
            }
            Err(TooLarge { offset, size, limit }) => {
                let alone = records.iter().find(|record| record.offset == offset).unwrap();
                let batch = encode(std::slice::from_ref(alone), codec).unwrap().unwrap();
                prop_assert_eq!((batch.size(), size_max), (size, limit));
                prop_assert!(size > limit);
            }
        }
    }

    #[test]
    fn a_restamped_batch_is_the_same_batch_under_our_name(
        records in records(1..40),
        codec in codec(),
        (producer_id, producer_epoch, base_sequence) in any::<(i64, i16, i32)>(),
    ) {
        let batch = encode(&records, codec).unwrap().unwrap();
        let stamp = ProducerStamp { producer_id, producer_epoch, base_sequence };

        let restamped = with_header(&batch, restamp(&batch, stamp));

        prop_assert_eq!(restamped.verify_crc(), Ok(()));
        prop_assert_eq!(restamped.body(), batch.body());
        let header = restamped.header();
        prop_assert_eq!(
            (header.producer_id, header.producer_epoch, header.base_sequence),
            (producer_id, producer_epoch, base_sequence)
        );
        prop_assert_eq!(restamped.header().max_timestamp, batch.header().max_timestamp);
    }

    #[test]
    fn a_restamped_batch_keeps_a_wrong_checksum_wrong(
        records in records(1..40),
        at in any::<prop::sample::Index>(),
        flipped in 1..=255u8,
    ) {
        let batch = encode(&records, Compression::None).unwrap().unwrap();
        let mut damaged = batch.bytes().to_vec();
        damaged[HEADER_LEN..][at.index(batch.size() - HEADER_LEN)] ^= flipped;
        let damaged = single(damaged.into());

        let restamped = with_header(&damaged, restamp(&damaged, ProducerStamp::NONE));

        prop_assert!(damaged.verify_crc().is_err());
        prop_assert!(restamped.verify_crc().is_err());
    }

    #[test]
    fn restamping_leaves_nothing_of_the_source_but_the_codec(
        records in records(1..5),
        base_offset in 0..i64::MAX / 2,
        leader_epoch: i32,
        flags in 0..16i16,
    ) {
        let batch = encode(&records, Compression::Zstd).unwrap().unwrap();
        let mut fetched = batch.bytes().to_vec();
        fetched[..8].copy_from_slice(&base_offset.to_be_bytes());
        fetched[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
        fetched[21..23].copy_from_slice(&(flags << 3 | 4).to_be_bytes());
        let crc = crc_fast::crc32_iscsi(&fetched[21..]);
        fetched[17..21].copy_from_slice(&crc.to_be_bytes());

        let restamped = restamp(&single(fetched.into()), ProducerStamp::NONE);

        prop_assert_eq!(&restamped[..], &batch.bytes()[..HEADER_LEN]);
    }
}

#[test]
fn no_records_make_no_batch() {
    assert_eq!(encode(&[], Compression::Lz4), Ok(None));
    assert_eq!(encode_split(&[], Compression::Lz4, 1000), Ok(vec![]));
}

#[test]
fn records_are_split_into_few_batches() {
    let mut random = 1u32;
    let mut word = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("{} ", (random >> 16) % 1000)
    };
    let mut record = |_| Record {
        value: Some((0..50).map(|_| word()).collect::<String>().into()),
        ..Record::default()
    };
    let records: Vec<_> = (0..1000).map(&mut record).collect();
    for codec in Compression::ALL {
        let whole = encode(&records, codec).unwrap().unwrap().size();
        for parts in 2..8 {
            let batches = encode_split(&records, codec, whole / parts + whole / 500).unwrap();

            let count = batches.len();
            assert!(
                (parts..=parts + 1).contains(&count),
                "{codec}: {count}, not {parts}"
            );
        }
    }
}

#[test]
fn no_part_is_empty_when_one_record_outweighs_all_others() {
    let value = |byte: i64| Bytes::from_iter((0..300).map(|i| (byte * 91 + i * i * i / 7) as u8));
    let small = (0..3).map(|byte| Some(value(byte)));
    let records: Vec<_> = small
        .chain([Some(vec![0; 100_000].into())])
        .map(|value| Record {
            value,
            ..Record::default()
        })
        .collect();

    let batches = encode_split(&records, Compression::Zstd, 450).unwrap();

    let counts: Vec<_> = batches
        .iter()
        .map(|batch| batch.header().record_count)
        .collect();
    assert_eq!(counts, [1, 1, 1, 1]);
}

#[test]
fn a_record_too_large_is_named_wherever_it_is() {
    for large in 0..5 {
        let record = |offset| Record {
            offset,
            value: Some(vec![0; if offset == large { 5000 } else { 5 }].into()),
            ..Record::default()
        };
        let records: Vec<_> = (0..5).map(record).collect();

        let error = encode_split(&records, Compression::None, 1000).unwrap_err();

        assert_eq!(
            error,
            TooLarge {
                offset: large,
                size: 5070,
                limit: 1000
            }
        );
    }
}

fn with_header(batch: &RawBatch, header: [u8; HEADER_LEN]) -> RawBatch {
    single([&header[..], &batch.body()].concat().into())
}

fn without_offsets(records: Vec<Record>) -> Vec<Record> {
    records
        .into_iter()
        .map(|record| Record {
            offset: 0,
            ..record
        })
        .collect()
}

/// `records` with the offsets they get in a batch.
pub(super) fn counted(records: Vec<Record>, base: i64) -> Vec<Record> {
    (base..)
        .zip(records)
        .map(|(offset, record)| Record { offset, ..record })
        .collect()
}

pub(super) fn codec() -> impl Strategy<Value = Compression> {
    prop::sample::select(&Compression::ALL[..])
}

pub(super) fn records(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Record>> {
    let record = (
        timestamp(),
        nullable(),
        nullable(),
        vec((bytes(), nullable()), 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| Record {
            offset: 0,
            timestamp,
            key,
            value,
            headers,
        });
    vec(record, count).prop_map(|records| counted(records, 1000))
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 1_700_000_000_000..1_700_000_100_000i64,
        1 => Just(-1),
        1 => any::<i64>(),
    ]
}

fn nullable() -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![1 => Just(None), 4 => bytes().prop_map(Some)]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    let repeated =
        (any::<u8>(), 0..200usize).prop_map(|(byte, count)| std::vec::from_elem(byte, count));
    prop_oneof![1 => Just(Vec::new()), 3 => vec(any::<u8>(), 0..40), 2 => repeated]
        .prop_map(Bytes::from)
}
