//! The engine against in-memory clusters under a paused clock: what a user of the crate sees.

mod backpressure;
mod chaos;
mod copy;
mod faults;
mod log;
mod long_lines;
mod made_anew;
mod many_lines;
mod outages;
mod source_changes;
mod support;
mod topics;
