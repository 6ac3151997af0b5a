//! A server that runs beside a test, for tests that change its files, send it signals and follow its log.
#![allow(dead_code)] // No test uses all of it.

pub(crate) mod etcd;
pub(crate) mod requests;
pub(crate) mod tables;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const WITHIN: Duration = Duration::from_secs(20);

/// The program in a folder, without variables of whoever runs the tests.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LARIMAR_") || name == "AZURITE_ACCOUNTS" {
            command.env_remove(name);
        }
    }
    command
}

/// A server that listens; it ends with this value.
pub(crate) struct Server {
    process: Child,
    /// What its ready file holds.
    ready: serde_json::Value,
    lines: mpsc::Receiver<String>,
}

impl Server {
    /// Starts the server and waits until it has written its ready file, in `folder`.
    pub(crate) fn start(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let ready_file = folder.join("ready");
        // That of the server before it.
        let _ = std::fs::remove_file(&ready_file);
        let mut process = program(folder, arguments)
            .arg("--ready-file")
            .arg(&ready_file)
            .envs(environment.iter().copied())
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
        let ready = loop {
            if started.elapsed() > WITHIN || process.try_wait().expect("a child").is_some() {
                panic!("the program does not get ready: {:?}", lines.try_iter().collect::<Vec<_>>());
            }
            std::thread::sleep(Duration::from_millis(5));
            if let Ok(ready) = serde_json::from_slice(&std::fs::read(&ready_file).unwrap_or_default()) {
                break ready;
            }
        };
        Server { process, ready, lines }
    }

    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a process");
    }

    /// Has it stop, and gives all that it has logged since somebody has looked.
    pub(crate) fn stop_and_log(mut self) -> String {
        self.signal(Signal::TERM);
        // The lines end with the process.
        let log: Vec<String> = self.lines.iter().collect();
        assert!(self.process.wait().expect("a child").success(), "{log:?}");
        log.join("\n")
    }

    /// Has it stop, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("a process");
        let asked = Instant::now();
        loop {
            match self.process.try_wait().expect("a child") {
                Some(status) => return status,
                None => assert!(asked.elapsed() < WITHIN, "it does not stop"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a line of the log.
    pub(crate) fn logs(&self, part: &str) -> String {
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

    /// A text of the ready file.
    pub(crate) fn ready(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap_or_else(|| panic!("{key} is not in {}", self.ready))
    }

    /// A signed address of a service.
    pub(crate) fn sas(&self, service: &str) -> &str {
        self.ready["sas"][service].as_str().expect("an address")
    }

    /// That of the queues.
    pub(crate) fn queues(&self) -> &str {
        self.sas("queue")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The head of the answer to a list of queues, by a signed address of them.
pub(crate) fn list_queues(address: &str) -> String {
    let (host, target) =
        address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
    let mut connection = TcpStream::connect(host).expect("a connection");
    connection.set_read_timeout(Some(WITHIN)).expect("a time-out");
    let request = format!("GET /{target}&comp=list HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer.split("\r\n\r\n").next().unwrap_or_default().to_owned()
}
