//! What the kernel says about a process.

use std::fs;
use std::time::Duration;

/// Ticks of `/proc/PID/stat`; the same on every Linux that this runs on.
const TICKS_PER_SECOND: u64 = 100;

/// Processor time that a process used so far.
pub fn cpu(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, so count from behind it.
    let behind = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = behind.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let used = ticks(11)? + ticks(12)?;
    Some(Duration::from_millis(used * 1000 / TICKS_PER_SECOND))
}

/// Memory of a process that is in RAM, in megabytes.
pub fn resident(pid: u32) -> Option<f64> {
    status(pid, "VmRSS:").map(|kilobytes| kilobytes / 1024.0)
}

/// The most that it ever had, in megabytes.
pub fn peak(pid: u32) -> Option<f64> {
    status(pid, "VmHWM:").map(|kilobytes| kilobytes / 1024.0)
}

fn status(pid: u32, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes that a process read from files so far; sockets aren't counted.
pub fn bytes_read(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text.lines().find(|line| line.starts_with("rchar:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
