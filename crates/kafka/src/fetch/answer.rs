//! What a fetch brought.

use std::time::Duration;

use bytes::Bytes;
use twinlog_core::ids::TopicPartition;

use crate::error::ErrorCode;
use crate::wire::fetch_response::PartitionData;

/// What an answer said.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    /// How long the broker asked us to be silent.
    pub throttle: Duration,
    /// The partitions that had something to say; in a session the silent ones are left out.
    pub partitions: Vec<FetchedPartition>,
}

impl Fetched {
    /// The size of all records in it, in bytes.
    pub fn bytes(&self) -> usize {
        let records = self.partitions.iter().map(|partition| &partition.records);
        records.map(Bytes::len).sum()
    }
}

/// What an answer said about one partition.
#[derive(Debug, Clone)]
pub struct FetchedPartition {
    /// The partition.
    pub partition: TopicPartition,
    /// The offset that was asked for; the caller may have moved on meanwhile.
    pub fetch_offset: i64,
    /// [`ErrorCode::NONE`], or why there are no records.
    pub error: ErrorCode,
    /// All replicas have what lies below this offset; -1 if unknown.
    pub high_watermark: i64,
    /// No transaction that is still open has records below this offset; -1 if unknown.
    pub last_stable_offset: i64,
    /// The first offset there is; -1 if unknown.
    pub log_start_offset: i64,
    /// Transactions that were aborted, among the records below; only with
    /// [`Isolation::ReadCommitted`].
    pub aborted: Vec<AbortedTransaction>,
    /// A replica nearer to `client.rack`, to be asked from now on (KIP-392); the records are then
    /// empty.
    pub preferred_read_replica: Option<i32>,
    /// The leader and its epoch, if the asked broker isn't it (KIP-951).
    pub current_leader: Option<(i32, i32)>,
    /// Where the log parts from the last fetched epoch (KIP-595): that epoch and its end offset.
    pub diverging: Option<(i32, i64)>,
    /// Whole batches as they lie in the log, the last one possibly cut. A slice of the answer's
    /// frame.
    pub records: Bytes,
}

/// The records of this producer from this offset to the producer's next control record were
/// aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// The transaction's first offset in the partition.
    pub first_offset: i64,
}

impl FetchedPartition {
    pub(super) fn new(
        partition: TopicPartition,
        fetch_offset: i64,
        data: PartitionData,
    ) -> FetchedPartition {
        let aborted = data.aborted_transactions.unwrap_or_default();
        let leader = (
            data.current_leader.leader_id.0,
            data.current_leader.leader_epoch,
        );
        let diverging = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset);
        FetchedPartition {
            partition,
            fetch_offset,
            error: ErrorCode(data.error_code),
            high_watermark: data.high_watermark,
            last_stable_offset: data.last_stable_offset,
            log_start_offset: data.log_start_offset,
            aborted: aborted
                .iter()
                .map(|transaction| AbortedTransaction {
                    producer_id: transaction.producer_id.0,
                    first_offset: transaction.first_offset,
                })
                .collect(),
            preferred_read_replica: Some(data.preferred_read_replica.0).filter(|id| *id >= 0),
            current_leader: Some(leader).filter(|(id, _)| *id >= 0),
            diverging: Some(diverging).filter(|(epoch, _)| *epoch >= 0),
            records: data.records.unwrap_or_default(),
        }
    }
}
