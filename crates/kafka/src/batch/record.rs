//! A record taken out of its batch.

use bytes::Bytes;

/// A record. Keys, values and headers share the memory of the batch they were decoded from.
///
/// The attributes byte that the format has per record is not kept: nothing uses it, and brokers
/// lose it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The offset in the partition it was read from; in a batch encoded from records it is the
    /// index.
    pub offset: i64,
    /// Milliseconds since 1970, or the append time where the topic has that; -1 for none.
    pub timestamp: i64,
    /// The key; null differs from empty.
    pub key: Option<Bytes>,
    /// The value; null is a tombstone on compacted topics.
    pub value: Option<Bytes>,
    /// Headers in their order. Keys repeat, and they are text by convention only.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}
