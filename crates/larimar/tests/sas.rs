//! `larimar sas` as its user meets it: what it prints where, what it refuses, and that a server takes what it
//! makes.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";
const STARTS_WITHIN: Duration = Duration::from_secs(20);

fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS").env_remove("LARIMAR_LOG");
    command.envs(environment.iter().copied());
    command
}

fn sas(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    command(&[&["sas"], arguments].concat(), environment).output().expect("the program")
}

/// What it prints, and says.
fn made(arguments: &[&str], environment: &[(&str, &str)]) -> (Vec<String>, String) {
    let output = sas(arguments, environment);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{arguments:?}: {said}");
    let printed = String::from_utf8(output.stdout).expect("text");
    (printed.lines().map(str::to_owned).collect(), said)
}

/// Its one line.
fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = sas(arguments, environment);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
    assert!(line.starts_with("larimar: ") && line.lines().count() == 1, "{arguments:?}: {line}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    line
}

#[test]
fn the_token_and_an_address_for_each_service_are_printed() {
    let (printed, said) = made(&[], &[]);
    let [token, blob, queue, table] = &printed[..] else { panic!("{printed:?}") };
    assert!(token.starts_with("sv=") && token.contains("&ss=bqt&srt=sco&sp=rwdxlacuptf&se="), "{token}");
    for (address, port) in [(blob, 10000), (queue, 10001), (table, 10002)] {
        assert_eq!(address, &format!("http://127.0.0.1:{port}/devstoreaccount1?{token}"));
    }
    for words in ["account devstoreaccount1", "d delete", "in 1 day", "any address", "HTTP or TLS", "public"]
    {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}

#[test]
fn one_resource_has_one_address_and_its_own_words() {
    let own = format!("mine:{KEY}");
    let arguments = [
        "--account",
        &own,
        "--resource",
        "blob/box/a b.txt",
        "--permissions",
        "wr",
        "--expiry",
        "2099-12-31",
        "--start",
        "2h",
        "--ip",
        "10.0.0.1-10.0.0.9",
        "--https-only",
        "--host",
        "::1",
        "--blob-port",
        "7",
    ];
    let (printed, said) = made(&arguments, &[]);
    let [token, address] = &printed[..] else { panic!("{printed:?}") };
    assert_eq!(address, &format!("https://[::1]:7/mine/box/a%20b.txt?{token}"));
    assert!(
        token.contains("&sr=b&sp=rw&st=") && token.contains("&sip=10.0.0.1-10.0.0.9&spr=https&"),
        "{token}"
    );
    for words in
        ["blob a b.txt of container box", "r read\n", "w write\n", "in 2 hours", "2099-12-31T00:00:00Z"]
    {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    assert!(said.contains("10.0.0.1 to 10.0.0.9 only") && said.contains("TLS only"), "{said}");
    assert!(!said.contains("delete") && !said.contains(KEY), "{said}");
    let (printed, said) = made(&["--resource", "queue/tasks", "--token-only"], &[]);
    assert!(printed.len() == 1 && printed[0].contains("&sp=raup&") && said.is_empty(), "{printed:?} {said}");
    let (_, said) = made(&["--permissions", "y"], &[]);
    assert!(said.contains("nothing is served that needs it"), "{said}");
}

#[test]
fn accounts_come_from_where_the_server_has_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("accounts");
    std::fs::write(&file, format!("# mine\none:{KEY}\ntwo:{OTHER_KEY}:{KEY}\n")).expect("a file");
    let file = file.to_str().expect("text");
    let token = |arguments: &[&str], environment: &[(&str, &str)]| {
        let fixed = ["--expiry", "2099-01-01", "--token-only"];
        made(&[arguments, &fixed].concat(), environment).0.remove(0)
    };
    let one = token(&["--account", &format!("one:{KEY}")], &[]);
    let list = format!("one:{KEY};two:{KEY}");
    for variable in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS"] {
        assert_eq!(token(&["--account", "one"], &[(variable, &list)]), one, "{variable}");
    }
    assert_eq!(token(&["--account", "one", "--accounts-file", file], &[]), one);
    assert_ne!(token(&["--account", "one"], &[("LARIMAR_ACCOUNTS", &format!("one:{OTHER_KEY}"))]), one);
    // A file beats the environment.
    let stale = format!("one:{OTHER_KEY}");
    assert_eq!(token(&["--account", "one", "--accounts-file", file], &[("LARIMAR_ACCOUNTS", &stale)]), one);
    let second = token(&["--account", "two", "--accounts-file", file, "--key", "2"], &[]);
    assert_eq!(second, token(&["--account", "two"], &[("LARIMAR_ACCOUNTS", &list)]));
    for (arguments, words) in [
        (&["--account", "none", "--accounts-file", file][..], &["none", "one, two"][..]),
        (&["--accounts-file", file], &["--account", "one, two"]),
        (&["--account", "one", "--accounts-file", file, "--key", "2"], &["--key 2", "one"]),
        (&["--account", "nobody"], &["nobody", "devstoreaccount1"]),
    ] {
        let line = refused(arguments, &[]);
        assert!(words.iter().all(|word| line.contains(word)), "{arguments:?}: {line}");
    }
    let line = refused(&["--account", "nobody:"], &[]);
    assert!(line.contains("no key"), "{line}");
    let line = refused(&["--account", KEY], &[]);
    assert!(!line.contains(&KEY[..8]), "{line}");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (arguments, words) in [
        (&["--permissions", "rz"][..], &["--permissions", "'z'", "rwdxylacupt"][..]),
        (&["--permissions", ""], &["--permissions", "nothing"]),
        (&["--service", "queue", "--permissions", "rt"], &["--permissions", "'t'", "rwdlacup"]),
        (&["--resource", "table/People", "--permissions", "rl"], &["'l'", "raud"]),
        (&["--resource", "blob/box/a", "--permissions", "l"], &["'l'"]),
        (&["--service", "files"], &["--service", "files", "blob, queue and table"]),
        (&["--service", ""], &["--service"]),
        (&["--service", "blob", "--resource", "queue/tasks"], &["--service", "queue/tasks"]),
        (&["--resource", "box"], &["--resource", "box", "blob/CONTAINER"]),
        (&["--resource", "file/box"], &["--resource", "file/box"]),
        (&["--resource", "queue/a/b"], &["--resource", "queue/a/b"]),
        (&["--resource", "blob/Box"], &["--resource", "container", "Box"]),
        (&["--resource", "blob/box/"], &["--resource", "blob"]),
        (&["--resource", "table/a-b"], &["--resource", "table", "a-b"]),
        (&["--resource", "queue/a_b"], &["--resource", "queue", "a_b"]),
        (&["--expiry", "2020-01-01"], &["--expiry", "2020-01-01", "over"]),
        (&["--expiry", "0s"], &["--expiry", "over"]),
        (&["--expiry", "soon"], &["--expiry", "soon"]),
        (&["--start", "2d"], &["--start", "end"]),
        (&["--start", "later"], &["--start", "later"]),
        (&["--ip", "10.0.0"], &["--ip", "10.0.0"]),
        (&["--ip", "10.0.0.9-10.0.0.1"], &["--ip"]),
        (&["--ip", "::1"], &["--ip"]),
        (&["--host", ""], &["--host"]),
        (&["--key", "3"], &["--key"]),
        (&["--blob-port", "0"], &["--blob-port"]),
    ] {
        let line = refused(arguments, &[]);
        assert!(words.iter().all(|word| line.contains(word)), "{arguments:?}: {line}");
    }
}

#[test]
fn its_help_has_examples() {
    let output = sas(&["--help"], &[]);
    let help = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.success() && help.contains("Examples:") && help.contains("--permissions"),
        "{help}"
    );
}

/// A server in memory, on ports that are free.
struct Server {
    process: Child,
    ready: serde_json::Value,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ready");
        let ports =
            ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--ready-file"];
        let ready_file = file.to_str().expect("text");
        let arguments = [&ports[..], &[ready_file], arguments].concat();
        let process = command(&arguments, &[]).stdout(Stdio::null()).spawn().expect("the program");
        let mut server = Server { process, ready: serde_json::Value::Null };
        let started = Instant::now();
        while server.ready.is_null() {
            assert!(started.elapsed() < STARTS_WITHIN, "the program does not get ready");
            std::thread::sleep(Duration::from_millis(5));
            server.ready =
                serde_json::from_slice(&std::fs::read(&file).unwrap_or_default()).unwrap_or_default();
        }
        server
    }

    fn port(&self, service: &str) -> String {
        let address = self.ready[service].as_str().expect("an address");
        address.rsplit(':').next().expect("a port").to_owned()
    }

    /// The addresses that are made for this server.
    fn addresses(&self, arguments: &[&str]) -> Vec<String> {
        let (blob, queue, table) = (self.port("blob"), self.port("queue"), self.port("table"));
        let ports = ["--blob-port", &blob, "--queue-port", &queue, "--table-port", &table];
        made(&[arguments, &ports].concat(), &[]).0.split_off(1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The status of a request to an address, `added` being put behind its path and its parameters.
fn send(method: &str, address: &str, added: (&str, &str), headers: &str, body: &str) -> u16 {
    let rest = address.strip_prefix("http://").expect("in the clear");
    let (host, target) = rest.split_once('/').expect("a path");
    let (path, token) = target.split_once('?').expect("a token");
    let (below, parameters) = added;
    let mut connection = TcpStream::connect(host).expect("a connection");
    let length = body.len();
    let request = format!(
        "{method} /{path}{below}?{token}{parameters} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    connection.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

const BLOCK_BLOB: &str = "x-ms-blob-type: BlockBlob\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn a_server_takes_what_is_made_and_no_more() {
    let server = Server::start(&[]);
    let all = server.addresses(&[]);
    let [blobs, queues, tables] = &all[..] else { panic!("{all:?}") };
    assert_eq!(send("PUT", blobs, ("/box", "&restype=container"), "", ""), 201);
    assert_eq!(send("PUT", blobs, ("/box/other", ""), BLOCK_BLOB, "other"), 201);
    assert_eq!(send("PUT", queues, ("/tasks", ""), "", ""), 201);
    assert_eq!(send("POST", tables, ("/Tables", ""), JSON, "{\"TableName\":\"People\"}"), 201);

    let one = |resource: &str, permissions: &str| {
        server.addresses(&["--resource", resource, "--permissions", permissions]).remove(0)
    };
    let blob = one("blob/box/a b/ä.txt", "rw");
    assert_eq!(send("PUT", &blob, ("", ""), BLOCK_BLOB, "bytes"), 201);
    assert_eq!(send("GET", &blob, ("", ""), "", ""), 200);
    assert_eq!(send("DELETE", &blob, ("", ""), "", ""), 403);
    assert_eq!(send("GET", &blob.replace("/a%20b/%C3%A4.txt", "/other"), ("", ""), "", ""), 403);
    let container = one("blob/box", "rl");
    assert_eq!(send("GET", &container, ("", "&restype=container&comp=list"), "", ""), 200);
    assert_eq!(send("GET", &container, ("/other", ""), "", ""), 200);
    assert_eq!(send("PUT", &container, ("/other", ""), BLOCK_BLOB, "bytes"), 403);
    let queue = one("queue/tasks", "ap");
    let message = "<QueueMessage><MessageText>m</MessageText></QueueMessage>";
    assert_eq!(send("POST", &queue, ("/messages", ""), "", message), 201);
    assert_eq!(send("GET", &queue, ("/messages", ""), "", ""), 200);
    assert_eq!(send("GET", &queue, ("/messages", "&peekonly=true"), "", ""), 403);
    let table = one("table/People", "ra");
    assert_eq!(send("POST", &table, ("", ""), JSON, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}"), 201);
    assert_eq!(send("GET", &table, ("()", ""), "Accept: application/json\r\n", ""), 200);
    let reads = server.addresses(&["--service", "blob", "--resource", "object", "--permissions", "r"]);
    assert_eq!(send("GET", &reads[0], ("/box/other", ""), "", ""), 200);
    assert_eq!(send("GET", &reads[0], ("", "&comp=list"), "", ""), 403);
}

#[test]
fn the_start_makes_signed_addresses_of_the_development_account() {
    let server = Server::start(&[]);
    let signed = |service: &str| server.ready["sas"][service].as_str().expect("an address");
    for (service, list) in
        [("blob", ("", "&comp=list")), ("queue", ("", "&comp=list")), ("table", ("/Tables", ""))]
    {
        assert_eq!(send("GET", signed(service), list, "", ""), 200, "{service}");
        let base = server.ready[service].as_str().expect("an address");
        assert!(signed(service).starts_with(&format!("{base}/devstoreaccount1?")), "{}", signed(service));
    }
    let own = Server::start(&["--account", &format!("mine:{KEY}")]);
    assert!(own.ready["sas"].is_null(), "{}", own.ready);
}
