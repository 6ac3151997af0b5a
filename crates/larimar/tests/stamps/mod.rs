//! A stamp over a folder and an etcd of its own, for tests of the commands that look at one.

pub(crate) mod etcd;

use crate::running::tables::{connection, run};
use crate::running::{Server, program};
use etcd::Etcd;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(60);
/// The lease of the processes.
const LEASE: &str = "3s";

/// Exit code, standard output, standard error.
pub(crate) type Ended = (i32, String, String);

/// A stamp.
pub(crate) struct Stamp {
    pub(crate) folder: TempDir,
    pub(crate) etcd: Etcd,
}

impl Stamp {
    pub(crate) fn new() -> Self {
        let stamp = Stamp { folder: tempfile::tempdir().expect("a folder"), etcd: Etcd::start() };
        std::fs::create_dir(stamp.store()).expect("a folder");
        stamp
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn place(&self) -> Vec<String> {
        let store = format!("file://{}", self.store().display());
        let place = ["--stamp", "test", "--store", &store, "--etcd", &self.etcd.url(), "--lease", LEASE];
        place.map(str::to_owned).to_vec()
    }

    /// Runs a command with the stamp's place behind it.
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        let mut command = program(self.folder.path(), words);
        let output = command.args(self.place()).output().expect("the program");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// The same of one that succeeds: its standard output.
    pub(crate) fn fine(&self, words: &[&str]) -> String {
        let (code, out, errors) = self.run(words);
        assert_eq!(code, 0, "{words:?}: {out}{errors}");
        out
    }

    /// The same of one that is refused, with one line.
    pub(crate) fn refused(&self, words: &[&str], expected: i32) -> String {
        let (code, out, errors) = self.run(words);
        assert_eq!((code, out.as_str(), errors.lines().count()), (expected, "", 1), "{words:?}: {errors}");
        errors
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.fine(&["stamp", "status", "--json"])).expect("JSON")
    }

    /// Waits until the status has this at this place; the stamp may just be made.
    pub(crate) fn wait_for(&self, path: &str, expected: &Value) -> Value {
        let began_at = Instant::now();
        loop {
            let (_, out, errors) = self.run(&["stamp", "status", "--json"]);
            let status: Value = serde_json::from_str(&out).unwrap_or_default();
            if status.pointer(path) == Some(expected) {
                return status;
            }
            let waited = began_at.elapsed();
            assert!(waited < WITHIN, "{path} does not become {expected}: {status:#} {errors}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The files of the object store, with their sizes.
    pub(crate) fn objects(&self) -> Vec<(String, u64)> {
        let (mut all, mut folders) = (Vec::new(), vec![self.store()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
                let (path, size) = (entry.path(), entry.metadata().map_or(0, |file| file.len()));
                match path.is_dir() {
                    true => folders.push(path),
                    false => all.push((self.name_of(&path), size)),
                }
            }
        }
        all.sort();
        all
    }

    fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(self.store()).expect("below the store").display().to_string()
    }

    /// Starts a process in a folder of its own; whether it serves, others decide.
    pub(crate) fn process(&self, name: &str) -> Process {
        self.process_with(name, &[])
    }

    /// The same with other settings.
    pub(crate) fn process_with(&self, name: &str, settings: &[&str]) -> Process {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut place = self.place();
        if settings.contains(&"--lease") {
            place.truncate(place.len() - 2);
        }
        let mut words: Vec<&str> = vec!["serve"];
        words.extend(place.iter().map(String::as_str));
        words.extend(settings);
        words.extend(["--cache", "near"]);
        words.extend(["--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--admin-port", "none"]);
        let server = Server::start(&folder, &words, &[]);
        let tables = format!("{}/devstoreaccount1", server.ready("table").trim_end_matches('/'));
        Process { server, folder, connection: connection(&tables) }
    }

    /// Starts a process, and waits until it serves the stamp.
    pub(crate) fn serve(&self, name: &str) -> Process {
        let process = self.process(name);
        self.wait_for("/owners/0/lives", &Value::Bool(true));
        process
    }
}

/// A process of a stamp.
pub(crate) struct Process {
    pub(crate) server: Server,
    folder: PathBuf,
    connection: String,
}

impl Process {
    /// Stores entities in a table of this name, which is made.
    pub(crate) fn import(&self, table: &str, count: usize) {
        let entity = |number| {
            format!(
                "{{\"PartitionKey\":\"p{}\",\"RowKey\":\"{number:06}\",\"Text\":\"{number}\"}}\n",
                number % 7
            )
        };
        let file = format!("{table}.jsonl");
        std::fs::write(self.folder.join(&file), (0..count).map(entity).collect::<String>()).expect("a file");
        let (code, out, errors) = self.table(&["import", table, &file, "--create"]);
        assert_eq!(code, 0, "{out}{errors}");
    }

    /// How many entities the table has.
    pub(crate) fn count(&self, table: &str) -> u64 {
        let (code, out, errors) = self.table(&["count", table, "--json"]);
        assert_eq!(code, 0, "{out}{errors}");
        let counted: Value = serde_json::from_str(&out).expect("JSON");
        counted["entities"].as_u64().expect("a number")
    }

    pub(crate) fn table(&self, words: &[&str]) -> Ended {
        run(&self.folder, &self.connection, &[&["table"], words].concat())
    }
}
