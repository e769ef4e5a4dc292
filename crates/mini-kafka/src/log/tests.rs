//! Tests of the log, of what it accepts, and of compaction.

use kafka_protocol::ResponseError;

use super::batch::{HEADER_BYTES, Header};
use super::compact::Compaction;
use super::validate::{Rules, only_batch, validate};
use super::*;
use crate::refusal::Refusal;

const NOW: i64 = 1_750_000_000_000;

fn header(count: i32) -> Header {
    Header {
        base_offset: 0,
        batch_length: 0,
        leader_epoch: -1,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: NOW,
        max_timestamp: NOW + i64::from(count - 1),
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count,
    }
}

/// Records with the given keys, one millisecond apart; a value of `x` bytes, or a tombstone for
/// keys in capitals.
fn batch(keys: &[&str], change: impl FnOnce(&mut Header)) -> Batch {
    let mut header = header(keys.len() as i32);
    change(&mut header);
    let body: Vec<u8> = keys
        .iter()
        .enumerate()
        .flat_map(|(at, key)| {
            let value = key.chars().all(char::is_lowercase).then_some(&b"value"[..]);
            records::encode(
                at as i32,
                at as i64,
                Some(key.to_lowercase().as_bytes()),
                value,
            )
        })
        .collect();
    let body = compression::compress(header.codec(), &body).unwrap();
    Batch::build(header, &body)
}

fn log(batches: &[&[&str]]) -> Log {
    let mut log = Log::default();
    log.begin_epoch(0);
    for keys in batches {
        let end = log.end();
        log.append(batch(keys, |header| header.base_offset = end));
    }
    log
}

fn bases(log: &Log) -> Vec<(i64, i32, i32)> {
    let shape = |b: &Batch| {
        (
            b.header.base_offset,
            b.header.last_offset_delta,
            b.header.count,
        )
    };
    log.batches().map(shape).collect()
}

fn rules() -> Rules {
    Rules {
        batch_bytes_max: 1_048_588,
        segment_bytes: 1 << 30,
        compacted: false,
        append_time: false,
        before_max_ms: i64::MAX,
        after_max_ms: 3_600_000,
        codec: None,
    }
}

fn code(outcome: Result<Batch, Refusal>) -> i16 {
    outcome.map_or_else(|refusal| refusal.code.code(), |_| 0)
}

#[test]
fn a_read_begins_with_the_batch_that_holds_the_offset_and_cuts_the_last_one() {
    let log = log(&[&["a", "b"], &["c", "d"], &["e"]]);
    let size = log.batches[0].bytes.len();

    let all = log.read(1, 100, usize::MAX, false);
    let cut = log.read(0, 100, size + 10, false);
    let one = log.read(2, 100, 5, true);
    let none = log.read(5, 100, usize::MAX, true);

    assert_eq!(all.records.len(), 2 * size + log.batches[2].bytes.len());
    assert_eq!(cut.records.len(), size + 10);
    assert_eq!(one.records, log.batches[1].bytes);
    assert!(none.records.is_empty());
}

#[test]
fn a_read_of_one_batch_shares_its_bytes() {
    let log = log(&[&["a"]]);

    let read = log.read(0, 100, usize::MAX, true);

    assert_eq!(read.records.as_ptr(), log.batches[0].bytes.as_ptr());
}

#[test]
fn a_read_stops_before_the_high_watermark() {
    let mut log = log(&[&["a"]]);
    log.hold_high_watermark(true);
    let end = log.end();
    log.append(batch(&["b"], |header| header.base_offset = end));

    let read = log.read(0, log.high_watermark(), usize::MAX, true);

    assert_eq!((log.high_watermark(), log.end()), (1, 2));
    assert_eq!(read.until, 1);
    log.hold_high_watermark(false);
    assert_eq!(log.high_watermark(), 2);
}

#[test]
fn truncation_drops_whole_batches_and_what_producers_did_in_them() {
    let mut log = log(&[]);
    for sequence in [0, 2] {
        let end = log.end();
        log.append(batch(&["a", "b"], |header| {
            header.base_offset = end;
            (header.producer_id, header.producer_epoch) = (9, 0);
            header.base_sequence = sequence;
        }));
    }

    log.truncate(3);

    assert_eq!((log.start(), log.end()), (0, 2));
    assert_eq!(log.producers.iter().next().unwrap().1.last_sequence(), 1);
    log.truncate(0);
    assert_eq!(log.end(), 0);
    assert_eq!(log.producers.iter().count(), 0);
}

#[test]
fn deleted_records_leave_the_batch_that_holds_the_new_start() {
    let mut log = log(&[&["a", "b"], &["c", "d"]]);

    log.delete_before(3);

    assert_eq!((log.start(), log.end()), (3, 4));
    assert_eq!(bases(&log), [(2, 1, 2)]);
}

#[test]
fn epochs_end_where_the_next_one_begins() {
    let mut log = log(&[&["a", "b"]]);
    log.begin_epoch(3);
    let end = log.end();
    log.append(batch(&["c"], |header| header.base_offset = end));
    log.begin_epoch(5);
    log.begin_epoch(6);

    for (asked, expected) in [
        (0, Some((0, 2))),
        (2, Some((0, 2))),
        (3, Some((3, 3))),
        (5, Some((3, 3))),
        (6, Some((6, 3))),
        (7, None),
    ] {
        assert_eq!(log.end_of_epoch(asked), expected, "epoch {asked}");
    }
    assert_eq!(
        (log.epoch_of(1), log.epoch_of(2), log.epoch_of(3)),
        (Some(0), Some(3), Some(6))
    );
}

#[test]
fn offsets_are_found_by_time() {
    let log = log(&[&["a", "b"], &["c"]]);

    assert_eq!(log.find_timestamp(NOW, 3), Some((NOW, 0)));
    assert_eq!(log.find_timestamp(NOW + 1, 3), Some((NOW + 1, 1)));
    assert_eq!(log.find_timestamp(NOW + 2, 3), None);
    assert_eq!(log.max_timestamp(), Some((NOW + 1, 1)));
}

#[test]
fn what_was_rolled_back_is_listed_and_an_open_transaction_holds_readers_back() {
    let mut log = log(&[&["a"]]);
    for producer in [7, 8] {
        let end = log.end();
        log.append(batch(&["b"], |header| {
            header.base_offset = end;
            header.attributes = 1 << 4;
            (
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
            ) = (producer, 0, 0);
        }));
    }
    let marker = |producer_id, committed| Marker {
        producer_id,
        producer_epoch: 0,
        coordinator_epoch: 1,
        committed,
    };

    assert_eq!(log.last_stable_offset(), 1);
    let offset = log.append_marker(marker(7, false), 0, NOW);
    assert_eq!((offset, log.last_stable_offset()), (3, 2));
    log.append_marker(marker(8, true), 0, NOW);

    assert_eq!(log.last_stable_offset(), 5);
    let aborted = log.producers.aborted_in(0, 5);
    assert_eq!(aborted.len(), 1);
    assert_eq!((aborted[0].producer_id, aborted[0].first_offset), (7, 1));
    assert_eq!(log.batches[3].bytes.len(), 78);
    assert!(log.producers.aborted_in(4, 5).is_empty());
}

#[test]
fn compaction_keeps_offsets_and_last_offset_deltas() {
    let mut log = log(&[&["a", "b", "a"], &["b"], &["c", "a"], &["d"]]);

    log.compact(Compaction {
        below: Some(6),
        ..Compaction::default()
    });

    assert_eq!(bases(&log), [(3, 0, 1), (4, 1, 2), (6, 0, 1)]);
    assert_eq!((log.start(), log.end()), (0, 7));
}

#[test]
fn a_producers_last_batch_outlives_its_records() {
    let mut log = log(&[]);
    log.append(batch(&["a", "b"], |header| {
        (
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        ) = (9, 0, 0);
    }));
    log.append(batch(&["a", "b"], |header| header.base_offset = 2));
    log.append(batch(&["c"], |header| header.base_offset = 4));

    log.compact(Compaction {
        below: Some(4),
        ..Compaction::default()
    });

    assert_eq!(bases(&log), [(0, 1, 0), (2, 1, 2), (4, 0, 1)]);
    assert_eq!(log.batches[0].bytes.len(), HEADER_BYTES);
}

#[test]
fn a_delete_horizon_moves_the_base_timestamp_and_no_record() {
    let mut log = log(&[&["a", "B"], &["c"]]);
    let before = record_times(&log.batches[0]);

    let horizon = Some(NOW + 86_400_000);
    log.compact(Compaction {
        delete_horizon_ms: horizon,
        ..Compaction::default()
    });

    let header = log.batches[0].header;
    assert_eq!(header.attributes & 1 << 6, 1 << 6);
    assert_eq!(header.base_timestamp, NOW + 86_400_000);
    assert_eq!(record_times(&log.batches[0]), before);
    log.compact(Compaction {
        drop_tombstones: true,
        ..Compaction::default()
    });
    assert_eq!(bases(&log)[0], (0, 1, 1));
}

#[test]
fn stored_bytes_are_those_that_were_sent_but_for_offset_and_epoch() {
    let sent = batch(&["a", "b"], |header| header.set_codec(4));

    let stored = validate(&sent.bytes, &rules(), 42, 7, NOW).unwrap();

    assert_eq!(
        (stored.header.base_offset, stored.header.leader_epoch),
        (42, 7)
    );
    assert_eq!(stored.bytes[16..], sent.bytes[16..]);
}

#[test]
fn append_time_is_set_by_the_broker_alone() {
    let by_broker = Rules {
        append_time: true,
        ..rules()
    };
    let sent = batch(&["a"], |_| {});
    let flagged = batch(&["a"], |header| header.set_append_time(true));

    let stored = validate(&sent.bytes, &by_broker, 0, 0, NOW + 5).unwrap();
    let cleared = validate(&flagged.bytes, &rules(), 0, 0, NOW).unwrap();

    assert!(stored.header.is_append_time());
    assert_eq!(stored.header.max_timestamp, NOW + 5);
    assert_eq!(batch::crc(&stored.bytes), stored.header.crc);
    assert!(!cleared.header.is_append_time());
    assert_eq!(code(validate(&flagged.bytes, &by_broker, 0, 0, NOW)), 32);
}

#[test]
fn another_compression_type_recompresses() {
    let gzip = Rules {
        codec: Some(1),
        ..rules()
    };
    let sent = batch(&["a", "b"], |header| header.set_codec(4));

    let stored = validate(&sent.bytes, &gzip, 0, 0, NOW).unwrap();

    assert_eq!(stored.header.codec(), 1);
    assert_eq!(record_times(&stored), record_times(&sent));
}

#[test]
fn batches_that_kafka_refuses_are_refused() {
    let change = |change: fn(&mut Header)| batch(&["a", "b"], change);
    let mut broken = change(|_| {}).bytes.to_vec();
    broken[70] ^= 1;
    let compacted = Rules {
        compacted: true,
        ..rules()
    };
    let keyless = {
        let body = records::encode(0, 0, None, Some(b"v"));
        Batch::build(header(1), &body)
    };
    let exact = change(|_| {}).bytes.len() as i64;
    let size = |bytes| Rules {
        batch_bytes_max: bytes,
        ..rules()
    };

    for (name, bytes, rules, expected) in [
        (
            "base offset",
            change(|h| h.base_offset = 1).bytes,
            rules(),
            87,
        ),
        (
            "count too high",
            change(|h| (h.count, h.last_offset_delta) = (3, 2)).bytes,
            rules(),
            87,
        ),
        (
            "count too low",
            change(|h| (h.count, h.last_offset_delta) = (1, 0)).bytes,
            rules(),
            87,
        ),
        (
            "a hole",
            change(|h| h.last_offset_delta = 9).bytes,
            rules(),
            87,
        ),
        (
            "empty",
            change(|h| (h.count, h.last_offset_delta) = (0, -1)).bytes,
            rules(),
            87,
        ),
        (
            "control",
            change(|h| h.attributes = 0x20).bytes,
            rules(),
            87,
        ),
        (
            "no sequence",
            change(|h| h.producer_id = 5).bytes,
            rules(),
            87,
        ),
        ("checksum", broken.into(), rules(), 2),
        (
            "too far ahead",
            change(|h| h.base_timestamp = NOW + 3_600_001).bytes,
            rules(),
            32,
        ),
        ("just large enough", change(|_| {}).bytes, size(exact), 0),
        ("too large", change(|_| {}).bytes, size(exact - 1), 10),
        ("no key", keyless.bytes, compacted, 87),
    ] {
        assert_eq!(
            code(validate(&bytes, &rules, 0, 0, NOW)),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_request_holds_exactly_one_batch_per_partition() {
    let one = batch(&["a"], |_| {}).bytes;
    let two: Bytes = [one.clone(), one.clone()].concat().into();
    let zstd = batch(&["a"], |header| header.set_codec(4)).bytes;
    let refused = |bytes: Option<&Bytes>, version| {
        only_batch(bytes, version)
            .map_or_else(|refusal| refusal.code, |_| ResponseError::Unknown(0))
    };

    assert_eq!(refused(Some(&one), 7), ResponseError::Unknown(0));
    assert_eq!(refused(Some(&two), 7), ResponseError::InvalidRecord);
    assert_eq!(
        refused(Some(&one.slice(..one.len() - 1)), 7),
        ResponseError::InvalidRecord
    );
    assert_eq!(
        refused(Some(&Bytes::new()), 7),
        ResponseError::InvalidRecord
    );
    assert_eq!(refused(None, 7), ResponseError::InvalidRecord);
    assert_eq!(
        refused(Some(&zstd), 6),
        ResponseError::UnsupportedCompressionType
    );
}
