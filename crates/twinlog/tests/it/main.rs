//! The binary as its users meet it: its words, its exit codes, and what it does between clusters in
//! memory.

mod check;
mod clusters;
mod command_line;
mod demo;
mod run;
