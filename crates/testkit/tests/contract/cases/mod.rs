//! The cases by API. Each makes topics of its own, so that their order does not matter.

use std::pin::Pin;

use anyhow::Result;

use crate::lab::Lab;

mod configs;
mod every_version;
mod fetch;
mod groups;
mod idempotence;
mod offsets;
mod produce;
mod sessions;
mod topics;
mod transactions;
mod versions;

/// A case on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;
/// One case.
pub type Case = for<'a> fn(&'a Lab) -> Running<'a>;

/// Makes the list of a file's cases, each named by its function.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        pub const CASES: &[(&str, $crate::cases::Case)] =
            &[$((stringify!($case), |lab| Box::pin($case(lab)))),*];
    };
}
pub(crate) use cases;

/// All of them.
pub fn all() -> impl Iterator<Item = (&'static str, Case)> {
    let files = [
        versions::CASES,
        every_version::CASES,
        topics::CASES,
        configs::CASES,
        produce::CASES,
        idempotence::CASES,
        fetch::CASES,
        sessions::CASES,
        offsets::CASES,
        transactions::CASES,
        groups::CASES,
    ];
    files.into_iter().flatten().copied()
}
