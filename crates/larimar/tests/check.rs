//! `larimar check` as its user runs it: a healthy folder passes, a damaged one has another exit code
//! and named, a folder in use is refused with one line, and nothing is ever changed.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod served;

use base::checksum::crc64;
use served::{PROGRAM, contents, flip, serve};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn check(data: &Path) -> (Output, String) {
    let before = contents(data);
    let output = Command::new(PROGRAM)
        .args(["check", "--quiet"])
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .expect("the program");
    assert_eq!(contents(data), before, "the check has changed something");
    let told = String::from_utf8(output.stdout.clone()).expect("text");
    (output, told)
}

/// The check finds damage in this file, and says what it means and what can be done.
fn is_told(data: &Path, name: &str) {
    let (damaged, told) = check(data);
    assert_eq!(damaged.status.code(), Some(3), "{name}: {told}");
    let place = told.lines().any(|line| line == name || line.starts_with("range"));
    assert!(place && told.contains("meaning: ") && told.contains("larimar repair "), "{told}");
    assert!(damaged.stderr.is_empty(), "what is tried out in memory is not logged");
}

#[test]
fn a_folder_is_checked_unless_it_is_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut server = serve(folder.path(), &data);
    let refused = Command::new(PROGRAM).arg("check").arg(&data).output().expect("the program");
    let line = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(1), "{line}");
    assert!(line.starts_with("larimar: ") && line.contains("in use") && line.lines().count() == 1, "{line}");
    assert!(!line.contains("--data"), "the check has no such flag: {line}");
    assert!(refused.stdout.is_empty());
    server.kill().expect("a child");
    server.wait().expect("a child");

    let (healthy, told) = check(&data);
    assert_eq!(healthy.status.code(), Some(0), "{told}");
    assert!(told.contains("no damage found") && healthy.stderr.is_empty(), "{told}");

    let mut server = serve(folder.path(), &data);
    let stop = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().expect("kill");
    assert!(stop.success() && server.wait().expect("a child").success());
    // The snapshot in the stream manager's log.
    let log = data.join("stream_manager/log");
    flip(&log, 35);
    is_told(&data, "stream_manager/log");
    flip(&log, 35);

    // After a clean stop everything is in the extents, and the journal still has what was written last.
    let files = std::fs::read_dir(data.join("extents")).expect("a folder");
    let files = files.map(|entry| entry.expect("a file").path());
    let extent = files.filter(|path| path.metadata().is_ok_and(|file| file.len() > 40)).min();
    let extent = extent.expect("an extent");
    flip(&extent, 35);
    let (restored, told) = check(&data);
    assert_eq!(restored.status.code(), Some(0), "{told}");
    assert!(told.contains(": the journal holds ") && told.contains("no damage found"), "{told}");
    flip(&extent, 35);
    let away = folder.path().join("away");
    std::fs::rename(&extent, &away).expect("a file");
    is_told(&data, &extent.strip_prefix(&data).expect("inside").display().to_string());
    // What only opening the folder mends is something to do, too.
    let planned = Command::new(PROGRAM).arg("repair").arg(&data).output().expect("the program");
    assert_eq!(planned.status.code(), Some(3), "{}", String::from_utf8_lossy(&planned.stdout));
    std::fs::rename(&away, &extent).expect("a file");
    assert_eq!(check(&data).0.status.code(), Some(0));
}

#[test]
fn what_is_no_data_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing =
        Command::new(PROGRAM).arg("check").arg(folder.path().join("none")).output().expect("the program");
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&missing.stderr).lines().count(), 1);
    std::fs::write(folder.path().join("foreign.txt"), "mine").expect("a file");
    let (foreign, _) = check(folder.path());
    let line = String::from_utf8_lossy(&foreign.stderr).into_owned();
    assert!(foreign.status.code() == Some(1) && line.contains("not a Larimar data folder"), "{line}");
    assert!(!line.contains("--data") && !line.contains("storage failed"), "{line}");
    let newer = "larimar data folder, format 999";
    let newer = format!("{newer}\nchecksum {:016x}\n", crc64(&[newer.as_bytes()]));
    std::fs::write(folder.path().join("FORMAT"), newer).expect("a file");
    let (newer, _) = check(folder.path());
    let line = String::from_utf8_lossy(&newer.stderr).into_owned();
    assert!(newer.status.code() == Some(1) && line.contains("newer Larimar"), "{line}");
    assert!(!line.contains("--data") && !line.contains("storage failed"), "{line}");
}

/// Written by the program of format 4; see `front_end/tests/former_names.rs`, where its bytes are drawn.
const FORMER_NAMES: &[u8] = include_bytes!("../../front_end/tests/fixtures/blob-names.lz4");

#[test]
fn blobs_whose_names_are_not_taken_any_more_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let entries = lz4_flex::block::decompress_size_prepended(FORMER_NAMES).expect("a fixture");
    let mut decoder = base::codec::Decoder::new(&entries);
    while !decoder.is_empty() {
        let path = folder.path().join(decoder.text("path").expect("a path"));
        let size = decoder.varint("size").expect("a size");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, decoder.bytes("content").expect("content")).expect("a file");
        let file = std::fs::File::options().write(true).open(&path).expect("a file");
        file.set_len(size).expect("its size");
    }
    let (healthy, told) = check(folder.path());
    assert_eq!(healthy.status.code(), Some(0), "{told}");
    assert!(
        told.contains("no damage found") && told.contains(": 10 blobs have names that no new blob gets"),
        "{told}"
    );
    for name in ["...", "dir./x", "a\\0b", "bell\\u{7}", "c1\\u{85}", "del\\u{7f}", "leased.", "staged."] {
        assert!(told.contains(&format!("\n  devstoreaccount1/box/{name}\n")), "{name}: {told}");
    }
    assert!(!told.contains("box/plain") && !told.contains("box/dir/x"), "{told}");
}
