//! From fetched bytes to acknowledged records, shared by everything that copies partitions.
//!
//! The decisions are pure and in files of their own: [`planner`] says what to write, [`rebuild`]
//! makes batches out of those that can't be forwarded, [`writer`] says what may be sent and what
//! became of it, [`joining`] which batches go out as one; [`lane`] puts them together for one
//! partition.

pub mod joining;
pub mod lane;
#[cfg(test)]
mod model;
pub mod overlap;
pub mod planner;
pub mod rebuild;
#[cfg(test)]
mod testing;
pub mod writer;
