//! Entities of all types on their way through `larimar table export | import | diff`, in each format, with
//! every command killed on its way; and the same, fewer of them, through the peer emulator.
//!
//! What always holds: what was imported first is compared with each table that came out of the tools, by key
//! and value; a trial in which no command was killed has failed.

use crate::client::peer_emulator::PeerEmulator;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{connection_string, table_connection_string};
use crate::{Outcome, suite, workspace};
use base::random::splitmix64;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Entities a millisecond that no command moves: it is killed before it would have moved all at that rate.
const ENTITIES_PER_MS: u64 = 150;
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What pyarrow does to a file: reads it in batches and writes them to another one.
const REWRITE: &str = "import sys, pyarrow.parquet as pq\n\
    source = pq.ParquetFile(sys.argv[1])\n\
    with pq.ParquetWriter(sys.argv[2], source.schema_arrow) as target:\n    \
    for batch in source.iter_batches(batch_size=20000):\n        target.write_batch(batch)\n\
    print('pyarrow', source.metadata.num_rows, 'rows', source.metadata.num_columns, 'columns')\n";

#[derive(clap::Args)]
pub(crate) struct TableToolsArguments {
    /// Entities in each format.
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    /// Entities through the peer emulator (needs npm); 0: it is left out.
    #[arg(long, default_value_t = 20_000)]
    peer_entities: u64,
    /// How often each command is killed, if it does not end before.
    #[arg(long, default_value_t = 3)]
    kills: u32,
    /// Seed of the kills; else a new one, printed.
    #[arg(long)]
    seed: Option<u64>,
    /// The program, with the feature `parquet`; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
}

pub(crate) fn run(arguments: &TableToolsArguments) -> Outcome<()> {
    let binary = match &arguments.bin {
        Some(binary) => std::path::absolute(binary)?,
        None => workspace::full_binary()?,
    };
    let python = suite::python(&workspace::root()?)?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    let scratch = workspace::Scratch::create("table-tools-trial")?;
    println!("table tools: {} entities, seed {seed}", arguments.entities);
    let outcome = Trial {
        binary,
        python,
        folder: scratch.path().to_owned(),
        kills_max: arguments.kills,
        kills: 0,
        random: seed,
        kill_after_ms_max: (arguments.entities / ENTITIES_PER_MS).max(1),
    }
    .run(arguments);
    if outcome.is_err() {
        println!("table tools: files and data are kept in {}", scratch.keep().display());
    }
    outcome
}

struct Trial {
    binary: PathBuf,
    python: PathBuf,
    folder: PathBuf,
    kills_max: u32,
    kills: u32,
    random: u64,
    kill_after_ms_max: u64,
}

impl Trial {
    fn run(mut self, arguments: &TableToolsArguments) -> Outcome<()> {
        let server = ServerProcess::start_larimar(&self.binary, &self.folder.join("data"))?;
        let ours = connection_string(&server)?;
        write_entities(&self.folder.join("in.jsonl"), arguments.entities)?;
        self.through(&ours, &["import", "First", "in.jsonl", "--create"])?;
        for format in ["jsonl", "csv", "parquet"] {
            let (file, table) = (format!("out.{format}"), format!("Of{format}"));
            self.through(&ours, &["export", "First", &file])?;
            if format == "parquet" {
                let mut rewrite = Command::new(&self.python);
                rewrite.args(["-c", REWRITE, &file, "rewritten.parquet"]).current_dir(&self.folder);
                let status = rewrite.status()?;
                if !status.success() {
                    return Err(format!("pyarrow ended with {status}").into());
                }
                self.through(&ours, &["import", "Rewritten", "rewritten.parquet", "--create"])?;
                self.same(&ours, &["diff", "First", "Rewritten"], arguments.entities)?;
            }
            self.through(&ours, &["import", &table, &file, "--create"])?;
            self.same(&ours, &["diff", "First", &table], arguments.entities)?;
            std::fs::remove_file(self.folder.join(&file))?;
        }
        if arguments.peer_entities > 0 {
            self.peer(&ours, arguments.peer_entities)?;
        }
        if self.kills == 0 && self.kills_max > 0 {
            return Err("no command was killed on its way: there are too few entities".into());
        }
        println!("table tools: no difference; commands were killed {} times", self.kills);
        let status = server.terminate()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    /// Ours, into the emulator, out of it, and into ours again.
    fn peer(&mut self, ours: &str, count: u64) -> Outcome<()> {
        let peer = PeerEmulator::start(&self.folder)?;
        let theirs = table_connection_string(peer.table_address);
        println!("table tools: {count} entities through {}", peer.version);
        write_entities(&self.folder.join("few.jsonl"), count)?;
        self.through(ours, &["import", "Few", "few.jsonl", "--create"])?;
        self.through(&theirs, &["import", "Few", "few.jsonl", "--create"])?;
        self.same(ours, &["diff", "Few", "Few", "--to", &theirs], count)?;
        self.through(&theirs, &["export", "Few", "peer.jsonl"])?;
        self.through(ours, &["import", "OfPeer", "peer.jsonl", "--create"])?;
        self.same(ours, &["diff", "Few", "OfPeer"], count)
    }

    fn start(&self, connection: &str, arguments: &[&str]) -> Outcome<Child> {
        let mut command = Command::new(&self.binary);
        command.arg("table").args(arguments).current_dir(&self.folder);
        command.env("AZURE_STORAGE_CONNECTION_STRING", connection).env("LARIMAR_LOG", "off");
        Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// Runs a command to its end, and kills it before.
    fn through(&mut self, connection: &str, arguments: &[&str]) -> Outcome<()> {
        let started = Instant::now();
        let mut kills = 0;
        loop {
            let mut child = self.start(connection, arguments)?;
            let kill_after = Duration::from_millis(splitmix64(&mut self.random) % self.kill_after_ms_max);
            let kill_after = (kills < self.kills_max).then_some(kill_after);
            let is_killed = end_or_kill(&mut child, kill_after)?;
            let output = child.wait_with_output()?;
            if is_killed {
                kills += 1;
                continue;
            }
            ended_well(arguments, output.status, &output.stdout, &output.stderr)?;
            let took = started.elapsed().as_secs_f64();
            println!("{:<45} killed {kills} times, {took:.1} s", arguments[..3].join(" "));
            self.kills += kills;
            return Ok(());
        }
    }

    /// A comparison that must find nothing.
    fn same(&self, connection: &str, arguments: &[&str], count: u64) -> Outcome<()> {
        let started = Instant::now();
        let output = self.start(connection, arguments)?.wait_with_output()?;
        ended_well(arguments, output.status, &output.stdout, &output.stderr)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let expected = format!("{count} entities are the same, 0 differ, 0 are only in the first table, ");
        if !text.starts_with(&expected) {
            return Err(format!("{}: {text}", arguments.join(" ")).into());
        }
        let took = started.elapsed().as_secs_f64();
        println!("{:<45} {}, {took:.1} s", arguments[..3].join(" "), text.trim_end());
        Ok(())
    }
}

/// Waits until it ends, or kills it after so long; whether it was killed.
fn end_or_kill(child: &mut Child, kill_after: Option<Duration>) -> Outcome<bool> {
    let started = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        if kill_after.is_some_and(|after| started.elapsed() >= after) {
            child.kill()?;
            // It may have ended by itself just before.
            return Ok(child.wait()?.code().is_none());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn ended_well(arguments: &[&str], status: ExitStatus, out: &[u8], errors: &[u8]) -> Outcome<()> {
    if status.success() {
        return Ok(());
    }
    let (out, errors) = (String::from_utf8_lossy(out), String::from_utf8_lossy(errors));
    Err(format!("larimar table {} ended with {status}: {out}{errors}", arguments.join(" ")).into())
}

/// Entities of all types: half of them in one partition, a quarter in partitions of 100, a quarter alone.
fn write_entities(path: &Path, count: u64) -> Outcome<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut random = 7;
    for number in 0..count {
        let (partition, row) = match number % 4 {
            0 | 1 => ("large".to_owned(), format!("{number:09}")),
            2 => (format!("part-{:05}", number / 400), format!("row {number}")),
            _ => (format!("{:016x}", splitmix64(&mut random)), "it's ü".to_owned()),
        };
        let mut entity = json!({
            "PartitionKey": partition, "RowKey": row, "Text": format!("\"{number}\"\n,ü\u{1f600}"), "Empty": "",
            "True": number % 2 == 0, "Int": number as i32 - 1000, "Double": number as f64 + 0.25,
            "Long@odata.type": "Edm.Int64", "Long": (i64::MIN + number as i64).to_string(),
            "At@odata.type": "Edm.DateTime", "At": "1601-01-01T00:00:00.0000001Z",
            "Last@odata.type": "Edm.DateTime", "Last": "9999-12-31T23:59:59.9999999Z",
            "Guid@odata.type": "Edm.Guid", "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
            "Bytes@odata.type": "Edm.Binary", "Bytes": "AQI=", "None@odata.type": "Edm.Binary", "None": "",
        });
        let special = [json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(1.0e300)];
        if let Some(special) = special.get((number % 4) as usize) {
            entity["Special"] = special.clone();
            entity["Special@odata.type"] = json!("Edm.Double");
        }
        match number % 3 {
            0 => entity["Mixed"] = json!("a text"),
            1 => entity["Mixed"] = json!(5),
            _ => {}
        }
        serde_json::to_writer(&mut file, &entity)?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}
