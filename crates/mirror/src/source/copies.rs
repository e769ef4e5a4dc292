//! A new topic that wants more copies than the cluster has brokers: what is missing, and which key
//! says so.

use twinlog_core::config::flow::ReplicationFactor;
use twinlog_kafka::error::{Error, ErrorCode};

/// The copies that a new topic is to have, and where that is configured.
#[derive(Debug, Clone)]
pub struct Copies {
    /// How many.
    pub factor: ReplicationFactor,
    /// The key that says so.
    pub key: &'static str,
    /// What may stand before the key: an alias or a flow.
    pub scope: String,
}

/// Why there cannot be as many, and what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Why.
    pub reason: String,
    /// The way out.
    pub remedy: String,
}

impl Copies {
    /// What to say of a creation that failed in a cluster of `brokers`; nothing if it failed for
    /// something else (any error but INVALID_REPLICATION_FACTOR).
    pub fn shortage(&self, error: &Error, brokers: usize) -> Option<Shortage> {
        if error.code() != Some(ErrorCode::INVALID_REPLICATION_FACTOR) {
            return None;
        }
        let Copies { key, scope, .. } = self;
        let there = match brokers {
            1 => "1 broker".to_owned(),
            _ => format!("{brokers} brokers"),
        };
        let wanted = match self.factor {
            ReplicationFactor::Copies(copies) => format!("{key} is {copies}"),
            ReplicationFactor::BrokerDefault => {
                format!("{key} is left to the target's default.replication.factor")
            }
        };
        Some(Shortage {
            reason: format!("the target has {there} and {wanted}: {error}"),
            remedy: format!(
                "set {key} = {brokers} in the file (or {scope}.{key}), or start more brokers; it is tried again"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortage(factor: ReplicationFactor, code: ErrorCode) -> Option<Shortage> {
        let copies = Copies {
            factor,
            key: "replication.factor",
            scope: "us->eu".to_owned(),
        };
        let error = Error::Broker {
            action: "create".to_owned(),
            code,
            message: None,
        };
        copies.shortage(&error, 1)
    }

    #[test]
    fn too_many_copies_are_told_with_the_key_and_the_number_of_brokers() {
        let code = ErrorCode::INVALID_REPLICATION_FACTOR;

        let told = shortage(ReplicationFactor::Copies(2), code).expect("a shortage");

        let reason = "the target has 1 broker and replication.factor is 2: ";
        assert!(told.reason.starts_with(reason), "{}", told.reason);
        let remedy = "set replication.factor = 1 in the file (or us->eu.replication.factor)";
        assert!(told.remedy.starts_with(remedy), "{}", told.remedy);
        let by_default = shortage(ReplicationFactor::BrokerDefault, code).expect("a shortage");
        assert!(by_default.reason.contains("default.replication.factor"));
    }

    #[test]
    fn other_failures_are_no_shortage() {
        let code = ErrorCode::POLICY_VIOLATION;

        assert_eq!(shortage(ReplicationFactor::Copies(2), code), None);
    }
}
