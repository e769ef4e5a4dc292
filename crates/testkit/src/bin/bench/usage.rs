//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Fields of `/proc/<pid>/stat` behind the name: user and system time of the process, then those of
/// its children that ended, in ticks (proc_pid_stat(5)).
const TIMES: std::ops::Range<usize> = 11..15;

/// User and system time so far, ended children included.
pub fn cpu(pid: u32) -> Result<Duration> {
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

/// The most memory it ever had resident, in bytes.
pub fn peak_memory_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read memory")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("VmHWM")?;
    let kibibytes = peak
        .trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .context("VmHWM")?;
    Ok(kibibytes * 1024)
}
