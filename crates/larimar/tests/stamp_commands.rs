//! `larimar stamp` and `larimar check --stamp` as an operator runs them, over a folder and a real etcd.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;
mod stamps;

use rustix::process::Signal;
use serde_json::{Value, json};
use stamp::{ExtentName, Incarnation, PartPath, StampId};
use stamps::Stamp;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path} is not in {value:#}"))
}

#[test]
fn a_stamp_is_made_once_and_looked_at_whoever_serves_it() {
    let stamp = Stamp::new();
    assert!(stamp.refused(&["stamp", "status"], 2).contains("larimar stamp init makes it"));
    assert!(stamp.refused(&["check"], 2).contains("there is no stamp test"));
    assert!(stamp.fine(&["stamp", "init"]).contains("stamp test is made"));
    assert!(stamp.refused(&["stamp", "init"], 2).contains("is there already"));
    let status = stamp.status();
    assert_eq!(status.pointer("/owners/0/process"), Some(&Value::Null));
    assert_eq!(
        (&status["ranges"], &status["streams"], &status["restores"]),
        (&json!(1), &json!(0), &json!(0))
    );
    assert!(stamp.fine(&["stamp", "status"]).contains("nobody: it was given up, or never taken"));
    assert!(stamp.fine(&["check", "--quiet"]).contains("test: nothing was ever stored here\n"));

    let first = stamp.serve("first");
    first.import("People", 500);
    let status = stamp.status();
    let owner = text(&status, "/owners/0/process").to_owned();
    let left = status.pointer("/owners/0/lease_left_seconds").and_then(Value::as_u64);
    assert!(left.is_some_and(|left| left <= 3), "{status:#}");
    assert!(status["streams"].as_u64() > Some(4) && status["extents"].as_u64() > Some(4), "{status:#}");
    let listed: Value = serde_json::from_str(&stamp.fine(&["stamp", "list", "--json"])).expect("JSON");
    let streams = listed["streams"].as_array().expect("streams");
    let names: Vec<&str> = streams.iter().map(|stream| text(stream, "/stream")).collect();
    assert!(names.is_sorted() && names.iter().any(|name| name.ends_with("/log")), "{names:?}");
    assert!(streams.iter().all(|stream| text(stream, "/owner") == owner));
    let table = stamp.fine(&["stamp", "list"]);
    assert!(table.starts_with("STREAM ") && table.lines().count() == streams.len() + 1, "{table}");
    let checked = stamp.fine(&["check", "--quiet"]);
    assert!(checked.contains("no damage found") && checked.contains("it is being served"), "{checked}");

    let second = stamp.process("second");
    stamp.wait_for("/owners/0/process", &json!(owner));
    let leave = |process: &str, code| stamp.refused(&["stamp", "leave", "--process", process], code);
    assert!(leave(&owner, 1).contains("lives, and only the process itself can end it"));
    assert!(leave(&"0".repeat(32), 2).contains("knows no process"));
    assert!(leave("nonsense", 2).contains("hexadecimal digits"));
    first.server.signal(Signal::KILL);
    let status = stamp.wait_for("/owners/0/epoch", &json!(2));
    assert_ne!(text(&status, "/owners/0/process"), owner, "the other one serves");
    assert_eq!(status["gone"], json!([owner]));
    assert!(stamp.fine(&["stamp", "leave", "--process", &owner]).contains("is taken out"));
    assert_eq!(stamp.status()["gone"], json!([]));
    assert!(leave(&owner, 2).contains("knows no process"));
    assert_eq!(second.count("People"), 500);
    let heir = text(&stamp.status(), "/owners/0/process").to_owned();
    second.server.signal(Signal::KILL);
    stamp.wait_for("/owners/0/lives", &json!(false));
    assert!(leave(&heir, 1).contains("its last beat proves that"));
    assert!(stamp.fine(&["stamp", "status"]).contains("has ended"));
}

#[test]
fn bad_input_is_refused_with_one_line() {
    let stamp = Stamp::new();
    let told = |words: &[&str]| {
        let output = running::program(stamp.folder.path(), words).output().expect("the program");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{words:?}: {errors}");
        errors
    };
    let etcd = stamp.etcd.url();
    for (words, part) in [
        (&["stamp", "status"][..], "--stamp NAME is needed"),
        (&["stamp", "status", "--stamp", "a"], "--stamp needs --store"),
        (&["stamp", "init", "--stamp", "A", "--store", "memory:", "--etcd", &etcd], "lower-case letters"),
        (&["stamp", "list", "--stamp", "a", "--store", "nonsense", "--etcd", &etcd], "--store"),
        (&["stamp", "leave", "--stamp", "a"], "--process"),
        (&["check", "d", "--stamp", "a"], "cannot be used with"),
        (&["check"], "DIR"),
        (&["repair", "--stamp", "a", "--store", "memory:", "--etcd", &etcd], "repair is for data folders"),
        (&["serve", "--in-memory", "--stamp", "a"], "--in-memory"),
        (&["serve", "--data", "d", "--stamp", "a"], "--data"),
    ] {
        assert!(told(words).contains(part), "{words:?}: {}", told(words));
    }
}

#[test]
fn a_check_names_what_is_damaged_and_changes_nothing() {
    let stamp = Stamp::new();
    let server = stamp.serve("one");
    server.import("People", 3000);
    assert!(server.server.stop().success());
    // Whoever takes it seals what the one before has left open.
    let heir = stamp.serve("two");
    assert_eq!(heir.count("People"), 3000);
    assert!(heir.server.stop().success());
    let checked = stamp.fine(&["check", "--quiet"]);
    assert!(checked.contains("test: no damage found; ") && !checked.contains("being served"), "{checked}");
    let objects = stamp.objects();
    let listed: Value = serde_json::from_str(&stamp.fine(&["stamp", "list", "--json"])).expect("JSON");
    let extents = listed["streams"].as_array().expect("streams").iter();
    let extents = extents.flat_map(|stream| stream["extents"].as_array().expect("extents"));
    let sealed = extents.filter(|extent| extent["length_bytes"].as_u64() > Some(0));
    let sealed: Vec<String> = sealed.map(|extent| text(extent, "/extent").to_owned()).collect();
    let (mut missing_count, mut rows) = (0, String::new());
    let parts: Vec<&String> = objects
        .iter()
        .filter(|(name, size)| name.contains("/x/") && name.ends_with("/0000000000000000") && *size > 600)
        .map(|(name, _)| name)
        .collect();
    assert!(!parts.is_empty(), "{objects:?}");
    let is_named = |name: &str| {
        let (code, out, errors) = stamp.run(&["check", "--quiet"]);
        assert_eq!((code, errors.as_str()), (3, ""), "{out}");
        assert!(out.contains(name) && out.contains("  meaning: ") && out.contains("test: "), "{name}: {out}");
        assert!(!out.contains("folder") && !out.contains("repair"), "a stamp has neither: {out}");
        out
    };
    for name in parts {
        let path = stamp.store().join(name);
        let good = std::fs::read(&path).expect("a file");
        let mut flipped = good.clone();
        flipped[300] ^= 1;
        std::fs::remove_file(&path).expect("a file");
        std::fs::write(&path, &flipped).expect("a file");
        let told = is_named(name);
        assert!(told.contains("the checksum of its body differs"), "{told}");
        assert!(told.lines().any(|line| line == name), "{told}");
        rows.extend(told.lines().filter(|line| line.starts_with("  rows: ")));
        std::fs::remove_file(&path).expect("a file");
        // A missing only part of an open extent looks as one that was never written.
        let is_sealed = sealed.iter().any(|extent| name.contains(extent.as_str()));
        missing_count += usize::from(is_sealed);
        if is_sealed {
            assert!(is_named(name).contains("is missing"));
        }
        std::fs::write(&path, &good).expect("a file");
    }
    assert_eq!(stamp.objects(), objects, "the check has changed something");
    assert!(missing_count > 0, "a part of a sealed extent was missing");
    assert!(rows.contains("table People of account devstoreaccount1"), "rows are named: {rows}");
    // What no document names waits for collection.
    let id = objects[0].0.split('/').next().and_then(|id| u128::from_str_radix(id, 16).ok());
    let stray = PartPath { extent: ExtentName::new(Incarnation(1), 1), offset: 0 };
    let path = stamp.store().join(stray.format(StampId(id.expect("the stamp's id"))));
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, "x").expect("a file");
    let checked = stamp.fine(&["check", "--quiet"]);
    assert!(checked.contains("(1 extents to be noted by a sweep first)"), "{checked}");
}

/// Sends the head of a request, and gives what comes back within two seconds.
fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The ports were listened on until the end, and nobody answered: who connected while requests under way were
/// finished waited for up to ten seconds.
#[test]
fn who_connects_while_a_process_is_stopped_is_sent_to_another_one() {
    let stamp = Stamp::new();
    let process = stamp.serve("one");
    let address =
        process.server.ready("table").trim_start_matches("http://").trim_end_matches('/').to_owned();
    // It has the stamp, and may still be reading it.
    let asked_at = Instant::now();
    while !ask(&address).expect("an answer").starts_with("HTTP/1.1 40") {
        assert!(asked_at.elapsed() < Duration::from_secs(30), "it does not serve");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A request that does not end keeps the process from ending.
    let mut slow = TcpStream::connect(&address).expect("a connection");
    slow.write_all(b"GET /devstoreaccount1 HTTP/1.1\r\nHost: ").expect("sent");
    process.server.signal(Signal::TERM);
    let began_at = Instant::now();
    let answer = loop {
        let answer = ask(&address).expect("nobody answers");
        if answer.contains("is being stopped") {
            break answer;
        }
        assert!(began_at.elapsed() < Duration::from_secs(8), "{answer}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("ServerBusy"), "{answer}");
    drop(slow);
    stamp.wait_for("/owners/0/process", &Value::Null);
}

/// With a shorter lease than the owner's a process counted its silence too soon.
#[test]
fn a_process_of_another_lease_does_not_join() {
    let stamp = Stamp::new();
    let first = stamp.serve("first");
    let second = stamp.process_with("second", &["--lease", "4s", "--log", "info"]);
    first.server.signal(Signal::KILL);
    second.server.logs("its --lease is 4 s, and the stamp is served with 3 s, so it does not join");
    let third = stamp.serve("third");
    third.import("People", 10);
    assert_eq!(third.count("People"), 10);
}

#[test]
fn a_lost_etcd_is_restored_and_the_process_of_the_time_before_is_fenced() {
    let mut stamp = Stamp::new();
    let old = stamp.serve("old");
    old.import("People", 2000);
    old.import("More", 300);
    let refused = stamp.refused(&["stamp", "restore-metadata", "--all-stopped"], 2);
    assert!(refused.contains("etcd has stamp test"), "{refused}");
    let before = stamp.status();
    old.server.signal(Signal::STOP);
    stamp.etcd.lose_everything();
    let lost = stamp.refused(&["stamp", "status"], 1);
    assert!(lost.contains("larimar stamp restore-metadata rebuilds it"), "{lost}");
    assert!(stamp.refused(&["stamp", "init"], 1).contains("restore-metadata"));
    let (code, out, errors) = stamp.run(&["stamp", "restore-metadata", "--json", "--longest-lease", "3s"]);
    assert_eq!(code, 0, "{out}{errors}");
    assert!(errors.starts_with("waiting 4 s") && errors.contains("sealed and recorded 1 of 1"), "{errors}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["ranges"], &report["restores"]), (&json!(1), &json!(1)), "{report:#}");
    let status = stamp.status();
    assert_ne!(status["generation"], before["generation"]);
    assert_eq!(status["generation"], report["generation"]);
    assert!(status.pointer("/owners/0/epoch").and_then(Value::as_u64) > Some(1));
    let checked = stamp.fine(&["check", "--quiet"]);
    assert!(checked.contains("no damage found"), "{checked}");

    let new = stamp.serve("new");
    assert_eq!((new.count("People"), new.count("More")), (2000, 300));
    let served_by = text(&stamp.status(), "/owners/0/process").to_owned();
    old.server.signal(Signal::CONT);
    old.server.logs("does not serve the stamp any more");
    new.import("Later", 100);
    let (code, out, _) = old.table(&["count", "People", "--json"]);
    assert_ne!(code, 0, "the process of the time before answers {out}");
    assert_eq!(text(&stamp.status(), "/owners/0/process"), served_by);
    assert_eq!((new.count("People"), new.count("Later")), (2000, 100));
}
