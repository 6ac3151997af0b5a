//! Everything a change must pass, in one command that also does the set-up: cheap checks first, then the
//! server's own tests, then the release binary under official clients and under `kill -9`.
//!
//! The first failing step ends the run. What the set-up installs goes under the target folder and into
//! `clients/javascript/node_modules`; a second run reuses it while the pinned lists are unchanged.

mod boundaries;
pub(crate) mod etcd;
mod examples;
mod lanes;
pub(crate) mod postgres;
mod stress_page;

use crate::programs::finish;
use crate::{Outcome, alerts, bench, kill9, model, shard, simulation, stamp, tidy, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Only these steps, in their usual order: format, tidy, lints, crates, histories, model, build,
    /// python, javascript, rust, boundaries, examples, stress-page, alerts, shard, kill9, kill9-queues,
    /// kill9-blobs, stamp, stamp-migrate, bench. Those from python to kill9-blobs run side by side.
    steps: Vec<String>,
    /// Seeded histories on the simulated disk.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Rounds of kill -9.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

type Step<'a> = (&'static str, Box<dyn Fn() -> Outcome<()> + 'a>);

/// What runs side by side, balanced by how long it takes. Steps that set up the same clients, or measure
/// how fast a server is back, share a lane.
const LANES: [&[&str]; 3] = [
    &["python", "javascript", "boundaries", "examples"],
    &["rust", "stress-page", "alerts", "kill9", "kill9-queues", "kill9-blobs"],
    &["shard"],
];

pub(crate) fn run(arguments: &TestArguments) -> Outcome<()> {
    // Now: a build may put another file at its place.
    let program = std::env::current_exe()?;
    let root = workspace::root()?;
    let binary = workspace::target()?.join("release").join("larimar");
    let mut all = steps(arguments, &root, &binary);
    if let Some(unknown) = arguments.steps.iter().find(|asked| !all.iter().any(|(name, _)| name == asked)) {
        return Err(format!("there is no step {unknown}; see --help").into());
    }
    if !arguments.steps.is_empty() {
        all.retain(|(name, _)| arguments.steps.iter().any(|asked| asked == name));
    }
    // A lane's own process has one step.
    if all.len() == 1 {
        return run_in_order(all);
    }
    let lanes = LANES.map(|lane| -> Vec<&str> {
        lane.iter().copied().filter(|step| all.iter().any(|(name, _)| name == step)).collect()
    });
    let is_in_a_lane = |name: &str| LANES.iter().any(|lane| lane.contains(&name));
    if let Some(first) = all.iter().position(|(name, _)| is_in_a_lane(name)) {
        all.retain(|(name, _)| !is_in_a_lane(name));
        all.insert(first, ("lanes", Box::new(move || lanes::run(&program, &lanes, arguments))));
    }
    run_in_order(all)
}

fn run_in_order(steps: Vec<Step<'_>>) -> Outcome<()> {
    let step_count = steps.len();
    for (index, (name, step)) in steps.into_iter().enumerate() {
        println!("\n=== step {} of {step_count}: {name}", index + 1);
        let started_at = Instant::now();
        if let Err(error) = step() {
            println!("=== {name}: {error}");
            println!("\nsteps: {index} passed, 1 failed");
            return Err(format!("step failed: {name}").into());
        }
        println!("=== {name}: fine after {:.0} s", started_at.elapsed().as_secs_f64());
    }
    println!("\nsteps: {step_count} passed, 0 failed");
    Ok(())
}

fn steps<'a>(arguments: &'a TestArguments, root: &'a Path, binary: &'a Path) -> Vec<Step<'a>> {
    vec![
        ("format", Box::new(|| finish(workspace::cargo()?.args(["fmt", "--all", "--check"])))),
        ("tidy", Box::new(|| tidy::run(&tidy::TidyArguments::default()))),
        ("lints", Box::new(lint)),
        ("crates", Box::new(test_crates)),
        (
            "histories",
            Box::new(|| {
                simulation::run(&simulation::SimulationArguments { part: None, seeds: arguments.seeds })
            }),
        ),
        ("model", Box::new(|| model::run(&model::ModelArguments::short()))),
        ("build", Box::new(|| workspace::server_binary(None).map(drop))),
        ("python", Box::new(|| test_python(root, binary))),
        ("javascript", Box::new(|| test_javascript(root, binary))),
        ("rust", Box::new(|| test_rust(root, binary))),
        ("boundaries", Box::new(|| test_boundaries(root, binary))),
        ("examples", Box::new(|| test_examples(root, binary))),
        ("stress-page", Box::new(|| stress_page::run(binary))),
        ("alerts", Box::new(|| alerts::run_short(root, binary))),
        ("shard", Box::new(shard::run_short)),
        ("kill9", Box::new(|| kill9::run(&short_kill_run(arguments, binary)))),
        (
            "kill9-queues",
            Box::new(|| kill9::queues::run(&kill9::queues::QueueKillArguments::short(binary.to_path_buf()))),
        ),
        (
            "kill9-blobs",
            Box::new(|| kill9::blobs::run(&kill9::blobs::BlobKillArguments::short(binary.to_path_buf()))),
        ),
        ("stamp", Box::new(|| stamp::run_short(binary))),
        ("stamp-migrate", Box::new(|| stamp::run_short_migration(binary))),
        ("bench", Box::new(|| bench::smoke(binary))),
    ]
}

/// Everything with all features, and the program as it is built without any.
fn lint() -> Outcome<()> {
    let all = ["--workspace", "--all-targets", "--features", ALL_FEATURES];
    for chosen in [&all[..], &["--package", "larimar"]] {
        let mut clippy = workspace::cargo()?;
        finish(clippy.args(["clippy", "--quiet"]).args(chosen).args(["--", "--deny", "warnings"]))?;
    }
    Ok(())
}

/// What the default build leaves out is in the tests.
const ALL_FEATURES: &str = "larimar/full";

/// Fewer than the release build runs in its own step: here they run with debug assertions, and slowly.
const DEBUG_SEED_COUNT: &str = "40";

/// With Postgres and etcd for the tests that start them, and with nextest where it is installed, else with
/// cargo's own runner.
fn test_crates() -> Outcome<()> {
    postgres::set_up()?;
    etcd::set_up()?;
    let has_nextest = Command::new("cargo-nextest").args(["nextest", "--version"]).output().is_ok();
    let arguments: &[&str] = if has_nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--all-targets"]
    };
    let mut tests = workspace::cargo()?;
    tests.args(arguments).args(["--features", ALL_FEATURES]);
    finish(tests.env("LARIMAR_SIM_SEEDS", DEBUG_SEED_COUNT))
}

fn python_environment() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("python-clients"))
}

/// Python with what the clients' tests need.
pub(crate) fn python(root: &Path) -> Outcome<PathBuf> {
    set_up_python(root)?;
    Ok(python_environment()?.join("bin/python"))
}

fn set_up_python(root: &Path) -> Outcome<()> {
    let environment = python_environment()?;
    let list = std::fs::read_to_string(root.join("clients/python/requirements.txt"))?;
    let installed = environment.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    finish(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let mut install = Command::new(environment.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    finish(install.arg(root.join("clients/python/requirements.txt")))?;
    Ok(std::fs::write(installed, list)?)
}

/// Files of Parquet are of a program that has the feature.
fn test_python(root: &Path, binary: &Path) -> Outcome<()> {
    let full_binary = workspace::full_binary()?;
    finish(pytest(root, binary)?.env("LARIMAR_FULL_BIN", full_binary))
}

/// The Python clients' tests of this server, ready to run.
pub(crate) fn pytest(root: &Path, binary: &Path) -> Outcome<Command> {
    let mut pytest = Command::new(python(root)?);
    pytest.args(["-m", "pytest", "--quiet"]);
    pytest.current_dir(root.join("clients/python")).env("LARIMAR_BIN", binary);
    Ok(pytest)
}

fn set_up_javascript(root: &Path) -> Outcome<()> {
    let folder = root.join("clients/javascript");
    let list = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let installed = folder.join("node_modules/.installed-from.json");
    if std::fs::read_to_string(&installed).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    finish(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    Ok(std::fs::write(installed, list)?)
}

fn test_javascript(root: &Path, binary: &Path) -> Outcome<()> {
    set_up_javascript(root)?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter", "spec"]);
    finish(node.current_dir(root.join("clients/javascript")).env("LARIMAR_BIN", binary))
}

/// In a target folder of its own: it shares no crate with the server.
fn test_rust(root: &Path, binary: &Path) -> Outcome<()> {
    let mut cargo = workspace::cargo()?;
    cargo.args(["test", "--quiet", "--locked", "--manifest-path"]).arg(root.join("clients/rust/Cargo.toml"));
    cargo.arg("--target-dir").arg(workspace::target()?.join("rust-client"));
    finish(cargo.env("LARIMAR_BIN", binary))
}

/// With the clients of the other steps.
fn test_boundaries(root: &Path, binary: &Path) -> Outcome<()> {
    set_up_javascript(root)?;
    boundaries::run(root, binary, &python(root)?)
}

/// With the clients of the other steps.
fn test_examples(root: &Path, binary: &Path) -> Outcome<()> {
    set_up_javascript(root)?;
    examples::run(binary, &python(root)?)
}

fn short_kill_run(arguments: &TestArguments, binary: &Path) -> kill9::KillArguments {
    kill9::KillArguments {
        rounds: arguments.rounds,
        writers: 64,
        seed: None,
        bin: Some(binary.to_path_buf()),
        // How fast it is back is measured by `kill9` itself; here only what is there counts.
        ready_ms_max: 10_000,
    }
}
