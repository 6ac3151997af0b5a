//! What the damage trials showed, as a table by what was done to the folder, and the failing ones one by one.

use super::harm::Class;
use super::model::Verdict;
use super::trial::{Repaired, Report};
use std::collections::BTreeMap;

const FAILURES_PRINTED_MAX: usize = 6;
const FAILURE_LENGTH_MAX: usize = 400;

/// A line of the table. It has as many fields as the table has columns, because each is one.
#[derive(Default)]
struct Row {
    trials: usize,
    all_right: usize,
    partly_loud: usize,
    loud_keys: usize,
    cut: usize,
    refused: usize,
    down: usize,
    wrong: usize,
    silent: usize,
    last: usize,
    unlogged: usize,
    refused_writes: usize,
    repaired: usize,
    listed_losses: usize,
    not_repaired: usize,
    failed: usize,
}

const HEADINGS: [&str; 16] = [
    "trials", "right", "loud", "keys", "cut", "refused", "down", "wrong", "silent", "last", "unlogged",
    "no write", "repaired", "losses", "not rep.", "FAILED",
];

impl Row {
    fn add(&mut self, report: &Report) {
        let count = |is: fn(&Verdict) -> bool| report.count(is);
        let loud_keys = report.reading.loud_keys().len();
        self.trials += 1;
        self.all_right += usize::from(report.is_all_right());
        self.partly_loud += usize::from(loud_keys > 0);
        self.loud_keys += loud_keys;
        self.cut += count(|verdict| matches!(verdict, Verdict::Cut(_)));
        self.refused += usize::from(report.is_refused);
        self.down += usize::from(count(|verdict| matches!(verdict, Verdict::Crash | Verdict::Hang)) > 0);
        self.wrong += count(|verdict| matches!(verdict, Verdict::Older | Verdict::Wrong(_)));
        self.silent += count(|verdict| matches!(verdict, Verdict::Missing | Verdict::Back));
        self.last += count(|verdict| *verdict == Verdict::LastMissing);
        self.unlogged += usize::from(report.is_unlogged);
        self.refused_writes += report.refused_writes;
        match report.repaired {
            Repaired::Skipped => {}
            Repaired::Whole { losses } => {
                self.repaired += 1;
                self.listed_losses += losses;
            }
            Repaired::Failed => self.not_repaired += 1,
        }
        self.failed += usize::from(!report.failures.is_empty());
    }

    fn cells(&self) -> [usize; 16] {
        [
            self.trials,
            self.all_right,
            self.partly_loud,
            self.loud_keys,
            self.cut,
            self.refused,
            self.down,
            self.wrong,
            self.silent,
            self.last,
            self.unlogged,
            self.refused_writes,
            self.repaired,
            self.listed_losses,
            self.not_repaired,
            self.failed,
        ]
    }
}

/// Prints it all; returns how many trials failed.
pub(crate) fn print(reports: &[Report], how_to_repeat: &str) -> usize {
    let failing: Vec<&Report> = reports.iter().filter(|report| !report.failures.is_empty()).collect();
    for report in &failing {
        println!("{} ({}; {}):", report.id, report.stop.name(), report.damage);
        for failure in report.failures.iter().take(FAILURES_PRINTED_MAX) {
            println!("    {}", shortened(&failure.replace('\n', " | ")));
        }
    }
    print!("{}", table(reports));
    println!(
        "right: every answer; loud: with errors of the server, about so many keys; cut: answers broken off;\n\
         down: crashed or hanging; wrong: answers older or never written; silent: answers that lack something or\n\
         bring it back; last: answers that lack a write of the last group; unlogged: no warning of damage that was hit"
    );
    if let Some(first) = failing.first() {
        println!(
            "{} of {} trials failed; again: {how_to_repeat} --trial {}",
            failing.len(),
            reports.len(),
            first.id
        );
    }
    failing.len()
}

/// The start and the end of a long text: a command's first words say what it did, its last ones why it
/// failed.
fn shortened(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= FAILURE_LENGTH_MAX {
        return text.to_owned();
    }
    let (start, end) = (FAILURE_LENGTH_MAX / 2, characters.len() - FAILURE_LENGTH_MAX / 2);
    characters[..start].iter().chain(&[' ', '…', ' ']).chain(&characters[end..]).collect()
}

fn row_name(report: &Report) -> &'static str {
    match report.id.class {
        Class::Tail => "newest records",
        _ => report.damage.row(),
    }
}

fn table(reports: &[Report]) -> String {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for report in reports {
        rows.entry(row_name(report)).or_default().add(report);
        rows.entry("~ all").or_default().add(report);
    }
    let mut text = format!("{:<14}", "damage");
    for heading in HEADINGS {
        text.push_str(&format!(" {heading:>8}"));
    }
    text.push('\n');
    for (name, row) in rows {
        text.push_str(&format!("{:<14}", name.trim_start_matches("~ ")));
        for cell in row.cells() {
            text.push_str(&format!(" {cell:>8}"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_failure_keeps_its_last_words() {
        let long = format!("repair: {} no space left", "x".repeat(3 * FAILURE_LENGTH_MAX));
        let short = shortened(&long);
        assert!(short.starts_with("repair: ") && short.ends_with("no space left"));
        assert_eq!(short.chars().count(), FAILURE_LENGTH_MAX + 3);
        assert_eq!(shortened("short"), "short");
    }
}
