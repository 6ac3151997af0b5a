//! Runs the examples, each as its reader does, against one server on free ports.

use crate::client::server_process::ServerProcess;
use crate::client::shared_key::connection_string;
use crate::workspace::{self, Scratch};
use crate::{Outcome, programs};
use std::path::Path;
use std::process::Command;

/// Debian's packages for the example in Go. The last is a library that the one before it imports and does not
/// depend on.
const GO_PACKAGES: [&str; 3] =
    ["golang-go", "golang-github-azure-azure-storage-blob-go-dev", "golang-github-google-uuid-dev"];
/// Where these libraries are.
const GO_LIBRARY_FOLDERS: [&str; 2] = ["github.com/Azure/azure-storage-blob-go", "github.com/google/uuid"];
/// Where they put libraries.
const GO_LIBRARIES: &str = "/usr/share/gocode";

pub(crate) fn run(binary: &Path, python: &Path) -> Outcome<()> {
    let root = workspace::root()?;
    let examples = root.join("examples");
    let scratch = Scratch::create("examples")?;
    let server = ServerProcess::start_larimar(binary, &scratch.path().join("data"))?;
    let connection_string = connection_string(&server)?;
    let finish = |command: &mut Command| {
        programs::finish(command.env("AZURE_STORAGE_CONNECTION_STRING", &connection_string))
    };
    finish(Command::new(python).arg(examples.join("python/entities.py")))?;
    finish(Command::new(python).arg(examples.join("python/partitions.py")))?;
    finish(Command::new(python).arg(examples.join("application/orders.py")))?;
    // Node looks for packages beside the file: those that the tests of clients have anyway.
    let javascript = scratch.path().join("javascript");
    std::fs::create_dir(&javascript)?;
    for name in ["blobs.js", "busy.js", "package.json"] {
        std::fs::copy(examples.join("javascript").join(name), javascript.join(name))?;
    }
    std::os::unix::fs::symlink(
        root.join("clients/javascript/node_modules"),
        javascript.join("node_modules"),
    )?;
    finish(Command::new("node").arg(javascript.join("blobs.js")))?;
    // In the target folder of the Rust clients, whose crates it shares.
    let mut cargo = workspace::cargo()?;
    cargo.args(["run", "--quiet", "--locked", "--manifest-path"]).arg(examples.join("rust/Cargo.toml"));
    finish(cargo.arg("--target-dir").arg(workspace::target()?.join("rust-client")))?;
    run_busy(binary, python, &examples, scratch.path())?;
    set_up_go()?;
    let mut go = Command::new("go");
    go.args(["run"]).arg(examples.join("go/blobs.go"));
    finish(go.env("GO111MODULE", "off").env("GOPATH", GO_LIBRARIES).env("GOFLAGS", ""))?;
    let status = server.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

/// The examples about retries, against a server that makes them needed: they pass, and fail without retries.
fn run_busy(binary: &Path, python: &Path, examples: &Path, scratch: &Path) -> Outcome<()> {
    let folder = scratch.join("busy");
    std::fs::create_dir(&folder)?;
    let rules = examples.join("busy.toml");
    let rules = rules.to_str().ok_or("the folder's name is no text")?;
    let server = ServerProcess::start_larimar_with(binary, &folder.join("data"), &["--simulate", rules])?;
    let connection_string = connection_string(&server)?;
    let (python_example, javascript_example) =
        (examples.join("python/busy.py"), scratch.join("javascript/busy.js"));
    for (program, example) in [(python, python_example), (Path::new("node"), javascript_example)] {
        let run = |flags: &[&str]| {
            let mut command = Command::new(program);
            command.arg(&example).args(flags).env("AZURE_STORAGE_CONNECTION_STRING", &connection_string);
            programs::finish(&mut command)
        };
        run(&[])?;
        println!("the same without retries, which has to fail:");
        if run(&["--no-retries"]).is_ok() {
            return Err(format!("{} passes without retries, too", example.display()).into());
        }
    }
    let status = server.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

/// Installs Go and its client library from Debian's packages where they are missing.
fn set_up_go() -> Outcome<()> {
    let has_go = Command::new("go").arg("version").output().is_ok_and(|output| output.status.success());
    let sources = Path::new(GO_LIBRARIES).join("src");
    if has_go && GO_LIBRARY_FOLDERS.iter().all(|folder| sources.join(folder).is_dir()) {
        return Ok(());
    }
    programs::install_packages("the example in Go", &GO_PACKAGES)
}
