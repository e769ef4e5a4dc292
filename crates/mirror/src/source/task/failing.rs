//! Partitions that fail again and again are told of together: a cluster that makes thousands of new
//! partitions has thousands whose leaders are not ready, for one and the same reason.

use std::collections::BTreeMap;
use std::time::Duration;

use twinlog_core::ids::TopicPartition;
use twinlog_kafka::error::{Error, ErrorCode};

use super::reading::described;

/// How long failures are gathered before they are told.
pub const TELL_AFTER: Duration = Duration::from_secs(1);

/// Failures that are to be told, by what was attempted and how it failed.
#[derive(Debug, Default)]
pub struct Failing {
    rows: BTreeMap<(String, Option<ErrorCode>), Row>,
}

#[derive(Debug)]
struct Row {
    partitions: usize,
    for_example: TopicPartition,
    error: String,
    failures: u32,
}

impl Failing {
    /// Adds a partition. Whether it is the first: then there is something to tell, soon.
    pub fn add(
        &mut self,
        partition: &TopicPartition,
        action: &str,
        error: &Error,
        failures: u32,
    ) -> bool {
        let is_first = self.rows.is_empty();
        let row = self.rows.entry((action.to_owned(), error.code()));
        let row = row.or_insert_with(|| Row {
            partitions: 0,
            for_example: partition.clone(),
            error: described(error),
            failures,
        });
        row.partitions += 1;
        row.failures = row.failures.max(failures);
        is_first
    }

    /// Tells, a line for each kind of failure.
    pub fn tell(&mut self) {
        for ((action, _), row) in std::mem::take(&mut self.rows) {
            let Row {
                partitions,
                for_example,
                error,
                failures,
            } = row;
            tracing::warn!(action, partitions, %for_example, error, failures, "still failing, trying again");
        }
    }
}
