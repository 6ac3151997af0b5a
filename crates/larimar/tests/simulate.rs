//! `larimar serve --simulate FILE`: its rules are in force, are read again on SIGHUP, and a mistake in the
//! file ends nothing.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::{Server, list_queues, program};
use std::path::Path;

/// Ports that are free, and no admin side.
const PORTS: [&str; 5] =
    ["--in-memory", "--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=none"];

fn serve(folder: &Path, simulate: &str) -> Server {
    Server::start(folder, &[&PORTS[..], &["--simulate", simulate]].concat(), &[("LARIMAR_LOG", "info")])
}

#[test]
fn rules_are_read_again_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = |text: &str| std::fs::write(folder.path().join("rules.toml"), text).expect("a file");
    rules("[[fault]]\nname = \"first\"\noperation = \"ListQueues\"\nstatus = 503");
    let server = serve(folder.path(), "rules.toml");
    let refused = list_queues(server.queues());
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("x-larimar-simulated: fault first"),
        "{refused}"
    );
    assert!(server.logs("simulated: fault first #1").contains("503 ServerBusy before the work, ListQueues"));

    rules("[[fault]]\nname = \"second\"\noperation = \"ListQueus\"\nstatus = 500");
    server.hang_up();
    let line = server.logs("(1.), those from before stay in force");
    assert!(line.contains("rules.toml: line 3: ") && line.contains("did you mean ListQueues?"), "{line}");
    assert!(list_queues(server.queues()).starts_with("HTTP/1.1 503"));

    rules("[[fault]]\nname = \"second\"\noperation = \"ListQueues\"\nstatus = 500");
    server.hang_up();
    server.logs("the rules were read again (2.) and are in force");
    assert!(list_queues(server.queues()).starts_with("HTTP/1.1 500"));

    rules("");
    server.hang_up();
    server.logs("the rules were read again (3.) and are in force");
    let served = list_queues(server.queues());
    assert!(served.starts_with("HTTP/1.1 200") && !served.contains("x-larimar-simulated"), "{served}");
}

#[test]
fn a_profile_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "azure");
    assert!(list_queues(server.queues()).starts_with("HTTP/1.1 200"));
    assert!(server.stop().success());
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
        let arguments = [&PORTS[..], arguments].concat();
        let outcome = program(folder.path(), &arguments).output().expect("the program");
        let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}
