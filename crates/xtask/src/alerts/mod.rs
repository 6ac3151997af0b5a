//! Alerts that fire: each fault is made against a server that Debian's Prometheus scrapes, with the rules of
//! `deploy/prometheus/alerts.yml`, whose patience is taken from them.
//!
//! What always holds: what is started here is ended here, and a server without a fault fires nothing.

mod disk_fault;
mod faults;
mod load;
mod newcomer;
mod prometheus;
mod rules;
mod watched;

use crate::{Outcome, full_disk, workspace};
use faults::{FAULTS, Fault, NEWCOMER};
use std::path::{Path, PathBuf};
use std::time::Instant;
use watched::Stage;

#[derive(clap::Args)]
pub(crate) struct AlertArguments {
    /// Only faults whose name, or one of whose alerts, has this in it.
    #[arg(long)]
    only: Option<String>,
    /// The server; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Prints the faults and their alerts and ends.
    #[arg(long)]
    list: bool,
    /// Keeps the folders of faults that fail, with all logs.
    #[arg(long)]
    keep: bool,
}

impl AlertArguments {
    fn chooses(&self, fault: &Fault) -> bool {
        let has = |only: &String| {
            fault.name.contains(only.as_str())
                || fault.alerts.iter().any(|alert| alert.contains(only.as_str()))
        };
        self.only.as_ref().is_none_or(has)
    }
}

pub(crate) fn run(arguments: &AlertArguments) -> Outcome<()> {
    let chosen: Vec<Fault> =
        FAULTS.into_iter().chain([NEWCOMER]).filter(|fault| arguments.chooses(fault)).collect();
    if arguments.list {
        chosen.iter().for_each(|fault| println!("{}: {}", fault.name, fault.alerts.join(", ")));
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("alerts makes a loop device and faults of the disk, which needs root".into());
    }
    let Ok(outside) = std::env::var(full_disk::INSIDE_VARIABLE) else { return full_disk::run_inside() };
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    disk_fault::set_up()?;
    let scratch = workspace::Scratch::create(&format!("alerts-{outside}"))?;
    let failed = make(&chosen, &workspace::root()?, binary, scratch.path());
    if arguments.keep && failed.is_err() {
        println!("kept in {}", scratch.keep().display());
    }
    failed
}

/// The short form: what `promtool` accepts, and the faults that need neither root nor much time.
pub(crate) fn run_short(root: &Path, binary: &Path) -> Outcome<()> {
    let chosen: Vec<Fault> = FAULTS.into_iter().filter(|fault| fault.is_short).collect();
    let scratch = workspace::Scratch::create("alerts")?;
    make(&chosen, root, binary.to_path_buf(), scratch.path())
}

fn make(chosen: &[Fault], root: &Path, binary: PathBuf, scratch: &Path) -> Outcome<()> {
    check_texts(root)?;
    prometheus::set_up()?;
    prometheus::check_files(root, scratch)?;
    let rules = std::fs::read_to_string(root.join("deploy/prometheus/alerts.yml"))?;
    let stage = Stage { binary, rules: rules::shortened(&rules) };
    let mut failed = Vec::new();
    for (index, fault) in chosen.iter().enumerate() {
        let (folder, began_at) = (scratch.join(index.to_string()), Instant::now());
        std::fs::create_dir_all(&folder)?;
        let outcome = fault.make(&stage, &folder);
        let took = began_at.elapsed().as_secs_f64();
        match outcome {
            Ok(firing) => println!("{}: {} fired, {took:.0} s in all", fault.name, firing.join(", ")),
            Err(error) => {
                println!("FAILED {}: {error}", fault.name);
                failed.push(fault.name);
            }
        }
    }
    match failed.len() {
        0 => Ok(()),
        count => Err(format!("{count} of {} faults: {}", chosen.len(), failed.join(", ")).into()),
    }
}

/// Rules, runbook, dashboard and the reference of metrics fit together.
fn check_texts(root: &Path) -> Outcome<()> {
    let text = |file: &str| std::fs::read_to_string(root.join(file));
    let (rules, runbook) = (text("deploy/prometheus/alerts.yml")?, text("docs/runbook.md")?);
    let mut wrong = rules::disagreements(&rules, &runbook);
    let documented = rules::documented_families(&text("docs/metrics.md")?);
    let named = rules::families(&(rules + &runbook + &text("deploy/grafana/larimar.json")?));
    wrong.extend(named.difference(&documented).map(|family| format!("there is no metric {family}")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}
