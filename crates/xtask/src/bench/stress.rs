//! The load test beside this bench's own clients, on one server in one run: what `larimar stress` costs
//! itself, and which part of the rates it reaches. Then, if asked, the same load test against the peer
//! emulator.
//!
//! What always holds: rounds alternate between the two, so that a slow minute of the machine hits both; both
//! keep the same number of connections busy with signed requests for entities of the same size.

use super::{ENTITY_SIZE_BYTES, GetRequests, InsertRequests, prepare};
use crate::bench::measured::MeasuredServer;
use crate::bench::rounds::{RoundArguments, Series, median};
use crate::client::load::measure;
use crate::client::peer_emulator::PeerEmulator;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{connection_string, table_connection_string};
use crate::{Outcome, workspace};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the peer emulator is loaded with.
const PEER_MIXES: [&str; 3] = ["get", "insert", "mixed"];

#[derive(clap::Args)]
pub(crate) struct StressArguments {
    #[command(flatten)]
    rounds: RoundArguments,
    #[command(flatten)]
    server: MeasuredServer,
    /// Then load the peer emulator, too; npm brings it, with a Node of its own.
    #[arg(long)]
    peer: bool,
    /// Fail if the load test reaches less than this percentage of the bench's own gets.
    #[arg(long)]
    percent_min: Option<f64>,
}

impl StressArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: std::path::PathBuf) -> Self {
        let (rounds, server) = (RoundArguments::smoke(), MeasuredServer::smoke(bin));
        Self { rounds, server, peer: false, percent_min: None }
    }
}

/// What one run of the load test reports.
struct Stressed {
    per_s: f64,
    /// Processor time of the load test itself.
    own_us: f64,
    p50_ms: f64,
    p99_ms: f64,
    failed: u64,
}

pub(crate) fn run(arguments: &StressArguments) -> Outcome<()> {
    let programs = arguments.server.programs()?;
    let scratch = workspace::Scratch::create("stress")?;
    let server = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
    prepare(server.address)?;
    let rounds = &arguments.rounds;
    let endpoint = connection_string(&server)?;
    println!("{} connections, {} rounds of {} s", rounds.connections, rounds.rounds, rounds.seconds);
    let mut inserts = InsertRequests::new(server.address);
    let mut series = [Series::new("bench insert"), Series::new("bench get")];
    let mut stressed: [Vec<Stressed>; 2] = [Vec::new(), Vec::new()];
    let mut random = 1;
    for _ in 0..rounds.rounds {
        series[0].add(measure(&rounds.load(server.address, &server, 204), &mut inserts)?)?;
        stressed[0].push(stress(&programs.larimar, &endpoint, "insert", rounds, scratch.path())?);
        let mut gets = GetRequests::build(server.address, inserts.sent_count.max(1), &mut random);
        series[1].add(measure(&rounds.load(server.address, &server, 200), &mut gets)?)?;
        stressed[1].push(stress(&programs.larimar, &endpoint, "get", rounds, scratch.path())?);
    }
    println!("\n{:<16}{:>15} {:>12} {:>12} {:>12} {:>13}", "", "median", "p50", "p99", "server", "generator");
    series.iter().for_each(Series::print);
    let mut get_percent = 0.0;
    for (name, bench, runs) in [("insert", &series[0], &stressed[0]), ("get", &series[1], &stressed[1])] {
        print(&format!("stress {name}"), runs);
        let ratios: Vec<f64> =
            runs.iter().zip(&bench.rates).map(|(run, rate)| 100.0 * run.per_s / rate).collect();
        get_percent = median(&ratios);
        println!("stress {name}: {get_percent:.1} % of the bench's rate");
    }
    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("the server ended with {status}").into());
    }
    if let Some(min) = arguments.percent_min.filter(|min| get_percent < *min) {
        return Err(format!("gets are at {get_percent:.1} %, below {min:.1} %").into());
    }
    if arguments.peer {
        load_peer(&programs.larimar, rounds, scratch.path())?;
    }
    Ok(())
}

fn load_peer(larimar: &Path, rounds: &RoundArguments, scratch: &Path) -> Outcome<()> {
    let peer = PeerEmulator::start(scratch)?;
    println!("\npeer emulator {}", peer.version);
    let endpoint = table_connection_string(peer.table_address);
    for mix in PEER_MIXES {
        let run = stress(larimar, &endpoint, mix, rounds, scratch)?;
        let failed = run.failed;
        print(&format!("stress {mix}"), &[run]);
        if failed > 0 {
            return Err(format!("{failed} operations of the mix {mix} failed").into());
        }
    }
    Ok(())
}

/// Runs the load test, and reads its report.
fn stress(
    larimar: &Path,
    endpoint: &str,
    mix: &str,
    rounds: &RoundArguments,
    scratch: &Path,
) -> Outcome<Stressed> {
    let file = scratch.join("stress.json");
    let mut command = Command::new(larimar);
    command.args(["stress", "--mix", mix, "--warm-up", "1"]).arg("--json").arg(&file);
    command.args(["--clients", &rounds.connections.to_string(), "--seconds", &rounds.seconds.to_string()]);
    command.args(["--size", &ENTITY_SIZE_BYTES.to_string()]);
    command.env("AZURE_STORAGE_CONNECTION_STRING", endpoint);
    let done = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        return Err(format!("larimar stress ended with {}: {text}", done.status).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let steps = report["steps"].as_array().ok_or("the report has no steps")?;
    let main = steps.iter().find(|step| step["role"] == "main").ok_or("the report has no main step")?;
    let number = |value: &serde_json::Value, name: &str| {
        value.as_f64().ok_or_else(|| format!("the report has no {name}"))
    };
    Ok(Stressed {
        per_s: number(&main["done_per_s"], "rate")?,
        own_us: number(&report["own"]["us_per_operation"], "processor time of its own")?,
        p50_ms: number(&main["latency_us"]["p50"], "p50")? / 1e3,
        p99_ms: number(&main["latency_us"]["p99"], "p99")? / 1e3,
        failed: main["failed"].as_u64().ok_or("the report has no failures")?,
    })
}

fn print(name: &str, runs: &[Stressed]) {
    let of = |what: fn(&Stressed) -> f64| median(&runs.iter().map(what).collect::<Vec<_>>());
    println!(
        "{name:<16}{:>12.0} /s {:>9.2} ms {:>9.2} ms; own processor time {:.1} µs an operation",
        of(|run| run.per_s),
        of(|run| run.p50_ms),
        of(|run| run.p99_ms),
        of(|run| run.own_us),
    );
}
