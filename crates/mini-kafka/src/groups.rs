//! The group coordinator of the classic protocol: membership, rebalances, committed offsets.
//!
//! ```text
//!            join                all joined               leader synced
//!  Empty ----------> Preparing ------------> Completing ----------------> Stable
//!    ^ last one left     ^_______________________|__________________________|  join, leave, death
//! ```
//!
//! Members that fall silent are found when somebody else asks; there is no timer of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError::{
    self, IllegalGeneration, InconsistentGroupProtocol, RebalanceInProgress, UnknownMemberId,
};
use tokio::time::Instant;

use crate::changes::Changes;

/// Where a group is between two assignments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Empty,
    Preparing,
    Completing,
    Stable,
}

impl Phase {
    /// As tools show it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Empty => "Empty",
            Phase::Preparing => "PreparingRebalance",
            Phase::Completing => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }
}

/// A consumer, or another member.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub client_id: String,
    pub instance_id: Option<String>,
    pub protocols: Vec<(String, Bytes)>,
    pub session_timeout: Duration,
    pub rebalance_timeout: Duration,
    pub assignment: Bytes,
    /// Has joined the rebalance that is being prepared.
    joined: bool,
    heard: Instant,
}

impl Member {
    pub fn new(
        client_id: &str,
        instance_id: Option<String>,
        protocols: Vec<(String, Bytes)>,
        session_timeout: Duration,
        rebalance_timeout: Duration,
    ) -> Self {
        Member {
            client_id: client_id.to_owned(),
            instance_id,
            protocols,
            session_timeout,
            rebalance_timeout,
            assignment: Bytes::new(),
            joined: true,
            heard: Instant::now(),
        }
    }

    /// What the member says in a protocol.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        let said = self.protocols.iter().find(|(name, _)| name == protocol);
        said.map_or_else(Bytes::new, |(_, metadata)| metadata.clone())
    }
}

/// A committed position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Committed {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: String,
}

/// Positions by topic and partition.
pub(crate) type Offsets = BTreeMap<(String, i32), Committed>;

/// One group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub phase: Phase,
    pub generation: i32,
    pub protocol_type: String,
    pub protocol: String,
    pub leader: String,
    pub members: BTreeMap<String, Member>,
    pub offsets: Offsets,
    /// Committed in transactions that have no end yet, by producer.
    pub pending: BTreeMap<i64, Offsets>,
    rebalance_until: Option<Instant>,
}

impl Group {
    /// Whether requests of a member fit the group as it is.
    pub fn check(&self, member: &str, generation: i32) -> Result<(), ResponseError> {
        if !self.members.contains_key(member) {
            return Err(UnknownMemberId);
        }
        if self.generation != generation {
            return Err(IllegalGeneration);
        }
        Ok(())
    }

    /// Whether an offset commit fits: from a member, or from anybody while there are none.
    pub fn check_commit(&self, member: &str, generation: i32) -> Result<(), ResponseError> {
        if generation < 0 && member.is_empty() {
            return if self.members.is_empty() {
                Ok(())
            } else {
                Err(UnknownMemberId)
            };
        }
        self.check(member, generation)?;
        if self.phase == Phase::Completing {
            Err(RebalanceInProgress)
        } else {
            Ok(())
        }
    }

    /// Adds or renews a member, and prepares a rebalance.
    pub fn join(
        &mut self,
        id: &str,
        protocol_type: &str,
        member: Member,
    ) -> Result<(), ResponseError> {
        let common = member.protocols.iter().any(|(name, _)| {
            let speaks = |m: &Member| m.protocols.iter().any(|(other, _)| other == name);
            self.members
                .iter()
                .all(|(other_id, other)| other_id == id || speaks(other))
        });
        let other_type = !self.members.is_empty() && self.protocol_type != protocol_type;
        if !common || other_type {
            return Err(InconsistentGroupProtocol);
        }
        protocol_type.clone_into(&mut self.protocol_type);
        self.members.insert(id.to_owned(), member);
        self.prepare();
        Ok(())
    }

    /// Removes a member; the others have to agree anew.
    pub fn leave(&mut self, id: &str) -> Result<(), ResponseError> {
        self.members.remove(id).ok_or(UnknownMemberId)?;
        self.prepare();
        self.complete_join();
        Ok(())
    }

    /// Takes a sign of life.
    pub fn heard(&mut self, id: &str) {
        if let Some(member) = self.members.get_mut(id) {
            member.heard = Instant::now();
        }
    }

    /// Removes members that fell silent, or that did not join a rebalance in time.
    pub fn expire(&mut self) {
        let now = Instant::now();
        let late = self.rebalance_until.is_some_and(|until| now >= until);
        let preparing = self.phase == Phase::Preparing;
        let before = self.members.len();
        self.members.retain(|_, member| {
            let silent = now.duration_since(member.heard) > member.session_timeout;
            if preparing {
                member.joined || !late && !silent
            } else {
                !silent
            }
        });
        if self.members.len() != before && !preparing {
            self.prepare();
        }
        self.complete_join();
    }

    /// When something may change by time alone.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.rebalance_until
    }

    /// Ends the preparation if everybody joined.
    pub fn complete_join(&mut self) {
        if self.phase != Phase::Preparing || self.members.values().any(|member| !member.joined) {
            return;
        }
        self.rebalance_until = None;
        self.generation += 1;
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            self.leader.clear();
            return;
        }
        self.phase = Phase::Completing;
        self.protocol = self.choose_protocol();
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
        }
        for member in self.members.values_mut() {
            member.joined = false;
            member.assignment = Bytes::new();
            member.heard = Instant::now();
        }
    }

    /// Takes the leader's decision.
    pub fn assign(&mut self, assignments: BTreeMap<String, Bytes>) {
        for (id, assignment) in assignments {
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = assignment;
            }
        }
        self.phase = Phase::Stable;
    }

    fn prepare(&mut self) {
        if self.phase == Phase::Preparing {
            return;
        }
        self.phase = Phase::Preparing;
        let longest = self
            .members
            .values()
            .map(|member| member.rebalance_timeout)
            .max();
        self.rebalance_until = longest.map(|timeout| Instant::now() + timeout);
    }

    /// The first protocol, in the order of the first member, that all members speak.
    fn choose_protocol(&self) -> String {
        let first = self
            .members
            .values()
            .next()
            .map_or(&[][..], |member| &member.protocols);
        let spoken = |name: &str| {
            self.members
                .values()
                .all(|m| m.protocols.iter().any(|(other, _)| other == name))
        };
        let chosen = first.iter().find(|(name, _)| spoken(name));
        chosen.map_or_else(String::new, |(name, _)| name.clone())
    }
}

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub by_id: BTreeMap<String, Group>,
    /// Counts what may end somebody's waiting.
    pub changes: Changes,
}

impl Groups {
    /// The group, made if there is none.
    pub fn entry(&mut self, id: &str) -> &mut Group {
        self.by_id.entry(id.to_owned()).or_default()
    }

    /// Wakes those who wait.
    pub fn changed(&self) {
        self.changes.happened();
    }

    /// Positions in a deleted topic go with it.
    pub fn forget_topic(&mut self, topic: &str) {
        for group in self.by_id.values_mut() {
            group.offsets.retain(|(name, _), _| name != topic);
        }
    }

    /// Commits or drops what a producer's transaction holds.
    pub fn end_transaction(&mut self, producer_id: i64, committed: bool) {
        for group in self.by_id.values_mut() {
            let offsets = group.pending.remove(&producer_id).unwrap_or_default();
            if committed {
                group.offsets.extend(offsets);
            }
        }
        self.changed();
    }

    /// Another broker coordinates: nothing is lost but the waiting requests.
    pub fn coordinator_moved(&self) {
        self.changed();
    }
}
