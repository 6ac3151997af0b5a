//! An etcd of Debian's package, in a folder of its own; it ends with this value.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_WITHIN: Duration = Duration::from_secs(60);

/// One member.
pub(crate) struct Etcd {
    ports: [u16; 2],
    folder: TempDir,
    process: Option<Child>,
    /// How often it was made anew.
    lives: u32,
}

impl Etcd {
    pub(crate) fn start() -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port());
        drop(listeners);
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let mut etcd = Etcd { ports, folder, process: None, lives: 0 };
        etcd.run();
        etcd
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join(format!("data-{}", self.lives))
    }

    fn run(&mut self) {
        let [client, peer] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let data = self.data().display().to_string();
        let (cluster, token) = (format!("m={peer}"), data.clone());
        let flags = [
            ("--name", "m"),
            ("--data-dir", &data),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
            ("--initial-cluster-token", &token),
            ("--log-level", "error"),
        ];
        let process = Command::new("etcd")
            .args(flags.iter().flat_map(|(flag, value)| [*flag, *value]))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts: Debian's package etcd-server has it");
        self.process = Some(process);
        let began_at = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.ports[0])).is_err() {
            assert!(began_at.elapsed() < START_WITHIN, "etcd does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process of this test");
            process.wait().expect("its end");
        }
    }

    /// Its data is lost, and an empty one takes its place.
    pub(crate) fn lose_everything(&mut self) {
        self.kill();
        self.lives += 1;
        self.run();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
