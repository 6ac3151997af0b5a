//! The server under a service manager: it says when it serves, lives and stops, and the unit file of
//! `deploy/systemd` is good.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/systemd/larimar.service");
const WITHIN: Duration = Duration::from_secs(20);
/// Of `systemd-analyze security`, in tenths: 0 is safest; it calls up to 2.0 "OK".
const EXPOSURE_MAX: &str = "20";

#[test]
fn it_says_when_it_serves_lives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    let mut process = Command::new(PROGRAM)
        .args(["--in-memory", "--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=none"])
        .current_dir(folder.path())
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000")
        .env_remove("WATCHDOG_PID")
        .stdout(Stdio::null())
        .spawn()
        .expect("the program");
    let mut states = std::iter::from_fn(|| {
        let mut buffer = [0; 512];
        let size = socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..size]).trim().to_owned())
    });
    let ready = states.find(|state| state != "WATCHDOG=1");
    let signs = states.by_ref().take(3).collect::<Vec<_>>();
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    let stopping = states.find(|state| state != "WATCHDOG=1");
    let ended = process.wait().unwrap();
    assert_eq!(ready.as_deref(), Some("READY=1"));
    assert_eq!(signs, ["WATCHDOG=1"; 3]);
    assert_eq!(stopping.as_deref(), Some("STOPPING=1"));
    assert!(ended.success(), "{ended}");
}

#[test]
fn a_manager_that_is_gone_is_a_line_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let mut process = Command::new(PROGRAM)
        .args([
            "--in-memory",
            "--table-port=0",
            "--queue-port=0",
            "--blob-port=0",
            "--admin-port=none",
            "--ready-file",
        ])
        .arg(&ready)
        .current_dir(folder.path())
        .env("NOTIFY_SOCKET", folder.path().join("absent"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let started = std::time::Instant::now();
    while !ready.exists() && started.elapsed() < WITHIN {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    let mut log = String::new();
    std::io::Read::read_to_string(&mut process.stderr.take().unwrap(), &mut log).unwrap();
    assert!(process.wait().unwrap().success(), "{log}");
    assert!(log.contains("NOTIFY_SOCKET"), "{log}");
}

/// A reload of a file with a mistake succeeded, and only the log said that nothing had changed.
#[test]
fn the_unit_checks_the_file_before_a_reload() {
    let text = std::fs::read_to_string(UNIT).expect("the unit");
    let values = |key: &str| -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
    };
    let [start] = values("ExecStart")[..] else { panic!("{text}") };
    let [check, signal] = values("ExecReload")[..] else { panic!("{text}") };
    assert_eq!(check, start.replace(" serve ", " config check "));
    assert_eq!(signal, "/bin/kill -HUP $MAINPID");
    // As systemd runs it: with this file a mistake ends it with a failure, and no signal follows.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larimar.toml");
    for (content, is_good) in [("table_port = 7\n", true), ("table_prt = 7\n", false)] {
        std::fs::write(&file, content).unwrap();
        let words = check.split(' ').skip(1).map(|word| match word {
            "/etc/larimar/larimar.toml" => file.as_os_str(),
            word => word.as_ref(),
        });
        let checked = Command::new(PROGRAM).args(words).env_remove("LARIMAR_ACCOUNT").output().unwrap();
        assert_eq!(checked.status.success(), is_good, "{content}: {checked:?}");
    }
}

/// Whoever followed them had no program, no unit and perhaps no group.
#[test]
fn the_unit_says_how_it_is_installed() {
    let text = std::fs::read_to_string(UNIT).expect("the unit");
    let steps = text.lines().filter_map(|line| line.strip_prefix("#   ")).collect::<Vec<_>>();
    let mut following = steps.iter();
    for part in [
        "useradd --system --user-group ",
        " /usr/bin/larimar",
        " /etc/larimar",
        " /etc/larimar/larimar.toml",
        " /etc/systemd/system/larimar.service",
        "systemctl daemon-reload",
        "systemctl enable --now larimar",
    ] {
        assert!(
            following.any(|step| step.contains(part)),
            "{part:?} is missing, or stands too early: {steps:#?}"
        );
    }
}

/// Without the program nothing is checked: it is part of systemd, which not every machine has.
#[test]
fn the_unit_file_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(UNIT).expect("the unit");
    assert!(text.contains("ExecStart=/usr/bin/larimar "), "{text}");
    let unit = folder.path().join("larimar.service");
    // The check looks whether the program is there.
    std::fs::write(&unit, text.replace("/usr/bin/larimar", PROGRAM)).unwrap();
    for arguments in
        [&["verify"][..], &["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX]]
    {
        let checked = Command::new("systemd-analyze").args(arguments).arg(&unit).output();
        let Ok(checked) = checked else { return };
        let said = [checked.stdout, checked.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(checked.status.success(), "{arguments:?}: {said}");
        let complains = said.lines().any(|line| line.contains("larimar.service:"));
        assert!(arguments[0] != "verify" || !complains, "{said}");
    }
}

/// A socket that is passed is the service's, whatever the settings say. Without the program nothing is
/// checked: it is part of systemd.
#[test]
fn sockets_that_are_passed_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    // One that is free; somebody else might take it before the program does, which is not likely.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let process = Command::new("systemd-socket-activate")
        .args(["--fdname=table", "--listen", &address, PROGRAM, "--in-memory", "--table-port=1"])
        .args(["--queue-port=0", "--blob-port=0", "--admin-port=none", "--ready-file"])
        .arg(&ready)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut process) = process else { return };
    let started = std::time::Instant::now();
    let mut connection = loop {
        // The first connection starts the program, which takes it.
        match std::net::TcpStream::connect(&address) {
            Ok(connection) => break connection,
            Err(error) => assert!(started.elapsed() < WITHIN, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    connection.set_read_timeout(Some(WITHIN)).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut connection, request.as_bytes()).unwrap();
    let mut answer = String::new();
    let read = std::io::Read::read_to_string(&mut connection, &mut answer);
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    let mut log = String::new();
    std::io::Read::read_to_string(&mut process.stderr.take().unwrap(), &mut log).unwrap();
    let _ = process.wait();
    // A sandbox may forbid pidfd_getfd.
    if log.contains("the socket that was passed as table can't be used: Operation not permitted") {
        return;
    }
    assert!(read.is_ok() && answer.contains("Larimar-Table/"), "{answer} {log}");
}
