//! A program beside this one: its output in a file, killed when its value goes.
//!
//! What always holds: the kernel kills it, too, when this program dies (`setpriv --pdeathsig`), so that
//! nothing stays behind; a program that was killed can be started again with the same arguments. Children are
//! started by the main thread alone, since the death of the thread that started one counts as this program's.

use crate::Outcome;
use rustix::process::{Pid, Signal};
use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Ports below those that the kernel hands out, so that no connection takes one between two lives of a child.
const PORTS_FROM: u16 = 20_000;
const PORTS_COUNT: u16 = 12_000;
/// Bytes of a log that an error shows.
const LOG_SHOWN_BYTES_MAX: usize = 2000;
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A port of this machine that nothing listens on now.
pub(crate) fn free_port() -> Outcome<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % u32::from(PORTS_COUNT)) as u16;
    for _ in 0..PORTS_COUNT {
        let offset = NEXT.fetch_add(1, Ordering::SeqCst);
        let port = PORTS_FROM + start.wrapping_add(offset) % PORTS_COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port of this machine is free".into())
}

/// Waits until something holds; an error says what did not.
pub(crate) fn wait_for(
    what: &str,
    within: Duration,
    mut holds: impl FnMut() -> Outcome<bool>,
) -> Outcome<Duration> {
    let started_at = Instant::now();
    loop {
        let last = holds();
        if matches!(last, Ok(true)) {
            return Ok(started_at.elapsed());
        }
        if started_at.elapsed() > within {
            let why = last.err().map(|error| format!(": {error}")).unwrap_or_default();
            return Err(format!("{what}: not within {within:?}{why}").into());
        }
        std::thread::sleep(POLL_INTERVAL * 5);
    }
}

/// How a program is started, and its process while there is one.
pub(crate) struct Service {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    log: PathBuf,
    child: Option<Child>,
}

impl Service {
    /// Nothing is started yet; the output will be appended to a log in the folder.
    pub(crate) fn new(name: &str, program: &Path, arguments: Vec<String>, folder: &Path) -> Self {
        Service {
            name: name.to_owned(),
            program: program.to_path_buf(),
            arguments,
            variables: Vec::new(),
            log: folder.join(format!("{name}.log")),
            child: None,
        }
    }

    /// With variables of the environment.
    pub(crate) fn with_variables(mut self, variables: &[(&str, &str)]) -> Self {
        self.variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self
    }

    pub(crate) fn start(&mut self) -> Outcome<()> {
        self.kill();
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.program).args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value))));
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let started = command.spawn();
        self.child = Some(started.map_err(|error| format!("{} does not start: {error}", self.name))?);
        Ok(())
    }

    /// Whether its process lives; false, too, once it has ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> Outcome<u32> {
        Ok(self.child.as_ref().ok_or_else(|| format!("{} does not run", self.name))?.id())
    }

    /// How its process has ended by itself; `None`: it has not.
    pub(crate) fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        Ok(self.child.as_mut().ok_or_else(|| format!("{} does not run", self.name))?.try_wait()?)
    }

    /// SIGKILL, and the process is gone when this returns.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail when the process has already ended, which is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and the process has ended by itself when this returns.
    pub(crate) fn terminate(&mut self) -> Outcome<()> {
        self.signal(Signal::TERM)?;
        wait_for(&format!("{} after SIGTERM", self.name), STOP_TIMEOUT, || Ok(!self.is_running()))?;
        self.child = None;
        Ok(())
    }

    /// SIGSTOP.
    pub(crate) fn pause(&self) -> Outcome<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) -> Outcome<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Outcome<()> {
        let child = self.child.as_ref().ok_or_else(|| format!("{} does not run", self.name))?;
        Ok(rustix::process::kill_process(Pid::from_child(child), signal)?)
    }

    /// The end of what it printed.
    pub(crate) fn said(&self) -> String {
        let said = std::fs::read(&self.log).unwrap_or_default();
        let from = said.len().saturating_sub(LOG_SHOWN_BYTES_MAX);
        format!("{}:\n{}", self.log.display(), String::from_utf8_lossy(&said[from..]))
    }

    /// An error once its process has ended.
    pub(crate) fn check(&mut self) -> Outcome<()> {
        match self.is_running() {
            true => Ok(()),
            false => Err(format!("{} has ended; {}", self.name, self.said()).into()),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
