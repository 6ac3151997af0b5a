//! A server that a Prometheus scrapes: it is quiet at first, and then fires what is waited for.
//!
//! What always holds: a server that is started again has the same admin port, so that it stays the same
//! target.

use super::prometheus::{self, Prometheus};
use crate::Outcome;
use crate::client::server_process::ServerProcess;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const UP_WITHIN: Duration = Duration::from_secs(20);
/// A healthy server fires nothing for so long: longer than the shortened rules wait.
const QUIET_FOR: Duration = Duration::from_secs(5);
const FIRES_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What all faults are made with.
pub(super) struct Stage {
    pub(super) binary: PathBuf,
    /// With little patience.
    pub(super) rules: String,
}

/// How the server is started.
#[derive(Clone)]
pub(super) struct Start {
    /// All flags but those of its ports.
    pub(super) flags: Vec<String>,
    /// Files that the process may open.
    pub(super) open_files_max: Option<u32>,
}

impl Start {
    /// On a data folder, with more flags.
    pub(super) fn on(data: &Path, flags: &[&str]) -> Self {
        let data = ["--data".to_owned(), data.display().to_string()];
        let flags = data.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect();
        Start { flags, open_files_max: None }
    }
}

pub(super) struct Watched<'a> {
    stage: &'a Stage,
    folder: PathBuf,
    start: Start,
    admin_port: u16,
    server: Option<ServerProcess>,
    prometheus: Prometheus,
}

impl<'a> Watched<'a> {
    /// Starts both in a folder, and waits until the server is up and has fired nothing.
    pub(super) fn start(stage: &'a Stage, folder: &Path, start: Start) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let server =
            ServerProcess::start_watched(&stage.binary, folder, 0, &start.flags, start.open_files_max)?;
        let admin = server.admin_address.ok_or("the server has no admin side")?;
        prometheus::check_metrics(admin)?;
        let prometheus = Prometheus::start(&folder.join("prometheus"), &stage.rules, admin)?;
        let (folder, admin_port) = (folder.to_owned(), admin.port());
        let watched = Watched { stage, folder, start, admin_port, server: Some(server), prometheus };
        watched.wait_until_up()?;
        let up_at = Instant::now();
        while up_at.elapsed() < QUIET_FOR {
            let firing = watched.prometheus.firing()?;
            if !firing.is_empty() {
                return Err(format!("{} fires though nothing is wrong", firing.join(", ")).into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(watched)
    }

    /// Waits until the server was scraped.
    pub(super) fn wait_until_up(&self) -> Outcome<()> {
        let since = Instant::now();
        while self.prometheus.value("up")? != Some(1.0) {
            if since.elapsed() > UP_WITHIN {
                return Err("prometheus does not scrape the server".into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits until a life that began after what was seen before is scraped; what is seen of it.
    pub(super) fn wait_for_start_after(&self, seen: f64) -> Outcome<f64> {
        let since = Instant::now();
        loop {
            match self.prometheus.value("process_start_time_seconds")? {
                Some(found) if found > seen => return Ok(found),
                _ if since.elapsed() > UP_WITHIN => return Err("prometheus does not see the start".into()),
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    pub(super) fn server(&self) -> Outcome<&ServerProcess> {
        Ok(self.server.as_ref().ok_or("the server is down")?)
    }

    /// Bytes of an extent that is full.
    pub(super) fn extent_size_bytes_max(&self) -> Outcome<u64> {
        let found = self.prometheus.value("larimar_extent_bytes_max")?;
        Ok(found.ok_or("the size of an extent is not known")? as u64)
    }

    pub(super) fn kill(&mut self) -> Outcome<()> {
        self.server.take().ok_or("the server is down")?.kill()
    }

    pub(super) fn terminate(&mut self) -> Outcome<()> {
        self.server.take().ok_or("the server is down")?.terminate().map(drop)
    }

    pub(super) fn restart(&mut self) -> Outcome<()> {
        let Start { flags, open_files_max } = &self.start;
        let (binary, port) = (&self.stage.binary, self.admin_port);
        let server = ServerProcess::start_watched(binary, &self.folder, port, flags, *open_files_max)?;
        if server.admin_address.is_none() {
            return Err("the admin port was taken by another program meanwhile".into());
        }
        self.server = Some(server);
        Ok(())
    }

    /// Waits until all these alerts fire, with a load that is done again and again; what fires then.
    pub(super) fn expect(
        &self,
        alerts: &[&str],
        mut load: impl FnMut() -> Outcome<()>,
    ) -> Outcome<Vec<String>> {
        let since = Instant::now();
        loop {
            load()?;
            let firing = self.prometheus.firing()?;
            let is_missing = |alert: &&&str| !firing.iter().any(|found| found == **alert);
            let missing: Vec<&str> = alerts.iter().filter(is_missing).copied().collect();
            if missing.is_empty() {
                return Ok(firing);
            }
            if since.elapsed() > FIRES_WITHIN {
                let (missing, firing) = (missing.join(", "), firing.join(", "));
                return Err(
                    format!("{missing} does not fire within {FIRES_WITHIN:?}; firing: {firing}").into()
                );
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until nothing fires any more.
    pub(super) fn expect_end(&self) -> Outcome<()> {
        let since = Instant::now();
        loop {
            let firing = self.prometheus.firing()?;
            if firing.is_empty() {
                return Ok(());
            }
            if since.elapsed() > ENDS_WITHIN {
                return Err(
                    format!("{} still fires {ENDS_WITHIN:?} after the fault", firing.join(", ")).into()
                );
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
