//! Java MirrorMaker 2 in dedicated mode: the oracle.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::ScratchDir;
use crate::jars::{Jars, KafkaVersion};
use crate::process::{ManagedProcess, Signal};

/// It flushes positions and leaves its groups before it ends.
const STOP: Duration = Duration::from_secs(90);
/// What the JVM returns after SIGTERM: 128 and the signal's number.
const TERMINATED: i32 = 143;

/// A running `connect-mirror-maker`, release 4.3.1. It takes about ten seconds to its first record.
#[derive(Debug)]
pub struct JavaMirrorMaker {
    process: ManagedProcess,
    _scratch: ScratchDir,
}

impl JavaMirrorMaker {
    /// Starts it on this text of an `mm2.properties`, tuned for an early start.
    ///
    /// # Errors
    /// When Java or the jars can't be had.
    pub fn start(properties: &str) -> Result<Self> {
        Self::launch(
            properties,
            &["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        )
    }

    /// Starts it as its own script does, with 2 GB of heap: for benchmarks.
    ///
    /// # Errors
    /// When Java or the jars can't be had.
    pub fn start_full_speed(properties: &str) -> Result<Self> {
        Self::launch(properties, &["-Xms256M", "-Xmx2G"])
    }

    fn launch(properties: &str, jvm_options: &[&str]) -> Result<Self> {
        let jars = Jars::resolve(KafkaVersion::V4_3_1)?;
        let scratch = ScratchDir::new("mirror-maker")?;
        let file = scratch.path().join("mm2.properties");
        fs::write(&file, properties).context("write mm2.properties")?;
        let mut command = jars.java(jvm_options);
        command
            .arg("org.apache.kafka.connect.mirror.MirrorMaker")
            .arg(file);
        let log = scratch.path().join("log");
        let process = ManagedProcess::spawn("Java MirrorMaker 2", command, &log)?;
        Ok(Self {
            process,
            _scratch: scratch,
        })
    }

    /// The process: its id, its log, waiting for what it should bring about.
    pub fn process(&mut self) -> &mut ManagedProcess {
        &mut self.process
    }

    /// Stops it cleanly; positions of all that was acknowledged are stored then.
    ///
    /// # Errors
    /// When it doesn't end in time or ends otherwise.
    pub fn stop(mut self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        let status = self.process.wait(STOP)?;
        ensure!(
            status.code() == Some(TERMINATED),
            "{status}\n{}",
            self.process.log_tail()
        );
        Ok(())
    }

    /// Kills it as a crash does.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn kill(mut self) -> Result<()> {
        self.process.kill()
    }
}
