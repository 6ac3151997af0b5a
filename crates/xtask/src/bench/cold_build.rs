//! What a newcomer's first build costs: the release build in an empty target folder, in seconds of processor
//! time, and what the packages take that take most.
//!
//! Cargo runs each compiler through this program ([`run_compiler`]), which notes the time that the
//! compiler took. What is left of the whole is cargo itself and build scripts, C compilers included.
//! Processor time is that of a process and of all that it has waited for, as the kernel counts it in clock
//! ticks.

use crate::{Outcome, workspace};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Names the file that compilers' times go to. If it is set, this program is run as a compiler.
pub(crate) const LOG_VARIABLE: &str = "XTASK_COMPILER_LOG";

/// The standing budget of the project, in seconds of processor time: at first, and for all that is planned.
const CPU_SECONDS_MAX: f64 = 240.0;
const CPU_SECONDS_MAX_OF_ALL: f64 = 300.0;
/// Packages that are what they were when the budget was set, and the seconds that they took then, on that
/// machine and at a higher level of optimization: how much slower this machine is today is at least what
/// they take more.
const YARDSTICKS: [(&str, f64); 2] = [("rustls", 11.0), ("tokio", 7.0)];
/// Linux counts the time of processes in so many ticks a second, on every machine (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(clap::Args)]
pub(crate) struct ColdBuildArguments {
    /// Builds; the figure is the median.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Packages that are listed, those that cost most.
    #[arg(long, default_value_t = 10)]
    listed: usize,
    /// Fail if the figure is above so many seconds of processor time.
    #[arg(long)]
    cpu_seconds_max: Option<f64>,
}

pub(crate) fn run(arguments: &ColdBuildArguments) -> Outcome<()> {
    // What has to be fetched is no part of the figure.
    let fetched = workspace::cargo()?.args(["fetch", "--locked"]).status()?;
    if !fetched.success() {
        return Err("the dependencies can't be fetched".into());
    }
    let (mut totals, mut scaled) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds.max(1) {
        let scratch = workspace::Scratch::create("cold-build")?;
        let log = scratch.path().join("compilers");
        let before = waited_for_seconds()?;
        let started_at = Instant::now();
        let status = workspace::cargo()?
            .args(["build", "--release", "--locked", "--package", "larimar", "--target-dir"])
            .arg(scratch.path().join("target"))
            .env("RUSTC_WRAPPER", std::env::current_exe()?)
            .env(LOG_VARIABLE, &log)
            .status()?;
        if !status.success() {
            return Err("the server does not build".into());
        }
        let cpu_seconds = waited_for_seconds()? - before;
        println!(
            "build {}: {cpu_seconds:.0} s of processor time, {:.0} s, {} cores",
            round + 1,
            started_at.elapsed().as_secs_f64(),
            std::thread::available_parallelism()?,
        );
        let seconds_of = read_packages(&log)?;
        print_packages(&seconds_of, cpu_seconds, arguments.listed);
        totals.push(cpu_seconds);
        scaled.extend(slowness(&seconds_of).map(|slowness| cpu_seconds / slowness));
    }
    let cpu_seconds = super::median(&totals);
    println!("\ncold release build: {cpu_seconds:.0} CPU seconds");
    if scaled.len() == totals.len() {
        println!(
            "at the speed of the machine that the budget was set on, by {}: {:.0} CPU seconds \
             ({CPU_SECONDS_MAX:.0}, and {CPU_SECONDS_MAX_OF_ALL:.0} with all that is planned)",
            YARDSTICKS.map(|(package, _)| package).join(" and "),
            super::median(&scaled)
        );
    }
    match arguments.cpu_seconds_max {
        Some(max) if cpu_seconds > max => Err(format!("above {max:.0} CPU seconds").into()),
        _ => Ok(()),
    }
}

/// How many times as long the yardsticks took as on the machine of the budget; none if they were not built.
fn slowness(seconds_of: &BTreeMap<String, f64>) -> Option<f64> {
    let found: Option<f64> = YARDSTICKS.iter().map(|(package, _)| seconds_of.get(*package)).sum();
    let then: f64 = YARDSTICKS.iter().map(|(_, seconds)| seconds).sum();
    Some(found? / then).filter(|slowness| *slowness > 0.0)
}

fn read_packages(log: &Path) -> Outcome<BTreeMap<String, f64>> {
    let mut seconds_of: BTreeMap<String, f64> = BTreeMap::new();
    for line in std::fs::read_to_string(log)?.lines() {
        let (seconds, package) = line.split_once(' ').ok_or("a line of the compilers' times is not whole")?;
        *seconds_of.entry(package.to_owned()).or_default() += seconds.parse::<f64>()?;
    }
    Ok(seconds_of)
}

fn print_packages(seconds_of: &BTreeMap<String, f64>, whole_seconds: f64, listed_count: usize) {
    let compiled_seconds: f64 = seconds_of.values().sum();
    let mut sorted: Vec<_> = seconds_of.iter().collect();
    sorted.sort_by(|one, other| other.1.total_cmp(one.1));
    println!("{} packages; the {listed_count} that cost most:", sorted.len());
    for (package, seconds) in sorted.iter().take(listed_count) {
        println!("{seconds:>8.1} s  {package}");
    }
    let rest: f64 = sorted.iter().skip(listed_count).map(|(_, seconds)| *seconds).sum();
    println!("{rest:>8.1} s  all others");
    println!("{:>8.1} s  cargo, build scripts and what these compile", whole_seconds - compiled_seconds);
}

/// Runs the compiler that cargo asks for, and appends the processor time that it took, and its package, to
/// `log`.
pub(crate) fn run_compiler(log: OsString) -> ExitCode {
    let run = || -> Outcome<bool> {
        let mut words = std::env::args_os().skip(1);
        let compiler = words.next().ok_or("no compiler to run")?;
        let status = Command::new(compiler).args(words).env_remove(LOG_VARIABLE).status()?;
        let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "asking the compiler".to_owned());
        let line = format!("{:.2} {package}\n", waited_for_seconds()?);
        // One write, so that lines of several compilers do not mix.
        std::fs::File::options().create(true).append(true).open(log)?.write_all(line.as_bytes())?;
        Ok(status.success())
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Processor time of the processes that this one has started and waited for, and of theirs.
fn waited_for_seconds() -> Outcome<f64> {
    waited_for_ticks(&std::fs::read_to_string("/proc/self/stat")?)
        .map(|ticks| ticks as f64 / TICKS_PER_SECOND)
        .ok_or_else(|| "/proc/self/stat is not understood".into())
}

/// Fields 16 and 17 of the line: user and system time of children (source: proc(5)). The second field is a
/// name in brackets, which may have anything in it.
fn waited_for_ticks(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ticks(16)? + ticks(17)?)
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, slowness, waited_for_ticks};

    #[test]
    fn a_machine_is_as_slow_as_its_yardsticks() {
        let of = |pairs: &[(&str, f64)]| -> BTreeMap<String, f64> {
            pairs.iter().map(|(package, seconds)| ((*package).to_owned(), *seconds)).collect()
        };
        assert_eq!(slowness(&of(&[("rustls", 22.0), ("tokio", 14.0), ("larimar", 9.0)])), Some(2.0));
        assert_eq!(slowness(&of(&[("rustls", 22.0)])), None);
    }

    #[test]
    fn time_of_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 130 14 20 0 1 0 5 6 7";
        assert_eq!(waited_for_ticks(stat), Some(144));
        assert_eq!(waited_for_ticks("7 (a"), None);
    }
}
