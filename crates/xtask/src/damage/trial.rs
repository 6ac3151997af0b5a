//! One trial: a copy of a folder, one damage, a start, every answer judged, writes where all is well, a stop,
//! and then a repair after which all is right or was listed. What always holds: a trial's damage follows from
//! the seed, its class and its number alone.

use super::build::{SERVER_FLAGS, STOPS, Stop};
use super::clients::{Addresses, Clients};
use super::harm::{self, Class, Damage, FORMAT};
use super::image::Image;
use super::model::{Key, Kind, Model, Part, Verdict};
use super::reading::{Finding, Reading, read_all};
use super::repair;
use crate::Outcome;
use crate::client::server_process::ServerProcess;
use base::random::splitmix64;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const EXAMPLES_MAX: usize = 3;
/// Of what a refused start says.
const REFUSAL_LINES_MAX: usize = 4;

/// A folder that was built, and what must be in it.
pub(crate) struct Built {
    pub(crate) stop: Stop,
    pub(crate) image: Image,
    pub(crate) model: Model,
}

/// Which trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrialId {
    pub(crate) class: Class,
    pub(crate) number: usize,
}

impl std::fmt::Display for TrialId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let class = match self.class {
            Class::Control => "control",
            Class::Flip => "flip",
            Class::Tail => "tail",
            Class::Sector => "sector",
            Class::File => "file",
        };
        write!(f, "{class}-{}", self.number)
    }
}

impl std::str::FromStr for TrialId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.rsplit_once('-').and_then(|(class, number)| {
            Some(TrialId {
                class: clap::ValueEnum::from_str(class, true).ok()?,
                number: number.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| format!("{text:?} is not a trial, such as flip-17"))
    }
}

impl TrialId {
    /// Which folder it damages: they take turns.
    pub(crate) fn stop_index(self) -> usize {
        self.number % STOPS.len()
    }

    pub(crate) fn damage(self, image: &Image, seed: u64) -> Damage {
        let mut random =
            seed ^ (self.class as u64) << 56 ^ (self.number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        splitmix64(&mut random);
        harm::choose(self.class, image, &mut random)
    }
}

/// What came of the repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Repaired {
    #[default]
    Skipped,
    Whole {
        losses: usize,
    },
    Failed,
}

/// What a trial showed.
pub(crate) struct Report {
    pub(crate) id: TrialId,
    pub(crate) stop: Stop,
    pub(crate) damage: Damage,
    pub(crate) is_refused: bool,
    /// The damage says that the folder is of a newer program.
    pub(crate) may_be_refused: bool,
    pub(crate) reading: Reading,
    /// Damage was hit, and the log has neither a warning nor an error.
    pub(crate) is_unlogged: bool,
    pub(crate) refused_writes: usize,
    pub(crate) repaired: Repaired,
    /// Each is one thing that must not be.
    pub(crate) failures: Vec<String>,
}

impl Report {
    /// Answers with this kind of verdict.
    pub(crate) fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.reading.findings.iter().filter(|finding| is(&finding.verdict)).count()
    }

    pub(crate) fn is_all_right(&self) -> bool {
        !self.is_refused && self.reading.findings.is_empty() && self.failures.is_empty()
    }
}

/// What all trials share.
pub(crate) struct Bench<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) scratch: &'a Path,
    pub(crate) built: &'a [Built],
    pub(crate) seed: u64,
    pub(crate) repairs: bool,
    pub(crate) keep_failures: Option<&'a Path>,
}

impl Bench<'_> {
    /// Runs one trial. An error is one of this program, not of the server.
    pub(crate) fn run(&self, id: TrialId) -> Outcome<Report> {
        let built = &self.built[id.stop_index()];
        let folder = self.scratch.join(id.to_string());
        let damage = id.damage(&built.image, self.seed);
        self.make(built, &damage, &folder)?;
        let mut report = Report {
            id,
            stop: built.stop,
            may_be_refused: self.may_be_refused(built, &damage, &folder),
            damage,
            is_refused: false,
            reading: Reading::default(),
            is_unlogged: false,
            refused_writes: 0,
            repaired: Repaired::Skipped,
            failures: Vec::new(),
        };
        let mut model = built.model.clone();
        self.serve(&mut report, &mut model, &folder)?;
        if !report.is_refused {
            self.serve_again(&mut report, &model, &folder)?;
        }
        if self.repairs {
            report.repaired = match self.repair(&report.reading, &model, &folder) {
                Ok(losses) => Repaired::Whole { losses },
                Err(error) => {
                    report.failures.push(format!("after the repair: {error}"));
                    Repaired::Failed
                }
            };
        }
        if let Some(kept) = self.keep_failures.filter(|_| !report.failures.is_empty()) {
            self.keep(&report, built, &folder, &kept.join(id.to_string()))?;
        }
        std::fs::remove_dir_all(&folder)?;
        Ok(report)
    }

    fn make(&self, built: &Built, damage: &Damage, folder: &Path) -> Outcome<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let data = data(folder);
        built.image.copy(&data)?;
        harm::apply(damage, &data)
    }

    fn may_be_refused(&self, built: &Built, damage: &Damage, folder: &Path) -> bool {
        let is_format = matches!(damage, Damage::Flip { file, .. } if file == FORMAT);
        let before = built.image.files.iter().find(|file| file.path == FORMAT);
        let (Some(before), Ok(after)) = (before, std::fs::read(data(folder).join(FORMAT))) else {
            return false;
        };
        is_format && harm::names_newer_format(&before.pages[0].1, &after)
    }

    /// Starts the server, reads, writes and stops, and notes in the report what must not be.
    fn serve(&self, report: &mut Report, model: &mut Model, folder: &Path) -> Outcome<()> {
        let mut server = match ServerProcess::start_larimar_with(self.binary, &data(folder), &SERVER_FLAGS) {
            Ok(server) => server,
            Err(error) => {
                report.is_refused = true;
                if !report.may_be_refused {
                    let refusal = refusal(&error.to_string(), folder);
                    report.failures.push(format!("start refused: {refusal}"));
                }
                return Ok(());
            }
        };
        let mut clients = Clients::connect(Addresses::of(&server)?)?;
        report.reading = read_all(&mut server, &mut clients, model);
        write_where_all_is_well(report, model, &mut clients);
        if server.has_ended() {
            report.failures.push("the server crashed".into());
        } else {
            let status = server.terminate();
            if !status.as_ref().is_ok_and(|status| status.success()) {
                report.failures.push(format!("the stop: {status:?}"));
            }
        }
        self.note_failures(report, folder)
    }

    /// Another start, without repair: what was written to a damaged folder is there, and nothing turned
    /// silent.
    fn serve_again(&self, report: &mut Report, model: &Model, folder: &Path) -> Outcome<()> {
        let mut server = match ServerProcess::start_larimar_with(self.binary, &data(folder), &SERVER_FLAGS) {
            Ok(server) => server,
            Err(error) => {
                let refusal = refusal(&error.to_string(), folder);
                report.failures.push(format!("the second start refused: {refusal}"));
                return Ok(());
            }
        };
        let mut clients = Clients::connect(Addresses::of(&server)?)?;
        let reading = read_all(&mut server, &mut clients, model);
        let failures = reading.findings.iter().filter(|finding| finding.verdict.is_failure());
        report.failures.extend(described(failures).iter().map(|what| format!("after a restart: {what}")));
        let status = server.terminate();
        if !status.as_ref().is_ok_and(|status| status.success()) {
            report.failures.push(format!("the second stop: {status:?}"));
        }
        Ok(())
    }

    fn note_failures(&self, report: &mut Report, folder: &Path) -> Outcome<()> {
        let log = std::fs::read_to_string(folder.join("server.log"))?;
        let warnings: Vec<&str> = log.lines().filter(|line| is_warning(line)).collect();
        let failures = &mut report.failures;
        failures
            .extend(described(report.reading.findings.iter().filter(|finding| finding.verdict.is_failure())));
        let is_last_missing = |finding: &&Finding| finding.verdict == Verdict::LastMissing;
        let hit = !report.reading.findings.is_empty();
        if hit && warnings.is_empty() {
            report.is_unlogged = true;
            failures.push("damage was hit and the log says nothing".into());
            failures.extend(described(report.reading.findings.iter().filter(is_last_missing)));
        }
        if report.damage == Damage::Nothing {
            // A process that is killed while it writes may leave a record that is cut short.
            let is_torn = |warning: &str| warning.contains("is not whole and is left out");
            if let Some(warning) = warnings.iter().find(|warning| !is_torn(warning)) {
                failures.push(format!("a warning without damage: {warning}"));
            }
            failures.extend(described(
                report.reading.findings.iter().filter(|finding| !finding.verdict.is_failure()),
            ));
        }
        Ok(())
    }

    /// Repairs, checks, starts again and reads: all is right or listed. Returns how many losses were. What
    /// the server has left out of the journal with a warning `before` cannot be listed any more.
    fn repair(&self, before: &Reading, model: &Model, folder: &Path) -> Outcome<usize> {
        let data = data(folder);
        let plan = repair::repair(self.binary, &data)?;
        repair::check(self.binary, &data)?;
        let mut server = ServerProcess::start_larimar_with(self.binary, &data, &SERVER_FLAGS)?;
        let mut clients = Clients::connect(Addresses::of(&server)?)?;
        let reading = read_all(&mut server, &mut clients, model);
        let status = server.terminate()?;
        if !status.success() {
            return Err(format!("the stop: {status}").into());
        }
        let is_known = |finding: &Finding| {
            finding.verdict == Verdict::LastMissing && before.findings.contains(finding)
                || plan.excuses(&finding.key, &finding.verdict)
        };
        let unlisted = reading.findings.iter().filter(|finding| !is_known(finding));
        let unlisted = described(unlisted);
        if unlisted.is_empty() { Ok(plan.len()) } else { Err(unlisted.join("; ").into()) }
    }

    /// The folder as it was before the start, what the server logged, and what was found.
    fn keep(&self, report: &Report, built: &Built, folder: &Path, kept: &Path) -> Outcome<()> {
        self.make(built, &report.damage, kept)?;
        for name in ["server.log", "plan.json"] {
            if folder.join(name).exists() {
                std::fs::copy(folder.join(name), kept.join(name))?;
            }
        }
        let mut text = format!("{} ({}): {}\n", report.id, built.stop.name(), report.damage);
        for failure in &report.failures {
            text.push_str(&format!("{failure}\n"));
        }
        for Finding { key, via, verdict } in &report.reading.findings {
            text.push_str(&format!("{key} via {via}: {verdict:?}\n"));
        }
        Ok(std::fs::write(kept.join("found.txt"), text)?)
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// A line of the log has its level behind the time, or first.
fn is_warning(line: &str) -> bool {
    line.split_whitespace().take(2).any(|word| word == "WARN" || word == "ERROR")
}

/// What a refused start says, without the path of the copy.
fn refusal(error: &str, folder: &Path) -> String {
    let error = error.replace(&format!("{}/", folder.display()), "");
    let lines: Vec<&str> = error.lines().filter(|line| line.starts_with("larimar: ")).collect();
    if lines.is_empty() {
        error.lines().take(REFUSAL_LINES_MAX).collect::<Vec<_>>().join(" | ")
    } else {
        lines.join(" | ")
    }
}

/// Findings in few words: how many of each verdict, with examples.
fn described<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    let mut kinds: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        kinds.entry(word(&finding.verdict).to_owned()).or_default().push(finding);
    }
    let line = |(word, findings): (String, Vec<&Finding>)| {
        let examples: Vec<String> = findings
            .iter()
            .take(EXAMPLES_MAX)
            .map(|finding| match &finding.verdict {
                Verdict::Wrong(what) | Verdict::Loud(what) | Verdict::Cut(what) => {
                    format!("{} ({}, {what})", finding.key, finding.via)
                }
                _ => format!("{} ({})", finding.key, finding.via),
            })
            .collect();
        format!("{} {word}: {}", findings.len(), examples.join(", "))
    };
    kinds.into_iter().map(line).collect()
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Right => "right",
        Verdict::LastMissing => "acknowledged last and missing",
        Verdict::Loud(_) => "failed loudly",
        Verdict::Cut(_) => "broken off",
        Verdict::Older => "older",
        Verdict::Wrong(_) => "wrong",
        Verdict::Missing => "missing",
        Verdict::Back => "deleted and back",
        Verdict::Hang => "without an answer in time",
        Verdict::Crash => "unanswered, for the server is gone",
    }
}

/// Puts something new into each partition, container and queue about which every answer was right, and reads
/// it back. An error of the server is counted; any other refusal, or other bytes, is a failure.
fn write_where_all_is_well(report: &mut Report, model: &mut Model, clients: &mut Clients) {
    let hurt: BTreeSet<(Kind, &str, &str)> = report
        .reading
        .findings
        .iter()
        .map(|finding| (finding.key.kind, finding.key.container.as_str(), finding.key.partition.as_str()))
        .collect();
    let mut places: BTreeSet<(Kind, String, String)> = BTreeSet::new();
    for key in model.keys.keys() {
        let container_kind = match key.kind {
            Kind::Entity => Kind::Table,
            Kind::Blob => Kind::Container,
            _ => continue,
        };
        let is_there = model.containers(container_kind).any(|name| name == key.container);
        let is_hurt = hurt.contains(&(key.kind, &key.container, &key.partition))
            || hurt.contains(&(container_kind, &key.container, ""));
        if is_there && !is_hurt {
            places.insert((key.kind, key.container.clone(), key.partition.clone()));
        }
    }
    for (index, (kind, container, partition)) in places.into_iter().enumerate() {
        let key = Key::inside(kind, &container, &partition, "snew");
        let value = vec![Part { seed: 7000 + index as u64, size: 600 }];
        let put = match kind {
            Kind::Entity => clients.put_entity(&key, &value),
            _ => clients.put_blob(&key, &value),
        };
        match put {
            Ok(answer) if matches!(answer.status, 201 | 204) => model.fate(&key).acknowledge(Some(value)),
            Ok(answer) if answer.status >= 500 => report.refused_writes += 1,
            Ok(answer) => {
                report.failures.push(format!("write of {key}: {} {}", answer.status, answer.text()))
            }
            Err(error) => report.failures.push(format!("write of {key}: {error}")),
        }
        if model.keys.get(&key).is_none_or(|fate| fate.now().is_none()) {
            continue;
        }
        let got = match kind {
            Kind::Entity => clients.entity(&key),
            _ => clients.blob_get(&super::clients::blob_path(&key), &[]),
        };
        if !got.as_ref().is_ok_and(|answer| answer.status == 200) {
            let status = got.map(|answer| answer.status);
            report.failures.push(format!("{key} was just written and is not there: {status:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_a_name_that_is_read_back() {
        for class in [Class::Control, Class::Flip, Class::Tail, Class::Sector, Class::File] {
            let id = TrialId { class, number: 17 };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert!("flip".parse::<TrialId>().is_err());
    }

    #[test]
    fn warnings_and_errors_of_the_log_count() {
        assert!(is_warning("2026-11-26T21:54:51.335794Z  WARN stream::node: torn"));
        assert!(is_warning("ERROR larimar: damaged"));
        assert!(!is_warning("2026-11-26T21:54:51.335794Z  INFO larimar: WARN ERROR"));
        assert!(!is_warning("Larimar 0.1.0"));
    }
}
