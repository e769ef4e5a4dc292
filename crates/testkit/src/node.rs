//! One process of a cluster: a broker, a controller, or ZooKeeper.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::jars::Jars;
use crate::ports::Port;
use crate::process::ManagedProcess;
use crate::{Admin, SlowLink};

/// What a node is started from, and its process while it runs.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: usize,
    pub(crate) jars: Jars,
    pub(crate) jvm_options: Vec<String>,
    pub(crate) main_class: &'static str,
    /// The first is where it is asked.
    pub(crate) ports: Vec<Port>,
    /// Leads to a listener of its own, if asked for.
    pub(crate) link: Option<SlowLink>,
    /// Has `server.properties`, `data` and `log`.
    pub(crate) folder: PathBuf,
    pub(crate) process: Option<ManagedProcess>,
}

impl Node {
    /// Where a node's records lie.
    pub(crate) fn data(folder: &Path) -> PathBuf {
        folder.join("data")
    }

    /// `127.0.0.1:port`.
    pub(crate) fn address(&self) -> String {
        self.ports.first().map_or_else(String::new, Port::address)
    }

    /// Writes what [`Self::launch`] starts it with.
    pub(crate) fn write_properties(&self, text: &str) -> Result<()> {
        fs::create_dir_all(&self.folder).context("make the folder of a node")?;
        fs::write(self.properties(), text).context("write server.properties")
    }

    /// Starts the process, and does not wait for it.
    pub(crate) fn launch(&mut self) -> Result<()> {
        let options: Vec<_> = self.jvm_options.iter().map(String::as_str).collect();
        let mut command = self.jars.java(&options);
        command.arg(self.main_class).arg(self.properties());
        let name = format!("{} {}", self.main_class, self.id);
        self.process = Some(ManagedProcess::spawn(
            &name,
            command,
            &self.folder.join("log"),
        )?);
        Ok(())
    }

    /// Waits until this broker answers and knows at least that many brokers, itself included.
    pub(crate) fn wait_until_it_sees(&mut self, brokers: usize, within: Duration) -> Result<()> {
        let admin = Admin::new(&self.address());
        let id = i32::try_from(self.id)?;
        let process = self
            .process
            .as_mut()
            .with_context(|| format!("node {id} is down"))?;
        process.eventually(within, || {
            let seen = admin.brokers()?;
            ensure!(
                seen.contains(&id) && seen.len() >= brokers,
                "only brokers {seen:?}"
            );
            Ok(())
        })
    }

    fn properties(&self) -> PathBuf {
        self.folder.join("server.properties")
    }
}
