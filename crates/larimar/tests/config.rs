//! `larimar --config FILE`, `larimar config`, and SIGHUP under load: which values hold, which mistakes are
//! named, and that a changed file disturbs no request.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::{Server, program};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What every server of these tests has in its file.
const PORTS: &str =
    "in_memory = true\ntable_port = 0\nqueue_port = 0\nblob_port = 0\nadmin_port = \"none\"\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Exit code, standard output, lines on standard error.
fn outcome(output: &Output) -> (Option<i32>, String, Vec<String>) {
    let errors = text(&output.stderr).lines().map(str::to_owned).collect();
    (output.status.code(), text(&output.stdout), errors)
}

fn write(folder: &Path, name: &str, content: &str) {
    std::fs::write(folder.join(name), content).expect("a file");
}

/// The status of the answer to a list of queues.
fn list_queues(address: &str) -> u16 {
    let head = running::list_queues(address);
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head:?}"))
}

#[test]
fn a_check_names_each_mistake_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "good.toml", "table_port = 7\nscrub_rate = \"1MiB\"\n");
    let checked = program(folder.path(), &["config", "check", "--config", "good.toml"]).output().unwrap();
    let (code, said, errors) = outcome(&checked);
    assert_eq!((code, errors.len()), (Some(0), 0), "{errors:?}");
    assert_eq!(said, "good.toml: no mistake; 2 of its settings are in force\n");

    write(folder.path(), "bad.toml", "table_prt = 7\n\nblob_port = 70000\ntls_cert = \"SECRET\"\nhost = 3\n");
    for arguments in [&["config", "check"][..], &["config", "check", "--table-port", "9"]] {
        let checked = program(folder.path(), arguments).env("LARIMAR_CONFIG", "bad.toml").output().unwrap();
        let (code, said, errors) = outcome(&checked);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{errors:?}");
        assert_eq!(
            errors,
            [
                "larimar: bad.toml line 1: the file has no key \"table_prt\"; did you mean table_port?",
                "larimar: bad.toml line 3: blob_port must be a port from 1 to 65535, or 0 for a free one",
                "larimar: bad.toml line 5: host must be a text, in quotes",
            ]
        );
    }
    // What only a start would notice.
    for (content, part) in [
        (
            "\nblob_port = 5\nqueue_port = 5",
            "bad.toml line 2: blob_port and bad.toml line 3: queue_port are both 5",
        ),
        ("range_size = \"1MiB\"", "bad.toml line 1: range_size: a range size of"),
        ("accounts_file = \"absent\"", "bad.toml line 1: accounts_file: absent: No such file"),
        ("accounts = [\"abc:=\"]", "bad.toml line 1: accounts: key 1 of account \"abc\" is not Base64"),
        ("tls_cert = \"absent\"\ntls_key = \"absent\"", "bad.toml line 1: tls_cert: absent: No such file"),
        ("simulate = \"azur\"", "bad.toml line 1: simulate: azur: there is no such profile"),
        ("a = ", "bad.toml line 1: this is not TOML: "),
    ] {
        write(folder.path(), "bad.toml", content);
        for arguments in [&["config", "check", "--config", "bad.toml"][..], &["--config", "bad.toml"]] {
            let (code, _, errors) = outcome(&program(folder.path(), arguments).output().unwrap());
            assert_eq!((code, errors.len()), (Some(2), 1), "{content}: {errors:?}");
            assert!(errors[0].contains(part), "{content}: {errors:?}");
        }
    }
    let (code, _, errors) =
        outcome(&program(folder.path(), &["config", "check", "--config", "absent"]).output().unwrap());
    assert!(code == Some(2) && errors[0].starts_with("larimar: --config absent: No such file"), "{errors:?}");
}

#[test]
fn shown_values_say_where_they_come_from_and_hide_keys() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "AAECAwQFBgcICQoLDA0ODw==";
    let content = format!("table_port = 7\n\nblob_port = 8\naccounts = [\"abc:{secret}\"]\n");
    write(folder.path(), "f.toml", &content);
    let shown = program(folder.path(), &["config", "show", "--config", "f.toml", "--queue-port=9"])
        .env("LARIMAR_BLOB_PORT", "10")
        .output()
        .unwrap();
    let (code, said, errors) = outcome(&shown);
    assert_eq!((code, errors.len()), (Some(0), 0), "{errors:?}");
    let line = |key: &str| {
        let line = said.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {said}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (key, expected) in [
        ("table_port", "table_port = 7 # f.toml line 1"),
        ("blob_port", "blob_port = 10 # LARIMAR_BLOB_PORT"),
        ("queue_port", "queue_port = 9 # --queue-port"),
        ("host", "host = \"127.0.0.1\" # default"),
        ("accounts", "accounts = [\"abc:...\"] # f.toml line 4"),
    ] {
        assert_eq!(line(key), expected);
    }
    assert!(!said.contains(secret), "{said}");
    // What is shown is a file of the same settings, but for the keys.
    write(
        folder.path(),
        "again.toml",
        &said
            .lines()
            .filter(|line| !line.starts_with("accounts"))
            .fold(String::new(), |all, line| all + line + "\n"),
    );
    let again = program(folder.path(), &["config", "check", "--config", "again.toml"]).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
}

#[test]
fn the_example_is_a_good_file() {
    let folder = tempfile::tempdir().unwrap();
    let (code, example, _) = outcome(&program(folder.path(), &["config", "example"]).output().unwrap());
    assert!(code == Some(0) && example.contains("#table_port = 10002\n"), "{example}");
    write(folder.path(), "f.toml", &example);
    let checked = program(folder.path(), &["config", "check", "--config", "f.toml"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
}

#[test]
fn a_server_takes_its_settings_from_all_places() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "f.toml",
        &format!("{PORTS}data = \"elsewhere\"\n").replace("in_memory = true\n", ""),
    );
    let server = Server::start(
        folder.path(),
        &["serve", "--config", "f.toml"],
        &[("LARIMAR_IN_MEMORY", "true"), ("LARIMAR_LOG", "info")],
    );
    assert_eq!(list_queues(server.queues()), 200);
    // The environment's memory beats the file's folder.
    assert!(!folder.path().join("elsewhere").exists());
    drop(server);
    let server = Server::start(
        folder.path(),
        &["--data", "here", "--config", "f.toml"],
        &[("LARIMAR_IN_MEMORY", "true")],
    );
    assert_eq!(list_queues(server.queues()), 200);
    assert!(folder.path().join("here").exists());
}

#[test]
fn a_changed_file_disturbs_no_request_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "rules.toml", "");
    let settings = |rest: &str| {
        write(folder.path(), "next.toml", &format!("{PORTS}simulate = \"rules.toml\"\n{rest}"));
        std::fs::rename(folder.path().join("next.toml"), folder.path().join("f.toml")).expect("a file");
    };
    settings("");
    let server = Server::start(folder.path(), &["--config", "f.toml"], &[]);
    let address = server.queues();
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(list_queues(address), 200);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Whatever fails in here, the loads end.
        let course = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            settings("log = \"info\"\nmax_ranges = 20\n");
            server.hang_up();
            let line = server.logs("the settings were read again (1.) and are in force");
            assert!(
                line.ends_with("; changed: log; what changes with the next start only: max_ranges"),
                "{line}"
            );
            // A broken file, and one that names a broken file: neither changes the log nor the rules. With
            // log = "error" the line would be no warning.
            settings("log = \"error\"\nmax_rangs = 20\n");
            server.hang_up();
            let line = server.logs("(2.), those from before stay in force: ");
            assert!(line.contains(" WARN "), "{line}");
            assert!(
                line.ends_with("f.toml line 8: the file has no key \"max_rangs\"; did you mean max_ranges?"),
                "{line}"
            );
            write(folder.path(), "rules.toml", "[[fault]]\nstatus = 503\noperaton = \"ListQueues\"\n");
            settings("log = \"error\"\n");
            server.hang_up();
            let line = server.logs("(3.), those from before stay in force: ");
            assert!(line.contains(" WARN "), "{line}");
            assert!(line.contains("f.toml line 6: simulate: rules.toml: line 3: "), "{line}");
            write(folder.path(), "rules.toml", "");
            for count in 4..24 {
                settings(if count % 2 == 0 { "log = \"warn\"\n" } else { "log = \"info\"\n" });
                server.hang_up();
                server.logs(&format!("the settings were read again ({count}.) and are in force"));
            }
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = course {
            std::panic::resume_unwind(panic);
        }
    });
    assert!(served.load(Ordering::Relaxed) > 10);
    // The rules that the file names are in force once they are there.
    write(folder.path(), "rules.toml", "[[fault]]\nstatus = 500\noperation = \"ListQueues\"\n");
    server.hang_up();
    server.logs("(24.) and are in force");
    assert_eq!(list_queues(server.queues()), 500);
}

/// A key that was taken out of the file with accounts still opened what it had opened, and the reload was
/// said to be in force.
#[test]
fn other_accounts_wait_for_the_next_start_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = ("one:AAECAwQFBgcICQoLDA0ODw==", "two:EBESExQVFhcYGRobHB0eHw==");
    write(folder.path(), "accounts", &format!("{one}\n{two}\n"));
    write(folder.path(), "f.toml", &format!("{PORTS}accounts_file = \"accounts\"\n"));
    let server = Server::start(folder.path(), &["--config", "f.toml"], &[]);
    let reload = || {
        server.hang_up();
        server.logs("the settings were read again")
    };
    let line = reload();
    assert!(line.ends_with("(1.) and are in force"), "{line}");
    write(folder.path(), "accounts", &format!("{one}\n"));
    write(folder.path(), "f.toml", &format!("{PORTS}accounts_file = \"accounts\"\nmax_ranges = 9\n"));
    // Again with each signal, until the file is as it was.
    for count in 2..4 {
        let line = reload();
        let expected = format!(
            "({count}.) and are in force; what changes with the next start only: accounts_file, max_ranges"
        );
        assert!(line.ends_with(&expected), "{line}");
    }
    write(folder.path(), "f.toml", &format!("{PORTS}accounts_file = \"accounts\"\n"));
    write(folder.path(), "accounts", &format!("# back\n{one}\n{two}\n"));
    let line = reload();
    assert!(line.ends_with("(4.) and are in force"), "{line}");
}

/// A FIFO without a writer in the place of a file held up every request, and the watchdog's signs of life.
#[test]
fn a_file_that_blocks_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "f.toml", PORTS);
    let server = Server::start(folder.path(), &["--config", "f.toml"], &[]);
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let accounts = folder.path().join("accounts");
    for (place, part) in [
        (&accounts, "f.toml line 6: accounts_file: accounts: it is no regular file"),
        (&folder.path().join("f.toml"), "--config f.toml: it is no regular file"),
    ] {
        std::fs::hard_link(&fifo, folder.path().join("next")).unwrap();
        std::fs::rename(folder.path().join("next"), place).unwrap();
        if *place == accounts {
            write(folder.path(), "f.toml", &format!("{PORTS}accounts_file = \"accounts\"\n"));
        }
        server.hang_up();
        assert_eq!(list_queues(server.queues()), 200);
        let line = server.logs("those from before stay in force: ");
        assert!(line.ends_with(part), "{line}");
    }
}

/// A name server that did not answer held up every request. Here a file that the C library reads to resolve a
/// name blocks; with a library that does not read it the test says nothing.
#[test]
fn a_name_that_is_not_resolved_holds_up_neither_requests_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let aliases = folder.path().join("aliases");
    rustix::fs::mkfifoat(rustix::fs::CWD, &aliases, rustix::fs::Mode::RWXU).unwrap();
    write(folder.path(), "f.toml", &format!("{PORTS}host = \"127.0.0.1\"\n"));
    let environment = [("HOSTALIASES", aliases.to_str().unwrap())];
    let server = Server::start(folder.path(), &["--config", "f.toml"], &environment);
    write(folder.path(), "f.toml", &format!("{PORTS}host = \"slow\"\n"));
    server.hang_up();
    let asked = Instant::now();
    while asked.elapsed() < Duration::from_millis(500) {
        assert_eq!(list_queues(server.queues()), 200);
    }
    assert!(server.stop().success());
}

/// With few levels of the log nobody learned whether a changed file was in force.
#[test]
fn the_outcome_of_a_reload_is_said_whatever_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    for levels in ["off", "error", "warn,larimar=off"] {
        let good = format!("{PORTS}log = \"{levels}\"\n");
        write(folder.path(), "f.toml", &good);
        let server = Server::start(folder.path(), &["--config", "f.toml"], &[]);
        server.hang_up();
        let line = server.logs("the settings were read again");
        assert_eq!(line, "larimar: the settings were read again (1.) and are in force");
        write(folder.path(), "f.toml", &format!("{good}max_rangs = 9\n"));
        server.hang_up();
        let line = server.logs("the settings were read again");
        assert!(
            line.starts_with("larimar: ") && line.contains("(2.), those from before stay in force"),
            "{line}"
        );
    }
}

#[test]
fn keys_in_the_place_of_names_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let account = "abc:AAECAwQFBgcICQoLDA0ODw==";
    let content = format!("accounts_file = \"{account}\"\nversioned_accounts = [\"abc\", \"{account}\"]\n");
    write(folder.path(), "f.toml", &content);
    for arguments in [
        &["config", "show", "--config", "f.toml"][..],
        &["config", "show", "--accounts-file", account, "--versioned-account", account],
        &["config", "check", "--config", "f.toml"],
        &["--accounts-file", account, "--versioned-account", account],
    ] {
        let output = program(folder.path(), arguments).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("accounts-file") || said.contains("accounts_file"), "{said}");
        assert!(!said.contains("AAECAwQF"), "{arguments:?}: {said}");
    }
}

/// A variable that is called as the flag was ignored, and the development account served.
#[test]
fn a_variable_that_is_called_as_the_flag_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["config", "check"][..], &["serve", "--in-memory"], &["sas"]] {
        let refused = program(folder.path(), arguments)
            .env("LARIMAR_ACCOUNT", "abc:AAECAwQFBgcICQoLDA0ODw==")
            .output()
            .unwrap();
        let (code, _, errors) = outcome(&refused);
        let expected = "larimar: LARIMAR_ACCOUNT is set, but no setting has this variable; did you mean LARIMAR_ACCOUNTS?";
        assert_eq!((code, errors), (Some(2), vec![expected.to_owned()]), "{arguments:?}");
    }
}

/// A start in Kubernetes was refused because of a service beside it.
#[test]
fn addresses_of_services_in_the_environment_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "f.toml", PORTS);
    let environment = [
        ("LARIMAR_BLOB_PORT", "tcp://10.0.0.1:10000"),
        ("LARIMAR_BLOB_PORT_10000_TCP", "tcp://10.0.0.1:10000"),
    ];
    let server = Server::start(folder.path(), &["--config", "f.toml"], &environment);
    let line = server.logs("LARIMAR_BLOB_PORT is not taken");
    assert!(line.contains(" WARN ") && line.contains("enableServiceLinks: false"), "{line}");
    assert_eq!(list_queues(server.queues()), 200);
}

/// With --in-memory the cache was taken, and did nothing.
#[test]
fn a_cache_without_a_stamp_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["config", "check"][..], &["serve", "--in-memory"]] {
        let refused = program(folder.path(), arguments).env("LARIMAR_CACHE", "near").output().unwrap();
        let (code, _, errors) = outcome(&refused);
        let is_named = errors.len() == 1 && errors[0].contains("LARIMAR_CACHE is for a server of a stamp");
        assert!(code == Some(2) && is_named, "{code:?} {errors:?}");
    }
    assert!(!folder.path().join("near").exists());
}
