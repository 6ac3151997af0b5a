//! `larimar repair` as its user runs it: a plan changes nothing, a folder in use is refused with one line,
//! exit codes tell apart what there is to do.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod served;

use served::{PROGRAM, contents, flip, serve};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str], data: &Path) -> (Output, String) {
    let output =
        Command::new(PROGRAM).args(arguments).arg("--quiet").arg(data).output().expect("the program");
    let told = String::from_utf8(output.stdout.clone()).expect("text");
    (output, told)
}

/// Plans a repair of a folder, which stays as it is; what it prints, as text and as JSON.
fn plan(folder: &Path, data: &Path) -> (Option<i32>, String, String) {
    let json: PathBuf = folder.join("plan.json");
    let before = contents(data);
    let output = Command::new(PROGRAM).arg("repair").arg(data).arg("--json").arg(&json).output();
    let output = output.expect("the program");
    assert_eq!(contents(data), before, "the plan has changed something");
    let told = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), told, std::fs::read_to_string(json).expect("a plan"))
}

#[test]
fn a_folder_is_repaired_unless_it_is_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut server = serve(folder.path(), &data);
    for arguments in [&["repair"][..], &["repair", "--apply"]] {
        let (refused, told) = run(arguments, &data);
        let line = String::from_utf8(refused.stderr).expect("text");
        assert_eq!((refused.status.code(), told.as_str()), (Some(1), ""), "{line}");
        assert!(line.contains("in use") && line.lines().count() == 1 && !line.contains("--data"), "{line}");
    }
    server.kill().expect("a child");
    server.wait().expect("a child");

    let (code, told, json) = plan(folder.path(), &data);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.ends_with("no damage; nothing was changed\n"), "{told}");
    assert!(json.contains("\"losses\": []") && json.contains("\"applied\": false"), "{json}");
    let before = contents(&data);
    let (healthy, told) = run(&["repair", "--apply"], &data);
    assert_eq!(healthy.status.code(), Some(0), "{told}");
    assert_eq!(contents(&data), before, "a whole folder stays as it is");

    flip(&data.join("stream_manager/log"), 35);
    let (code, told, json) = plan(folder.path(), &data);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.ends_with("run again with --apply to do it\n"), "{told}");
    assert!(json.contains("stream_manager/log: it is written anew"), "{json}");
    let (applied, told) = run(&["repair", "--apply"], &data);
    assert!(applied.status.success() && applied.stderr.is_empty(), "{told}");
    assert!(told.ends_with("repaired; no damage is left\n"), "{told}");
    let (checked, told) = run(&["check"], &data);
    assert_eq!(checked.status.code(), Some(0), "{told}");
    // What the server leaves alone.
    let mut server = serve(folder.path(), &data);
    server.kill().expect("a child");
    server.wait().expect("a child");
    assert!(contents(&data).keys().any(|path| path.ends_with("/finished")));
}

#[test]
fn what_is_no_data_folder_is_refused_and_an_empty_one_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = run(&["repair"], &folder.path().join("none")).0;
    assert_eq!(missing.status.code(), Some(1));
    let (empty, told) = run(&["repair", "--apply"], folder.path());
    assert_eq!(empty.status.code(), Some(0), "{told}");
    assert!(contents(folder.path()).is_empty());
    std::fs::write(folder.path().join("foreign.txt"), "mine").expect("a file");
    let (foreign, _) = run(&["repair", "--apply"], folder.path());
    let line = String::from_utf8_lossy(&foreign.stderr).into_owned();
    assert!(foreign.status.code() == Some(1) && line.contains("not a Larimar data folder"), "{line}");
    assert_eq!(contents(folder.path()).len(), 1);
}
