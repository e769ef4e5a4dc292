//! What can go wrong between a client and a cluster, cut by what a caller can do about it.
//!
//! An [`Error`] carries what was attempted; [`Error::class`] repeats what the protocol says about
//! it and decides nothing: whether to retry, pause or stop is the caller's verdict.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use twinlog_core::ids::{Topic, TopicPartition};

pub use crate::error_code::ErrorCode;

/// Shorthand of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of answers the protocol knows, each with one thing a client is expected to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// The same request may succeed later; nothing has to change.
    Retriable,
    /// The view of topics or leaders was stale: refresh metadata, then retry.
    RefreshMetadata,
    /// The group or transaction coordinator moved: look it up again, then retry.
    RefreshCoordinator,
    /// The fetch session is gone: open a new one with a full request (KIP-227).
    ResetFetchSession,
    /// The position is not in the log (any more): the caller must choose another.
    Position,
    /// The idempotent producer's sequence does not continue the log's (KIP-98).
    Sequence,
    /// A newer owner of the same id or epoch took over.
    Fenced,
    /// The principal lacks a permission; an operator must grant it.
    Authorization,
    /// The credentials were refused.
    Authentication,
    /// The broker does not know this API, version or feature.
    Unsupported,
    /// The request is refused until its content or the broker's settings change.
    Refused,
    /// The broker failed, or answered what nobody foresaw.
    Unexpected,
}

/// A failed attempt to get something from a cluster.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No connection could be opened.
    #[error("connect to {peer}")]
    Connect {
        /// The broker's `host:port`.
        peer: Address,
        /// Why the transport gave up.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The connection ended before the answer came; whether the broker acted is unknown.
    #[error("{api} to {peer}: connection lost")]
    Disconnected {
        /// The broker's `host:port`.
        peer: Address,
        /// The request that waited.
        api: Api,
        /// Why the connection ended.
        #[source]
        cause: Arc<io::Error>,
    },
    /// No answer within the request's time; the connection is given up, as Java does.
    #[error("{api} to {peer}: no answer within {after:?}")]
    TimedOut {
        /// The broker's `host:port`.
        peer: Address,
        /// The request that waited.
        api: Api,
        /// How long was waited.
        after: Duration,
    },
    /// The broker and we have no version of an API in common.
    #[error("{api} to {peer}: no common version (broker offers {offered})")]
    UnsupportedApi {
        /// The broker's `host:port`.
        peer: Address,
        /// The API.
        api: Api,
        /// What the broker offers, `none` if it does not know the API.
        offered: String,
    },
    /// Bytes that are not the answer we asked for; the connection is given up.
    #[error("{api} to {peer}: malformed answer: {detail}")]
    Malformed {
        /// The broker's `host:port`.
        peer: Address,
        /// The request whose answer this was meant to be.
        api: Api,
        /// What was wrong.
        detail: String,
    },
    /// A request that the codec could not write in the negotiated version.
    #[error("{api} version {version} cannot be encoded: {detail}")]
    Encode {
        /// The API.
        api: Api,
        /// The negotiated version.
        version: i16,
        /// What was wrong.
        detail: String,
    },
    /// The broker answered with an error code.
    #[error("{action}: {code}{}", Because(message.as_deref()))]
    Broker {
        /// What was attempted, for a person.
        action: String,
        /// The broker's code.
        code: ErrorCode,
        /// The broker's own words, where the API has room for them.
        message: Option<String>,
    },
    /// The cluster does not (yet, or any more) show this topic.
    #[error("topic {topic} is unknown to the cluster")]
    UnknownTopic {
        /// The topic.
        topic: Topic,
    },
    /// The partition has no leader now.
    #[error("partition {partition} has no leader")]
    NoLeader {
        /// The partition.
        partition: TopicPartition,
    },
    /// A broker id that metadata does not list (any more).
    #[error("broker {broker} is not part of the cluster")]
    UnknownBroker {
        /// The broker's id.
        broker: i32,
    },
    /// Neither a known broker nor a bootstrap address answered.
    #[error("no broker answered of {tried}")]
    NoBroker {
        /// The addresses that were tried, comma-separated.
        tried: String,
        /// The last failure; none if there was nothing to try.
        #[source]
        cause: Option<Box<Error>>,
    },
    /// The broker left out something that it was asked for.
    #[error("{item} is missing in the answer")]
    Unanswered {
        /// What is missing.
        item: String,
    },
    /// A log that cannot be read as record batches.
    #[error("{partition} at offset {offset}: {detail}")]
    Records {
        /// The partition.
        partition: TopicPartition,
        /// The offset the read was at.
        offset: i64,
        /// What was wrong.
        detail: String,
    },
    /// The caller's token was cancelled while it waited.
    #[error("{action}: cancelled")]
    Cancelled {
        /// What was attempted.
        action: String,
    },
}

impl Error {
    /// What the protocol says about this failure.
    ///
    /// Lost connections and unanswered requests are [`Class::RefreshMetadata`], as in Java's
    /// client, because the broker may have died and its partitions moved.
    pub fn class(&self) -> Class {
        match self {
            Error::Connect { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => {
                Class::RefreshMetadata
            }
            Error::UnknownTopic { .. }
            | Error::NoLeader { .. }
            | Error::UnknownBroker { .. }
            | Error::NoBroker { .. } => Class::RefreshMetadata,
            Error::UnsupportedApi { .. } | Error::Encode { .. } => Class::Unsupported,
            Error::Malformed { .. } | Error::Unanswered { .. } | Error::Records { .. } => {
                Class::Unexpected
            }
            Error::Broker { code, .. } => code.class(),
            Error::Cancelled { .. } => Class::Refused,
        }
    }

    /// The broker's code, if a broker answered.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Broker { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether trying again, after what [`Error::class`] asks for, may help.
    pub fn is_retriable(&self) -> bool {
        matches!(
            self.class(),
            Class::Retriable
                | Class::RefreshMetadata
                | Class::RefreshCoordinator
                | Class::ResetFetchSession
        )
    }

    /// The error of a broker's `code`, or `Ok` for [`ErrorCode::NONE`]. `action` is only built when
    /// needed.
    pub fn check(code: i16, message: Option<&str>, action: impl FnOnce() -> String) -> Result<()> {
        match ErrorCode(code) {
            ErrorCode::NONE => Ok(()),
            code => Err(Error::Broker {
                action: action(),
                code,
                message: message.filter(|text| !text.is_empty()).map(str::to_owned),
            }),
        }
    }
}

/// The broker's words behind its code.
struct Because<'a>(Option<&'a str>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

pub use crate::address::Address;
pub use crate::wire::Api;
