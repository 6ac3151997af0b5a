//! What the program refuses at its start: each mistake is one clear line on standard error and an exit code
//! that is not 0, and what was on the disk before is there afterwards, byte by byte.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use base::checksum::crc64;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
/// Every port that is free, and no admin side: its warning would be one line more.
const PORTS: [&str; 4] = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=none"];
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../front_end/tests/certificates/server.pem");
const CERTIFICATE_KEY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../front_end/tests/certificates/server-key.pem");
const OTHER_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../front_end/tests/certificates/other-key.pem");

/// A refusal takes milliseconds; a program that serves instead has to be stopped.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A place for one test's files.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Place { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS").env_remove("LARIMAR_LOG");
        command.envs(environment.iter().copied());
        command
    }

    /// Runs the program, which must refuse and change nothing, and gives its line.
    fn refused_in(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let before = contents(self.folder.path());
        let line = self.line_of(arguments, environment);
        assert_eq!(contents(self.folder.path()), before, "{arguments:?} changed something: {line}");
        line
    }

    /// Runs the program, which must refuse, and gives its line.
    fn line_of(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        self.outcome_of(self.command(arguments, environment)).0
    }

    /// Runs a command that ends in the program, which must refuse, and gives its line and its exit code.
    fn outcome_of(&self, mut command: Command) -> (String, i32) {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_owned).collect();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        let started = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if started.elapsed() > ENDS_WITHIN {
                child.kill().expect("a child");
                panic!("{arguments:?}: it serves instead of refusing");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("its output");
        let line = String::from_utf8(output.stderr).expect("text");
        let code = output.status.code().unwrap_or_else(|| panic!("{arguments:?}: {}", output.status));
        assert!(code != 0 && code != 101, "{arguments:?} ended with {code}: {line}");
        assert!(line.starts_with("larimar: ") && line.ends_with('\n'), "{arguments:?}: {line:?}");
        assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        (line, code)
    }

    /// Runs the program in a shell that says something before.
    fn in_shell(&self, before: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{before}; exec \"$@\""), "bash", PROGRAM]).args(arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Refused, with each of `words` in the line.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        let line = self.refused_in(arguments, &[]);
        for word in words {
            assert!(line.contains(word), "{arguments:?}: {word:?} is not in {line}");
        }
    }

    /// Makes a data folder as the program leaves it.
    fn served_folder(&self, name: &str) -> PathBuf {
        let data = self.path(name);
        let ready = self.path("ready.json");
        let arguments = [
            "--data",
            data.to_str().expect("text"),
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--ready-file",
            ready.to_str().expect("text"),
        ];
        let mut child = self.command(&arguments, &[]).stdout(Stdio::null()).spawn().expect("the program");
        let started = Instant::now();
        while !ready.exists() {
            assert!(started.elapsed() < ENDS_WITHIN, "the program does not get ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
        assert!(child.wait().expect("a child").success());
        std::fs::remove_file(ready).expect("the ready file");
        data
    }
}

/// What stands for a file or folder: two that differ differ in this.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Folder,
    Bytes {
        size_bytes: usize,
        checksum: u64,
    },
    Unreadable(std::io::ErrorKind),
    /// The lock file: who looked at the folder last may leave its number there.
    Lock,
}

/// All that is below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Content> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let content = if path.is_dir() {
                folders.push(path.clone());
                Content::Folder
            } else if path.ends_with("LOCK") {
                Content::Lock
            } else {
                match std::fs::read(&path) {
                    Ok(bytes) => Content::Bytes { size_bytes: bytes.len(), checksum: crc64(&[&bytes]) },
                    Err(error) => Content::Unreadable(error.kind()),
                }
            };
            found.insert(path, content);
        }
    }
    found
}

#[test]
fn bad_flags() {
    let place = Place::new();
    for (arguments, word) in [
        (&["--nonsense"][..], "--nonsense"),
        (&["brew"], "brew"),
        (&["serve", "brew"], "brew"),
        (&["--table-port"], "--table-port"),
        (&["--table-port", "x"], "'x'"),
        (&["--table-port", "70000"], "70000"),
        (&["--table-port", "-1"], "-1"),
        (&["--blob-port", "x"], "--blob-port"),
        (&["--queue-port", "x"], "--queue-port"),
        (&["--in-memory", "--data", "x"], "--data"),
        (&["--data", ""], "--data"),
        (&["--host", "not a host"], "not a host"),
        (&["--host", "256.1.1.1.1"], "256.1.1.1.1"),
        (&["--host", ""], "--host"),
        (&["--host", "192.0.2.1"], "192.0.2.1"),
        (&["--host", "192.0.2.1"], "no such address"),
        (&["--host", "192.0.2.1"], "--host"),
        (&["--blob-port", "10001"], "--blob-port and --queue-port"),
        (&["--tls-cert", "x"], "--tls-key"),
        (&["--tls-key", "x"], "--tls-cert"),
        (&["--oauth", "basic"], "--tls-cert"),
        (&["--oauth", "full"], "full"),
    ] {
        place.refused(arguments, &[word]);
    }
}

/// What the program was given is wrong: 2. What it meets is: 1.
#[test]
fn exit_codes() {
    let place = Place::new();
    let file = place.path("file");
    std::fs::write(&file, "not a folder").expect("a file");
    for (code, arguments) in [
        (2, &["--nonsense"][..]),
        (2, &["--memory-budget", "1MiB"]),
        (2, &["--cache-share", "5"]),
        (2, &["--range-size", "0"]),
        (2, &["--max-ranges", "0"]),
        (2, &["--account", "a:YWJj"]),
        (2, &["--account", "abc:YWJj", "--host", "0.0.0.0"]),
        (2, &["--versioned-account", "nobody"]),
        (2, &["--host", "not a host"]),
        (2, &["--accounts-file", "missing"]),
        (2, &["--ready-file", "missing/ready"]),
        (1, &["--host", "192.0.2.1"]),
        (1, &["--data", "file"]),
        (1, &["check", "file"]),
    ] {
        let (line, found) = place.outcome_of(place.command(arguments, &[]));
        assert_eq!(found, code, "{arguments:?}: {line}");
    }
    let (line, found) = place.outcome_of(place.command(&["check", "."], &[("LARIMAR_LOG", "inof")]));
    assert!(found == 2 && line.contains("LARIMAR_LOG"), "{line}");
}

#[test]
fn an_environment_that_says_nothing() {
    let place = Place::new();
    for variable in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS"] {
        for value in ["", " ", ";"] {
            let line = place.refused_in(&PORTS, &[(variable, value)]);
            assert!(line.contains(variable) && line.contains("names no account"), "{line}");
        }
    }
    for variable in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS", "LARIMAR_LOG"] {
        let mut command = place.command(&PORTS, &[]);
        command.env(variable, OsStr::from_bytes(b"mine:\xff"));
        let (line, code) = place.outcome_of(command);
        assert!(line.contains(variable) && code == 2, "{line}");
    }
    for value in ["inof", "partition=loud"] {
        let line = place.refused_in(&PORTS, &[("LARIMAR_LOG", value)]);
        assert!(line.contains("LARIMAR_LOG") && line.contains(value), "{line}");
    }
}

/// It was found out after the server had said that it listens.
#[test]
fn a_ready_file_that_can_t_be_written() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    std::fs::write(place.path("file"), "not a folder").expect("a file");
    for ready in ["missing/ready", "folder", "file/ready"] {
        place.refused(&[&PORTS[..], &["--ready-file", ready]].concat(), &["--ready-file", ready]);
    }
    assert!(!place.path("larimar-data").exists());
}

/// What an earlier server left is removed, nothing else, and not while it may be the file of a server that
/// runs.
#[test]
fn only_a_stale_ready_file_is_removed() {
    let place = Place::new();
    let data = place.served_folder("data");
    let format = std::fs::read(data.join("FORMAT")).expect("a file");
    let outcome = |arguments: &[&str]| place.outcome_of(place.command(arguments, &[])).0;
    std::fs::write(place.path("notes"), "notes").expect("a file");
    for other in ["data/FORMAT", "data/LOCK", "notes"] {
        let line = outcome(&[&PORTS[..], &["--data", "data", "--ready-file", other]].concat());
        assert!(line.contains(other) && line.contains("none of a server's"), "{line}");
    }
    assert_eq!(std::fs::read(data.join("FORMAT")).expect("a file"), format);
    assert_eq!(std::fs::read(place.path("notes")).expect("a file"), b"notes");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    std::fs::write(place.path("stale"), "{\"pid\":1}\n").expect("a file");
    outcome(&["--in-memory", "--ready-file", "stale", "--blob-port", &port]);
    assert!(place.path("stale").exists());
}

#[test]
fn too_few_files() {
    let place = Place::new();
    let ready = place.path("ready");
    let arguments = [&PORTS[..], &["--in-memory", "--ready-file", "ready"]].concat();
    for files_max in 12..200 {
        let mut child = place.in_shell(&format!("ulimit -n {files_max}"), &arguments);
        let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program");
        let started = Instant::now();
        while child.try_wait().expect("a process").is_none() {
            if ready.exists() {
                child.kill().expect("running");
                assert!(child.wait().is_ok() && files_max > 12);
                return;
            }
            assert!(started.elapsed() < ENDS_WITHIN, "with {files_max} files it waits");
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("its output");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(text.contains("ulimit -n") && text.lines().count() == 1, "with {files_max} files: {text}");
        assert_eq!(output.status.code(), Some(1), "with {files_max} files: {text}");
    }
    panic!("it never starts");
}

/// It was reported as a failure of the disk, with the advice to start again.
#[test]
fn a_disk_without_room_for_a_new_folder() {
    let place = Place::new();
    // No file may be larger than 10,000 KiB: the journal's are.
    let arguments = [&PORTS[..], &["--data", "data"]].concat();
    let (line, code) = place.outcome_of(place.in_shell("trap '' XFSZ; ulimit -f 10000", &arguments));
    assert!(code == 1 && line.contains("the disk is full") && line.contains("200 MiB"), "{line}");
    // The folder that was not finished is taken for what it is, and what it takes is what was said.
    let data = place.served_folder("data");
    let sizes = contents(&data).into_values().map(|content| match content {
        Content::Bytes { size_bytes, .. } => size_bytes,
        _ => 0,
    });
    let taken_bytes: usize = sizes.sum();
    assert!((190 << 20..=200 << 20).contains(&taken_bytes), "{taken_bytes}");
}

#[test]
fn logs_have_no_colours_in_a_file() {
    let place = Place::new();
    let arguments = [&PORTS[..], &["--in-memory", "--ready-file", "ready"]].concat();
    let mut command = place.command(&arguments, &[("LARIMAR_LOG", "info")]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
    let started = Instant::now();
    while !place.path("ready").exists() {
        assert!(started.elapsed() < ENDS_WITHIN, "the program does not get ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
    let output = child.wait_with_output().expect("its output");
    let log = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success() && log.lines().any(|line| line.ends_with("stopped")), "{log}");
    assert!(log.contains(" INFO ") && !log.contains('\x1b'), "{log}");
}

#[test]
fn bad_accounts() {
    let place = Place::new();
    let typed = |account: &str| {
        place.refused(
            &["--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--account", account],
            &["--account"],
        )
    };
    typed("");
    typed("nokey");
    typed("name:");
    typed("name:not base64!");
    typed(&format!("ab:{KEY}"));
    typed(&format!("UPPER:{KEY}"));
    typed(&format!("name:{KEY}:{KEY}:{KEY}"));
    // The key differs from others by its size, and is not shown.
    place
        .refused(&["--account", "mine:YWJj", "--host", "0.0.0.0"], &["account mine", "3 bytes", "127.0.0.1"]);
    let once = format!("same:{KEY}");
    place.refused(&["--account", &once, "--account", &once], &["same"]);
    for variable in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS"] {
        let line = place.refused_in(
            &["--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
            &[(variable, "nokey")],
        );
        assert!(line.contains(variable), "{line}");
    }
    let file = place.path("accounts");
    let name = file.to_str().expect("text");
    place.refused(&["--accounts-file", name], &[name]);
    std::fs::write(&file, format!("# mine\nmine:{KEY}\n\nyours\n")).expect("a file");
    place.refused(&["--accounts-file", name], &[name, "line 4"]);
    std::fs::write(&file, "# nobody\n").expect("a file");
    place.refused(&["--accounts-file", name], &[name]);
    std::fs::write(&file, [0xff, 0xfe]).expect("a file");
    place.refused(&["--accounts-file", name], &[name]);
    // Keys are secrets, also those that are wrong.
    let line = place.refused_in(&["--account", "name:c2VjcmV0!"], &[]);
    assert!(!line.contains("c2VjcmV0"), "{line}");
}

#[test]
fn certificates_that_can_t_be_used() {
    let place = Place::new();
    place.refused(
        &["--tls-cert", "missing.pem", "--tls-key", CERTIFICATE_KEY],
        &["--tls-cert", "missing.pem"],
    );
    place.refused(&["--tls-cert", CERTIFICATE, "--tls-key", "missing.pem"], &["--tls-key", "missing.pem"]);
    place.refused(
        &["--tls-cert", CERTIFICATE_KEY, "--tls-key", CERTIFICATE_KEY],
        &["--tls-cert", "no certificate"],
    );
    place.refused(&["--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE], &["--tls-key", "no private key"]);
    place.refused(&["--tls-cert", CERTIFICATE, "--tls-key", OTHER_KEY], &["--tls-cert", "together"]);
}

#[test]
fn a_taken_port() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    place.refused(&["--data", "data", "--blob-port", "0", "--table-port", &port], &[&port, "--table-port"]);
    place.refused(&["--in-memory", "--blob-port", "0", "--table-port", &port], &[&port]);
    let queue = ["--in-memory", "--blob-port", "0", "--table-port", "0", "--queue-port", &port];
    place.refused(&queue, &[&port, "--queue-port"]);
    let blob = ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", &port];
    place.refused(&blob, &[&port, "--blob-port"]);
    assert!(!place.path("data").exists());
}

#[test]
fn a_foreign_folder() {
    let place = Place::new();
    let foreign = place.path("foreign");
    std::fs::create_dir_all(foreign.join("photos")).expect("a folder");
    std::fs::write(foreign.join("photos/cat.jpg"), "meow").expect("a file");
    let name = foreign.to_str().expect("text");
    place.refused(
        &["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &["--data", name, "photos"],
    );
    // A file that happens to be called FORMAT makes it no data folder.
    std::fs::write(foreign.join("FORMAT"), "A4").expect("a file");
    place.refused(
        &["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &["--data", name, "FORMAT"],
    );
    std::fs::write(foreign.join("FORMAT"), "").expect("a file");
    place.refused(
        &["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[name, "FORMAT"],
    );
}

#[test]
fn a_folder_that_can_t_be_one() {
    let place = Place::new();
    let file = place.path("file");
    std::fs::write(&file, "not a folder").expect("a file");
    let name = file.to_str().expect("text");
    place.refused(&["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[name]);
    let below = format!("{name}/data");
    place.refused(
        &["--data", &below, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[&below],
    );
    place.refused(
        &["--data", "/proc/larimar/data", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &["/proc/larimar/data"],
    );
    // FORMAT is there but can't be read: not even by the superuser, who may read everything else.
    let odd = place.path("odd");
    std::fs::create_dir_all(odd.join("FORMAT")).expect("a folder");
    let name = odd.to_str().expect("text");
    place.refused(&["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[name]);
}

#[test]
fn an_unreadable_folder() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return; // Nothing is unreadable to the superuser.
    }
    let place = Place::new();
    let closed = place.path("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("permissions");
    let name = closed.to_str().expect("text");
    place.refused(
        &["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[name, "permissions"],
    );
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("permissions");
}

#[test]
fn a_newer_format() {
    let place = Place::new();
    let data = place.served_folder("data");
    let format = data.join("FORMAT");
    let own = std::fs::read_to_string(&format).expect("text");
    let newer = "larimar data folder, format 999";
    let newer = format!("{newer}\nchecksum {:016x}\n", base::checksum::crc64(&[newer.as_bytes()]));
    std::fs::write(&format, newer).expect("a file");
    let name = data.to_str().expect("text");
    place.refused(
        &["--data", name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[name, "999", "newer"],
    );
    std::fs::write(&format, own).expect("a file");
    assert_eq!(place.served_folder("data"), data, "nothing was damaged");
}

#[test]
fn damaged_data() {
    let place = Place::new();
    let data = place.served_folder("data");
    // Cut to nothing, the stream manager's log can't be taken for a short one; it is kept twice.
    for log in std::fs::read_dir(data.join("stream_manager")).expect("a folder") {
        std::fs::write(log.expect("an entry").path(), "").expect("a file");
    }
    let name = data.to_str().expect("text");
    // Layers below the damaged one may have recovered before it is found; each start must find it again.
    for _ in 0..2 {
        let line = place.line_of(&[&PORTS[..], &["--data", name]].concat(), &[]);
        assert!(line.contains(name) && line.contains("damaged"), "{line}");
    }
}

#[test]
fn a_folder_in_use() {
    let place = Place::new();
    let data = place.path("data");
    let name = data.to_str().expect("text").to_owned();
    let ready = place.path("ready.json");
    let arguments = [
        "--data",
        &name,
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--ready-file",
        "ready.json",
    ];
    let mut first = place.command(&arguments, &[]).stdout(Stdio::null()).spawn().expect("the program");
    let started = Instant::now();
    while !ready.exists() {
        assert!(started.elapsed() < ENDS_WITHIN, "the program does not get ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    // What it does right after its start, such as marking the ends of its logs, comes to an end.
    std::thread::sleep(Duration::from_millis(300));
    let pid = first.id().to_string();
    let refused = std::panic::catch_unwind(|| {
        place.refused(
            &["--data", &name, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
            &[&name, &pid],
        );
    });
    first.kill().expect("a child");
    first.wait().expect("a child");
    refused.expect("refused");
}

/// A thread that was refused was a panic, or the right line with panics of other threads behind it.
#[test]
fn a_system_that_starts_no_more_threads() {
    let place = Place::new();
    let everybody = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.folder.path(), everybody(0o777)).expect("permissions");
    let program = place.path("program");
    std::fs::copy(PROGRAM, &program).expect("a copy");
    std::fs::set_permissions(&program, everybody(0o755)).expect("permissions");
    let data = place.served_folder("data");
    let change = |path: &Path, mode| std::fs::set_permissions(path, everybody(mode)).expect("permissions");
    change(&data, 0o777);
    contents(&data).keys().for_each(|path| change(path, if path.is_dir() { 0o777 } else { 0o666 }));
    let ready = place.path("ready");
    let serves = ["--in-memory", "--ready-file", ready.to_str().expect("text")];
    starts_with_enough_threads(&program, &[&serves[..], &PORTS[..]].concat(), &ready);
    starts_with_enough_threads(&program, &["check", "--quiet", data.to_str().expect("text")], &ready);
}

/// The program is refused threads, until it makes the file `ready` or ends well. Until then it says why it
/// ends.
fn starts_with_enough_threads(program: &Path, arguments: &[&str], ready: &Path) {
    // Nobody has no threads yet; root has as many as it likes.
    let is_root = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
    let script = "ulimit -u $1; shift; exec \"$@\"";
    let _ = std::fs::remove_file(ready);
    for threads_max in 1..=64 {
        let mut command = Command::new(if is_root { "setpriv" } else { "env" });
        if is_root {
            command.args(["--reuid=65534", "--clear-groups"]);
        }
        command
            .args(["bash", "-c", script, "bash"])
            .arg(threads_max.to_string())
            .arg(program)
            .args(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program");
        let started = Instant::now();
        while child.try_wait().expect("a process").is_none() {
            if ready.exists() {
                child.kill().expect("running");
                assert!(child.wait().is_ok() && threads_max > 1);
                return;
            }
            assert!(started.elapsed() < ENDS_WITHIN, "with {threads_max} threads it waits");
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("its output");
        if output.status.success() {
            assert!(threads_max > 1);
            return;
        }
        let text = String::from_utf8(output.stderr).expect("text");
        let says = text.contains("starts no more threads") || text.contains("refuses the server's threads");
        assert!(says && text.lines().count() == 1, "with {threads_max} threads: {text}");
        assert_eq!(output.status.code(), Some(1), "with {threads_max} threads: {text}");
        if !is_root {
            // How many threads the user has otherwise is not known.
            return;
        }
    }
    panic!("it never starts");
}
