//! A disk whose syncs are slow or fail, as the server sees it: `strace` is put on the running process and
//! changes what `fdatasync` does. What always holds: the server runs on as before once this is dropped.

use crate::{Outcome, programs};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TAKES_HOLD_WITHIN: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Holds for as long as it is kept.
pub(super) struct DiskFault(Child);

/// Installs what makes these faults from Debian's packages where it is missing.
pub(super) fn set_up() -> Outcome<()> {
    if Command::new("strace").arg("--version").output().is_ok() {
        return Ok(());
    }
    programs::install_packages("a failing disk", &["strace"])
}

impl DiskFault {
    /// Every sync takes so much longer.
    pub(super) fn slow(process_id: u32, delay: Duration) -> Outcome<Self> {
        Self::start(process_id, &format!("delay_enter={}", delay.as_micros()))
    }

    /// Every sync fails.
    pub(super) fn failing(process_id: u32) -> Outcome<Self> {
        Self::start(process_id, "error=EIO")
    }

    fn start(process_id: u32, what: &str) -> Outcome<Self> {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e"]);
        command.arg(format!("inject=fdatasync:{what}")).args(["-p", &process_id.to_string()]);
        let mut fault = DiskFault(command.stdin(Stdio::null()).spawn()?);
        let since = Instant::now();
        while !is_traced(process_id)? {
            if fault.0.try_wait()?.is_some() || since.elapsed() > TAKES_HOLD_WITHIN {
                return Err("strace does not take hold of the server; it needs CAP_SYS_PTRACE".into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(fault)
    }
}

/// Whether all threads of a process are traced.
fn is_traced(process_id: u32) -> Outcome<bool> {
    for thread in std::fs::read_dir(format!("/proc/{process_id}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        if status.lines().any(|line| line == "TracerPid:\t0") {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Drop for DiskFault {
    fn drop(&mut self) {
        // The kernel lets go of what a tracer that ends has held.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
