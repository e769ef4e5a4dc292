//! What a partition remembers of each producer: the sequence check that makes a retry harmless
//! (`ProducerStateManager`, `ProducerAppendInfo`).
//!
//! Invariants: an entry holds at most five batches; `open_since` is the first offset of a
//! transaction without end, and no batch of a closed transaction is in the aborted list twice.

use std::collections::{BTreeMap, VecDeque};

use kafka_protocol::ResponseError;

use super::batch::{Header, Marker};
use crate::refusal::Refusal;

/// How many batches back a retry is recognised.
const REMEMBERED_BATCHES: usize = 5;

/// The sequences of one batch, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
}

/// One producer, as `DescribeProducers` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Producer {
    pub epoch: i16,
    /// Timestamp of the last record (ms), which is what expiry counts from: not its arrival.
    pub last_timestamp: i64,
    /// Of the last transaction marker, -1 before the first.
    pub coordinator_epoch: i32,
    /// First offset of the transaction that has no end yet.
    pub open_since: Option<i64>,
    batches: VecDeque<Remembered>,
}

impl Producer {
    fn new(epoch: i16) -> Self {
        Producer {
            epoch,
            last_timestamp: -1,
            coordinator_epoch: -1,
            open_since: None,
            batches: VecDeque::new(),
        }
    }

    /// The last sequence, -1 if only a marker made the entry.
    pub fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(-1, |batch| batch.last_sequence)
    }

    fn move_to_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

/// A transaction that was rolled back, as read_committed fetches list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub producer_id: i64,
    pub first_offset: i64,
    /// Offset of the marker.
    pub last_offset: i64,
}

/// All producers of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producers {
    entries: BTreeMap<i64, Producer>,
    aborted: Vec<Aborted>,
}

impl Producers {
    /// The base offset of the stored batch that `header` repeats, if it is one of the last five.
    pub fn duplicate_of(&self, header: &Header) -> Option<i64> {
        let entry = self.entries.get(&header.producer_id)?;
        if entry.epoch != header.producer_epoch {
            return None;
        }
        let same = |batch: &&Remembered| {
            batch.first_sequence == header.base_sequence
                && batch.last_sequence == header.last_sequence()
        };
        entry
            .batches
            .iter()
            .find(same)
            .map(|batch| batch.base_offset)
    }

    /// Whether the batch may be appended: epoch not older, sequence the next one, transaction state
    /// fitting.
    pub fn check(&self, header: &Header) -> Result<(), Refusal> {
        let Some(entry) = self.entries.get(&header.producer_id) else {
            return Ok(()); // An unknown producer may begin at any sequence.
        };
        if header.producer_epoch < entry.epoch {
            return Err(ResponseError::InvalidProducerEpoch.into());
        }
        let expected = if header.producer_epoch == entry.epoch {
            entry.last_sequence().wrapping_add(1) & i32::MAX
        } else {
            0
        };
        if header.base_sequence != expected {
            return Err(Refusal::new(
                ResponseError::OutOfOrderSequenceNumber,
                format!("sequence {} where {expected} was due", header.base_sequence),
            ));
        }
        if entry.open_since.is_some() && !header.is_transactional() {
            return Err(ResponseError::InvalidTxnState.into());
        }
        Ok(())
    }

    /// Takes note of an appended data batch.
    pub fn appended(&mut self, header: &Header) {
        if header.producer_id < 0 {
            return;
        }
        let entry = self.entry(header.producer_id, header.producer_epoch);
        entry.move_to_epoch(header.producer_epoch);
        entry.last_timestamp = header.max_timestamp;
        if header.is_transactional() {
            entry.open_since.get_or_insert(header.base_offset);
        }
        if entry.batches.len() == REMEMBERED_BATCHES {
            entry.batches.pop_front();
        }
        entry.batches.push_back(Remembered {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
        });
    }

    /// Whether a marker may be appended: neither producer nor coordinator may be an older one.
    pub fn check_marker(&self, marker: &Marker) -> Result<(), Refusal> {
        let Some(entry) = self.entries.get(&marker.producer_id) else {
            return Ok(());
        };
        if marker.producer_epoch < entry.epoch {
            return Err(ResponseError::InvalidProducerEpoch.into());
        }
        if marker.coordinator_epoch < entry.coordinator_epoch {
            return Err(ResponseError::TransactionCoordinatorFenced.into());
        }
        Ok(())
    }

    /// Takes note of an appended marker.
    pub fn marked(&mut self, marker: &Marker, offset: i64, timestamp: i64) {
        let entry = self.entry(marker.producer_id, marker.producer_epoch);
        entry.move_to_epoch(marker.producer_epoch);
        entry.last_timestamp = timestamp;
        entry.coordinator_epoch = marker.coordinator_epoch;
        let Some(first_offset) = entry.open_since.take() else {
            return;
        };
        if !marker.committed {
            let producer_id = marker.producer_id;
            self.aborted.push(Aborted {
                producer_id,
                first_offset,
                last_offset: offset,
            });
        }
    }

    /// Where the oldest open transaction began.
    pub fn first_open_offset(&self) -> Option<i64> {
        self.entries
            .values()
            .filter_map(|entry| entry.open_since)
            .min()
    }

    /// Rolled-back transactions that touch offsets from `from` to below `until`.
    pub fn aborted_in(&self, from: i64, until: i64) -> Vec<Aborted> {
        let touches = |a: &&Aborted| a.last_offset >= from && a.first_offset < until;
        self.aborted.iter().filter(touches).copied().collect()
    }

    /// Forgets producers whose last *record* is older than `age_ms` and that have no open
    /// transaction.
    pub fn expire(&mut self, now: i64, age_ms: i64) {
        self.entries.retain(|_, entry| {
            entry.open_since.is_some() || now.saturating_sub(entry.last_timestamp) < age_ms
        });
    }

    /// Forgets what was rolled back below `offset`, which is gone from the log.
    pub fn log_starts_at(&mut self, offset: i64) {
        self.aborted.retain(|aborted| aborted.last_offset >= offset);
    }

    /// All producers, by id.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    fn entry(&mut self, producer_id: i64, epoch: i16) -> &mut Producer {
        self.entries
            .entry(producer_id)
            .or_insert_with(|| Producer::new(epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(epoch: i16, base_sequence: i32, count: i32, base_offset: i64) -> Header {
        Header {
            base_offset,
            batch_length: 0,
            leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: 0,
            max_timestamp: 1_000,
            producer_id: 7,
            producer_epoch: epoch,
            base_sequence,
            count,
        }
    }

    fn with(headers: &[Header]) -> Producers {
        let mut producers = Producers::default();
        headers.iter().for_each(|header| producers.appended(header));
        producers
    }

    fn code(result: Result<(), Refusal>) -> i16 {
        result.map_or_else(|refusal| refusal.code.code(), |()| 0)
    }

    #[test]
    fn only_the_next_sequence_of_the_same_epoch_is_taken() {
        let producers = with(&[header(3, 0, 10, 0)]);

        for (epoch, sequence, expected) in [
            (3, 10, 0),
            (3, 11, 45),
            (3, 9, 45),
            (2, 10, 47),
            (4, 0, 0),
            (4, 10, 45),
        ] {
            let got = code(producers.check(&header(epoch, sequence, 1, 10)));
            assert_eq!(got, expected, "epoch {epoch}, sequence {sequence}");
        }
    }

    #[test]
    fn an_unknown_producer_may_begin_anywhere() {
        assert_eq!(code(Producers::default().check(&header(5, 77, 1, 0))), 0);
    }

    #[test]
    fn the_last_five_batches_are_recognised_and_no_more() {
        let sent: Vec<_> = (0..6)
            .map(|n| header(0, n * 2, 2, i64::from(n) * 2))
            .collect();
        let producers = with(&sent);

        assert_eq!(producers.duplicate_of(&sent[0]), None);
        for batch in &sent[1..] {
            assert_eq!(producers.duplicate_of(batch), Some(batch.base_offset));
        }
        assert_eq!(
            producers.duplicate_of(&header(0, 10, 1, 0)),
            None,
            "cut differently"
        );
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let producers = with(&[header(0, i32::MAX - 1, 4, 0)]);

        let entry = &producers.entries[&7];
        assert_eq!(entry.last_sequence(), 1);
        assert_eq!(code(producers.check(&header(0, 2, 1, 4))), 0);
        let to_the_end = with(&[header(0, i32::MAX, 1, 0)]);
        assert_eq!(code(to_the_end.check(&header(0, 0, 1, 1))), 0);
    }

    #[test]
    fn an_entry_made_by_a_marker_wants_sequence_zero() {
        let mut producers = Producers::default();
        let marker = Marker {
            producer_id: 7,
            producer_epoch: 0,
            coordinator_epoch: 4,
            committed: false,
        };
        producers.marked(&marker, 0, 1_000);

        assert_eq!(code(producers.check(&header(0, 5, 1, 1))), 45);
        assert_eq!(code(producers.check(&header(0, 0, 1, 1))), 0);
        assert_eq!(
            code(producers.check_marker(&Marker {
                coordinator_epoch: 3,
                ..marker
            })),
            52
        );
        assert_eq!(code(producers.check_marker(&marker)), 0);
    }

    #[test]
    fn producers_expire_by_the_time_of_their_records() {
        let mut producers = with(&[header(0, 0, 1, 0)]);

        producers.expire(1_099, 100);
        assert_eq!(producers.iter().count(), 1);
        producers.expire(1_100, 100);
        assert_eq!(producers.iter().count(), 0);
    }
}
