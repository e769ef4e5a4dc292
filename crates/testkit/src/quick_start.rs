//! What makes a broker start in one second instead of five.
//!
//! Prepared once per release: the bootstrap metadata that `StorageTool format` writes, which takes
//! a JVM of its own each time, and an archive of the classes a broker loads (class data sharing).

use std::fs;
use std::iter::repeat_with;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::jars::{Jars, run};
use crate::{RealKafka, TopicSpec};

/// How a broker's JVM is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jvm {
    /// Up soon: archived classes, the first compiler only, the collector with the fewest threads.
    Quick,
    /// As production has it.
    FullSpeed,
    /// Writes the archive of classes when it stops.
    LearningClasses,
}

/// JVM options of a process that doesn't live long: the first compiler only, the smallest
/// collector.
pub(crate) const SHORT_LIFE: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
const BOOTSTRAP: &str = "bootstrap.checkpoint";

/// The prepared files of one release.
#[derive(Debug)]
pub(crate) struct QuickStart {
    folder: PathBuf,
}

impl QuickStart {
    /// Prepares them, unless that was done.
    ///
    /// # Errors
    /// When the storage tool or the first broker doesn't work.
    pub(crate) fn prepare(jars: &Jars) -> Result<Self> {
        let quick_start = Self {
            folder: jars.home().join("quick-start"),
        };
        let _alone = jars.lock()?;
        if !quick_start.folder.join(BOOTSTRAP).exists() {
            quick_start.format(jars)?;
        }
        if !quick_start.archive().exists() {
            quick_start.archive_classes(jars)?;
        }
        Ok(quick_start)
    }

    /// Makes a node's data folder as `StorageTool format` would.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn lay_out(&self, data: &Path, cluster_id: &str, node_id: usize) -> Result<()> {
        fs::create_dir_all(data).context("make the data folder")?;
        fs::copy(self.folder.join(BOOTSTRAP), data.join(BOOTSTRAP))
            .context("copy the bootstrap metadata")?;
        let meta = format!("version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n");
        fs::write(data.join("meta.properties"), meta).context("write meta.properties")
    }

    /// Options of a broker's JVM, but for its heap.
    pub(crate) fn jvm_options(&self, jvm: Jvm) -> Vec<String> {
        let mut options: Vec<_> = SHORT_LIFE.map(str::to_owned).into();
        match jvm {
            Jvm::FullSpeed => options.clear(),
            Jvm::Quick => options.extend([
                "-Xshare:auto".to_owned(),
                format!("-XX:SharedArchiveFile={}", self.archive().display()),
            ]),
            Jvm::LearningClasses => options.extend([
                "-Xlog:cds=off".to_owned(),
                "-Xlog:cds+dynamic=off".to_owned(),
                format!(
                    "-XX:ArchiveClassesAtExit={}",
                    self.partial_archive().display()
                ),
            ]),
        }
        options
    }

    fn archive(&self) -> PathBuf {
        self.folder.join("classes.jsa")
    }

    fn partial_archive(&self) -> PathBuf {
        self.folder.join("classes.partial")
    }

    fn format(&self, jars: &Jars) -> Result<()> {
        fs::create_dir_all(&self.folder).context("make the quick-start folder")?;
        let data = self.folder.join("formatted");
        fs::remove_dir_all(&data).ok();
        let properties = self.folder.join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
             controller.quorum.voters=1@127.0.0.1:9093\n\
             listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
             log.dirs={}\n",
            data.display()
        );
        fs::write(&properties, text).context("write server.properties")?;
        let mut format = jars.java(&SHORT_LIFE);
        format.args([
            "kafka.tools.StorageTool",
            "format",
            "-t",
            &cluster_id(),
            "-c",
        ]);
        format.arg(properties);
        run(format, "StorageTool")?;
        fs::rename(data.join(BOOTSTRAP), self.folder.join(BOOTSTRAP))
            .context("keep the bootstrap metadata")
    }

    /// Runs a broker once to learn its classes.
    fn archive_classes(&self, jars: &Jars) -> Result<()> {
        let wanted = RealKafka::builder()
            .version(jars.version())
            .learning_classes();
        let mut cluster = RealKafka::launch(&wanted, jars, Some(self))?;
        cluster
            .admin()
            .create_topic(&TopicSpec::new("classes", 1))?;
        cluster.stop(1)?;
        fs::rename(self.partial_archive(), self.archive()).context("keep the archive of classes")
    }
}

/// A fresh cluster id: 16 bytes in URL-safe base 64 without padding, whose last digit has four zero
/// bits.
pub(crate) fn cluster_id() -> String {
    repeat_with(fastrand::alphanumeric)
        .take(21)
        .chain(['A'])
        .collect()
}
