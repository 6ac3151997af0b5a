//! Whether the design that `larimar advise` proposes beats the present one by as much as it says: both take
//! the same registrations of races from as many clients, on a server that admits few entities a second in a
//! partition, so that partitions are the limit and not this machine.
//!
//! What always holds: advice is from 1 % of the set, by a seed; keys are made by the functions that it
//! writes; a client whose entity is refused sends it again until it is taken, so a hot partition holds back
//! all clients, as it does with programs that write one thing after the other.

use crate::bench::measured::MeasuredServer;
use crate::client::http_client::HttpClient;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::Signer;
use crate::{Outcome, programs, workspace};
use base::random::splitmix64;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Races; the n-th has a weight of 1 / n^1.3, so the largest has a third of the registrations.
const RACES: u64 = 50;
const EXPONENT: f64 = 1.3;
/// What the server admits a second, a tenth of the live service's targets.
const PARTITION_RATE: f64 = 200.0;
const ACCOUNT_RATE: f64 = 2000.0;
const RULES: &str = "[limits]\npartition_entities_per_second = 200\naccount_requests_per_second = 2000\n";
/// So much is written that the largest race's partition is too hot.
const MIX: &str = "[queries.\"of a race\"]\nequal = \"Race\"\nrange = \"At\"\nlength = \"24h\"\nper_day = 30000\nwithin_ms = 5000\n\
                   [queries.runner]\nequal = \"Runner\"\nper_day = 40000\n\
                   [writes.registration]\nper_day = 200000000\n";
/// A refused entity is sent again after this.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Makes the keys of entities with the functions beside it.
const KEY_SCRIPT: &str = "import inspect, json, sys\nimport keys\nfrom datetime import datetime\n\
def value(entity, name):\n    name = name.removesuffix('_value')\n    found = {key.lower(): key for key in entity}[name]\n    \
text = entity[found]\n    return keys.ticks(datetime.fromisoformat(text.rstrip('Z'))) if found == 'At' else text\n\
def key(make, entity):\n    return make(*[value(entity, name) for name in inspect.signature(make).parameters])\n\
for line in sys.stdin:\n    entity = json.loads(line)\n    print(json.dumps([key(keys.partition_key, entity), key(keys.row_key, entity)]))\n";

#[derive(clap::Args)]
pub(crate) struct AdviseArguments {
    #[command(flatten)]
    server: MeasuredServer,
    /// Entities of the set.
    #[arg(long, default_value_t = 600_000)]
    entities: u64,
    /// Entities that are ready to be loaded; each design takes as many as it can.
    #[arg(long, default_value_t = 60_000)]
    loaded: usize,
    /// Seconds of a load that count, after two that don't.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Clients.
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Draws the set and the sample.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail if the measured factor differs from the predicted one by more percent.
    #[arg(long)]
    off_percent_max: Option<f64>,
}

impl AdviseArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        let server = MeasuredServer::smoke(bin);
        let (entities, loaded, seconds, clients, seed) = (20_000, 12_000, 1, 8, 1);
        Self { server, entities, loaded, seconds, clients, seed, off_percent_max: None }
    }
}

pub(crate) fn run(arguments: &AdviseArguments) -> Outcome<()> {
    let larimar = arguments.server.programs()?.larimar;
    let scratch = workspace::Scratch::create("advise")?;
    let folder = scratch.path();
    write_set(&folder.join("set.jsonl"), arguments)?;
    std::fs::write(folder.join("mix.toml"), MIX)?;
    std::fs::write(folder.join("rules.toml"), RULES)?;
    let report: Value = serde_json::from_str(&advise(&larimar, folder, arguments, &["--json"])?)?;
    let designs = report["designs"].as_array().ok_or("the report has no designs")?;
    let (now, best) = (&designs[0], designs.get(1).ok_or("there is no proposal")?);
    let best_keys = keys_of(&larimar, folder, arguments)?;
    let now_keys = now_keys(folder, arguments.loaded)?;
    let mut measured = Vec::new();
    for (design, keys) in [(now, &now_keys), (best, &best_keys)] {
        let rate = load(&larimar, folder, keys, arguments)?;
        let share = |name: &str| design[name].as_f64().unwrap_or_default();
        // The table alone is loaded, without index tables.
        let predicted = (PARTITION_RATE / share("hot_share").max(1e-9)).min(ACCOUNT_RATE);
        println!(
            "{:<40} largest partition {:>6.2} %, predicted {predicted:>6.0} entities/s, measured {rate:>6.0}",
            design["partition_key"].as_str().unwrap_or_default(),
            share("largest_share") * 100.0
        );
        measured.push((rate, predicted));
    }
    let [(now_rate, now_predicted), (best_rate, best_predicted)] = measured[..] else {
        return Err("both designs are measured".into());
    };
    let (factor, predicted) = (best_rate / now_rate.max(1.0), best_predicted / now_predicted.max(1.0));
    println!("the proposal takes {factor:.2} times as many; {predicted:.2} were predicted");
    let off = (factor / predicted - 1.0).abs() * 100.0;
    match arguments.off_percent_max.filter(|max| off > *max) {
        Some(max) => Err(format!("the factor is {off:.0} % off, and {max:.0} % are allowed").into()),
        None => Ok(()),
    }
}

/// Registrations whose keys are the race and the runner.
fn write_set(path: &Path, arguments: &AdviseArguments) -> Outcome<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut random = arguments.seed;
    let weights: Vec<f64> = (1..=RACES).map(|race| (race as f64).powf(-EXPONENT)).collect();
    let sum: f64 = weights.iter().sum();
    for index in 0..arguments.entities {
        let mut at = splitmix64(&mut random) as f64 / u64::MAX as f64 * sum;
        let is_behind = |weight: &&f64| {
            at -= **weight;
            at > 0.0
        };
        let race = weights.iter().take_while(is_behind).count();
        let runner = format!("r{:016x}", splitmix64(&mut random) ^ index);
        let (day, hour) = (splitmix64(&mut random) % 28 + 1, splitmix64(&mut random) % 24);
        let entity = json!({
            "PartitionKey": format!("race-{race}"), "RowKey": runner, "Race": format!("race-{race}"), "Runner": runner,
            "At@odata.type": "Edm.DateTime", "At": format!("2026-10-{day:02}T{hour:02}:00:00Z"),
        });
        writeln!(file, "{entity}")?;
    }
    Ok(file.flush()?)
}

/// Runs `larimar advise` with 1 % of the set; what it prints.
fn advise(larimar: &Path, folder: &Path, arguments: &AdviseArguments, more: &[&str]) -> Outcome<String> {
    let mut command = Command::new(larimar);
    command.current_dir(folder).args([
        "advise",
        "--sample",
        "set.jsonl",
        "--draw",
        "0.01",
        "--mix",
        "mix.toml",
    ]);
    command.args(["--seed", &arguments.seed.to_string()]).args(more);
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(format!("larimar advise: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// The lines of the first entities.
fn first_lines(folder: &Path, count: usize) -> Outcome<String> {
    let text = std::fs::read_to_string(folder.join("set.jsonl"))?;
    Ok(text.lines().take(count).fold(String::new(), |lines, line| lines + line + "\n"))
}

fn now_keys(folder: &Path, count: usize) -> Outcome<Vec<[String; 2]>> {
    let key = |line: &str| -> Outcome<[String; 2]> {
        let entity: Value = serde_json::from_str(line)?;
        Ok(["PartitionKey", "RowKey"].map(|name| entity[name].as_str().unwrap_or_default().to_owned()))
    };
    first_lines(folder, count)?.lines().map(key).collect()
}

/// Keys of the first proposal, by the functions that are written for it.
fn keys_of(larimar: &Path, folder: &Path, arguments: &AdviseArguments) -> Outcome<Vec<[String; 2]>> {
    std::fs::write(folder.join("keys.py"), advise(larimar, folder, arguments, &["--emit", "python"])?)?;
    std::fs::write(folder.join("make.py"), KEY_SCRIPT)?;
    std::fs::write(folder.join("first.jsonl"), first_lines(folder, arguments.loaded)?)?;
    programs::finish(Command::new("python3").arg(folder.join("keys.py")))?;
    let mut command = Command::new("python3");
    command.arg(folder.join("make.py")).stdin(std::fs::File::open(folder.join("first.jsonl"))?);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("the keys: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| Ok(serde_json::from_str::<[String; 2]>(line)?)).collect()
}

/// Entities a second that a new server takes with these keys.
fn load(larimar: &Path, folder: &Path, keys: &[[String; 2]], arguments: &AdviseArguments) -> Outcome<f64> {
    const WARM_UP_FOR: Duration = Duration::from_secs(2);
    let rules = folder.join("rules.toml");
    let rules = rules.to_str().ok_or("the folder's name is no text")?;
    let data = workspace::Scratch::create("advise-data")?;
    let flags = ["--simulate", rules];
    let server = ServerProcess::start_larimar_with(larimar, &data.path().join("data"), &flags)?;
    let address = server.address;
    let created = HttpClient::connect(address, Signer::new())?.send(
        "POST",
        "Tables",
        &[],
        b"{\"TableName\":\"races\"}",
    )?;
    if created.status != 201 {
        return Err(format!("the table is not made: {}", created.status).into());
    }
    let (next, taken) = (AtomicUsize::new(0), AtomicU64::new(0));
    let counts_from = Instant::now() + WARM_UP_FOR;
    let ends_at = counts_from + Duration::from_secs(arguments.seconds);
    let client = || -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut client = HttpClient::connect(address, Signer::new()).map_err(failed)?;
        while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
            let at = insert(&mut client, key, ends_at)?;
            taken.fetch_add(u64::from(at >= counts_from && at < ends_at), Ordering::Relaxed);
            if at >= ends_at {
                break;
            }
        }
        Ok(())
    };
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.clients).map(|_| scope.spawn(client)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a client broke down".to_owned())))
            .collect()
    });
    outcomes.into_iter().collect::<Result<Vec<()>, String>>()?;
    server.terminate()?;
    if Instant::now() < ends_at {
        return Err("all entities were loaded before the time was over: give more with --loaded".into());
    }
    Ok(taken.load(Ordering::Relaxed) as f64 / arguments.seconds as f64)
}

/// Inserts an entity, however often it is refused; when it was taken, or the end.
fn insert(client: &mut HttpClient, key: &[String; 2], ends_at: Instant) -> Result<Instant, String> {
    let body = json!({ "PartitionKey": key[0], "RowKey": key[1] }).to_string();
    let prefer = [("Prefer", "return-no-content")];
    loop {
        let answer =
            client.send("POST", "races", &prefer, body.as_bytes()).map_err(|error| error.to_string())?;
        let now = Instant::now();
        match answer.status {
            204 => return Ok(now),
            503 if now >= ends_at => return Ok(now),
            503 => std::thread::sleep(AGAIN_AFTER),
            status => return Err(format!("an insert: {status}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }
}
