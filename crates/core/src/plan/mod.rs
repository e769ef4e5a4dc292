//! Observed state in, list of changes out. Whoever has connections applies the list; who only wants
//! to know prints it.

pub mod topics;
