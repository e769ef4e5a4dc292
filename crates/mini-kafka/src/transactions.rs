//! The transaction coordinator: who holds a transactional id, and what the open transaction
//! touches.
//!
//! Markers are written within the EndTxn request; there is no state between prepare and complete.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError::{
    ConcurrentTransactions, InvalidProducerIdMapping, InvalidTxnState, ProducerFenced,
};

use crate::log::batch::Marker;
use crate::refusal::Refusal;
use crate::state::State;

/// Producer ids that the cluster hands out are below those that clients make up.
const FIRST_PRODUCER_ID: i64 = 1_000;

/// One transactional id.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub producer_id: i64,
    pub epoch: i16,
    /// A transaction is open, with or without partitions.
    pub ongoing: bool,
    /// How the last one ended, for retries of EndTxn.
    pub committed: Option<bool>,
    pub partitions: BTreeSet<(String, i32)>,
}

/// All transactional ids, and the next free producer id.
#[derive(Debug)]
pub(crate) struct Transactions {
    by_id: BTreeMap<String, Transaction>,
    next_producer_id: i64,
    /// Of markers; goes up with every coordinator.
    pub coordinator_epoch: i32,
    /// Answers 51 to everything, as a coordinator does that is still writing markers.
    pub busy: bool,
}

impl Default for Transactions {
    fn default() -> Self {
        Transactions {
            by_id: BTreeMap::new(),
            next_producer_id: FIRST_PRODUCER_ID,
            coordinator_epoch: 0,
            busy: false,
        }
    }
}

impl Transactions {
    pub fn new_producer_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    pub fn get(&self, id: &str) -> Option<&Transaction> {
        self.by_id.get(id)
    }

    /// The transaction, if the producer still owns it.
    pub fn owned(
        &mut self,
        id: &str,
        producer_id: i64,
        epoch: i16,
    ) -> Result<&mut Transaction, Refusal> {
        if self.busy {
            return Err(ConcurrentTransactions.into());
        }
        let transaction = self.by_id.get_mut(id).ok_or(InvalidProducerIdMapping)?;
        if transaction.producer_id != producer_id {
            return Err(InvalidProducerIdMapping.into());
        }
        if transaction.epoch != epoch {
            return Err(ProducerFenced.into());
        }
        Ok(transaction)
    }
}

impl State {
    /// Gives `id` to a new producer: what was open is rolled back, and the epoch goes up.
    pub fn init_transactional(&mut self, id: &str) -> Result<(i64, i16), Refusal> {
        if self.transactions.busy {
            return Err(ConcurrentTransactions.into());
        }
        let Some(known) = self.transactions.by_id.get(id).cloned() else {
            let producer_id = self.transactions.new_producer_id();
            let partitions = BTreeSet::new();
            let fresh = Transaction {
                producer_id,
                epoch: 0,
                ongoing: false,
                committed: None,
                partitions,
            };
            self.transactions.by_id.insert(id.to_owned(), fresh);
            return Ok((producer_id, 0));
        };
        if known.ongoing {
            // Fenced first: the markers carry the higher epoch, so that the old owner's batches are
            // refused.
            self.bump(id, &known);
            self.finish(id, false);
        }
        let current = self.transactions.by_id[id].clone();
        Ok(self.bump(id, &current))
    }

    /// Ends the open transaction; answers the producer's id and epoch from now on.
    pub fn end_transaction(
        &mut self,
        id: &str,
        producer: (i64, i16),
        commit: bool,
        bump: bool,
    ) -> Result<(i64, i16), Refusal> {
        let known = match self.transactions.owned(id, producer.0, producer.1) {
            Ok(transaction) => transaction.clone(),
            Err(refusal) => return self.repeated_end(id, producer, commit, bump).ok_or(refusal),
        };
        if !known.ongoing {
            return match known.committed {
                Some(last) if last == commit && !bump => Ok(producer),
                _ if bump && !commit => Ok(self.bump(id, &known)),
                _ => Err(InvalidTxnState.into()),
            };
        }
        // With transaction version 2 (KIP-890) the marker carries the next epoch already.
        let next = if bump {
            self.bump(id, &known)
        } else {
            producer
        };
        self.finish(id, commit);
        Ok(next)
    }

    /// A version 5 EndTxn whose answer was lost is answered again, although the epoch has moved on.
    fn repeated_end(
        &self,
        id: &str,
        (producer_id, epoch): (i64, i16),
        commit: bool,
        bump: bool,
    ) -> Option<(i64, i16)> {
        let known = self.transactions.get(id)?;
        let repeated = bump
            && known.producer_id == producer_id
            && known.epoch == epoch.wrapping_add(1)
            && known.committed == Some(commit)
            && !known.ongoing;
        repeated.then_some((producer_id, known.epoch))
    }

    fn finish(&mut self, id: &str, committed: bool) {
        let coordinator_epoch = self.transactions.coordinator_epoch;
        let Some(transaction) = self.transactions.by_id.get_mut(id) else {
            return;
        };
        transaction.ongoing = false;
        transaction.committed = Some(committed);
        let marker = Marker {
            producer_id: transaction.producer_id,
            producer_epoch: transaction.epoch,
            coordinator_epoch,
            committed,
        };
        for (topic, partition) in std::mem::take(&mut transaction.partitions) {
            // A topic that was deleted meanwhile needs no marker.
            let _gone = self.write_marker(&topic, partition, marker);
        }
        self.groups.end_transaction(marker.producer_id, committed);
    }

    /// Appends a marker where the partition's leader is up or not: the log is one for all replicas.
    pub fn write_marker(
        &mut self,
        topic: &str,
        index: i32,
        marker: Marker,
    ) -> Result<i64, Refusal> {
        let now = self.now_ms();
        let partition = self.partition_mut(topic, index)?;
        partition.log.producers.check_marker(&marker)?;
        let offset = partition
            .log
            .append_marker(marker, partition.leader_epoch, now);
        let replicas = partition.replicas.clone();
        self.appended_to(&replicas);
        Ok(offset)
    }

    fn bump(&mut self, id: &str, known: &Transaction) -> (i64, i16) {
        let (producer_id, epoch) = if known.epoch >= i16::MAX - 1 {
            (self.transactions.new_producer_id(), 0)
        } else {
            (known.producer_id, known.epoch + 1)
        };
        if let Some(transaction) = self.transactions.by_id.get_mut(id) {
            (transaction.producer_id, transaction.epoch) = (producer_id, epoch);
        }
        (producer_id, epoch)
    }
}
