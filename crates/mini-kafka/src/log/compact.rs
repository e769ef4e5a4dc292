//! Compaction on demand (`LogCleaner`, `MemoryRecords.filterTo`): thinned batches keep base offset
//! and `lastOffsetDelta`, so that offsets get holes and counts no longer fit.

use std::collections::{BTreeMap, BTreeSet};

use super::Log;
use super::batch::Batch;
use super::compression;
use super::records::Records;

const DELETE_HORIZON_BIT: i16 = 1 << 6;

/// How far a compaction goes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compaction {
    /// Only offsets below this are cleaned, as the active segment never is; nothing means all
    /// offsets below the last stable one.
    pub below: Option<i64>,
    /// Stamp batches that hold tombstones with this delete horizon (wall clock, ms), as brokers
    /// from 3.1 on do (KIP-534): attribute bit 6, and the base timestamp becomes the horizon.
    pub delete_horizon_ms: Option<i64>,
    /// Drop tombstones and transaction markers too, as the cleaner does after
    /// `delete.retention.ms`.
    pub drop_tombstones: bool,
}

impl Log {
    /// Keeps the last record of every key.
    pub fn compact(&mut self, how: Compaction) {
        let below = how.below.unwrap_or(i64::MAX).min(self.last_stable_offset());
        let aborted = self.aborted_batches(below);
        let last = self.last_offsets(below, &aborted);
        let kept_empty = self.last_batches_of_producers();
        let end = self.end;
        self.batches = std::mem::take(&mut self.batches)
            .into_iter()
            .filter_map(|batch| {
                let base = batch.header.base_offset;
                if batch.header.last_offset() >= below {
                    return Some(batch);
                }
                if batch.header.is_control() {
                    return (!how.drop_tombstones).then_some(batch);
                }
                let keep = |offset: i64, key: Option<&[u8]>| {
                    !aborted.contains(&base) && key.and_then(|key| last.get(key)) == Some(&offset)
                };
                let keep_empty =
                    kept_empty.contains(&base) || batch.header.last_offset() + 1 == end;
                thin(batch, how, keep_empty, keep)
            })
            .collect();
    }

    /// Base offsets of the batches whose transaction was rolled back.
    fn aborted_batches(&self, below: i64) -> BTreeSet<i64> {
        let mut found = BTreeSet::new();
        for aborted in self.producers.aborted_in(0, below) {
            let within = aborted.first_offset..aborted.last_offset;
            let of_it = |batch: &&Batch| {
                batch.header.producer_id == aborted.producer_id
                    && batch.header.is_transactional()
                    && within.contains(&batch.header.base_offset)
            };
            found.extend(
                self.batches
                    .iter()
                    .filter(of_it)
                    .map(|batch| batch.header.base_offset),
            );
        }
        found
    }

    fn last_offsets(&self, below: i64, aborted: &BTreeSet<i64>) -> BTreeMap<Vec<u8>, i64> {
        let mut last = BTreeMap::new();
        for batch in self
            .batches
            .iter()
            .filter(|batch| batch.header.last_offset() < below)
        {
            let base = batch.header.base_offset;
            if batch.header.is_control() || aborted.contains(&base) {
                continue;
            }
            let body = compression::decompress(batch.header.codec(), batch.body());
            for record in Records::new(&body.unwrap_or_default()).map_while(Result::ok) {
                if let Some(key) = record.key {
                    last.insert(key.to_vec(), base + i64::from(record.offset_delta));
                }
            }
        }
        last
    }

    /// Producers' last batches stay, emptied, because the sequence numbers live in them.
    fn last_batches_of_producers(&self) -> BTreeSet<i64> {
        let mut last = BTreeMap::new();
        for batch in self
            .batches
            .iter()
            .filter(|batch| batch.header.producer_id >= 0)
        {
            last.insert(batch.header.producer_id, batch.header.base_offset);
        }
        last.into_values().collect()
    }
}

/// The batch with only the records that `keep` wants; nothing if it is not worth keeping.
fn thin(
    batch: Batch,
    how: Compaction,
    keep_empty: bool,
    keep: impl Fn(i64, Option<&[u8]>) -> bool,
) -> Option<Batch> {
    let mut header = batch.header;
    let body = compression::decompress(header.codec(), batch.body()).ok()?;
    let all: Vec<_> = Records::new(&body).map_while(Result::ok).collect();
    let kept: Vec<_> = all
        .iter()
        .filter(|r| keep(header.base_offset + i64::from(r.offset_delta), r.key))
        .filter(|r| !(how.drop_tombstones && r.value.is_none()))
        .collect();
    if kept.is_empty() && !keep_empty {
        return None;
    }
    let horizon = how
        .delete_horizon_ms
        .filter(|_| header.attributes & DELETE_HORIZON_BIT == 0)
        .filter(|_| kept.iter().any(|record| record.value.is_none()));
    if kept.len() == all.len() && horizon.is_none() {
        return Some(batch);
    }
    if !header.is_append_time() {
        let newest = kept
            .iter()
            .map(|r| header.base_timestamp.wrapping_add(r.timestamp_delta))
            .max();
        header.max_timestamp = newest.unwrap_or(header.max_timestamp);
    }
    let shift = horizon.map_or(0, |horizon| header.base_timestamp.wrapping_sub(horizon));
    let records: Vec<u8> = kept
        .iter()
        .flat_map(|r| r.with_timestamp_delta(r.timestamp_delta.wrapping_add(shift)))
        .collect();
    if let Some(horizon) = horizon {
        header.attributes |= DELETE_HORIZON_BIT;
        header.base_timestamp = horizon;
    }
    header.count = kept.len() as i32;
    let packed = if kept.is_empty() {
        Vec::new()
    } else {
        compression::compress(header.codec(), &records).ok()?
    };
    Some(Batch::build(header, &packed))
}
