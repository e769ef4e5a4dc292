//! Which batches of an answer belong to aborted transactions (KIP-98).

use std::collections::BTreeSet;

use crate::batch::{BatchError, ControlType, RawBatch};
use crate::fetch::AbortedTransaction;

/// The aborted transactions of one answer, followed along its batches.
pub(super) struct AbortedSet {
    /// Those that have not begun yet, the latest first.
    ahead: Vec<AbortedTransaction>,
    /// Producers in the middle of one.
    open: BTreeSet<i64>,
}

impl AbortedSet {
    pub(super) fn new(aborted: &[AbortedTransaction]) -> AbortedSet {
        let mut ahead = aborted.to_vec();
        ahead.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        AbortedSet {
            ahead,
            open: BTreeSet::new(),
        }
    }

    /// Whether nobody may see the batch: it is a control batch, or was aborted. Must see all
    /// batches in order.
    pub(super) fn on_batch(&mut self, batch: &RawBatch) -> Result<bool, BatchError> {
        while let Some(next) = self
            .ahead
            .pop_if(|next| next.first_offset <= batch.last_offset())
        {
            self.open.insert(next.producer_id);
        }
        if let Some(control) = batch.control()? {
            if control.kind == ControlType::Abort {
                self.open.remove(&control.producer_id);
            }
            return Ok(true);
        }
        Ok(batch.is_transactional() && self.open.contains(&batch.header().producer_id))
    }
}
