//! `larimar serve --simulate FILE`: its rules are in force, are read again on SIGHUP, and a mistake in the
//! file ends nothing.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const WITHIN: Duration = Duration::from_secs(20);

struct Server {
    process: Child,
    /// A signed address of the queues.
    queues: String,
    lines: mpsc::Receiver<String>,
}

impl Server {
    fn start(folder: &Path, simulate: &str) -> Self {
        let ready = folder.join("ready");
        let mut process = Command::new(PROGRAM)
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
            .arg(&ready)
            .args(["--simulate", simulate])
            .current_dir(folder)
            .env_remove("LARIMAR_ACCOUNTS")
            .env_remove("AZURITE_ACCOUNTS")
            .env("LARIMAR_LOG", "info")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let (sender, lines) = mpsc::channel();
        let errors = BufReader::new(process.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let started = Instant::now();
        let ready: serde_json::Value = loop {
            assert!(started.elapsed() < WITHIN, "the program does not get ready");
            std::thread::sleep(Duration::from_millis(5));
            match serde_json::from_slice(&std::fs::read(&ready).unwrap_or_default()) {
                Ok(ready) => break ready,
                Err(_) => continue,
            }
        };
        let queues = ready["sas"]["queue"].as_str().expect("an address").to_owned();
        Server { process, queues, lines }
    }

    fn hang_up(&self) {
        kill_process(Pid::from_child(&self.process), Signal::HUP).expect("a process");
    }

    /// Waits for a line of the log.
    fn logs(&self, part: &str) -> String {
        let started = Instant::now();
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(WITHIN.saturating_sub(started.elapsed())) {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line has {part:?}: {seen:?}");
    }

    /// The head of the answer to a list of queues.
    fn list(&self) -> String {
        let rest = self.queues.strip_prefix("http://").expect("in the clear");
        let (host, target) = rest.split_once('/').expect("a path");
        let mut connection = TcpStream::connect(host).expect("a connection");
        let request =
            format!("GET /{target}&comp=list HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        answer.split("\r\n\r\n").next().unwrap_or_default().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn rules_are_read_again_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = |text: &str| std::fs::write(folder.path().join("rules.toml"), text).expect("a file");
    rules("[[fault]]\nname = \"first\"\noperation = \"ListQueues\"\nstatus = 503");
    let server = Server::start(folder.path(), "rules.toml");
    let refused = server.list();
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("x-larimar-simulated: fault first"),
        "{refused}"
    );
    assert!(server.logs("simulated: fault first #1").contains("503 ServerBusy before the work, ListQueues"));

    rules("[[fault]]\nname = \"second\"\noperation = \"ListQueus\"\nstatus = 500");
    server.hang_up();
    let line = server.logs("(1.), those from before stay in force");
    assert!(line.contains("rules.toml: line 3: ") && line.contains("did you mean ListQueues?"), "{line}");
    assert!(server.list().starts_with("HTTP/1.1 503"));

    rules("[[fault]]\nname = \"second\"\noperation = \"ListQueues\"\nstatus = 500");
    server.hang_up();
    server.logs("the rules were read again (2.) and are in force");
    assert!(server.list().starts_with("HTTP/1.1 500"));

    rules("");
    server.hang_up();
    server.logs("the rules were read again (3.) and are in force");
    let served = server.list();
    assert!(served.starts_with("HTTP/1.1 200") && !served.contains("x-larimar-simulated"), "{served}");
}

#[test]
fn a_profile_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "azure");
    assert!(server.list().starts_with("HTTP/1.1 200"));
}

#[test]
fn what_is_no_profile_and_no_file_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, expected) in [
        (&["--simulate"][..], "--simulate"),
        (&["--simulate", ""], "--simulate"),
        (&["--simulate", "azur"], "did you mean azure?"),
        (&["--simulate", "missing.toml"], "missing.toml"),
    ] {
        let outcome = Command::new(PROGRAM)
            .args(["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("the program");
        let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}
