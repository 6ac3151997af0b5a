//! A server as its own process: started on a data folder, waited for, stopped gently or killed.
//!
//! A process that is dropped is killed, so that a failing chore leaves nothing running.

use crate::Outcome;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Free ports of this machine only.
const PORTS: [&str; 8] =
    ["--host", "127.0.0.1", "--table-port", "0", "--blob-port", "0", "--queue-port", "0"];

/// A running server that has said where it listens.
pub(crate) struct ServerProcess {
    child: Child,
    /// Where the table service (or the bare server) listens.
    pub(crate) address: SocketAddr,
    /// Where the queue service listens; the bare server has none.
    pub(crate) queue_address: Option<SocketAddr>,
    /// Where the blob service listens; the bare server has none.
    pub(crate) blob_address: Option<SocketAddr>,
    /// Where the admin side listens, if it is on.
    pub(crate) admin_address: Option<SocketAddr>,
    /// When the process was started.
    pub(crate) started_at: Instant,
}

impl ServerProcess {
    /// Starts `larimar` on `data`, on a free port. Its output goes to `server.log` beside the data folder.
    pub(crate) fn start_larimar(binary: &Path, data: &Path) -> Outcome<Self> {
        Self::start_larimar_with(binary, data, &[])
    }

    /// The same with more flags.
    pub(crate) fn start_larimar_with(binary: &Path, data: &Path, flags: &[&str]) -> Outcome<Self> {
        let folder = data.parent().ok_or("the data folder has no parent")?;
        let mut command = larimar(binary, data);
        command.args(flags);
        Self::start(command, &folder.join("ready.json"), &folder.join("server.log"))
    }

    /// The same for a data folder on a file system of its own: the output and the ready file lie beside that,
    /// not on it.
    pub(crate) fn start_larimar_beside(binary: &Path, data: &Path) -> Outcome<Self> {
        let mounted_at = data.parent().ok_or("the data folder has no parent")?;
        let beside = mounted_at.parent().ok_or("the file system has no parent")?;
        Self::start(larimar(binary, data), &beside.join("ready.json"), &beside.join("server.log"))
    }

    /// Starts `larimar` with its admin side on a port, 0 for a free one, and all flags but those of its
    /// ports; `open_files_max` is what the process may open at most. Its output goes to `server.log` in
    /// `beside`.
    pub(crate) fn start_watched(
        binary: &Path,
        beside: &Path,
        admin_port: u16,
        flags: &[String],
        open_files_max: Option<u32>,
    ) -> Outcome<Self> {
        let mut command = match open_files_max {
            Some(most) => {
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={most}:{most}")).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.args(PORTS).args(["--admin-port", &admin_port.to_string()]).args(flags);
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        Self::start(command, &beside.join("ready.json"), &beside.join("server.log"))
    }

    /// Starts the bare server of `chores`, which is this program as some profile builds it.
    pub(crate) fn start_bare(chores: &Path, folder: &Path, get_size_bytes: usize) -> Outcome<Self> {
        let mut command = Command::new(chores);
        command.args(["bare-server", "--get-size-bytes", &get_size_bytes.to_string()]);
        Self::start(command, &folder.join("bare-ready.json"), &folder.join("bare-server.log"))
    }

    fn start(mut command: Command, ready_file: &Path, log_file: &Path) -> Outcome<Self> {
        match std::fs::remove_file(ready_file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let log = File::options().create(true).append(true).open(log_file)?;
        command.arg("--ready-file").arg(ready_file);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let started_at = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", command.get_program().display()))?;
        loop {
            if let Some(ready) = read_ready_file(ready_file, child.id()) {
                let Addresses { table, queue, blob, admin } = ready;
                return Ok(Self {
                    child,
                    address: table,
                    queue_address: queue,
                    blob_address: blob,
                    admin_address: admin,
                    started_at,
                });
            }
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(log_file).unwrap_or_default();
                return Err(format!("the server ended before it was ready ({status}):\n{log}").into());
            }
            if started_at.elapsed() > START_TIMEOUT {
                child.kill()?;
                child.wait()?;
                return Err(format!("the server was not ready after {START_TIMEOUT:?}").into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is gone, by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Bytes of memory that are resident.
    pub(crate) fn resident_bytes(&self) -> Outcome<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most that ever was resident since the start, or since [`Self::reset_peak`].
    pub(crate) fn peak_resident_bytes(&self) -> Outcome<u64> {
        self.status_bytes("VmHWM:")
    }

    /// From now on the peak is that of what comes.
    pub(crate) fn reset_peak(&self) -> Outcome<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    fn status_bytes(&self, name: &str) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.ok_or_else(|| format!("no {name}"))?.parse::<u64>()? * 1024)
    }

    /// SIGKILL, and the process is gone when this returns.
    pub(crate) fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM, and the process has ended by itself when this returns.
    pub(crate) fn terminate(mut self) -> Outcome<ExitStatus> {
        self.end()
    }

    /// The same; nothing is left but its addresses.
    pub(crate) fn end(&mut self) -> Outcome<ExitStatus> {
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        )?;
        let asked_at = Instant::now();
        while asked_at.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(format!("the server still runs {STOP_TIMEOUT:?} after SIGTERM").into())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail when the process has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that serves a data folder on free ports, and without the admin side where the program has one:
/// servers side by side would dispute its port, and warn of it.
fn larimar(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("--data").arg(data);
    command.args(PORTS);
    if has_admin_side(binary) {
        command.args(["--admin-port", "none"]);
    }
    command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
    command
}

/// Whether a program knows `--admin-port`; programs of before, to compare with, do not. One that does not
/// start is reported when it is to serve.
fn has_admin_side(binary: &Path) -> bool {
    let help = Command::new(binary).arg("--help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--admin-port"))
}

/// Where the services listen.
struct Addresses {
    table: SocketAddr,
    queue: Option<SocketAddr>,
    blob: Option<SocketAddr>,
    admin: Option<SocketAddr>,
}

/// The addresses in a ready file that this process wrote; nothing while the file is missing, partial, or
/// another's.
fn read_ready_file(path: &Path, process_id: u32) -> Option<Addresses> {
    let ready: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    if ready["pid"].as_u64()? != u64::from(process_id) {
        return None;
    }
    let address =
        |name: &str| ready[name].as_str()?.strip_prefix("http://")?.trim_end_matches('/').parse().ok();
    Some(Addresses {
        table: address("table")?,
        queue: address("queue"),
        blob: address("blob"),
        admin: address("admin"),
    })
}
