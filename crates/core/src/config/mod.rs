//! From the text of an `mm2.properties` to what is true for each flow.
//!
//! [`flow`] is the result that the rest of the program works with: typed values only.

pub mod flow;
pub mod properties;
