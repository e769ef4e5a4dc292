//! The rewrite of a header that makes a fetched batch ours.

use super::RawBatch;
use super::crc::corrected;
use super::header::{Attributes, CRC_AT, CRC_FROM, HEADER_LEN};

/// Who produces a batch, and with which sequence number it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStamp {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// The sequence number of the first record; the next batch's is greater by the record count,
    /// wrapping to 0.
    pub base_sequence: i32,
}

impl ProducerStamp {
    /// No idempotence: the broker takes the batch as often as it gets it.
    pub const NONE: ProducerStamp = ProducerStamp {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
    };
}

/// The header for producing `batch` as it is, to be sent in front of [`RawBatch::body`].
///
/// The base offset is 0 and the leader epoch -1, as brokers ask of producers; of the attributes the
/// codec alone stays: the other flags are about the source's log (append time, transaction, delete
/// horizon). The checksum is corrected from the changed bytes, so it is right exactly if it was.
///
/// Whether a batch may be forwarded at all is for the caller to decide: brokers refuse control
/// batches and batches that are not [contiguous](super::BatchHeader::is_contiguous), and an append
/// time is lost with its flag.
pub fn restamp(batch: &RawBatch, stamp: ProducerStamp) -> [u8; HEADER_LEN] {
    let old = &batch.bytes()[..HEADER_LEN];
    let mut header = *batch.header();
    header.base_offset = 0;
    header.partition_leader_epoch = -1;
    header.attributes = Attributes::from(batch.compression());
    header.producer_id = stamp.producer_id;
    header.producer_epoch = stamp.producer_epoch;
    header.base_sequence = stamp.base_sequence;
    let mut new = header.to_bytes();

    // A batch's length field is an i32, so its body's length fits 32 bits.
    let following = (batch.size() - HEADER_LEN) as u32;
    let crc = corrected(header.crc, &old[CRC_FROM..], &new[CRC_FROM..], following);
    new[CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
    new
}
