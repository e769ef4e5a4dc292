//! A Kafka client that moves record batches without decoding them. It knows nothing of mirroring or
//! Connect.
//!
//! From the wire up: [`transport`] opens byte streams, [`connection`] multiplexes requests over
//! one, [`client`] knows a cluster's brokers and leaders, and on it stand [`fetch`], [`produce`],
//! [`admin`] and [`topic_log`]; [`batch`] reads and writes the record batches they carry.
//! [`memory`] bounds what fetched records occupy, [`retry`] is the one loop that tries again, and
//! [`wire`] hides the codec of messages.

pub mod address;
pub mod admin;
pub mod batch;
pub mod client;
pub mod config;
pub mod connection;
pub mod error;
mod error_code;
pub mod fetch;
pub mod memory;
pub mod metadata;
pub mod produce;
pub mod retry;
pub mod topic_log;
pub mod transport;
pub mod wire;

#[cfg(test)]
mod testing;
