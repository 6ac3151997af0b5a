//! `kill -9` under load, again and again: every acknowledged write is there afterwards, no group transaction
//! is half there, and the server is ready again quickly.
//!
//! A killed process keeps what the operating system has in memory, so this proves ordering and recovery; that
//! writes are on the disk before they are acknowledged is proved on the simulated disk.

pub(crate) mod blobs;
pub(crate) mod queues;
mod writer;

use crate::client::http_client::HttpClient;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::Signer;
use crate::kill9::writer::{TABLE, Tally, Writer};
use crate::{Outcome, workspace};
use base::random::splitmix64;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KILL_AFTER_MS_MIN: u64 = 200;
const KILL_AFTER_MS_MAX: u64 = 1500;
const PROBLEMS_PRINTED_MAX: usize = 5;

#[derive(clap::Args)]
pub(crate) struct KillArguments {
    /// How often to kill.
    #[arg(long, default_value_t = 20)]
    pub(crate) rounds: usize,
    /// Concurrent writers, each with a partition and a connection of its own.
    #[arg(long, default_value_t = 64)]
    pub(crate) writers: usize,
    /// Seed of the operations and the instants; else a new one, printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The server to kill; else this checkout's, built now.
    #[arg(long)]
    pub(crate) bin: Option<PathBuf>,
    /// How long a restart may take until the first answer.
    #[arg(long, default_value_t = 1000)]
    pub(crate) ready_ms_max: u64,
}

pub(crate) fn run(arguments: &KillArguments) -> Outcome<()> {
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let scratch = workspace::Scratch::create("kill9")?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    println!("kill -9: {} rounds, {} writers, seed {seed}", arguments.rounds, arguments.writers);
    let outcome = run_rounds(arguments, seed, &binary, &scratch.path().join("data"));
    if outcome.is_err() {
        println!("kill -9: the data folder is kept in {}", scratch.keep().display());
    }
    outcome
}

fn run_rounds(arguments: &KillArguments, seed: u64, binary: &Path, data: &Path) -> Outcome<()> {
    let mut random = seed;
    let mut writers: Vec<Writer> = (0..arguments.writers).map(|number| Writer::new(number, seed)).collect();
    let mut slowest_ready_for = Duration::ZERO;
    let mut server = start(binary, data, arguments, &mut slowest_ready_for)?;
    create_table(server.address)?;
    for round in 1..=arguments.rounds {
        let kill_after_ms =
            KILL_AFTER_MS_MIN + splitmix64(&mut random) % (KILL_AFTER_MS_MAX - KILL_AFTER_MS_MIN);
        let before = total(&writers);
        let address = server.address;
        let killed = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            let running: Vec<_> = writers
                .iter_mut()
                .map(|writer| scope.spawn(|| writer.write_until_killed(address, &killed)))
                .collect();
            std::thread::sleep(Duration::from_millis(kill_after_ms));
            killed.store(true, Ordering::SeqCst);
            let outcome = server.kill();
            let outcomes = running.into_iter().map(|thread| thread.join().expect("a writer panicked"));
            all_fine("while writing", outcomes).and(outcome)
        });
        outcome?;
        let written = total(&writers).acknowledged - before.acknowledged;
        if written == 0 {
            return Err(format!("round {round}: nothing was acknowledged, so nothing was tested").into());
        }

        let mut ready_for = Duration::ZERO;
        server = start(binary, data, arguments, &mut ready_for)?;
        slowest_ready_for = slowest_ready_for.max(ready_for);
        verify(&mut writers, server.address)?;
        let after = total(&writers);
        println!(
            "round {round}: killed after {kill_after_ms} ms, {written} operations acknowledged ({} groups), \
             unanswered ones: {} applied, {} not; ready again in {} ms",
            after.acknowledged_groups - before.acknowledged_groups,
            after.unanswered_applied - before.unanswered_applied,
            after.unanswered_lost - before.unanswered_lost,
            ready_for.as_millis(),
        );
    }

    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("after SIGTERM the server ended with {status}").into());
    }
    let server = start(binary, data, arguments, &mut slowest_ready_for)?;
    verify(&mut writers, server.address)?;
    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("after SIGTERM the server ended with {status}").into());
    }
    let all = total(&writers);
    println!(
        "kill -9: {} rounds fine, {} operations acknowledged ({} groups), all there; slowest restart {} ms; seed {seed}",
        arguments.rounds,
        all.acknowledged,
        all.acknowledged_groups,
        slowest_ready_for.as_millis(),
    );
    Ok(())
}

/// Starts the server and asks it something; from start to answer may not take too long.
fn start(
    binary: &Path,
    data: &Path,
    arguments: &KillArguments,
    slowest_ready_for: &mut Duration,
) -> Outcome<ServerProcess> {
    let server = ServerProcess::start_larimar(binary, data)?;
    let mut client = HttpClient::connect(server.address, Signer::new())?;
    let answer = client.send("GET", "Tables", &[], b"")?;
    let ready_for = server.started_at.elapsed();
    if answer.status != 200 {
        return Err(format!("list tables: {} {}", answer.status, answer.text()).into());
    }
    if ready_for > Duration::from_millis(arguments.ready_ms_max) {
        let limit = arguments.ready_ms_max;
        return Err(format!("ready only after {} ms, more than {limit} ms", ready_for.as_millis()).into());
    }
    *slowest_ready_for = ready_for.max(*slowest_ready_for);
    Ok(server)
}

fn create_table(address: SocketAddr) -> Outcome<()> {
    let mut client = HttpClient::connect(address, Signer::new())?;
    let body = format!("{{\"TableName\":\"{TABLE}\"}}");
    let answer = client.send("POST", "Tables", &[("Prefer", "return-no-content")], body.as_bytes())?;
    if answer.status == 204 {
        Ok(())
    } else {
        Err(format!("create table: {} {}", answer.status, answer.text()).into())
    }
}

fn verify(writers: &mut [Writer], address: SocketAddr) -> Outcome<()> {
    std::thread::scope(|scope| {
        let running: Vec<_> =
            writers.iter_mut().map(|writer| scope.spawn(move || writer.verify(address))).collect();
        all_fine(
            "after the restart",
            running.into_iter().map(|thread| thread.join().expect("a reader panicked")),
        )
    })
}

fn all_fine(when: &str, outcomes: impl Iterator<Item = Outcome<()>>) -> Outcome<()> {
    let problems: Vec<String> = outcomes.filter_map(Result::err).map(|problem| problem.to_string()).collect();
    for problem in problems.iter().take(PROBLEMS_PRINTED_MAX) {
        println!("{when}: {problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} writers found a problem {when}").into()),
    }
}

fn total(writers: &[Writer]) -> Tally {
    let mut total = Tally::default();
    for writer in writers {
        total.acknowledged += writer.tally.acknowledged;
        total.acknowledged_groups += writer.tally.acknowledged_groups;
        total.unanswered_applied += writer.tally.unanswered_applied;
        total.unanswered_lost += writer.tally.unanswered_lost;
    }
    total
}
