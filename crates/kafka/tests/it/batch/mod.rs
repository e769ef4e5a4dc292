//! Record batches: Java's bytes, arbitrary records, and bytes that are lies.

mod golden;
mod hostile;
mod joining;
mod properties;

use bytes::Bytes;
use twinlog_kafka::batch::{Entry, RawBatch, walk};

/// The only batch in `records`.
fn single(records: Bytes) -> RawBatch {
    let entries: Vec<_> = walk(records).collect();
    match &entries[..] {
        [Ok(Entry::Batch(batch))] => batch.clone(),
        _ => panic!("not a single batch: {entries:?}"),
    }
}
