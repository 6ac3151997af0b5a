//! An etcd of Debian's package in a folder of its own, which ends with the test.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start.
const START_FOR_MAX: Duration = Duration::from_secs(60);

/// Members of one etcd.
pub(crate) struct EtcdServer {
    members: Vec<Member>,
    _folder: TempDir,
}

struct Member {
    command: Vec<String>,
    port: u16,
    process: Option<Child>,
}

/// What is started.
#[derive(Default)]
pub(crate) struct EtcdOptions<'a> {
    /// Arguments of TLS towards clients; none: no TLS.
    pub(crate) tls: Option<&'a [String]>,
}

fn free_ports(count: usize) -> Vec<u16> {
    // All at a time, so that they differ.
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect()
}

impl EtcdServer {
    /// Starts so many members.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, &EtcdOptions::default())
    }

    pub(crate) fn start_with(count: usize, options: &EtcdOptions<'_>) -> Self {
        // In memory where there is such a folder: what is acknowledged need not outlive a power loss here.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        let folder = in_memory.or_else(|_| tempfile::tempdir()).expect("a folder");
        let ports = free_ports(2 * count);
        let (clients, peers) = ports.split_at(count);
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let peer = |index: usize| format!("http://127.0.0.1:{}", peers[index]);
        let cluster: Vec<String> = (0..count).map(|index| format!("m{index}={}", peer(index))).collect();
        let member = |index: usize| {
            let client = format!("{scheme}://127.0.0.1:{}", clients[index]);
            let data = folder.path().join(format!("m{index}"));
            let arguments = [
                ("--name", format!("m{index}")),
                ("--data-dir", data.display().to_string()),
                ("--listen-client-urls", client.clone()),
                ("--advertise-client-urls", client),
                ("--listen-peer-urls", peer(index)),
                ("--initial-advertise-peer-urls", peer(index)),
                ("--initial-cluster", cluster.join(",")),
                ("--initial-cluster-token", folder.path().display().to_string()),
                ("--initial-cluster-state", "new".to_owned()),
                ("--log-level", "error".to_owned()),
            ];
            let mut command: Vec<String> =
                arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
            command.extend(options.tls.unwrap_or_default().iter().cloned());
            Member { command, port: clients[index], process: None }
        };
        let members = (0..count).map(member).collect();
        let mut server = EtcdServer { members, _folder: folder };
        (0..count).for_each(|index| server.start_member(index));
        server.wait();
        server
    }

    pub(crate) fn start_member(&mut self, index: usize) {
        let member = &mut self.members[index];
        let process = Command::new("etcd")
            .args(&member.command)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts: Debian's package etcd-server has it");
        member.process = Some(process);
    }

    /// Waits until all members take connections.
    fn wait(&self) {
        let began_at = Instant::now();
        for member in &self.members {
            while std::net::TcpStream::connect(("127.0.0.1", member.port)).is_err() {
                assert!(began_at.elapsed() < START_FOR_MAX, "etcd does not answer on port {}", member.port);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    pub(crate) fn kill(&mut self, index: usize) {
        if let Some(mut process) = self.members[index].process.take() {
            process.kill().expect("a process of this test");
            process.wait().expect("its end");
        }
    }

    /// Stops a member where it is: its connections stay open, and nothing answers.
    pub(crate) fn pause(&self, index: usize) {
        self.signal(index, "-STOP");
    }

    pub(crate) fn go_on(&self, index: usize) {
        self.signal(index, "-CONT");
    }

    fn signal(&self, index: usize, signal: &str) {
        let process = self.members[index].process.as_ref().expect("a process");
        let status = Command::new("kill").args([signal, &process.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.port).collect()
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.ports().iter().map(|port| format!("http://127.0.0.1:{port}")).collect()
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|index| self.kill(index));
    }
}

/// Sends a request to the gateway of a member as anybody could, with `curl`-like means of the standard
/// library; gives the body.
pub(crate) fn gateway(port: u16, path: &str, body: &str, token: Option<&str>) -> String {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let token = token.map(|token| format!("authorization: {token}\r\n")).unwrap_or_default();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: etcd\r\n{token}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    body.to_owned()
}

/// Whether a program is there.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}
