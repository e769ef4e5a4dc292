//! Batches that Java made (`tests/golden/MakeBatches.java`), and what Java reads in them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use twinlog_kafka::batch::{
    ControlType, DecodeLimits, Entry, RawBatch, Record, decode, decode_legacy, encode, walk,
};

use super::single;

#[test]
fn record_sets_are_read_as_java_reads_them() {
    let names = golden_names();
    assert_eq!(names.len(), 27, "{names:?}");
    for name in names {
        let expected =
            std::fs::read_to_string(golden_folder().join(format!("{name}.txt"))).unwrap();

        let read = describe(golden(&name));

        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn what_needs_no_compressor_is_encoded_to_the_bytes_java_encodes() {
    for name in ["v2-none", "v2-no-timestamp", "v2-stored-lz4"] {
        let java = single(golden(name));

        let ours = encoded_again(&java);

        // Java's begins at another offset, which is the only difference.
        assert_eq!(ours.bytes()[8..], java.bytes()[8..], "{name}");
    }
}

#[test]
fn what_java_compressed_survives_our_compressor() {
    for name in [
        "v2-gzip",
        "v2-snappy",
        "v2-lz4",
        "v2-zstd",
        "v2-large-lz4",
        "v2-large-snappy",
    ] {
        let java = single(golden(name));

        let ours = encoded_again(&java);

        let mut expected = records(&java);
        for record in &mut expected {
            record.offset -= java.header().base_offset;
        }
        assert_eq!(records(&ours), expected, "{name}");
        assert_eq!(ours.compression(), java.compression(), "{name}");
        assert_eq!(
            ours.header().max_timestamp,
            java.header().max_timestamp,
            "{name}"
        );
    }
}

fn records(batch: &RawBatch) -> Vec<Record> {
    decode(batch, DecodeLimits::default()).unwrap()
}

fn encoded_again(batch: &RawBatch) -> RawBatch {
    encode(&records(batch), batch.compression())
        .unwrap()
        .expect("there are records")
}

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A record set of `MakeBatches`.
pub(super) fn golden(name: &str) -> Bytes {
    std::fs::read(golden_folder().join(format!("{name}.bin")))
        .unwrap()
        .into()
}

/// The names of all record sets of `MakeBatches`.
pub(super) fn golden_names() -> Vec<String> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(golden_folder()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    names
}

/// The text that `MakeBatches` writes.
fn describe(record_set: Bytes) -> String {
    let mut text = String::new();
    for entry in walk(record_set) {
        let records = match entry.unwrap() {
            Entry::Batch(batch) => {
                describe_batch(&batch, &mut text);
                records(&batch)
            }
            Entry::Legacy(message) => {
                let (last, size) = (message.last_offset(), message.bytes().len());
                writeln!(text, "legacy last={last} size={size}").unwrap();
                decode_legacy(&message, DecodeLimits::default()).unwrap()
            }
        };
        for record in records {
            describe_record(&record, &mut text);
        }
    }
    text
}

fn describe_batch(batch: &RawBatch, text: &mut String) {
    let header = batch.header();
    write!(
        text,
        "batch base={} last={} size={} codec={} count={} max={} crc={:08x} leader={} \
         producer={}/{}/{}",
        header.base_offset,
        header.last_offset(),
        batch.size(),
        batch.compression(),
        header.record_count,
        header.max_timestamp,
        header.crc,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    .unwrap();
    if header.attributes.is_append_time() {
        text.push_str(" append-time");
    }
    if batch.is_transactional() {
        text.push_str(" transactional");
    }
    if header.attributes.has_delete_horizon() {
        write!(text, " horizon={}", header.base_timestamp).unwrap();
    }
    if let Some(control) = batch.control().unwrap() {
        assert_eq!(control.producer_id, header.producer_id);
        text.push_str(match control.kind {
            ControlType::Commit => " control=COMMIT",
            ControlType::Abort => " control=ABORT",
            ControlType::Other => " control=LEADER_CHANGE",
        });
    }
    text.push('\n');
}

fn describe_record(record: &Record, text: &mut String) {
    let (key, value) = (show(record.key.as_ref()), show(record.value.as_ref()));
    write!(
        text,
        "{} t={} key={key} value={value}",
        record.offset, record.timestamp
    )
    .unwrap();
    for (key, value) in &record.headers {
        write!(text, " {}={}", show(Some(key)), show(value.as_ref())).unwrap();
    }
    text.push('\n');
}

fn show(bytes: Option<&Bytes>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 64 => {
            format!("{}:{:08x}", bytes.len(), crc_fast::crc32_iscsi(bytes))
        }
        Some(bytes) => bytes
            .iter()
            .fold("x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}
