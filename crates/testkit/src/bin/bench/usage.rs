//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::now;

/// Fields of `/proc/<pid>/stat` behind the name: user and system time of the process, then those of
/// its children that ended, in ticks (proc_pid_stat(5)).
const TIMES: std::ops::Range<usize> = 11..15;
/// Written to `clear_refs`, makes the peak of memory what is resident now (proc_pid_clear_refs(5)).
const RESET_PEAK: &str = "5";

/// User and system time so far. Ticks are too coarse for a process that hardly runs, and threads that
/// ended are in the ticks only: the larger of both counts.
pub fn cpu(pid: u32) -> Result<Duration> {
    Ok(cpu_in_ticks(pid)?.max(cpu_of_threads(pid)?))
}

/// Whole ticks of user and system time, ended threads and children included.
fn cpu_in_ticks(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("read cpu times")?;
    let behind_name = stat.rsplit_once(')').context("cpu times")?.1;
    let fields: Vec<_> = behind_name.split_whitespace().collect();
    let times = fields.get(TIMES).context("cpu times")?;
    let mut ticks = 0;
    for time in times {
        ticks += time.parse::<u64>().context("cpu time")?;
    }
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1000 / per_second))
}

/// The most memory it ever had resident, or since [`reset_peak`], in bytes.
pub fn peak_memory_bytes(pid: u32) -> Result<u64> {
    memory(pid, "VmHWM:")
}

/// The memory it has resident now, in bytes.
pub fn memory_bytes(pid: u32) -> Result<u64> {
    memory(pid, "VmRSS:")
}

/// Forgets the peak so far.
pub fn reset_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), RESET_PEAK).context("reset the peak of memory")
}

fn memory(pid: u32, label: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read memory")?;
    let value = status.lines().find_map(|line| line.strip_prefix(label));
    let kibibytes = value.context(label.to_owned())?.trim();
    let kibibytes = kibibytes.trim_end_matches(" kB").parse::<u64>();
    Ok(kibibytes.with_context(|| label.to_owned())? * 1024)
}

/// From a moment on: how much of one core a process uses.
pub struct Share {
    pid: u32,
    since: Instant,
    used: Duration,
}

impl Share {
    /// Counts from now on.
    pub fn of(pid: u32) -> Result<Self> {
        Ok(Self {
            pid,
            since: now(),
            used: cpu(pid)?,
        })
    }

    /// Up to now, in percent of a core.
    pub fn percent(&self) -> Result<f64> {
        let used = cpu(self.pid)?.saturating_sub(self.used);
        Ok(100.0 * used.as_secs_f64() / self.since.elapsed().as_secs_f64())
    }
}

/// User and system time of the threads that live, to the nanosecond: the first number of
/// `/proc/<pid>/task/<tid>/schedstat`.
fn cpu_of_threads(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("list threads")? {
        let path = thread.context("list threads")?.path().join("schedstat");
        // One that has just ended has nothing to tell.
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let time = text.split_whitespace().next().context("time of a thread")?;
        nanos += time.parse::<u64>().context("time of a thread")?;
    }
    Ok(Duration::from_nanos(nanos))
}
