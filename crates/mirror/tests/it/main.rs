//! The engine against in-memory clusters under a paused clock: what a user of the crate sees.

mod chaos;
mod copy;
mod faults;
mod long_lines;
mod made_anew;
mod source_changes;
mod support;
mod topics;
