//! An in-memory Kafka cluster that speaks the wire protocol, for tests and `twinlog demo`.
//!
//! It is as strict as Kafka about what it takes, and scripted where Kafka is left to chance:
//! leaders move, brokers crash and answers get lost when a test says so. Clock and random ids come
//! from [`Options`], so that a run under a paused clock repeats itself.
//!
//! It deliberately has no replicas with logs of their own (one log serves all replicas; a test can
//! hold the high watermark back), no disk, no retention by time and no security.
//!
//! Whether it behaves like Kafka is decided by the contract suite of `testkit`, which runs against
//! both.

mod api;
mod changes;
mod cluster;
mod configs;
mod control;
mod faults;
mod groups;
mod log;
mod options;
mod refusal;
mod sessions;
mod state;
mod transactions;

pub use control::{MiniKafka, PartitionView, Unflushed};
pub use faults::{Direction, Fault, On, Seen, Traffic};
pub use kafka_protocol::ResponseError;
pub use kafka_protocol::messages::ApiKey;
pub use log::Compaction;
pub use options::{Options, Versions};
