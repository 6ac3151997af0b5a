//! Damages data folders and judges what the server then answers, as users see it: every answer is right or an
//! error, no older value, no silent loss, no refused start; after a repair nothing is lost that it does not
//! list.
//!
//! The folders are built once for each kind of stop, with a model of what each key must hold; every trial
//! gets a copy with one damage, chosen by the seed. What always holds: `--seed` and `--trial` on the same
//! folders give the same damage.

mod build;
mod clients;
mod harm;
mod image;
mod model;
mod reading;
mod repair;
mod summary;
mod trial;

use crate::{Outcome, workspace};
use build::{STOPS, Stop};
use harm::Class;
use image::Image;
use model::Model;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use trial::{Bench, Built, Report, TrialId};

const MODEL_FILE: &str = "model.json";
/// Trials between two lines about how far it is.
const PROGRESS_EVERY: usize = 50;

/// Which trials there are.
#[derive(clap::Args)]
struct TrialArguments {
    /// Trials with one flipped bit: half anywhere, a quarter in the heads of files, a quarter in what all
    /// ranges share, half of that in the last records of its logs.
    #[arg(long, default_value_t = 400)]
    flips: usize,
    /// Trials with one flipped bit in the start of one of the journal's newest records.
    #[arg(long, default_value_t = 60)]
    tails: usize,
    /// Trials with one zeroed sector of 512 or 4096 bytes.
    #[arg(long, default_value_t = 100)]
    sectors: usize,
    /// Trials with one file cut, deleted, swapped with another, or with 64 KiB of it zeroed.
    #[arg(long, default_value_t = 200)]
    files: usize,
    /// Trials without damage for each kind of stop: their logs must have no warning.
    #[arg(long, default_value_t = 20)]
    controls: usize,
    /// Only trials of one class.
    #[arg(long, value_enum)]
    only: Option<Class>,
    /// One trial alone, such as flip-17. Needs the seed and, for the same bytes, the folders of the run that
    /// had it.
    #[arg(long)]
    trial: Option<TrialId>,
}

impl TrialArguments {
    /// The undamaged ones first.
    fn chosen(&self) -> Vec<TrialId> {
        if let Some(trial) = self.trial {
            return vec![trial];
        }
        let counts = [
            (Class::Control, self.controls * STOPS.len()),
            (Class::Flip, self.flips),
            (Class::Tail, self.tails),
            (Class::Sector, self.sectors),
            (Class::File, self.files),
        ];
        let wanted = counts.into_iter().filter(|(class, _)| self.only.is_none_or(|only| only == *class));
        wanted.flat_map(|(class, count)| (0..count).map(move |number| TrialId { class, number })).collect()
    }
}

#[derive(clap::Args)]
pub(crate) struct DamageArguments {
    /// Seed of the folders' contents and of the damages; else a new one, printed.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    trials: TrialArguments,
    /// Whether each trial ends with `larimar repair --apply`, `larimar check` and another reading.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    repair: bool,
    /// Folder for the damaged folders of failing trials, with the server's log and all that was found.
    #[arg(long)]
    keep_failures: Option<PathBuf>,
    /// Where the undamaged folders are, or are built if they are not there; else new ones, kept after a
    /// failure.
    #[arg(long)]
    folders: Option<PathBuf>,
    /// Folder for the damaged copies; else one on the checkout's disk. In memory trials are faster, and prove
    /// the same.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Trials at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Bytes of the largest blobs.
    #[arg(long, default_value_t = 2 << 20)]
    large_blob_bytes_max: u64,
    /// The server to try; else this checkout's, built now.
    #[arg(long, visible_alias = "server")]
    bin: Option<PathBuf>,
}

pub(crate) fn run(arguments: &DamageArguments) -> Outcome<()> {
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    let scratch = workspace::Scratch::create("damage")?;
    let folders = arguments.folders.clone().unwrap_or_else(|| scratch.path().join("folders"));
    println!("damage: seed {seed}, folders in {}", folders.display());
    let mut built = Vec::new();
    for stop in STOPS {
        built.push(open_or_build(&binary, &folders.join(stop.folder()), stop, arguments, seed)?);
    }
    let repairs = arguments.repair && repair::is_known(&binary);
    if arguments.repair && !repairs {
        println!("damage: this server has no repair, so that is not tried");
    }
    let copies = match &arguments.scratch {
        Some(folder) => folder.join(format!("damage-{}", std::process::id())),
        None => scratch.path().join("trials"),
    };
    let bench = Bench {
        binary: &binary,
        scratch: &copies,
        built: &built,
        seed,
        repairs,
        keep_failures: arguments.keep_failures.as_deref(),
    };
    let outcome = run_trials(&bench, &arguments.trials.chosen(), arguments.jobs);
    if copies.exists() {
        std::fs::remove_dir_all(&copies)?;
    }
    let reports = outcome?;
    let folders_text = folders.display();
    let failed =
        summary::print(&reports, &format!("cargo xtask damage --seed {seed} --folders {folders_text}"));
    if failed == 0 {
        println!("damage: {} trials fine; seed {seed}", reports.len());
        return Ok(());
    }
    if arguments.folders.is_none() {
        scratch.keep();
    }
    Err(format!("{failed} trials failed; seed {seed}, folders in {folders_text}").into())
}

fn open_or_build(
    binary: &Path,
    folder: &Path,
    stop: Stop,
    arguments: &DamageArguments,
    seed: u64,
) -> Outcome<Built> {
    let (data, model_file) = (folder.join("data"), folder.join(MODEL_FILE));
    let started_at = Instant::now();
    let model = if model_file.exists() {
        Model::parse(&serde_json::from_slice(&std::fs::read(&model_file)?)?)?
    } else {
        std::fs::create_dir_all(folder)?;
        let model = build::build(binary, &data, stop, arguments.large_blob_bytes_max, seed)?;
        // Last: a folder without it was not finished.
        std::fs::write(&model_file, model.to_json().to_string())?;
        model
    };
    if !build::is_worn(&model) {
        return Err(format!("{}: some key was not overwritten twice", folder.display()).into());
    }
    let image = Image::read(&data)?;
    println!(
        "{}: {} keys, {} files, {} MiB used; {:.1} s",
        stop.name(),
        model.keys.len(),
        image.files.len(),
        image.used_bytes() >> 20,
        started_at.elapsed().as_secs_f64()
    );
    Ok(Built { stop, image, model })
}

/// Runs them, several at a time; the reports are in their order.
fn run_trials(bench: &Bench<'_>, trials: &[TrialId], jobs: usize) -> Outcome<Vec<Report>> {
    let (next, started_at) = (AtomicUsize::new(0), Instant::now());
    let reports: Mutex<Vec<(usize, Report)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || -> Outcome<()> {
            loop {
                let index = next.fetch_add(1, Ordering::SeqCst);
                let Some(trial) = trials.get(index) else { return Ok(()) };
                let report = bench.run(*trial).map_err(|error| format!("{trial}: {error}"))?;
                let mut reports = reports.lock().expect("no panic");
                reports.push((index, report));
                if reports.len().is_multiple_of(PROGRESS_EVERY) {
                    let failed = reports.iter().filter(|(_, report)| !report.failures.is_empty()).count();
                    let seconds = started_at.elapsed().as_secs_f64();
                    println!("{} trials of {}, {failed} failed; {seconds:.0} s", reports.len(), trials.len());
                }
            }
        };
        let running: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("a trial panicked"))
    })?;
    let mut reports = reports.into_inner().expect("no panic");
    reports.sort_by_key(|(index, _)| *index);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}
