//! What is asked of a cluster besides records, as plain functions.
//!
//! Each makes one attempt; every item has its own result, so that one bad topic does not hide the
//! others. Where an answer shows that leaders have moved, the snapshot is marked stale and the next
//! call refreshes it first.

mod cluster;
mod configs;
mod leaders;
mod offsets;
mod producers;
mod topics;

use std::collections::BTreeMap;

pub use self::cluster::{ClusterDescription, describe_cluster};
pub use self::configs::{
    ConfigChange, ConfigEntry, ConfigResource, ConfigSource, describe_configs,
    incremental_alter_configs,
};
pub use self::offsets::{
    EpochEnd, ListedOffset, OffsetQuery, View, delete_records, end_offsets_for_epochs, list_offsets,
};
pub use self::producers::{ProducerId, ProducerState, describe_producers, init_producer_id};
pub use self::topics::{
    CreatedTopic, NewTopic, create_partitions, create_topics, delete_topics, validate_topics,
};

use crate::error::Result;

/// A result for each thing that was asked about.
pub type Results<K, V> = BTreeMap<K, Result<V>>;
