//! How fast `larimar table` moves entities of 1 KiB with 8 properties in and out of one server: 1,000 a
//! partition, and one a partition.
//!
//! What always holds: a rate counts everything from the start of the program to its end; each table is
//! imported and exported once a round, and the file that comes out is compared with the one that went in by
//! the number and the bytes of its lines.

use super::ENTITY_SIZE_BYTES;
use crate::bench::measured::MeasuredServer;
use crate::bench::rounds::median;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::connection_string;
use crate::{Outcome, workspace};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Properties of an entity beside its keys.
const PROPERTY_COUNT: usize = 8;
/// Bytes of an entity around the texts of its properties, about.
const FRAME_SIZE_BYTES: usize = 130;

#[derive(clap::Args)]
pub(crate) struct TableToolsArguments {
    #[command(flatten)]
    server: MeasuredServer,
    /// Entities with 1,000 a partition.
    #[arg(long, default_value_t = 500_000)]
    entities: u64,
    /// Entities with one a partition.
    #[arg(long, default_value_t = 100_000)]
    single_entities: u64,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail below this rate of exports, in entities a second.
    #[arg(long)]
    export_min: Option<f64>,
    /// Fail below this rate of imports with 1,000 a partition.
    #[arg(long)]
    import_min: Option<f64>,
    /// Fail below this rate of imports with one a partition.
    #[arg(long)]
    single_import_min: Option<f64>,
}

impl TableToolsArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        let (server, entities, single_entities) = (MeasuredServer::smoke(bin), 3_000, 500);
        let (export_min, import_min, single_import_min) = (None, None, None);
        Self { server, entities, single_entities, rounds: 1, export_min, import_min, single_import_min }
    }
}

pub(crate) fn run(arguments: &TableToolsArguments) -> Outcome<()> {
    let larimar = arguments.server.programs()?.larimar;
    let scratch = workspace::Scratch::create("table-tools")?;
    let server = ServerProcess::start_larimar(&larimar, &scratch.path().join("data"))?;
    let tool = Tool { larimar, endpoint: connection_string(&server)?, folder: scratch.path().to_owned() };
    write_lines(&tool.folder.join("many.jsonl"), arguments.entities, 1_000)?;
    write_lines(&tool.folder.join("single.jsonl"), arguments.single_entities, 1)?;
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..arguments.rounds {
        for (which, name, count) in
            [(0, "many", arguments.entities), (2, "single", arguments.single_entities)]
        {
            let (table, file, out) =
                (format!("{name}{round}"), format!("{name}.jsonl"), format!("{name}.out.jsonl"));
            rates[which].push(count as f64 / tool.timed(&["import", &table, &file, "--create"])?);
            rates[which + 1].push(count as f64 / tool.timed(&["export", &table, &out, "--overwrite"])?);
            same_size(&tool.folder.join(&file), &tool.folder.join(&out))?;
        }
    }
    let mins = [arguments.import_min, arguments.export_min, arguments.single_import_min, None];
    let names = ["import, 1,000 a partition", "export", "import, one a partition", "export"];
    for ((name, rates), min) in names.iter().zip(&rates).zip(mins) {
        let rate = median(rates);
        println!("{name:<28}{rate:>10.0} /s");
        if let Some(min) = min.filter(|min| rate < *min) {
            return Err(format!("{name}: {rate:.0} entities a second are below {min:.0}").into());
        }
    }
    let status = server.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

struct Tool {
    larimar: PathBuf,
    endpoint: String,
    folder: PathBuf,
}

impl Tool {
    /// Runs a command; how many seconds it took.
    fn timed(&self, arguments: &[&str]) -> Outcome<f64> {
        let started = Instant::now();
        let mut command = Command::new(&self.larimar);
        command.arg("table").args(arguments).current_dir(&self.folder);
        command.env("AZURE_STORAGE_CONNECTION_STRING", &self.endpoint).stdout(Stdio::null());
        let done = command.stderr(Stdio::piped()).output()?;
        if !done.status.success() {
            let text = String::from_utf8_lossy(&done.stderr);
            return Err(
                format!("larimar table {} ended with {}: {text}", arguments.join(" "), done.status).into()
            );
        }
        Ok(started.elapsed().as_secs_f64())
    }
}

/// Lines in the order of keys.
fn write_lines(path: &Path, entities: u64, partition_size: u64) -> Outcome<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let text = "abcdefghijklmnop".repeat(ENTITY_SIZE_BYTES / 16);
    let value = &text[..(ENTITY_SIZE_BYTES - FRAME_SIZE_BYTES) / PROPERTY_COUNT];
    for number in 0..entities {
        let (partition, row) = (number / partition_size, number % partition_size);
        write!(file, "{{\"PartitionKey\":\"partition-{partition:08}\",\"RowKey\":\"row-{row:08}\"")?;
        for property in 0..PROPERTY_COUNT {
            write!(file, ",\"Prop{property}\":\"{value}\"")?;
        }
        file.write_all(b"}\n")?;
    }
    Ok(file.flush()?)
}

fn same_size(one: &Path, other: &Path) -> Outcome<()> {
    let (one, other) = (std::fs::metadata(one)?.len(), std::fs::metadata(other)?.len());
    if one == other { Ok(()) } else { Err(format!("{one} bytes went in, and {other} came out").into()) }
}
