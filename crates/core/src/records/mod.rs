//! The records that Java MirrorMaker 2 and twinlog leave for each other. One file per record,
//! encode and decode together; every encoder is tested against bytes that Java wrote.

pub mod connect_offset;
mod json;
