//! An etcd of one member that runs beside a test, in a folder of its own. Debian's package etcd-server has
//! it.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to start.
const START_FOR_MAX: Duration = Duration::from_secs(60);

/// An etcd; it ends with this value.
pub(crate) struct Etcd {
    process: Child,
    pub(crate) url: String,
}

impl Etcd {
    /// Starts it in a folder of this name in `folder`, and waits until it takes connections.
    pub(crate) fn start(folder: &Path) -> Self {
        // Both at a time, so that they differ.
        let ports: Vec<TcpListener> =
            (0..2).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses: Vec<_> = ports.iter().map(|port| port.local_addr().expect("an address")).collect();
        drop(ports);
        let (url, peer) = (format!("http://{}", addresses[0]), format!("http://{}", addresses[1]));
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.join("etcd"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts: Debian's package etcd-server has it");
        let etcd = Etcd { process, url };
        let began_at = Instant::now();
        while TcpStream::connect(addresses[0]).is_err() {
            assert!(began_at.elapsed() < START_FOR_MAX, "etcd does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        etcd
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
