//! A source and a target that tests share.

use std::sync::OnceLock;

use anyhow::Result;

use crate::RealKafka;

/// Two clusters of one broker each that all tests of a binary share.
///
/// A test that uses them keeps to topics with a prefix of its own, and lets both running.
#[derive(Debug)]
pub struct ClusterPair {
    /// Where records come from.
    pub source: RealKafka,
    /// Where they go.
    pub target: RealKafka,
}

/// The pair of this test binary, started when first asked for.
///
/// # Errors
/// When it couldn't be started; every test that asks is told why.
pub fn shared_pair() -> Result<&'static ClusterPair> {
    static PAIR: OnceLock<Result<ClusterPair>> = OnceLock::new();
    let pair = PAIR.get_or_init(|| {
        Ok(ClusterPair {
            source: RealKafka::start()?,
            target: RealKafka::start()?,
        })
    });
    pair.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))
}
