//! A server whose tables the program's own commands work on.

use super::{Server, program};
use serde_json::Value;
use std::path::Path;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server in memory, and the connection string of its tables.
pub(crate) fn start(folder: &Path) -> (Server, String) {
    let server = Server::start(
        folder,
        &[
            "--in-memory",
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--admin-port",
            "none",
        ],
        &[],
    );
    let ready: Value =
        serde_json::from_slice(&std::fs::read(folder.join("ready")).expect("a file")).expect("JSON");
    let url = ready["table"].as_str().expect("an address").trim_end_matches('/').to_owned();
    (server, connection(&format!("{url}/devstoreaccount1")))
}

/// The connection string of the tables there.
pub(crate) fn connection(url: &str) -> String {
    format!("AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={url}")
}

/// Runs the program: exit code, standard output, standard error.
pub(crate) fn run(folder: &Path, connection: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = program(folder, arguments);
    let output = command.env("AZURE_STORAGE_CONNECTION_STRING", connection).output().expect("the program");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    // A slow machine has lines of progress, too.
    let errors = text(output.stderr);
    let errors = errors.split_inclusive('\n').filter(|line| !line.contains(" so far, ")).collect();
    (output.status.code().unwrap_or(-1), text(output.stdout), errors)
}
