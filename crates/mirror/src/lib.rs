//! The mirror connectors and their tasks. It knows nothing of HTTP, command lines or files.

pub mod pipeline;
pub mod status;
pub mod verdict;
