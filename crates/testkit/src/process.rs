//! A child process with a log: signals, its end, and what it said when something is wrong.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context, Result, bail};

use crate::eventually::{GiveUp, eventually};

pub use rustix::process::Signal;

/// Lines of the log that a failure shows.
const TAIL_LINES: usize = 40;

/// A command that the kernel kills when the test process ends, however it ends.
///
/// `setpriv` (util-linux, in every Debian) asks for the signal and then becomes `program`, so the
/// pid is the program's.
pub(crate) fn guarded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// A process that was started by a test and ends with it, at the latest.
#[derive(Debug)]
pub struct ManagedProcess {
    name: String,
    child: Child,
    log: PathBuf,
    /// Bytes the log had before this process began to write: earlier lives on the same file.
    log_start: u64,
}

impl ManagedProcess {
    /// Starts `command` with both outputs appended to `log` and a pipe as its input.
    ///
    /// # Errors
    /// When the log can't be opened or the program can't be run.
    pub(crate) fn spawn(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let file = open_log(log)?;
        let log_start = file.metadata().context("look at the log")?.len();
        let copy = file.try_clone().context("open the log twice")?;
        command.stdin(Stdio::piped()).stdout(file).stderr(copy);
        let child = spawn_from_lasting_thread(command).with_context(|| format!("start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
            log_start,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file both outputs go to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let start = usize::try_from(self.log_start)
            .unwrap_or(0)
            .min(bytes.len());
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// The last lines it wrote, headed by its name: for failure messages.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        format!(
            "--- last lines of {} ({}):\n{tail}\n---",
            self.name,
            self.log.display()
        )
    }

    /// Takes the pipe to its input; dropping that closes it.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Sends a signal. One that has already ended can't be signalled any more.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if let Some(status) = self.exited()? {
            bail!("signal {signal:?} to {}, which ended: {status}", self.name);
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .with_context(|| format!("signal {signal:?} to {}", self.name))
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// When the kernel doesn't tell.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("ask whether {} ended", self.name))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it still runs after `within`; the message has the end of its log.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let ended = eventually(within, || match self.exited()? {
            Some(status) => Ok(status),
            None => bail!("{} still runs", self.name),
        });
        ended.with_context(|| self.log_tail())
    }

    /// Kills it as a crash does, and waits for its end. A process that has ended is left so.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child
            .kill()
            .with_context(|| format!("kill {}", self.name))?;
        self.child
            .wait()
            .with_context(|| format!("wait for the end of {}", self.name))?;
        Ok(())
    }

    /// Waits until `condition` holds, but not longer than the process lives.
    ///
    /// # Errors
    /// The condition's last error or the early end, with the end of the log.
    pub fn eventually<T>(
        &mut self,
        within: Duration,
        mut condition: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let result = eventually(within, || {
            let error = match condition() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            match self.exited()? {
                Some(status) => bail!(GiveUp(format!("{} ended: {status}", self.name))),
                None => Err(error),
            }
        });
        result.with_context(|| self.log_tail())
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        // Either fails only when it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn open_log(path: &Path) -> Result<File> {
    let open = OpenOptions::new().create(true).append(true).open(path);
    open.with_context(|| format!("open log {}", path.display()))
}

/// Starts a child from a thread that lives as long as this process.
///
/// The parent-death signal comes when the *thread* that made the child ends; a test's own thread
/// ends with the test, and would take clusters that tests share with it.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Order = (Command, SyncSender<io::Result<Child>>);
    static SPAWNER: LazyLock<SyncSender<Order>> = LazyLock::new(|| {
        let (orders, inbox) = sync_channel::<Order>(16);
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                // The asker waits for the answer; if it is gone, the child is dropped and stays.
                reply.send(command.spawn()).ok();
            }
        });
        orders
    });
    let (reply, answer) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes is gone");
    SPAWNER.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScratchDir;

    fn shell(script: &str, scratch: &ScratchDir) -> ManagedProcess {
        let mut command = guarded("sh");
        command.args(["-c", script]);
        ManagedProcess::spawn("shell", command, &scratch.path().join("log")).unwrap()
    }

    #[test]
    fn exit_code_and_log_are_seen() {
        let scratch = ScratchDir::new("process").unwrap();

        let mut process = shell("echo said; echo complained >&2; exit 3", &scratch);

        assert_eq!(
            process.wait(Duration::from_secs(10)).unwrap().code(),
            Some(3)
        );
        assert_eq!(process.log(), "said\ncomplained\n");
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it_and_ends_on_drop() {
        let scratch = ScratchDir::new("process").unwrap();

        let asked = thread::scope(|scope| scope.spawn(|| shell("echo up; cat", &scratch)).join());
        let mut process = asked.unwrap();
        let log = process.log_path().to_owned();
        let up = || match fs::read_to_string(&log)?.as_str() {
            "up\n" => Ok(()),
            other => bail!("it said {other:?}"),
        };
        process.eventually(Duration::from_secs(10), up).unwrap();
        assert_eq!(process.exited().unwrap(), None);
        let pid = process.pid();
        drop(process);

        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn waiting_for_a_process_that_ended_fails_with_its_last_words() {
        let scratch = ScratchDir::new("process").unwrap();
        let mut process = shell("echo out of luck; exit 1", &scratch);

        let result = process.eventually(Duration::from_secs(60), || -> Result<()> { bail!("no") });

        let text = format!("{:#}", result.unwrap_err());
        assert!(
            text.contains("ended") && text.contains("out of luck"),
            "{text}"
        );
    }
}
