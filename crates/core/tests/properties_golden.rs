//! Our reader of `.properties` against the JVM's, on the rows that
//! `golden/java/PropertiesGolden.java` wrote.

use std::collections::BTreeMap;

use twinlog_core::config::properties::Properties;

const GOLDEN: &str = include_str!("golden/properties.tsv");
const ALPHABET: &[u8] = b"a\\\n\r =#u";
const LENGTH: usize = 6;

#[test]
fn tricky_files_are_read_as_the_jvm_reads_them() {
    for expected in GOLDEN.lines().filter(|row| !row.starts_with("#\t")) {
        let input = expected.split('\t').next().unwrap();

        assert_eq!(row(&unescape(input)), expected);
    }
}

#[test]
fn all_short_files_are_read_as_the_jvm_reads_them() {
    let hashes = GOLDEN.lines().filter_map(|row| row.strip_prefix("#\t"));
    for (start, expected) in hashes.filter_map(|row| row.split_once('\t')) {
        let mut hash = 0xcbf2_9ce4_8422_2325;

        enumerate(&mut unescape(start), &mut hash);

        assert_eq!(
            format!("{hash:016x}"),
            expected,
            "inputs that begin with {start}"
        );
    }
}

fn enumerate(input: &mut Vec<u8>, hash: &mut u64) {
    for byte in row(input).bytes() {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    if input.len() < LENGTH {
        for next in ALPHABET {
            input.push(*next);
            enumerate(input, hash);
            input.pop();
        }
    }
}

fn row(input: &[u8]) -> String {
    let properties = Properties::parse(input);
    let mut row = String::new();
    escape(
        &mut row,
        &input
            .iter()
            .map(|byte| u16::from(*byte))
            .collect::<Vec<_>>(),
    );
    if !properties.errors.is_empty() {
        row.push_str("\t!");
        return row;
    }
    // Later values of a key overwrite earlier ones, as in the JVM's map.
    let entries: BTreeMap<Vec<u16>, Vec<u16>> = properties
        .entries
        .iter()
        .map(|entry| {
            (
                entry.key.encode_utf16().collect(),
                entry.value.encode_utf16().collect(),
            )
        })
        .collect();
    for (key, value) in entries {
        row.push('\t');
        escape(&mut row, &key);
        row.push('\t');
        escape(&mut row, &value);
    }
    row
}

fn escape(out: &mut String, units: &[u16]) {
    for unit in units {
        match u8::try_from(*unit) {
            Ok(byte) if byte.is_ascii_graphic() && !b"\\!#".contains(&byte) => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("\\{unit:04x}")),
        }
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(4);
        bytes.push(u8::from_str_radix(code, 16).expect("a row holds hexadecimal codes"));
        bytes.extend(rest.bytes());
    }
    bytes
}
