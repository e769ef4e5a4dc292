//! The bytes of a small topic, as Kafka's own consumer reads them; see `java/Dump.java`.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::java_tools::Tool;

/// How long reading may take; such topics are small.
const READING: Duration = Duration::from_secs(60);

/// A record of a topic, without timestamp and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedRecord {
    /// The partition it is in.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// The key's bytes.
    pub key: Option<Vec<u8>>,
    /// The value's bytes.
    pub value: Option<Vec<u8>>,
}

/// All committed records of a topic, in order within each partition.
///
/// # Errors
/// When the topic doesn't exist or can't be read.
pub fn dump_topic(bootstrap: &str, topic: &str) -> Result<Vec<DumpedRecord>> {
    let options = [
        ("bootstrap", bootstrap.to_owned()),
        ("topic", topic.to_owned()),
    ];
    let output = Tool::start("Dump", &options)?.finish(READING)?;
    let records = output
        .lines()
        .filter_map(|line| line.strip_prefix("record "));
    records.map(parse).collect()
}

fn parse(line: &str) -> Result<DumpedRecord> {
    let mut words = line.split(' ');
    let mut word = || {
        words
            .next()
            .with_context(|| format!("a word is missing in {line}"))
    };
    Ok(DumpedRecord {
        partition: word()?.parse().context("a partition")?,
        offset: word()?.parse().context("an offset")?,
        key: bytes(word()?)?,
        value: bytes(word()?)?,
    })
}

/// Hex between quotes; without them it is `null`.
fn bytes(word: &str) -> Result<Option<Vec<u8>>> {
    let Some(hex) = word
        .strip_prefix('\'')
        .and_then(|hex| hex.strip_suffix('\''))
    else {
        return Ok(None);
    };
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2));
    pairs
        .map(|pair| u8::from_str_radix(pair.context("half a byte")?, 16).context("no hex"))
        .collect::<Result<_>>()
        .map(Some)
}
