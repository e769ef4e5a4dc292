//! Bytes that lie: the answer is an error that says where, never a panic, and memory follows what
//! is really there.

use std::io::Write;

use bytes::{BufMut, Bytes};
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use twinlog_kafka::batch::{
    BatchError, Compression, Cut, DecodeLimits, Entry, HEADER_LEN, Problem, RawBatch, Record,
    decode, decode_legacy, encode, walk,
};

use super::golden::{golden, golden_names};
use super::single;

#[test]
fn headers_that_lie_are_errors_with_their_place() {
    let negative = |field, value| Problem::Negative { field, value };
    let length = |length, least| Problem::Length { length, least };
    let table: [(usize, &[u8], usize, Problem); 11] = [
        (0, &i64::MAX.to_be_bytes(), 0, Problem::OffsetOverflow),
        (0, &(-5i64).to_be_bytes(), 0, negative("base offset", -5)),
        (8, &(-1i32).to_be_bytes(), 8, length(-1, 14)),
        (8, &i32::MIN.to_be_bytes(), 8, length(i32::MIN, 14)),
        (8, &13i32.to_be_bytes(), 8, length(13, 14)),
        (8, &48i32.to_be_bytes(), 8, length(48, 49)),
        (16, &[3], 16, Problem::Magic(3)),
        (16, &[0x82], 16, Problem::Magic(-126)),
        (21, &[0, 5], 21, Problem::Codec(5)),
        (
            23,
            &(-1i32).to_be_bytes(),
            23,
            negative("last offset delta", -1),
        ),
        (57, &(-1i32).to_be_bytes(), 57, negative("record count", -1)),
    ];
    let good = golden("v2-none");
    for (at, field, position, problem) in table {
        let bad = overwritten(&good, at, field);
        let mut entries = walk([&good[..], &bad, &good].concat().into());

        let (first, second) = (entries.next(), entries.next());

        assert!(matches!(first, Some(Ok(_))), "{first:?}");
        let error = second.unwrap().unwrap_err();
        assert_eq!(
            (error.position, error.problem),
            (good.len() + position, problem)
        );
        assert!(entries.next().is_none(), "nothing is read behind an error");
        assert_eq!(entries.cut(), None);
    }
}

#[test]
fn a_batch_cut_anywhere_is_reported_and_those_before_it_are_there() {
    let (first, second) = (golden("v2-zstd"), golden("v2-none"));
    for present in 1..second.len() {
        let mut entries = walk([&first[..], &second[..present]].concat().into());

        assert_eq!(entries.by_ref().filter(Result::is_ok).count(), 1);

        let size = (present >= 12).then_some(second.len());
        assert_eq!(
            entries.cut(),
            Some(Cut {
                position: first.len(),
                present,
                size
            })
        );
    }
}

#[test]
fn a_length_beyond_all_bytes_is_a_cut() {
    let mut entries = walk(overwritten(&golden("v2-none"), 8, &i32::MAX.to_be_bytes()));

    assert!(entries.next().is_none());

    assert_eq!(entries.cut().unwrap().size, Some(i32::MAX as usize + 12));
}

#[test]
fn bodies_that_lie_are_errors() {
    let huge = i32::MAX.to_be_bytes();
    let record = |fields: &[u8]| [&[fields.len() as u8 * 2], fields].concat();
    let plain: &[u8] = &[0, 0, 0, 1, 1, 0];
    let table: [(i32, Vec<u8>, Problem); 12] = [
        (2, record(plain), Problem::Truncated("records")),
        (
            i32::from_be_bytes(huge),
            record(plain),
            Problem::Truncated("records"),
        ),
        (0, record(plain), Problem::Trailing(7)),
        (1, [record(plain), vec![0]].concat(), Problem::Trailing(1)),
        (
            1,
            record(&[0, 0, 0, 1, 1, 0, 0]),
            Problem::RecordLength { length: 7 },
        ),
        (
            1,
            vec![1, 0, 0, 0, 1, 1, 0],
            Problem::Negative {
                field: "record length",
                value: -1,
            },
        ),
        (1, vec![14, 0, 0, 0, 1, 1, 0], Problem::Truncated("record")),
        (
            1,
            record(&[0, 0, 0, 3, 1, 0]),
            Problem::Negative {
                field: "key",
                value: -2,
            },
        ),
        (1, record(&[0, 0, 0, 20, 1, 0]), Problem::Truncated("key")),
        (
            1,
            record(&[0, 0, 0, 1, 1, 1]),
            Problem::Negative {
                field: "header count",
                value: -1,
            },
        ),
        (
            1,
            record(&[0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0xf]),
            Problem::Truncated("headers"),
        ),
        (
            1,
            record(&[0, 0, 0, 1, 1, 2, 1, 1]),
            Problem::Negative {
                field: "header key length",
                value: -1,
            },
        ),
    ];
    for (count, body, problem) in table {
        assert_eq!(problem_of(&made(0, count, 9, &body)), problem, "{body:?}");
    }
}

#[test]
fn offset_deltas_must_rise_within_the_batch() {
    let body = |deltas: [u8; 2]| deltas.map(|delta| [12, 0, 0, delta * 2, 1, 1, 0]).concat();
    let offsets = |batch: &RawBatch| {
        let records = decode(batch, DecodeLimits::default()).unwrap();
        records
            .iter()
            .map(|record| record.offset)
            .collect::<Vec<_>>()
    };
    let wrong = |previous, offset| Problem::OffsetOrder {
        offset,
        previous,
        last: 5,
    };

    assert_eq!(offsets(&made(0, 2, 5, &body([1, 4]))), [1, 4]);
    assert_eq!(problem_of(&made(0, 2, 5, &body([3, 3]))), wrong(3, 3));
    assert_eq!(problem_of(&made(0, 2, 5, &body([3, 1]))), wrong(3, 1));
    assert_eq!(problem_of(&made(0, 2, 5, &body([0, 6]))), wrong(0, 6));
}

#[test]
fn a_damaged_body_is_not_decoded() {
    for name in ["v2-none", "v2-zstd"] {
        let bytes = golden(name);
        let damaged = overwritten(&bytes, bytes.len() - 1, &[bytes[bytes.len() - 1] ^ 1]);

        let problem = problem_of(&single(damaged));

        assert!(matches!(problem, Problem::Crc { .. }), "{problem}");
    }
}

#[test]
fn what_unpacks_to_more_than_is_allowed_is_refused() {
    let value = Bytes::from(vec![0; 8 << 20]);
    let record = Record {
        value: Some(value),
        ..Record::default()
    };
    let limit = 1 << 20;
    for codec in Compression::ALL {
        let batch = encode(std::slice::from_ref(&record), codec)
            .unwrap()
            .unwrap();

        let error = decode(&batch, DecodeLimits { bytes_max: limit }).unwrap_err();

        assert_eq!(error.problem, Problem::OverLimit { limit }, "{codec}");
    }
}

#[test]
fn empty_records_and_headers_are_charged_for_what_they_take() {
    let headers = vec![(Bytes::new(), None); 100_000];
    let limit = 1 << 20;
    for records in [
        vec![Record {
            headers,
            ..Record::default()
        }],
        vec![Record::default(); 100_000],
    ] {
        let batch = encode(&records, Compression::Zstd).unwrap().unwrap();

        let error = decode(&batch, DecodeLimits { bytes_max: limit }).unwrap_err();

        assert!(batch.size() < 100_000, "{} bytes", batch.size());
        assert_eq!(error.problem, Problem::OverLimit { limit });
    }
}

#[test]
fn claims_of_a_codec_are_not_believed() {
    let mut snappy = vec![0xff, 0xff, 0xff, 0x7f];
    snappy.put_slice(b"short");
    let xerial = |size: i32| {
        [
            &b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"[..],
            &size.to_be_bytes(),
            b"x",
        ]
        .concat()
    };
    let lz4 = |rest: &[u8]| [&[0x04, 0x22, 0x4d, 0x18], rest].concat();
    let table = [
        (2, snappy),
        (2, xerial(-1)),
        (2, xerial(i32::MAX)),
        (2, xerial(0)),
        (2, b"\x82SNAPPY\0\0".to_vec()),
        (3, lz4(&[0x60, 0x70, 0x73])),
        (3, lz4(&[0x60, 0x70, 0x73, 0xff, 0xff, 0xff, 0x7f, 0])),
        (3, lz4(&[0x60, 0x00, 0x73, 0, 0, 0, 0])),
        (3, lz4(&[0x61, 0x40, 0x73, 0, 0, 0, 0, 0, 0, 0, 0])),
        (3, lz4(&[0x60, 0x40, 0x82, 0, 0, 0, 0, 0])),
        (3, b"lz4".to_vec()),
        (1, b"gzip".to_vec()),
        (1, vec![]),
        (4, b"zstd".to_vec()),
        (4, vec![]),
    ];
    for (codec, body) in table {
        let problem = problem_of(&made(codec, 1, 0, &body));

        let refused = matches!(
            problem,
            Problem::Compressed { .. } | Problem::OverLimit { .. }
        );
        assert!(refused, "{codec} {body:?}: {problem}");
    }
}

#[test]
fn wrappers_hold_plain_messages_of_their_own_format() {
    let plain = legacy(1, 0, b"value");
    let table = [
        (
            legacy(1, 1, b""),
            Problem::Compressed {
                codec: Compression::Gzip,
                reason: String::new(),
            },
        ),
        (legacy(1, 1, &gzip(&[])), Problem::Wrapper),
        (
            legacy(1, 1, &gzip(&legacy(1, 1, &gzip(&plain)))),
            Problem::Wrapper,
        ),
        (
            legacy(1, 1, &gzip(&legacy(0, 0, b"value"))),
            Problem::Magic(0),
        ),
        (legacy(0, 1, &gzip(&plain)), Problem::Magic(1)),
        (
            legacy(1, 1, &gzip(&plain[..plain.len() - 1])),
            Problem::Truncated("message"),
        ),
        (legacy(1, 1, &gzip(&golden("v2-none"))), Problem::Magic(2)),
        (
            legacy(1, 1, &gzip(&plain.repeat(2))),
            Problem::OffsetOrder {
                offset: 7,
                previous: 7,
                last: 7,
            },
        ),
    ];
    for (bytes, expected) in table {
        let Some(Ok(Entry::Legacy(message))) = walk(bytes.into()).next() else {
            panic!("not a message; expected {expected}");
        };

        let mut problem = decode_legacy(&message, DecodeLimits::default())
            .unwrap_err()
            .problem;

        // The text is the library's.
        if let Problem::Compressed { reason, .. } = &mut problem {
            reason.clear();
        }
        assert_eq!(problem, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_change_of_bytes_makes_a_reader_panic(
        name in prop::sample::select(golden_names()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        seal: bool,
    ) {
        let mut bytes = golden(&name).to_vec();
        // The large ones are large in their middle; changes belong where something is decided.
        let reach = bytes.len().min(600);
        for (at, byte) in changes {
            bytes[at.index(reach)] = byte;
        }
        read_all(bytes.into(), seal);
    }

    #[test]
    fn no_bytes_at_all_make_a_reader_panic(
        codec in 0..5i16,
        count in prop_oneof![0..5i32, any::<i32>()],
        body in vec(any::<u8>(), 0..100),
    ) {
        read_all(body.clone().into(), false);
        let count = count & i32::MAX;
        let _ = decode(&made(codec, count, count, &body), LIMITS);
    }
}

const LIMITS: DecodeLimits = DecodeLimits { bytes_max: 1 << 20 };

/// Reads all there is; with `seal` the checksums are made right first, so that what is behind them
/// is read.
fn read_all(bytes: Bytes, seal: bool) {
    for entry in walk(bytes).map_while(Result::ok) {
        match entry {
            Entry::Batch(batch) => {
                let batch = if seal { sealed(batch.bytes()) } else { batch };
                let _ = batch.control();
                if let Ok(records) = decode(&batch, LIMITS) {
                    assert_eq!(records.len(), batch.header().record_count as usize);
                }
            }
            Entry::Legacy(message) => {
                let mut bytes = message.bytes().to_vec();
                if seal {
                    let crc = crc_fast::crc32_iso_hdlc(&bytes[16..]);
                    bytes[12..16].copy_from_slice(&crc.to_be_bytes());
                }
                for entry in walk(bytes.into()) {
                    if let Ok(Entry::Legacy(message)) = entry {
                        let _: Result<_, BatchError> = decode_legacy(&message, LIMITS);
                    }
                }
            }
        }
    }
}

/// A batch with the checksum of its bytes.
fn sealed(bytes: &[u8]) -> RawBatch {
    let crc = crc_fast::crc32_iscsi(&bytes[21..]);
    single(overwritten(bytes, 17, &crc.to_be_bytes()))
}

/// A sealed batch with a body of our choice.
fn made(codec: i16, count: i32, last_delta: i32, body: &[u8]) -> RawBatch {
    let mut bytes = Vec::new();
    bytes.put_i64(0);
    bytes.put_i32((HEADER_LEN - 12 + body.len()) as i32);
    bytes.put_i32(-1);
    bytes.put_u8(2);
    bytes.put_u32(0);
    bytes.put_i16(codec);
    bytes.put_i32(last_delta);
    bytes.put_slice(&[0xff; 30]);
    bytes.put_i32(count);
    bytes.put_slice(body);
    sealed(&bytes)
}

/// A sealed message without key.
fn legacy(magic: u8, attributes: u8, value: &[u8]) -> Vec<u8> {
    let mut covered = vec![magic, attributes];
    if magic == 1 {
        covered.put_i64(0);
    }
    covered.put_i32(-1);
    covered.put_i32(value.len() as i32);
    covered.put_slice(value);

    let mut bytes = Vec::new();
    bytes.put_i64(7);
    bytes.put_i32(covered.len() as i32 + 4);
    bytes.put_u32(crc_fast::crc32_iso_hdlc(&covered));
    bytes.put_slice(&covered);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn problem_of(batch: &RawBatch) -> Problem {
    decode(batch, DecodeLimits::default()).unwrap_err().problem
}

fn overwritten(bytes: &[u8], at: usize, field: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at..at + field.len()].copy_from_slice(field);
    bytes.into()
}
