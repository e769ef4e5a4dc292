//! One partition's log: batches in order, the epochs they were written in, and what producers did.
//!
//! ```text
//!  start            last stable      high watermark      end
//!    |- batch -|- batch -|- open txn -|- not replicated -|
//! ```
//!
//! There is one log per partition, not one per replica: replication is instant unless a test holds
//! the high watermark back.
//!
//! Invariants: A. batches are sorted and do not overlap; B. `start <= high_watermark <= end`;
//! C. epochs and their start offsets both ascend.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

pub(crate) mod batch;
mod compact;
pub use compact::Compaction;
pub(crate) mod compression;
pub(crate) mod producers;
pub(crate) mod records;
pub(crate) mod validate;

use batch::{Batch, Marker};
use producers::Producers;

/// What a read found.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Whole batches, the last one possibly cut at the limit.
    pub records: Bytes,
    /// The offset after the last batch in it.
    pub until: i64,
}

/// A log and its indexes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    batches: VecDeque<Batch>,
    start: i64,
    end: i64,
    held_high_watermark: Option<i64>,
    epochs: Vec<(i32, i64)>,
    /// What the partition remembers of producers.
    pub producers: Producers,
}

impl Log {
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The offset that the next record gets.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Up to where consumers may read.
    pub fn high_watermark(&self) -> i64 {
        self.held_high_watermark.unwrap_or(self.end)
    }

    /// Up to where read_committed consumers may read.
    pub fn last_stable_offset(&self) -> i64 {
        let open = self.producers.first_open_offset().unwrap_or(i64::MAX);
        open.min(self.high_watermark())
    }

    /// Keeps the high watermark where it is, as followers that stopped do; or lets it catch up.
    pub fn hold_high_watermark(&mut self, hold: bool) {
        self.held_high_watermark = hold.then(|| self.high_watermark());
    }

    /// Begins a leader's reign: an epoch without records takes the place of another one.
    pub fn begin_epoch(&mut self, epoch: i32) {
        let end = self.end;
        self.epochs.retain(|(_, start)| *start < end);
        self.epochs.push((epoch, end));
    }

    /// Where `epoch` ended: the largest epoch not above it, and the offset after its last record.
    pub fn end_of_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        if epoch < 0 {
            return None;
        }
        let after = self.epochs.partition_point(|(known, _)| *known <= epoch);
        match (
            after.checked_sub(1).map(|at| self.epochs[at]),
            self.epochs.get(after),
        ) {
            (Some((known, _)), Some((_, next_start))) => Some((known, *next_start)),
            (Some((known, _)), None) => (known == epoch).then_some((known, self.end)),
            (None, Some((_, first_start))) => Some((epoch, *first_start)),
            (None, None) => None,
        }
    }

    /// The epoch that `offset` was, or would be, written in.
    pub fn epoch_of(&self, offset: i64) -> Option<i32> {
        let after = self.epochs.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).map(|at| self.epochs[at].0)
    }

    /// Adds a batch that begins at the log's end.
    pub fn append(&mut self, batch: Batch) {
        debug_assert_eq!(
            batch.header.base_offset, self.end,
            "batches are appended at the end"
        );
        match batch.as_marker() {
            Some(marker) => {
                let at = batch.header.base_offset;
                self.producers
                    .marked(&marker, at, batch.header.max_timestamp);
            }
            None => self.producers.appended(&batch.header),
        }
        self.end = batch.header.last_offset() + 1;
        self.batches.push_back(batch);
    }

    /// Adds the end of a transaction, and answers its offset.
    pub fn append_marker(&mut self, marker: Marker, leader_epoch: i32, now: i64) -> i64 {
        let offset = self.end;
        self.append(Batch::marker(marker, offset, leader_epoch, now));
        offset
    }

    /// Batches from the one that holds `from`, up to offset `limit`, in at most `bytes_max` bytes.
    /// The first batch is whole, whatever its size, if `at_least_one`.
    pub fn read(&self, from: i64, limit: i64, bytes_max: usize, at_least_one: bool) -> Read {
        let mut chosen = Vec::new();
        let mut room = bytes_max;
        let mut until = from;
        for batch in self.batches.range(self.index_of(from)..) {
            if batch.header.last_offset() >= limit || (room == 0 && !chosen.is_empty()) {
                break;
            }
            let whole = chosen.is_empty() && at_least_one;
            let size = batch.bytes.len();
            let taken = if whole { size } else { size.min(room) };
            if taken == 0 {
                break;
            }
            chosen.push(batch.bytes.slice(..taken));
            room = room.saturating_sub(taken);
            until = batch.header.last_offset() + 1;
        }
        Read {
            records: join(&chosen),
            until,
        }
    }

    /// Drops everything below `offset` as far as batches allow, and starts the log there.
    pub fn delete_before(&mut self, offset: i64) {
        self.start = self.start.max(offset);
        let start = self.start;
        while self
            .batches
            .front()
            .is_some_and(|batch| batch.header.last_offset() < start)
        {
            self.batches.pop_front();
        }
        let current = self
            .epochs
            .partition_point(|(_, epoch_start)| *epoch_start <= start);
        self.epochs.drain(..current.saturating_sub(1));
        if let Some((_, epoch_start)) = self.epochs.first_mut() {
            *epoch_start = (*epoch_start).max(start);
        }
        self.producers.log_starts_at(start);
    }

    /// Cuts off the batches that reach beyond `offset`, and forgets what they said.
    pub fn truncate(&mut self, offset: i64) {
        let mut end = self.end.min(offset);
        while let Some(batch) = self
            .batches
            .pop_back_if(|b| b.header.last_offset() >= offset)
        {
            end = end.min(batch.header.base_offset);
        }
        self.end = end;
        self.start = self.start.min(end);
        if let Some(held) = &mut self.held_high_watermark {
            *held = (*held).min(self.end);
        }
        self.epochs.retain(|(_, start)| *start < end);
        self.rebuild_producers();
    }

    /// Where the last `count` batches begin: what a crash loses that had not been flushed.
    pub fn before_last_batches(&self, count: usize) -> i64 {
        match self.batches.len().checked_sub(count) {
            Some(at) => self
                .batches
                .get(at)
                .map_or(self.end, |batch| batch.header.base_offset),
            None => self.start,
        }
    }

    /// All batches, oldest first.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.batches.iter()
    }

    /// The first record at or after `timestamp` (ms) below `limit`: its timestamp and offset.
    pub fn find_timestamp(&self, timestamp: i64, limit: i64) -> Option<(i64, i64)> {
        self.batches
            .iter()
            .filter(|batch| batch.header.max_timestamp >= timestamp)
            .filter_map(|batch| {
                record_times(batch)
                    .into_iter()
                    .find(|(time, offset)| *time >= timestamp && *offset >= self.start)
            })
            .next()
            .filter(|(_, offset)| *offset < limit)
    }

    /// The first record that has the largest timestamp: its timestamp and offset.
    pub fn max_timestamp(&self) -> Option<(i64, i64)> {
        let newest = self
            .batches
            .iter()
            .map(|batch| batch.header.max_timestamp)
            .max()?;
        let batch = self
            .batches
            .iter()
            .find(|batch| batch.header.max_timestamp == newest)?;
        record_times(batch)
            .into_iter()
            .find(|(time, _)| *time == newest)
    }

    fn index_of(&self, offset: i64) -> usize {
        self.batches
            .partition_point(|batch| batch.header.last_offset() < offset)
    }

    fn rebuild_producers(&mut self) {
        self.producers = Producers::default();
        for batch in &self.batches {
            match batch.as_marker() {
                Some(marker) => {
                    let at = batch.header.base_offset;
                    self.producers
                        .marked(&marker, at, batch.header.max_timestamp);
                }
                None => self.producers.appended(&batch.header),
            }
        }
    }
}

fn join(slices: &[Bytes]) -> Bytes {
    if let [one] = slices {
        return one.clone();
    }
    let mut joined = BytesMut::with_capacity(slices.iter().map(Bytes::len).sum());
    slices
        .iter()
        .for_each(|slice| joined.extend_from_slice(slice));
    joined.freeze()
}

/// Timestamp and offset of every record. A stored batch decodes: the broker did it at arrival.
fn record_times(batch: &Batch) -> Vec<(i64, i64)> {
    let header = &batch.header;
    let Ok(body) = compression::decompress(header.codec(), batch.body()) else {
        return Vec::new();
    };
    let time = |delta: i64| {
        if header.is_append_time() {
            header.max_timestamp
        } else {
            header.base_timestamp.wrapping_add(delta)
        }
    };
    records::Records::new(&body)
        .map_while(Result::ok)
        .map(|r| {
            (
                time(r.timestamp_delta),
                header.base_offset + i64::from(r.offset_delta),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
