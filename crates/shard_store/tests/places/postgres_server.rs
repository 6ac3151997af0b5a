//! A Postgres server of Debian's packages in a folder of its own, which ends with the test.
//!
//! It trusts every user of loopback, on a free port. Postgres refuses to run as root, so a test that does
//! runs it as the user `postgres`, which the package makes.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where Debian puts each version's programs.
const VERSIONS: &str = "/usr/lib/postgresql";
const USER: &str = "shard";
/// How long it may take to start.
const START_FOR_MAX: Duration = Duration::from_secs(60);

pub(crate) struct PostgresServer {
    process: Child,
    port: u16,
    programs: PathBuf,
    _folder: TempDir,
    databases: parking_lot::Mutex<BTreeSet<String>>,
}

impl PostgresServer {
    /// Starts a server. What it acknowledged need not outlive a power loss.
    pub(crate) fn start() -> Self {
        Self::start_with("fsync=off")
    }

    /// Starts one that syncs what it acknowledges.
    #[allow(dead_code)] // For benches.
    pub(crate) fn start_durable() -> Self {
        Self::start_with("fsync=on")
    }

    fn start_with(durability: &str) -> Self {
        let programs = programs();
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(folder.path()));
        }
        run(as_user(&programs.join("initdb"))
            .args([
                "--no-sync",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--username",
                USER,
                "--pgdata",
            ])
            .arg(&data)
            .stdout(Stdio::null()));
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let process = as_user(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args([
                "-p",
                &port.to_string(),
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
            ])
            .args(["-c", durability, "-c", "max_connections=60"])
            .stderr(Stdio::null())
            .spawn()
            .expect("Postgres starts");
        let server =
            PostgresServer { process, port, programs, _folder: folder, databases: Default::default() };
        server.wait();
        server
    }

    fn wait(&self) {
        let started_at = Instant::now();
        while !self.psql("postgres", "SELECT 1").status().expect("psql runs").success() {
            assert!(started_at.elapsed() < START_FOR_MAX, "Postgres does not answer on port {}", self.port);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn psql(&self, database: &str, statement: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--host=127.0.0.1", "--username", USER, "--dbname", database]);
        psql.args(["--port", &self.port.to_string(), "--command", statement]);
        psql.stdout(Stdio::null()).stderr(Stdio::null());
        psql
    }

    /// Makes a database, unless this made it already.
    pub(crate) fn create_database(&self, name: &str) {
        let mut databases = self.databases.lock();
        if databases.insert(name.to_owned()) {
            run(&mut self.psql("postgres", &format!("CREATE DATABASE \"{name}\"")));
        }
    }

    /// Runs a statement.
    pub(crate) fn run(&self, database: &str, statement: &str) {
        run(&mut self.psql(database, statement));
    }

    /// How a database is reached.
    pub(crate) fn config(&self, database: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).user(USER).dbname(database);
        config
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // A signal that ends it at once, from a child of ours.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The programs of the newest version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/initdb").is_file())
        .max_by_key(number);
    newest
        .expect("Postgres is needed here: apt-get install postgresql, as `cargo xtask test crates` does")
        .join("bin")
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0)
}

/// A program of Postgres, as a user that may run it, which ends with this process.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command.current_dir("/");
    command
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} ended with {status}");
}
