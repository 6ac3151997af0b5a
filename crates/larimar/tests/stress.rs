//! `larimar stress` against a server of this build: it reports, leaves nothing behind, and refuses bad input
//! in one line.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const WITHIN: Duration = Duration::from_secs(60);
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

struct Server {
    process: Child,
    connection_string: String,
    /// Signed addresses of the services.
    signed: Value,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("rules.toml"), rules).expect("a file");
        let ready = folder.path().join("ready");
        let mut process = program(folder.path())
            .args(["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"])
            .args(["--simulate", "rules.toml", "--ready-file"])
            .arg(&ready)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program");
        let started = Instant::now();
        let ready: Value = loop {
            assert!(started.elapsed() < WITHIN, "the program does not get ready");
            assert!(process.try_wait().expect("a child").is_none(), "the program does not start");
            std::thread::sleep(Duration::from_millis(5));
            if let Ok(ready) = serde_json::from_slice(&std::fs::read(&ready).unwrap_or_default()) {
                break ready;
            }
        };
        let url =
            |service: &str| ready[service].as_str().expect("an address").trim_end_matches('/').to_owned();
        let connection_string = format!(
            "AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={}/devstoreaccount1;\
             QueueEndpoint={}/devstoreaccount1;BlobEndpoint={}/devstoreaccount1",
            url("table"),
            url("queue"),
            url("blob")
        );
        Server { process, connection_string, signed: ready["sas"].clone(), folder }
    }

    fn stress(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.folder.path());
        command.args(["stress", "--endpoint", &self.connection_string, "--warm-up", "0"]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end, which is a good one; the report as text and as JSON.
    fn report(&self, arguments: &[&str]) -> (String, Value) {
        let output = self.stress(arguments).args(["--json", "report.json"]).output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}: {errors}", output.status);
        assert_eq!(errors, "", "{arguments:?}");
        (String::from_utf8(output.stdout).expect("text"), self.json())
    }

    fn json(&self) -> Value {
        let text = std::fs::read(self.folder.path().join("report.json")).expect("a report");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// What there is of the tables, queues and containers that a run makes.
    fn left_behind(&self) -> usize {
        let lists = [("table", "/Tables?"), ("queue", "?comp=list&"), ("blob", "?comp=list&")];
        lists
            .iter()
            .map(|(service, list)| {
                get(self.signed[service].as_str().expect("an address"), list).matches("stress").count()
            })
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).stdin(Stdio::null());
    for name in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS", "AZURE_STORAGE_CONNECTION_STRING", "LARIMAR_LOG"] {
        command.env_remove(name);
    }
    command
}

/// The answer to a list, at a signed address.
fn get(signed: &str, list: &str) -> String {
    let rest = signed.strip_prefix("http://").expect("in the clear");
    let (host, target) = rest.split_once('/').expect("a path");
    let (path, signature) = target.split_once('?').expect("a signature");
    let mut connection = TcpStream::connect(host).expect("a connection");
    let request =
        format!("GET /{path}{list}{signature} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn done(report: &Value, operation: &str) -> f64 {
    let rows = report["operations"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == operation);
    row.unwrap_or_else(|| panic!("no {operation}: {rows:?}"))["done_per_s"].as_f64().expect("a number")
}

#[test]
fn tables_queues_and_blobs_are_loaded_and_dropped() {
    let server = Server::start("");
    for (arguments, operations) in [
        (
            &["--mix", "mixed", "--key-count", "2000", "--partitions", "3"][..],
            &["get", "insert", "query", "batch", "all"][..],
        ),
        (&["--keys", "zipf", "--key-count", "500", "--rate", "200", "--mix", "get"], &["get"]),
        (&["--service", "queue", "--key-count", "50"], &["put", "get", "peek", "delete"]),
        (&["--service", "queue", "--mix", "peek", "--key-count", "5"], &["peek"]),
        (&["--service", "blob", "--size", "1KiB,70000", "--key-count", "20"], &["put", "get", "range"]),
    ] {
        let (text, report) = server
            .report(&[arguments, &["--seconds", "2", "--clients", "4", "--html", "report.html"]].concat());
        assert_eq!(report["errors"], Value::Array(Vec::new()), "{arguments:?}: {text}");
        for operation in operations {
            assert!(done(&report, operation) > 0.0, "{arguments:?}: {text}");
        }
        assert!(text.contains("no errors") && text.contains("published for the live service"), "{text}");
        let page = std::fs::read_to_string(server.folder.path().join("report.html")).expect("a page");
        assert!(page.contains("<svg ") && page.ends_with("</html>\n"));
        assert_eq!(server.left_behind(), 0, "{arguments:?}");
    }
}

#[test]
fn the_append_only_pattern_is_named() {
    let server = Server::start("");
    for (keys, pattern) in [("append", "append-only"), ("prepend", "prepend-only")] {
        let mix = ["--mix", "insert", "--keys", keys, "--partitions", "10", "--key-count", "100"];
        let (text, report) = server.report(&[&mix[..], &["--seconds", "1"]].concat());
        let findings = report["findings"].to_string();
        assert!(findings.contains(&format!("{pattern} pattern")), "{text}");
    }
    let (text, _) = server.report(&["--mix", "insert", "--seconds", "1"]);
    assert!(!text.contains("pattern"), "{text}");
}

#[test]
fn retries_repair_what_a_faulty_server_breaks() {
    let server = Server::start(
        "[[fault]]\noperation = \"InsertEntity\"\nevery = 20\nreset = \"after\"\n\
         [[fault]]\noperation = \"GetEntity\"\nevery = 20\nstatus = 503\n",
    );
    std::fs::write(server.folder.path().join("both.toml"), "[operations]\nget = 1\ninsert = 1\n")
        .expect("a file");
    let mix = ["--mix", "both.toml", "--key-count", "100", "--seconds", "5", "--clients", "8"];
    let (text, report) = server.report(&mix);
    let errors = report["errors"].as_array().expect("rows");
    for (code, is_there) in
        [("ServerBusy", true), ("connection failed", true), ("EntityAlreadyExists", false)]
    {
        let row = errors.iter().find(|row| row["code"] == code);
        assert_eq!(row.is_some(), is_there, "{code}: {text}");
        assert!(row.is_none_or(|row| row["done_after"].as_u64() > Some(0) && row["failed"] == 0), "{text}");
    }
    let (text, report) = server.report(&[&mix[..], &["--retry", "none"]].concat());
    assert!(report["errors"][0]["failed"].as_u64() > Some(0), "{text}");
    assert_eq!(server.left_behind(), 0);
}

/// Starts a run that would take long, and waits until it is under way.
fn long_run(server: &Server) -> Child {
    let run = server.stress(&["--seconds", "600", "--key-count", "10", "--json", "report.json"]).spawn();
    let run = run.expect("the program");
    let started = Instant::now();
    while server.left_behind() == 0 {
        assert!(started.elapsed() < WITHIN, "it makes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    run
}

fn ended(run: Child) -> Output {
    let started = Instant::now();
    let mut run = run;
    while run.try_wait().expect("a child").is_none() {
        assert!(started.elapsed() < WITHIN, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    run.wait_with_output().expect("its output")
}

#[test]
fn a_run_that_is_stopped_reports_and_leaves_nothing() {
    let server = Server::start("");
    for signal in [Signal::INT, Signal::TERM] {
        let run = long_run(&server);
        // So that there is something to report.
        std::thread::sleep(Duration::from_millis(2500));
        kill_process(Pid::from_child(&run), signal).expect("a process");
        let output = ended(run);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(130), "{text}");
        assert!(text.contains("stopped   before its time"), "{text}");
        assert_eq!(server.json()["is_interrupted"], true);
        assert_eq!(server.left_behind(), 0);
    }
}

#[test]
fn a_run_that_can_not_clean_up_says_what_stays_behind() {
    let server = Server::start(
        "[[fault]]\noperation = \"DeleteTable\"\nstatus = 403\ncode = \"AuthorizationFailure\"\n",
    );
    let output = server.stress(&["--seconds", "1", "--mix", "get"]).output().expect("the program");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("larimar: table stress") && errors.contains(" stays behind"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(!output.stdout.is_empty(), "the report is there all the same");
    assert_eq!(server.left_behind(), 1);
}

/// Answers each request as a service does that refuses the client's clock.
fn server_with_another_clock() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = connection.read(&mut request);
            let answer = "HTTP/1.1 403 x\r\nx-ms-error-code: AuthenticationFailed\r\n\
                date: Thu, 01 Jan 2026 00:00:00 GMT\r\ncontent-length: 0\r\n\r\n";
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    format!("AccountName=a;AccountKey=AAEC;TableEndpoint=http://{address}/a")
}

#[test]
fn what_can_not_be_run_is_one_line_and_exit_status_2() {
    let server = Server::start("");
    let good = server.connection_string.as_str();
    let wrong_key = good.replace(KEY, "AAECAwQFBgcICQoLDA0ODw==");
    let skewed = server_with_another_clock();
    std::fs::write(
        server.folder.path().join("bad.toml"),
        "[operations]\nget = 1\n\n[sizes]\nquery_row = 3\n",
    )
    .expect("a file");
    let closed = "AccountName=a;AccountKey=AAEC;TableEndpoint=http://127.0.0.1:1/a";
    for (arguments, words) in [
        (&["--endpoint", good, "--rates", "5"][..], &["--rates"][..]),
        (&[], &["--endpoint"]),
        (&["--endpoint", ""], &["--endpoint: the connection string is empty"]),
        (&["--endpoint", "AccountNam=a"], &["unknown name 'AccountNam'", "did you mean 'AccountName'?"]),
        (&["--endpoint", good, "--service", "files"], &["files", "table"]),
        (&["--endpoint", good, "--mix", "gets"], &["did you mean get?"]),
        (
            &["--endpoint", good, "--mix", "bad.toml"],
            &["bad.toml: line 5: sizes has no key \"query_row\"; did you mean query_rows?"],
        ),
        (&["--endpoint", good, "--json", "no/folder.json"], &["--json no/folder.json"]),
        (&["--endpoint", good, "--rate", "5", "--until-rate", "6"], &["--rate", "--until-rate"]),
        (&["--endpoint", closed], &["127.0.0.1:1 can't be reached", "check the endpoint"]),
        (&["--endpoint", &wrong_key], &["403 AuthenticationFailed", "check the account's name and key"]),
        (&["--endpoint", &skewed], &["this machine's clock is", "ahead of the service's: set it"]),
    ] {
        let output =
            program(server.folder.path()).arg("stress").args(arguments).output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.starts_with("larimar: ") && errors.lines().count() == 1, "{arguments:?}: {errors}");
        assert!(words.iter().all(|word| errors.contains(word)), "{arguments:?}: {errors}");
        assert!(!errors.contains(KEY) && output.stdout.is_empty(), "{arguments:?}: {errors}");
    }
    assert_eq!(server.left_behind(), 0);
}
