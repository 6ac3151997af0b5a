//! `larimar stamp restore-metadata`: rebuilds a lost etcd from the object store.

use crate::Failure;
use crate::arguments::stamp_command_arguments::StampRestoreArguments;
use crate::operate::words::lines;
use crate::stamp_commands::opened::{OpenedStamp, failed};
use crate::stamp_commands::print_value;
use serde_json::{Value, json};
use stamp_streams::{RestoreReport, RestoreStep, StampError, StampSettings, restore_in_steps};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Restores, and prints what was made.
pub(super) async fn restore(
    stamp: &OpenedStamp,
    arguments: &StampRestoreArguments,
) -> Result<ExitCode, Failure> {
    let name = &stamp.name;
    let is_quiet = arguments.quiet;
    let note = |step: RestoreStep| {
        if !is_quiet {
            let _ = writeln!(std::io::stderr(), "{}", words(step));
        }
    };
    // For how long the lost etcd has been silent nobody knows here.
    let mut surroundings = stamp.surroundings().clone();
    if let Some(seconds) = arguments.longest_lease {
        let settings =
            StampSettings { ttl: Duration::from_secs(seconds), ..(*surroundings.settings).clone() };
        surroundings.settings = Arc::new(settings);
    }
    let restored = restore_in_steps(&surroundings, arguments.all_stopped, Duration::ZERO, &note).await;
    match restored {
        Ok(report) => Ok(print_value(&facts(name, &report), arguments.json, |facts| lines(facts, ""))),
        Err(StampError::Raced(_)) => Err(Failure::of_words(format!(
            "etcd has stamp {name}: restore-metadata is for one that has lost it"
        ))),
        Err(error) => {
            Err(failed(format!("stamp {name} is not restored: {error}; nothing is in force, try again")))
        }
    }
}

fn words(step: RestoreStep) -> String {
    match step {
        RestoreStep::Waits(wait) => format!(
            "waiting {} s (lease time and margin), so that no process of the time before can write any more; \
             --all-stopped skips that",
            wait.as_secs_f64().ceil()
        ),
        RestoreStep::HasBackup(revision) => format!("read the backup of revision {}", revision.0),
        RestoreStep::HasExtents(count) => format!("read the first headers of {count} extents"),
        RestoreStep::HasRanges(done, all) => format!("sealed and recorded {done} of {all} ranges"),
    }
}

fn facts(name: &str, report: &RestoreReport) -> Value {
    let epochs: Vec<Value> = report
        .epochs
        .iter()
        .map(|(range, epoch)| json!({ "range": range.to_string(), "epoch": epoch.0 }))
        .collect();
    json!({
        "stamp": name,
        "generation": report.life.generation.to_string(),
        "restores": report.restores,
        "backup_revision": report.backup.0,
        "ranges": report.epochs.len(),
        "extents": report.extents,
        "younger_extents": report.younger_extents,
        "epochs": epochs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_why_it_waits() {
        let waits = words(RestoreStep::Waits(Duration::from_millis(10_500)));
        assert!(waits.contains("11 s") && waits.contains("--all-stopped"), "{waits}");
        assert_eq!(words(RestoreStep::HasRanges(1, 2)), "sealed and recorded 1 of 2 ranges");
    }
}
