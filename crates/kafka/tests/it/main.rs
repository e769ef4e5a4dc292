//! Tests of the crate's public face.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod batch;
mod client;
