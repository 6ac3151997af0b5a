//! Steps side by side: most of what follows the builds waits for servers, timers and clients, so one step
//! after another leaves the processors idle.
//!
//! Each step is a process of its own, `xtask test STEP`, whose output is kept in a file and printed whole
//! when it ends. What always holds: steps of one lane run in their order, and never two at once; after a
//! failure no further step begins, and those that run are waited for.

use super::TestArguments;
use crate::{Outcome, workspace};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the lanes at the same time with `program`, which is this one; the error names the steps that failed.
/// A lane is steps that may run beside those of the others, in the order in which they run.
pub(super) fn run(program: &Path, lanes: &[Vec<&str>], arguments: &TestArguments) -> Outcome<()> {
    let logs = workspace::Scratch::create("suite")?;
    let work = Lanes {
        program,
        arguments,
        logs: logs.path(),
        printing: Mutex::new(()),
        has_failed: AtomicBool::new(false),
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| work.run_lane(lane))).collect();
        let ended =
            running.into_iter().map(|lane| lane.join().unwrap_or_else(|_| Some("a panic".to_owned())));
        ended.flatten().collect()
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

struct Lanes<'a> {
    program: &'a Path,
    arguments: &'a TestArguments,
    logs: &'a Path,
    /// Held while the output of a step is printed, so that outputs do not mix.
    printing: Mutex<()>,
    has_failed: AtomicBool,
}

impl Lanes<'_> {
    /// The step that failed, if one did.
    fn run_lane(&self, lane: &[&str]) -> Option<String> {
        for step in lane {
            if self.has_failed.load(Ordering::Relaxed) {
                return None;
            }
            println!("=== {step}: begins, beside others");
            match self.run_step(step) {
                Ok(true) => {}
                Ok(false) => return Some(self.fail((*step).to_owned())),
                Err(error) => return Some(self.fail(format!("{step} ({error})"))),
            }
        }
        None
    }

    fn fail(&self, what: String) -> String {
        self.has_failed.store(true, Ordering::Relaxed);
        what
    }

    /// Whether the step passed; what it printed is printed in either case.
    fn run_step(&self, step: &str) -> std::io::Result<bool> {
        let path = self.logs.join(format!("{step}.log"));
        let log = File::create(&path)?;
        let mut command = Command::new(self.program);
        command.args(["test", step, "--rounds", &self.arguments.rounds.to_string()]);
        command.args(["--seeds", &self.arguments.seeds.to_string()]);
        let status = command.stderr(log.try_clone()?).stdout(log).status()?;
        let _one_at_a_time = self.printing.lock();
        std::io::copy(&mut File::open(&path)?, &mut std::io::stdout())?;
        Ok(status.success())
    }
}
