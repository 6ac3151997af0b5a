//! The access log of a running server: what its lines say and what they never say, and that no line is lost
//! when its file is moved under load.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::{Server, list_queues, program};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);
const FLAGS: [&str; 7] = [
    "--in-memory",
    "--table-port=0",
    "--queue-port=0",
    "--blob-port=0",
    "--admin-port=0",
    "--access-log=access.log",
    "--slow-requests=1",
];

/// What must be in no log: keys and values of an entity, and what opens an account.
const SECRETS: [&str; 4] =
    ["SecretPartition", "SecretRow", "SecretValue", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6"];

/// Sends a request to the Table service with its signature, or with another one, and gives the status.
fn send(
    server: &Server,
    method: &str,
    path: &str,
    query: &str,
    body: &str,
    signature: Option<&str>,
) -> String {
    let address = server.sas("table");
    let (host, rest) = address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
    let (account, token) = rest.split_once('?').expect("a signature");
    let token = signature.unwrap_or(token);
    let mut connection = TcpStream::connect(host).expect("a connection");
    connection.set_read_timeout(Some(WITHIN)).expect("a time-out");
    let request = format!(
        "{method} /{account}/{path}?{query}{token} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json;odata=nometadata\r\nUser-Agent: trial \"1\"\r\nx-ms-client-request-id: mine\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn lines_say_what_was_done_and_nothing_that_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[&FLAGS[..], &["--log=debug"]].concat(), &[]);
    let entity = "{\"PartitionKey\":\"SecretPartition\",\"RowKey\":\"SecretRow\",\"P\":\"SecretValue\"}";
    let one = "People(PartitionKey='SecretPartition',RowKey='SecretRow')";
    let filter = "$filter=P%20eq%20'SecretValue'&";
    let wrong = "sv=2020-12-06&ss=t&srt=sco&sp=r&se=2100-01-01&sig=SecretValue";
    assert_eq!(send(&server, "POST", "Tables", "", "{\"TableName\":\"People\"}", None), "201");
    assert_eq!(send(&server, "POST", "People", "", entity, None), "201");
    assert_eq!(send(&server, "GET", one, "", "", None), "200");
    assert_eq!(send(&server, "GET", "People()", filter, "", None), "200");
    assert_eq!(send(&server, "GET", "People()", "", "", Some(wrong)), "403");
    let signature = server.sas("table").split("sig=").nth(1).expect("one").to_owned();
    let tokens = std::fs::read_to_string(server.ready("admin_token_file")).unwrap();
    let log = server.stop_and_log();
    let path = folder.path().join("access.log");
    let lines = lines(&path);
    let of = |index: usize, field: &str| lines[index][field].clone();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let operations: Vec<Value> = (0..5).map(|index| of(index, "operation")).collect();
    assert_eq!(operations, ["CreateTable", "InsertEntity", "GetEntity", "QueryEntities", "unknown"]);
    let classes: Vec<Value> = (0..5).map(|index| of(index, "class")).collect();
    assert_eq!(classes, ["container", "point", "point", "table-scan", "none"]);
    assert_eq!(
        (of(3, "rows_read"), of(3, "rows_returned"), of(3, "status")),
        (1.into(), 1.into(), 200.into())
    );
    assert_eq!((of(4, "status"), of(4, "code")), (403.into(), "AuthenticationFailed".into()));
    for line in &lines[1..] {
        assert_eq!((&line["account"], &line["container"]), (&"devstoreaccount1".into(), &"People".into()));
        assert_eq!((&line["client_id"], &line["agent"]), (&"mine".into(), &"trial \"1\"".into()));
        let time = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
        let parts = time("authentication_us") + time("turn_us") + time("body_us") + time("work_us");
        assert!(time("total_us") > 0 && parts <= time("total_us") + 10, "{line}");
    }
    let logged = std::fs::read_to_string(&path).unwrap();
    let mut secrets: Vec<&str> = SECRETS.to_vec();
    secrets.push(&signature);
    secrets.extend(tokens.split_whitespace().filter(|word| word.len() == 64));
    assert_eq!(secrets.len(), 8);
    for secret in secrets {
        assert!(!logged.contains(secret), "{secret} is in the access log");
        // A failed request's path is logged where somebody asks for it, so these keys are in no path here.
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}

/// Somebody moves the file again and again under load, and says so: each request has its line.
#[test]
fn no_line_is_lost_when_the_file_is_moved() {
    const REQUESTS: usize = 300;
    const THREADS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &FLAGS, &[]);
    let path = folder.path().join("access.log");
    let moved = |number: usize| folder.path().join(format!("moved.{number}"));
    let queues = server.queues();
    let moves = std::thread::scope(|scope| {
        let load: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| (0..REQUESTS).for_each(|_| assert!(list_queues(queues).contains(" 200 "))))
            })
            .collect();
        let mut moves = 0;
        while load.iter().any(|thread| !thread.is_finished()) {
            if path.exists() {
                std::fs::rename(&path, moved(moves)).unwrap();
                moves += 1;
                server.signal(rustix::process::Signal::USR1);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        moves
    });
    server.stop_and_log();
    let all: usize = (0..moves).map(|number| lines(&moved(number)).len()).sum();
    assert_eq!(all + lines(&path).len(), THREADS * REQUESTS);
    assert!(moves > 0);
}

/// A disk that is full, or a folder that is gone, is one line of the log, and requests are served.
#[test]
fn a_log_that_can_not_be_written_stops_nothing() {
    for target in ["--access-log=/dev/full", "--access-log=logs/access.log"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        let server = Server::start(folder.path(), &[&FLAGS[..5], &[target]].concat(), &[]);
        std::fs::remove_dir_all(folder.path().join("logs")).unwrap();
        for _ in 0..20 {
            assert!(list_queues(server.queues()).contains(" 200 "));
        }
        let log = server.stop_and_log();
        let told: Vec<&str> = log.lines().filter(|line| line.contains("access log")).collect();
        assert!(told.len() == 1 && told[0].contains("can't be written"), "{log}");
    }
}

/// A pipe held up the log's writer for ever, and a folder that is missing was found with the first request.
#[test]
fn a_log_that_can_not_be_written_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for (path, expected) in [
        ("pipe", "--access-log pipe: it is a pipe, whose reader could stop the log; give a file"),
        ("absent/access.log", "--access-log absent/access.log: No such file or directory"),
        ("folder", "--access-log folder: Is a directory"),
    ] {
        let flags = [&FLAGS[..5], &["--access-log", path]].concat();
        let output = program(folder.path(), &flags).output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), errors.lines().count()), (Some(1), 1), "{path}: {errors}");
        assert!(errors.contains(expected), "{path}: {errors}");
    }
}
