//! The mirror connectors and their tasks. It knows nothing of HTTP, command lines or files.
//!
//! A process starts a flow with [`flow::FlowHandle::start`]. [`source`] copies records;
//! [`pipeline`] holds the rules by which it does, without I/O; [`verdict`] says what is done about
//! an error, [`status`] how everything stands, and [`heavy_work`] where large batches are rebuilt.

pub mod flow;
pub mod heavy_work;
pub mod pipeline;
pub mod source;
pub mod status;
pub mod verdict;
