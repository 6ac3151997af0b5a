//! What a repair does and what is lost, as it is shown and kept: as text for people and as JSON for programs.
//!
//! What always holds: a plan comes back from its JSON, so that a later run can tell what an earlier one has
//! lost.

mod json;

use crate::places::{ContainerNames, Place, PlaceRange, Service};
use base::ByteSize;
use partition::{FolderRepair, LossOutcome, LostKeys, RowLoss};
use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;

/// Losses that are printed at most; files list all of them.
const LOSSES_PRINTED_MAX: usize = 1000;

/// Rows that are lost or may be, in the words of who has stored them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) lost: Lost,
    pub(crate) outcome: LossOutcome,
    pub(crate) reason: String,
}

/// Which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// These.
    Named(Place),
    /// Objects between two keys: nobody knows their names, or whether there were any.
    Unnamed(Box<PlaceRange>),
}

/// A repair, planned or done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) folder: String,
    /// It was carried out.
    pub(crate) is_applied: bool,
    /// The run came to its end.
    pub(crate) is_finished: bool,
    /// Bytes that must be free, those of what is kept aside included.
    pub(crate) needed_bytes: u64,
    pub(crate) actions: Vec<String>,
    /// Those of earlier runs that were broken off included.
    pub(crate) losses: Vec<Loss>,
    /// Folders of earlier runs that were broken off.
    pub(crate) unfinished_runs: Vec<String>,
    /// What is still damaged afterwards.
    pub(crate) still_damaged: Vec<String>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.losses.is_empty() && self.unfinished_runs.is_empty()
    }

    /// Takes in what the core says.
    pub(crate) fn put(&mut self, repair: &FolderRepair, names: &ContainerNames) {
        self.actions.clone_from(&repair.actions);
        self.losses.clear();
        self.add_losses(repair.losses.iter().map(|loss| loss_of(loss, names)));
    }

    /// Takes in what an earlier run, which was broken off, may have lost.
    pub(crate) fn add_unfinished(&mut self, run: &str, losses: &[Loss]) {
        self.unfinished_runs.push(run.to_owned());
        self.add_losses(losses.iter().cloned());
    }

    /// Adds losses that are not told yet: several rows may be those of one blob.
    pub(crate) fn add_losses(&mut self, losses: impl IntoIterator<Item = Loss>) {
        let mut told: BTreeSet<String> = self.losses.iter().map(Loss::to_string).collect();
        self.losses.extend(losses.into_iter().filter(|loss| told.insert(loss.to_string())));
    }

    /// As text, with all losses or as many as people read.
    pub(crate) fn text(&self, with_all_losses: bool) -> String {
        let mut text = String::new();
        let (folder, does) = (&self.folder, if self.is_applied { "was done" } else { "is to be done" });
        for run in &self.unfinished_runs {
            put(
                &mut text,
                format_args!(
                    "{folder}: the repair of {run} was broken off; what it may have lost is listed again here"
                ),
            );
        }
        if self.actions.is_empty() {
            put(&mut text, format_args!("{folder}: nothing {does}"));
        } else {
            put(&mut text, format_args!("{folder}: what {does}:"));
            self.actions.iter().for_each(|action| put(&mut text, format_args!("  {action}")));
        }
        if self.losses.is_empty() {
            put(&mut text, format_args!("{folder}: nothing is lost"));
        } else {
            put(&mut text, format_args!("{folder}: what is lost, or may be:"));
        }
        let told = if with_all_losses { self.losses.len() } else { LOSSES_PRINTED_MAX };
        self.losses.iter().take(told).for_each(|loss| put(&mut text, format_args!("  {loss}")));
        if self.losses.len() > told {
            let more = self.losses.len() - told;
            put(&mut text, format_args!("  and {more} more; --json FILE lists all of them"));
        }
        if !self.is_applied && !self.is_empty() {
            let needed = ByteSize(self.needed_bytes);
            put(&mut text, format_args!("{folder}: {needed} must be free for it"));
        }
        if !self.still_damaged.is_empty() {
            put(
                &mut text,
                format_args!("{folder}: what no repair can mend (restore the folder from a backup):"),
            );
            self.still_damaged.iter().for_each(|place| put(&mut text, format_args!("  {place}")));
        }
        text
    }
}

fn put(text: &mut String, line: fmt::Arguments<'_>) {
    // A text takes everything.
    let _ = writeln!(text, "{line}");
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { lost, outcome, reason } = self;
        write!(f, "{}: ", outcome.name())?;
        match lost {
            Lost::Named(place) => write!(f, "{place}")?,
            Lost::Unnamed(range) => write!(f, "any {range}")?,
        }
        write!(f, " ({reason})")
    }
}

/// A loss in the words of who has stored the rows.
fn loss_of(loss: &RowLoss, names: &ContainerNames) -> Loss {
    // A key that does not read leads to no more than a service.
    let somewhere = || Place { service: Service::of_table(loss.table), ..Place::default() };
    let lost = match &loss.keys {
        LostKeys::Row(key) => Lost::Named(names.of_row(loss.table, key).unwrap_or_else(somewhere)),
        LostKeys::PartitionName(key) => {
            Lost::Named(names.of_partition_name(loss.table, key).unwrap_or_else(somewhere))
        }
        LostKeys::Unknown(keys) => Lost::Unnamed(Box::new(names.of_range(loss.table, keys))),
    };
    Loss { lost, outcome: loss.outcome, reason: loss.reason.clone() }
}

#[cfg(test)]
mod tests;
