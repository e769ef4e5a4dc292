//! The rules of mirroring: no tokio, no sockets, no files, no clock.

pub mod ids;
