//! Restarts: the time from the start of a process to its first answer, after a clean stop and after `kill
//! -9`.

use crate::engine::{Engine, settings};
use crate::rows::{Insert, TABLE, key, value};
use crate::verdicts::Verdicts;
use crate::{Arguments, Outcome, Phase};
use clap::ValueEnum;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Further entities that the process which is killed writes at least, so that its log holds something.
const WRITTEN_BEFORE_KILL: u64 = 150_000;
const READY: &str = "ready";

fn start(arguments: &Arguments, phase: Phase, output: Stdio) -> Outcome<Child> {
    let name = phase.to_possible_value().ok_or("a phase without a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--folder").arg(&arguments.folder).args(["--phase", name.get_name()]);
    for (flag, number) in [
        ("--entities", arguments.entities),
        ("--partitions", arguments.partitions),
        ("--memory-budget-mib", arguments.memory_budget_mib),
        ("--writers", arguments.writers),
    ] {
        command.args([flag, &number.to_string()]);
    }
    Ok(command.stdout(output).spawn()?)
}

/// Runs one phase as a process of its own.
pub(crate) fn run_phase(arguments: &Arguments, phase: Phase) -> Outcome<()> {
    let status = start(arguments, phase, Stdio::inherit())?.wait()?;
    if status.success() { Ok(()) } else { Err(format!("{phase:?} ended with {status}").into()) }
}

/// Starts a phase and waits for its line.
fn start_until_ready(arguments: &Arguments, phase: Phase) -> Outcome<(Child, Duration, String)> {
    let started = Instant::now();
    let mut child = start(arguments, phase, Stdio::piped())?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let took = started.elapsed();
    match line.trim().strip_prefix(READY) {
        Some(rest) => Ok((child, took, rest.trim().to_owned())),
        None => {
            let status = child.wait()?;
            Err(format!("{phase:?} ended with {status} before it was ready").into())
        }
    }
}

/// Both restarts.
pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    println!("restarts");
    let mut verdicts = Verdicts::default();
    let mut judge = |what: &'static str| -> Outcome<()> {
        let (mut child, took, told) = start_until_ready(arguments, Phase::FirstAnswer)?;
        child.wait()?;
        let found = format!("{:.0} ms from the start of the process ({told})", took.as_secs_f64() * 1000.0);
        verdicts.judge(what, &found, "under 2 s", took < FIRST_ANSWER_WITHIN);
        Ok(())
    };
    judge("first answer after a clean stop")?;
    let (mut victim, _, told) = start_until_ready(arguments, Phase::Abide)?;
    // SIGKILL.
    victim.kill()?;
    victim.wait()?;
    println!("  killed while it wrote, {told}");
    judge("first answer after kill -9")?;
    verdicts.end()
}

fn say_ready(what: &str) -> Outcome<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{READY} {what}")?;
    Ok(output.flush()?)
}

/// Opens and answers one get.
pub(crate) async fn first_answer(arguments: Arguments) -> Outcome<()> {
    let started = Instant::now();
    let engine = Engine::open(&arguments, settings(&arguments)?).await?;
    let opened = started.elapsed();
    let found = engine.partitions.get(TABLE, &key(0, arguments.partitions)).await?;
    if found.is_none_or(|row| row.value != value(0)) {
        return Err("the first entity is not there".into());
    }
    say_ready(&format!("opened in {:.0} ms", opened.as_secs_f64() * 1000.0))?;
    engine.close().await;
    Ok(())
}

/// Opens and writes on and on; its parent kills it.
pub(crate) async fn abide(arguments: Arguments) -> Outcome<()> {
    let engine = Engine::open(&arguments, settings(&arguments)?).await?;
    let next = Arc::new(AtomicU64::new(arguments.entities));
    let enough = arguments.entities + WRITTEN_BEFORE_KILL.min(arguments.entities);
    let partitions = engine.partitions.clone();
    engine
        .gather(arguments.writers, |_| {
            let (partitions, next) = (partitions.clone(), next.clone());
            async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let insert = Insert { key: key(number, arguments.partitions), value: value(number) };
                    partitions.execute(insert).await?;
                    if number == enough {
                        say_ready(&format!("after {} more entities", number - arguments.entities))?;
                    }
                }
            }
        })
        .await
        .map(|_: Vec<()>| ())
}
