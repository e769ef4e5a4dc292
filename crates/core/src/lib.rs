//! The rules of mirroring: no tokio, no sockets, no files, no clock.

pub mod assign;
pub mod circles;
pub mod config;
pub mod filter;
pub mod ids;
pub mod offsets;
pub mod pattern;
pub mod plan;
pub mod policy;
pub mod records;
