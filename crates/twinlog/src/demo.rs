//! The parts of `twinlog demo`: two clusters inside this process, somebody who writes to one of
//! them, and somebody who compares both.

pub mod clusters;
pub mod compare;
pub mod producer;
pub mod topics;
