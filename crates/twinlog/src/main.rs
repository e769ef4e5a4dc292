//! The `twinlog` command.
fn main() {}
