//! `larimar admin` against a running server: what it prints, what it changes, and what is refused.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::{Server, list_queues, program};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(20);
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../front_end/tests/certificates/server.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../front_end/tests/certificates/server-key.pem");
const PORTS: [&str; 4] = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=0"];

/// What a command printed: exit code, standard output, standard error.
type Printed = (Option<i32>, String, String);

fn admin(folder: &Path, server: &Server, words: &[&str]) -> Printed {
    let (endpoint, tokens) = (server.ready("admin"), server.ready("admin_token_file"));
    let connection = ["admin", "--endpoint", endpoint, "--token-file", tokens];
    let output = program(folder, &[&connection[..], words].concat()).output().expect("the program");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, server: &Server, words: &[&str]) -> Value {
    let (code, out, err) = admin(folder, server, &[words, &["--json"]].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{words:?}: {out}");
    serde_json::from_str(&out).expect("JSON")
}

fn exchange(server: &Server, request: &str) -> String {
    let host = server.ready("admin").strip_prefix("http://").expect("in the clear");
    let mut connection = TcpStream::connect(host).expect("a connection");
    connection.set_read_timeout(Some(WITHIN)).expect("a time-out");
    connection.write_all(request.replace("HOST", host).as_bytes()).expect("sent");
    let mut answer = Vec::new();
    // One that is refused early may be cut off behind its answer.
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

#[test]
fn commands_look_and_change() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start(folder, &[&["--data", "data"], &PORTS[..]].concat(), &[]);
    assert!(list_queues(server.queues()).contains(" 200 "));
    let tokens = Path::new(server.ready("admin_token_file"));
    assert_eq!(std::fs::metadata(folder.join(tokens)).unwrap().permissions().mode() & 0o777, 0o600);
    let status = json(folder, &server, &["status"]);
    assert!(status["ready"] == true && status["disk"]["free_bytes"].as_u64() > Some(0), "{status}");
    let (code, out, _) = admin(folder, &server, &["status"]);
    assert!(code == Some(0) && out.contains("disk.free_bytes"), "{out}");
    let ranges = json(folder, &server, &["ranges", "--table", "entity"]);
    let range = ranges["ranges"][0]["range"].as_u64().expect("a range").to_string();
    let (_, out, _) = admin(folder, &server, &["ranges"]);
    assert!(out.starts_with("TABLE") && out.contains("\nentity"), "{out}");
    assert!(json(folder, &server, &["loads"])["loads"].as_array().is_some_and(|loads| loads.len() >= 5));
    assert!(json(folder, &server, &["flush"])["ranges"].as_u64() >= Some(5));
    assert_eq!(json(folder, &server, &["compact", "--table", "entity"])["done"], true);
    assert_eq!(json(folder, &server, &["split", "entity", &range])["split"], false);
    assert_eq!(json(folder, &server, &["log-level", "info"])["levels"], "info");
    assert_eq!(admin(folder, &server, &["log-level"]).1, "info\n");
    let settings = admin(folder, &server, &["settings"]).1;
    assert!(settings.contains("table_port") && settings.contains("--table-port"), "{settings}");
    assert_eq!(admin(folder, &server, &["simulate"]).1, "nothing is simulated\n");
    let (code, _, err) = admin(folder, &server, &["reload"]);
    assert!(code == Some(3) && err.contains("without --config"), "{err}");
    let (code, _, err) = admin(folder, &server, &["flush", "--table", "entities"]);
    assert!(code == Some(3) && err.contains("table has to be"), "{err}");
    let [begun, ended] = [(); 2].map(|()| server.logs("POST /api/v1/flush"));
    assert!(begun.contains("with a token of role admin: begins"), "{begun}");
    assert!(ended.contains("with a token of role admin") && ended.contains("ranges were flushed"), "{ended}");
    assert!(server.stop().success());
}

#[test]
fn drain_keeps_serving_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start(folder, &[&["--in-memory"], &PORTS[..]].concat(), &[]);
    let tokens = server.ready("admin_token_file").to_owned();
    let ready = || exchange(&server, "GET /ready HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assert!(ready().starts_with("HTTP/1.1 200"), "{}", ready());
    assert_eq!(json(folder, &server, &["drain"])["draining"], true);
    assert!(ready().starts_with("HTTP/1.1 503") && ready().contains("an operator wants it"), "{}", ready());
    assert!(list_queues(server.queues()).contains(" 200 "));
    assert_eq!(json(folder, &server, &["drain", "--undo"])["draining"], false);
    assert!(ready().starts_with("HTTP/1.1 200"), "{}", ready());
    assert!(Path::new(&tokens).exists());
    assert!(server.stop().success());
    assert!(!Path::new(&tokens).exists(), "the file of a server in memory goes with it");
}

#[test]
fn tokens_outlive_a_start_and_a_rotated_one_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arguments = [&["--data", "data"], &PORTS[..]].concat();
    let server = Server::start(folder, &arguments, &[]);
    let show = |server: &Server, role| admin(folder, server, &["token", "show", role]).1.trim().to_owned();
    let (read, operate) = (show(&server, "read"), show(&server, "operate"));
    assert!(read.len() == 64 && read != operate, "{read} {operate}");
    assert!(server.stop().success());
    let server = Server::start(folder, &arguments, &[]);
    assert_eq!(show(&server, "read"), read);
    let status = |token: &str| {
        let head =
            format!("GET /api/v1/status HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {token}\r\n\r\n");
        exchange(&server, &head).split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(status(&read).as_deref(), Some("200"));
    let rotated = admin(folder, &server, &["token", "rotate", "read"]).1.trim().to_owned();
    assert_eq!((status(&rotated).as_deref(), show(&server, "read")), (Some("200"), rotated.clone()));
    let began = Instant::now();
    assert_eq!(status(&read).as_deref(), Some("401"));
    assert!(began.elapsed() >= Duration::from_millis(50), "wrong ones wait");
    let line = server.logs("with a wrong token");
    let flush = "POST /api/v1/flush HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\nAuthorization: Bearer ";
    assert!(exchange(&server, &format!("{flush}{rotated}\r\n\r\n")).starts_with("HTTP/1.1 403"));
    let low = server.logs("is refused, it needs operate");
    assert!(low.contains("admin side: POST /api/v1/flush from 127.0.0.1:"), "{low}");
    assert!(low.contains("with a token of role read is refused"), "{low}");
    assert!(exchange(&server, &format!("{flush}{operate}\r\n\r\n")).starts_with("HTTP/1.1 200"));
    for token in [&read, &rotated, &operate] {
        assert!(!line.contains(token.as_str()) && !low.contains(token.as_str()), "{line} {low}");
    }
    assert!(server.stop().success());
}

/// Behind `--admin-host 0.0.0.0` no host name was answered.
#[test]
fn names_that_are_allowed_are_answered_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["--in-memory", "--admin-name=db1.example", "--admin-name", "db1"];
    let server = Server::start(folder.path(), &[&names[..], &PORTS[..]].concat(), &[]);
    let status = |host: &str| {
        let answer = exchange(&server, &format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        answer.split(' ').nth(1).map(str::to_owned)
    };
    for (host, expected) in
        [("db1.example:10010", "200"), ("DB1", "200"), ("HOST", "200"), ("db2.example:10010", "403")]
    {
        assert_eq!(status(host).as_deref(), Some(expected), "{host}");
    }
    let settings = admin(folder.path(), &server, &["settings"]).1;
    assert!(settings.contains("admin_names"), "{settings}");
}

#[test]
fn large_and_slow_bodies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[&["--in-memory"], &PORTS[..]].concat(), &[]);
    let token = std::fs::read_to_string(server.ready("admin_token_file")).unwrap();
    let token = token.lines().find_map(|line| line.strip_prefix("admin")).expect("a token").trim();
    let head = format!("POST /api/v1/flush HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {token}\r\n");
    let large = format!("{head}Content-Length: 20000\r\n\r\n{}", " ".repeat(20_000));
    assert!(exchange(&server, &large).starts_with("HTTP/1.1 413"));
    assert!(exchange(&server, &format!("{head}Content-Length: 9\r\n\r\n")).starts_with("HTTP/1.1 408"));
    // Without a token nothing of it is read.
    let anonymous = "POST /api/v1/flush HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999\r\n\r\n";
    assert!(exchange(&server, anonymous).starts_with("HTTP/1.1 401"));
    assert!(list_queues(server.queues()).contains(" 200 "));
    assert!(server.stop().success());
}

/// Beyond this machine everything is encrypted and needs a token.
#[test]
fn beyond_this_machine_everything_needs_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tls = ["--in-memory", "--admin-host", "0.0.0.0", "--tls-cert", CERTIFICATE, "--tls-key", KEY];
    let server = Server::start(folder, &[&tls, &PORTS[..]].concat(), &[]);
    let port = server.ready("admin").rsplit_once(':').expect("a port").1.to_owned();
    assert!(server.ready("admin").starts_with("https://"));
    let endpoint = format!("https://localhost:{port}");
    let tokens = server.ready("admin_token_file");
    let connection = ["admin", "--endpoint", &endpoint, "--ca", CERTIFICATE, "--token-file", tokens];
    let output = program(folder, &[&connection[..], &["status"]].concat()).output().expect("the program");
    assert!(output.status.success(), "{output:?}");
    let untrusted = program(folder, &["admin", "--endpoint", &endpoint, "--token-file", tokens, "status"])
        .env("SSL_CERT_FILE", folder.join("absent"))
        .output()
        .expect("the program");
    assert!(!untrusted.status.success(), "{untrusted:?}");
    let curl = std::process::Command::new("curl")
        .args(["--silent", "--cacert", CERTIFICATE, "--output", "/dev/null", "--write-out", "%{http_code}"])
        .arg(format!("{endpoint}/health"))
        .output();
    // Not every machine has it.
    if let Ok(answered) = curl {
        assert_eq!(String::from_utf8_lossy(&answered.stdout), "401");
    }
    assert!(server.stop().success());
}
