//! The mirror of records: a connector that keeps the topics of the target in step, and tasks that
//! copy.

pub mod clients;
pub mod connector;
pub mod copies;
pub mod discovery;
pub mod logs;
pub mod offsets_topic;
pub mod positions;
pub mod presence;
pub mod rules;
pub mod task;
