//! How the flows of this process stand, for people: a live table on a terminal, a log line now and
//! then elsewhere.

pub mod display;
pub mod lines;
pub mod meter;
pub mod numbers;
pub mod screen;
pub mod table;
pub mod view;
