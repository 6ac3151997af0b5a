//! `larimar migrate` as its user runs it: what was written through a server to a folder is there once a stamp
//! serves it, with the same ETags, block lists and pop receipts; a run that was killed goes on.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::etcd::Etcd;
use running::requests::{Answer, send};
use running::{Server, program};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

const PORTS: [&str; 8] =
    ["--blob-port", "0", "--queue-port", "0", "--table-port", "0", "--admin-port", "none"];
const VERSION: &str = "x-ms-version: 2021-12-02";
const ENTITIES: usize = 300;
const MESSAGES: usize = 20;
/// Of 4 MiB each.
const BLOCKS: usize = 12;
const WITHIN: Duration = Duration::from_secs(60);

fn serve(folder: &Path, arguments: &[&str]) -> Server {
    Server::start(folder, &[&["serve"], arguments, &PORTS].concat(), &[])
}

/// Sends it again while the server stands by.
fn request(
    server: &Server,
    service: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    let began_at = Instant::now();
    loop {
        let headers = [headers, &[VERSION]].concat();
        let answer = send(server.sas(service), method, path, &headers, body);
        if answer.status != 503 || began_at.elapsed() > WITHIN {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn done(answer: Answer) -> Answer {
    assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.text());
    answer
}

fn bytes(size: usize, tag: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + at / 251 + tag) as u8).collect()
}

/// A message that was received and not deleted: its id and its pop receipt.
type Received = (String, String);

/// Writes rows of every kind; the messages that were received.
fn fill(server: &Server) -> Vec<Received> {
    let json = ["Content-Type: application/json", "Accept: application/json;odata=nometadata"];
    done(request(server, "table", "POST", "/Tables", &json, b"{\"TableName\":\"People\"}"));
    for at in 0..ENTITIES {
        let entity = format!(
            "{{\"PartitionKey\":\"p{}\",\"RowKey\":\"r{at:04}\",\"Name\":\"{}\",\"Age\":{at}}}",
            at % 7,
            "x".repeat(at % 500)
        );
        done(request(server, "table", "POST", "/People", &json, entity.as_bytes()));
    }
    done(request(server, "queue", "PUT", "/work", &[], b""));
    for at in 0..MESSAGES {
        let message = format!("<QueueMessage><MessageText>m{at}</MessageText></QueueMessage>");
        done(request(server, "queue", "POST", "/work/messages", &[], message.as_bytes()));
    }
    let path = "/work/messages?numofmessages=5&visibilitytimeout=3600";
    let received = done(request(server, "queue", "GET", path, &[], b"")).text();
    let values = |tag: &str| -> Vec<String> {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let values = received.split(&open).skip(1).filter_map(|rest| rest.split(&close).next());
        values.map(str::to_owned).collect()
    };
    done(request(server, "blob", "PUT", "/files?restype=container", &[], b""));
    for at in 0..20 {
        let content = bytes(at * 700, at);
        let path = format!("/files/small-{at}");
        done(request(server, "blob", "PUT", &path, &["x-ms-blob-type: BlockBlob"], &content));
    }
    let id = |at: usize| format!("YmxvY2s{at:05}"); // Base64 of twelve characters.
    let mut list = String::from("<BlockList>");
    for at in 0..BLOCKS {
        let path = format!("/files/large?comp=block&blockid={}", id(at));
        done(request(server, "blob", "PUT", &path, &[], &bytes(4 << 20, at)));
        if at < BLOCKS - 2 {
            list.push_str(&format!("<Latest>{}</Latest>", id(at)));
        }
    }
    list.push_str("</BlockList>");
    done(request(server, "blob", "PUT", "/files/large?comp=blocklist", &[], list.as_bytes()));
    let path = format!("/files/large?comp=block&blockid={}", id(BLOCKS));
    done(request(server, "blob", "PUT", &path, &[], &bytes(100_000, 77)));
    values("MessageId").into_iter().zip(values("PopReceipt")).collect()
}

/// All that a client can read, whatever the address of the server is.
fn everything(server: &Server) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut look = |service: &str, path: &str, headers: &[&str]| {
        let answer = done(request(server, service, "GET", path, headers, b""));
        let address = server.sas(service);
        let host = address.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("a host");
        let etag = answer.header("etag").to_owned();
        // Bodies of blobs by their digest: a difference of many megabytes is not read by anybody.
        let text = match answer.body.len() {
            0..1_000_000 => answer.text().replace(host, "HOST"),
            size => format!("{size} bytes, CRC {:016x}", base::checksum::crc64(&[&answer.body])),
        };
        found.insert(format!("{service} {path}"), format!("{etag} {text}"));
    };
    look("table", "/People()", &["Accept: application/json;odata=fullmetadata"]);
    look("table", "/Tables", &["Accept: application/json;odata=nometadata"]);
    look("queue", "/work/messages?peekonly=true&numofmessages=32", &[]);
    look("queue", "/work?comp=metadata", &[]);
    look("blob", "/files?restype=container&comp=list&include=metadata,uncommittedblobs", &[]);
    look("blob", "/files/large?comp=blocklist&blocklisttype=all", &[]);
    look("blob", "/files/large", &[]);
    (0..20).for_each(|at| look("blob", &format!("/files/small-{at}"), &[]));
    found
}

/// Receipts from before are good still.
fn delete_received(server: &Server, received: &[Received]) {
    for (id, receipt) in received {
        let receipt = receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let path = format!("/work/messages/{id}?popreceipt={receipt}");
        assert_eq!(request(server, "queue", "DELETE", &path, &[], b"").status, 204, "{path}");
    }
}

/// That the stamp is served with.
const LEASE: &str = "3s";

struct Stores {
    _etcd: Etcd,
    arguments: Vec<String>,
    objects: std::path::PathBuf,
}

impl Stores {
    fn start(folder: &Path) -> Self {
        let etcd = Etcd::start(folder);
        let objects = folder.join("objects");
        std::fs::create_dir(&objects).expect("a folder");
        let store = format!("file://{}", objects.display());
        let arguments = ["--stamp", "moved", "--store", &store, "--etcd", &etcd.url, "--lease", LEASE];
        let arguments = arguments.map(str::to_owned).into();
        Stores { _etcd: etcd, arguments, objects }
    }

    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Parts and seals of extents.
    fn object_count(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
        }
        let stamps = std::fs::read_dir(&self.objects).into_iter().flatten().flatten();
        stamps.map(|stamp| count(&stamp.path().join("x"))).sum()
    }

    fn migrate(&self, folder: &Path, arguments: &[&str]) -> Output {
        self.migrate_with_lease(folder, arguments, LEASE)
    }

    fn migrate_with_lease(&self, folder: &Path, arguments: &[&str], lease: &str) -> Output {
        let stores =
            self.arguments().into_iter().map(|argument| if argument == LEASE { lease } else { argument });
        let arguments: Vec<&str> = ["migrate"].iter().chain(arguments).copied().chain(stores).collect();
        program(folder, &arguments).output().expect("the program")
    }

    /// Kills it with -9 once the store has so many objects more.
    fn migrate_until(&self, folder: &Path, arguments: &[&str], more: usize) {
        let arguments = [&["migrate"], arguments, &self.arguments()].concat();
        let wanted = self.object_count() + more;
        let mut process = program(folder, &arguments)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program");
        let began_at = Instant::now();
        while self.object_count() < wanted {
            assert!(process.try_wait().expect("a child").is_none(), "it has ended");
            assert!(began_at.elapsed() < WITHIN, "it copies nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        process.kill().expect("a child");
        process.wait().expect("a child");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All files, with a checksum of each.
fn contents(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // A file that is being made may be gone by now.
            match std::fs::read(&path) {
                _ if path.is_dir() => folders.push(path),
                Ok(content) => {
                    found.insert(path.display().to_string(), base::checksum::crc64(&[&content]));
                }
                Err(_) => {}
            }
        }
    }
    found
}

#[test]
fn a_folder_becomes_a_stamp_with_every_row_and_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let stores = Stores::start(folder.path());
    let server = serve(folder.path(), &["--data", "data"]);
    let received = fill(&server);
    assert_eq!(received.len(), 5);
    let expected = everything(&server);
    let in_use = stores.migrate(folder.path(), &["--from", "data"]);
    assert_eq!(in_use.status.code(), Some(1));
    assert!(text(&in_use.stderr).contains("in use by another process"), "{}", text(&in_use.stderr));
    // As by kill -9: what was written last is in the journal alone.
    drop(server);
    let before = contents(&folder.path().join("data"));

    stores.migrate_until(folder.path(), &["--from", "data"], 6);
    stores.migrate_until(folder.path(), &["--from", "data"], 5);
    let migrated = stores.migrate(folder.path(), &["--from", "data", "--json", "--quiet"]);
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&migrated.stdout).expect("JSON");
    let number = |name: &str| summary[name].as_u64().expect("a number");
    assert!(
        number("bytes") > (BLOCKS as u64) << 22 && number("verified_bytes") == number("bytes"),
        "{summary}"
    );
    assert!(number("copied_bytes") < number("bytes"), "it went on: {summary}");
    assert_eq!(contents(&folder.path().join("data")), before, "the folder was changed");

    let server = serve(folder.path(), &stores.arguments());
    let found = everything(&server);
    for (what, expected) in &expected {
        assert_eq!(found.get(what), Some(expected), "{what}");
    }
    delete_received(&server, &received);
    let refused = stores.migrate(folder.path(), &["--from", "data"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("streams already"), "{}", text(&refused.stderr));
    goes_back(folder.path(), &stores, server);
}

/// The stamp that `server` serves becomes a folder with every row and byte.
fn goes_back(folder: &Path, stores: &Stores, server: Server) {
    let served = stores.migrate(folder, &["--to", "back"]);
    assert_eq!(served.status.code(), Some(1));
    assert!(text(&served.stderr).contains("serves the stamp"), "{}", text(&served.stderr));
    let expected = everything(&server);
    assert!(server.stop().success());
    let objects = contents(&stores.objects);
    // It would count the silence of the stamp's owner too soon.
    for how in [&["--to", "other"][..], &["--from", "data"], &["--abandon"]] {
        let refused = stores.migrate_with_lease(folder, how, "4s");
        assert_eq!(refused.status.code(), Some(1));
        let line = text(&refused.stderr);
        assert!(line.contains("its --lease is 4 s, and the stamp is served with 3 s"), "{how:?}: {line}");
    }
    assert!(!folder.join("other").exists(), "a folder was begun");

    let mut process = program(folder, &[&["migrate", "--to", "back"], &stores.arguments()[..]].concat())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program");
    let began_at = Instant::now();
    while std::fs::read_dir(folder.join("back/extents")).map_or(0, Iterator::count) < 3 {
        assert!(began_at.elapsed() < WITHIN, "it copies nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().expect("a child");
    process.wait().expect("a child");
    let check = |folder: &Path| program(folder, &["check", "back", "--quiet"]).output().expect("the program");
    let unfinished = check(folder);
    assert!(text(&unfinished.stderr).contains("run larimar migrate again"), "{}", text(&unfinished.stderr));

    let migrated = stores.migrate(folder, &["--to", "back"]);
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    assert!(text(&migrated.stdout).contains("is copied to back: "), "{}", text(&migrated.stdout));
    assert_eq!(contents(&stores.objects), objects, "the stamp was changed");
    let checked = check(folder);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));
    let server = serve(folder, &["--data", "back"]);
    let found = everything(&server);
    for (what, expected) in &expected {
        assert_eq!(found.get(what), Some(expected), "{what}");
    }
    assert!(server.stop().success());
    assert_eq!(check(folder).status.code(), Some(0));
}

#[test]
fn what_makes_no_sense_is_refused_with_one_line_and_an_unfinished_migration_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let stores = Stores::start(folder.path());
    for (arguments, code, why) in [
        (vec![], 2, "--from"),
        (vec!["--from", "nowhere"], 1, "nowhere"),
        (vec!["--abandon"], 1, "has no stamp"),
    ] {
        let refused = stores.migrate(folder.path(), &arguments);
        let line = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {line}");
        assert!(line.contains(why) && line.lines().count() == 1, "{arguments:?}: {line}");
    }
    let place =
        ["migrate", "--to", "made", "--stamp", "x", "--store", "gopher://x", "--etcd", "http://127.0.0.1:1"];
    let unknown = program(folder.path(), &place).output().expect("the program");
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown.stderr));
    assert!(!folder.path().join("made").exists() && text(&unknown.stderr).lines().count() == 1);
    let without = program(folder.path(), &["migrate", "--from", "data"]).output().expect("the program");
    assert_eq!(without.status.code(), Some(2), "{}", text(&without.stderr));

    let server = serve(folder.path(), &["--data", "data"]);
    fill(&server);
    drop(server);
    stores.migrate_until(folder.path(), &["--from", "data"], 3);
    let given_up = stores.migrate(folder.path(), &["--abandon"]);
    assert!(given_up.status.success(), "{}", text(&given_up.stderr));
    assert!(text(&given_up.stdout).contains("extents are dropped"), "{}", text(&given_up.stdout));
    let again = stores.migrate(folder.path(), &["--abandon"]);
    assert!(text(&again.stderr).contains("no unfinished migration"), "{}", text(&again.stderr));
}
