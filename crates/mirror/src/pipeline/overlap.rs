//! Records beyond the frontier that the target's log holds already, as after a crash: read again
//! from the source, they are passed over.
//!
//! How many there are is known, and while the source's log is as it was when they were copied, to
//! count them is exact. Where it may have changed since - retention and compaction remove records -
//! counting must never pass over too many: *each offset counts*, as if it had held a record. Where
//! gaps show, records are rather *compared* with those on the target, one by one, because gaps may
//! be older than the copy. The first that differs ends the overlap, and so does the source's end
//! as of its beginning: what is copied twice can be told, what is lost cannot.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use twinlog_core::ids::UpstreamOffset;
use twinlog_kafka::batch::Record;

/// More records than this are counted and not compared: eight bytes of each are kept.
const COMPARED_MAX: i64 = 4 << 20;

/// What the target holds beyond the frontier, and how far it was found again on the source.
#[derive(Debug)]
pub struct Overlap {
    /// Records of ours on the target.
    pub total: i64,
    /// Those of them that were not met on the source yet.
    pub left: i64,
    /// Records of others between them.
    pub foreign: i64,
    /// The source offset behind everything that was met.
    pub reached: UpstreamOffset,
    /// Where the source's log ended after the target's was looked at: whatever lies there is new.
    pub source_end: Option<UpstreamOffset>,
    /// The records on the target, once they are to be compared.
    pub prints: Option<Arc<[u64]>>,
}

/// Which records of a batch the target's log holds already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    /// Those at the first so many offsets.
    Offsets(i64),
    /// Those that equal these, one by one, up to the first that does not.
    Same {
        /// The prints of the records on the target.
        prints: Arc<[u64]>,
        /// The first that may be met.
        at: usize,
        /// Whether the target left the records' times alone.
        with_time: bool,
    },
}

/// How an overlap ended with records left that the source did not show again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmet {
    /// Copying goes on here.
    pub from: UpstreamOffset,
    /// Records on the target that were not met.
    pub records: i64,
    /// Whether the source had no more to show; if not, it showed something else.
    pub at_end: bool,
}

impl Overlap {
    /// An overlap of which nothing was met yet; `from` is the frontier.
    pub fn new(from: UpstreamOffset, total: i64, foreign: i64) -> Self {
        Overlap {
            total,
            left: total,
            foreign,
            reached: from,
            source_end: None,
            prints: None,
        }
    }

    /// Begins again from `from`.
    pub fn rewind(&mut self, from: UpstreamOffset) {
        self.left = self.total;
        self.reached = from;
        self.prints = None;
    }

    /// Passes over up to so many records; those that are too many come back.
    pub fn pass(&mut self, records: i64, end: UpstreamOffset) -> i64 {
        let passed = records.min(self.left);
        self.left -= passed;
        self.reached = end;
        records - passed
    }

    /// Whether records may be compared, and are not yet.
    pub fn can_compare(&self) -> bool {
        self.prints.is_none() && self.total <= COMPARED_MAX
    }

    /// Which records of the batch that begins at `base` are there.
    pub fn there(&self, base: UpstreamOffset, with_time: bool) -> There {
        if let Some(prints) = &self.prints {
            let at = usize::try_from(self.total - self.left).unwrap_or(usize::MAX);
            let prints = prints.clone();
            return There::Same {
                prints,
                at,
                with_time,
            };
        }
        let old = self.source_end.map_or(i64::MAX, |end| end.0 - base.0);
        There::Offsets(self.left.min(old.max(0)))
    }
}

impl There {
    /// How many of the first of these records, which begin at `base`, are there.
    pub fn count(&self, base: UpstreamOffset, records: &[Record]) -> usize {
        match self {
            There::Offsets(offsets) => {
                records.partition_point(|record| record.offset - base.0 < *offsets)
            }
            There::Same {
                prints,
                at,
                with_time,
            } => {
                let expected = prints.get(*at..).unwrap_or_default();
                let both = records.iter().zip(expected);
                both.take_while(|(record, expected)| print(record, *with_time) == **expected)
                    .count()
            }
        }
    }
}

/// What two records have in common only if they are the same. It is not kept: its bits may differ
/// from release to release.
pub fn print(record: &Record, with_time: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    with_time.then_some(record.timestamp).hash(&mut hasher);
    (&record.key, &record.value, &record.headers).hash(&mut hasher);
    hasher.finish()
}
