//! Data folders that a server has served, for tests of the commands that look at them.

use base::checksum::crc64;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Starts a server over `data` and waits until it listens.
pub(crate) fn serve(folder: &Path, data: &Path) -> Child {
    let ready = folder.join("ready");
    // A former server's.
    let _ = std::fs::remove_file(&ready);
    let mut server = Command::new(PROGRAM);
    server.arg("--data").arg(data).arg("--ready-file").arg(&ready).args([
        "--table-port",
        "0",
        "--blob-port",
        "0",
        "--queue-port",
        "0",
    ]);
    let server = server.stdout(Stdio::null()).stdin(Stdio::null()).spawn().expect("the program");
    let started = Instant::now();
    while !ready.exists() {
        assert!(started.elapsed() < READY_WITHIN, "the server does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}

/// A digest of each file.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let digest = crc64(&[&std::fs::read(&path).expect("a file")]);
                all.insert(path.display().to_string(), digest);
            }
        }
    }
    all
}

/// Flips a bit of this byte.
pub(crate) fn flip(path: &Path, byte: usize) {
    let mut content = std::fs::read(path).expect("a file");
    content[byte] ^= 1;
    std::fs::write(path, content).expect("a file");
}
