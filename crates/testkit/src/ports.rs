//! Ports that stay ours while the process that listens on them is down.

use std::fs::{self, File};
use std::net::TcpListener;

use anyhow::{Context, Result, bail};

/// Below the range from which the kernel takes ports of outgoing connections (32768 on), so that
/// none of those lands on the port of a broker that is being restarted.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// A TCP port of the loopback address that no other test process picks while this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Locked; the lock ends with the file, or with this process.
    _claim: File,
}

impl Port {
    /// Claims a port that nobody listens on.
    ///
    /// # Errors
    /// When claims can't be written or hundreds of tries found no free port.
    pub(crate) fn claim() -> Result<Self> {
        let claims = std::env::temp_dir().join("kafka-test-ports");
        fs::create_dir_all(&claims).context("make the folder of port claims")?;
        for _ in 0..500 {
            let number = fastrand::u16(RANGE);
            let claim = File::create(claims.join(number.to_string())).context("claim a port")?;
            if claim.try_lock().is_err() || TcpListener::bind(("127.0.0.1", number)).is_err() {
                continue;
            }
            return Ok(Self {
                number,
                _claim: claim,
            });
        }
        bail!("no free port between {} and {}", RANGE.start, RANGE.end);
    }

    /// The number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:port`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
