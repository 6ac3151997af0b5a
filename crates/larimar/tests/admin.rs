//! The admin side of a running server: what it answers, what it refuses, and that the services go on whatever
//! becomes of it.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const METRICS_DOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const WITHIN: Duration = Duration::from_secs(20);

struct Server {
    process: Child,
    ready: serde_json::Value,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let ready_file = folder.join("ready");
        // That of the server before it.
        let _ = std::fs::remove_file(&ready_file);
        let process = Command::new(PROGRAM)
            .args([
                "--in-memory",
                "--table-port",
                "0",
                "--queue-port",
                "0",
                "--blob-port",
                "0",
                "--ready-file",
            ])
            .arg(&ready_file)
            .args(arguments)
            .current_dir(folder)
            .env_remove("LARIMAR_ACCOUNTS")
            .env_remove("AZURITE_ACCOUNTS")
            .env_remove("LARIMAR_LOG")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let started = Instant::now();
        let ready = loop {
            assert!(started.elapsed() < WITHIN, "the program does not get ready");
            std::thread::sleep(Duration::from_millis(5));
            if let Ok(ready) = serde_json::from_slice(&std::fs::read(&ready_file).unwrap_or_default()) {
                break ready;
            }
        };
        Server { process, ready }
    }

    /// Host and port of the admin side.
    fn admin(&self) -> &str {
        self.ready["admin"].as_str().expect("an admin side").strip_prefix("http://").expect("in the clear")
    }

    fn get(&self, path: &str) -> (u16, String) {
        let host = self.admin();
        exchange(host, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    /// Lists queues by a signed address.
    fn list_queues(&self) -> u16 {
        let address = self.ready["sas"]["queue"].as_str().expect("an address");
        let (host, target) =
            address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
        let head = format!("GET /{target}&comp=list HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        exchange(host, &head).0
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("a process");
    }

    /// Waits for the end and gives what was logged.
    fn end(mut self) -> String {
        self.terminate();
        let mut log = String::new();
        self.process.stderr.take().expect("a pipe").read_to_string(&mut log).expect("text");
        assert!(self.process.wait().expect("a process").success(), "{log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request and gives the status and the body of the answer.
fn exchange(host: &str, request: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(host).expect("a connection");
    connection.set_read_timeout(Some(WITHIN)).expect("a time-out");
    connection.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request:?}: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{head}")), body.to_owned())
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn it_says_whether_the_server_lives_and_serves_and_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--admin-port", "0"]);
    assert_eq!(server.get("/health"), (200, "ok\n".to_owned()));
    assert_eq!(server.get("/ready"), (200, "ready\n".to_owned()));
    let (status, version) = server.get("/version");
    let version: serde_json::Value = serde_json::from_str(&version).unwrap();
    assert!(status == 200 && version["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
    let host = server.admin();
    for (request, status) in [
        (format!("HEAD /health HTTP/1.1\r\nHost: {host}\r\n\r\n"), 200),
        (format!("GET /nothing HTTP/1.1\r\nHost: {host}\r\n\r\n"), 404),
        (format!("POST /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"), 405),
        ("GET /health HTTP/1.1\r\nHost: example.org\r\n\r\n".to_owned(), 403),
        (format!("GET /health HTTP/1.1\r\nHost: {host}\r\nOrigin: http://example.org\r\n\r\n"), 403),
        ("nonsense\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(20_000)), 431),
    ] {
        let (found, body) = exchange(host, &request);
        assert_eq!(found, status, "{}: {body}", &request[..request.len().min(100)]);
    }
    assert_eq!(server.list_queues(), 200);
    assert_eq!(server.end(), "");
}

#[test]
fn requests_are_counted_and_a_thousand_scrapes_at_once_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--admin-port", "0"]);
    for _ in 0..3 {
        assert_eq!(server.list_queues(), 200);
    }
    let (status, metrics) = server.get("/metrics");
    assert_eq!(status, 200);
    let requests = "larimar_requests_total{service=\"queue\",operation=\"ListQueues\",status=\"2xx\"}";
    assert_eq!(value(&metrics, requests), Some(3.0), "{metrics}");
    assert_eq!(value(&metrics, "larimar_ready"), Some(1.0), "{metrics}");
    assert!(value(&metrics, "process_resident_memory_bytes") > Some(1e6), "{metrics}");
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| (0..10).for_each(|_| assert_eq!(server.get("/metrics").0, 200)));
        }
        assert_eq!(server.list_queues(), 200);
    });
    assert_eq!(server.end(), "");
}

#[test]
fn a_port_that_is_taken_is_a_warning_and_none_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let server = Server::start(folder.path(), &["--admin-port", &port]);
    assert!(server.ready.get("admin").is_none());
    assert_eq!(server.list_queues(), 200);
    let log = server.end();
    assert!(log.lines().count() == 1 && log.contains("--admin-port") && log.contains(&port), "{log}");
    let server = Server::start(folder.path(), &["--admin-port", "none"]);
    assert!(server.ready.get("admin").is_none());
    assert_eq!(server.end(), "");
}

/// Name, kind and help of each family of an answer.
fn families(metrics: &str) -> BTreeMap<String, (String, String)> {
    let mut families: BTreeMap<String, (String, String)> = BTreeMap::new();
    for line in metrics.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name.to_owned()).or_default().1 = help.to_owned();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().0 = kind.to_owned();
        }
    }
    families
}

/// Each family is a row of the table in `docs/metrics.md`, and each row is a family. On a mismatch the test
/// prints the rows as they should be.
#[test]
fn the_reference_lists_every_family() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--admin-port", "0"]);
    assert_eq!(server.list_queues(), 200);
    let (host, target) = {
        let address = server.ready["sas"]["queue"].as_str().unwrap();
        address.strip_prefix("http://").unwrap().split_once('/').unwrap()
    };
    let no_queue = target.replacen("devstoreaccount1", "devstoreaccount1/absent/messages", 1);
    let head = format!("GET /{no_queue} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(host, &head).0, 404);
    let expected: Vec<String> = families(&server.get("/metrics").1)
        .into_iter()
        .map(|(name, (kind, help))| format!("| `{name}` | {kind} | {help} |"))
        .collect();
    let doc = std::fs::read_to_string(METRICS_DOC).unwrap_or_default();
    let found: Vec<&str> = doc.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(found == expected, "the rows should be\n{}", expected.join("\n"));
    assert!(expected.len() >= 60, "{} families", expected.len());
}
