//! `larimar migrate` that is killed on the way, and run again until it is done.
//!
//! What always holds: it is killed by SIGKILL, once it has written a random part of what is to be copied; the
//! same command goes on. One that ends before it is killed is an error.

use crate::Outcome;
use crate::stamp::child::Service;
use crate::stamp::cluster::KEYS;
use crate::stamp::proxy::Proxy;
use base::random::splitmix64;
use std::path::Path;
use std::time::{Duration, Instant};

const KILLS: usize = 2;
/// It is killed once it has written between so many thousandths of what is to be copied: the second run has
/// what the first one leaves.
const PARTS: [(u64, u64); KILLS] = [(50, 700), (20, 250)];
const LOOK_INTERVAL: Duration = Duration::from_micros(200);
const DONE_WITHIN: Duration = Duration::from_secs(3 * 3600);

/// A migration, with the flags that name folder and stamp.
pub(super) struct Migration<'a> {
    pub(super) name: &'static str,
    pub(super) words: [String; 2],
    pub(super) stamp: &'a [String],
    /// What stands between it and the gateway of the store.
    pub(super) way: Option<&'a Proxy>,
}

impl Migration<'_> {
    /// Runs it, kills it, and runs it until it is done; answers the bytes that it has copied in all.
    pub(super) fn run(&self, binary: &Path, folder: &Path, size_bytes: u64, seed: u64) -> Outcome<u64> {
        let mut random = seed;
        let mut killed_at = Vec::new();
        let started_at = Instant::now();
        for (number, (least, most)) in PARTS.into_iter().enumerate() {
            let part = least + splitmix64(&mut random) % (most - least);
            let after_bytes = size_bytes / 1000 * part;
            let mut process = self.start(&format!("{}-{number}", self.name), binary, folder)?;
            let (began_at, passed_before) = (Instant::now(), self.passed_bytes());
            loop {
                if let Some(status) = process.ended()? {
                    let said = process.said();
                    let name = self.name;
                    return Err(format!("{name} ended with {status} before kill {number}: {said}").into());
                }
                // Of one that has just ended nothing is known: the next look says so.
                let passed = self.passed_bytes() - passed_before;
                if written_bytes(process.id()?).is_ok_and(|bytes| bytes + passed >= after_bytes) {
                    break;
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
            process.kill();
            killed_at.push(format!(
                "{:.1} s ({:.1} MiB written)",
                began_at.elapsed().as_secs_f64(),
                mib(after_bytes)
            ));
        }
        let name = format!("{}-{KILLS}", self.name);
        let mut process = self.start(&name, binary, folder)?;
        let began_at = Instant::now();
        let status = loop {
            match process.ended()? {
                Some(status) => break status,
                None if began_at.elapsed() > DONE_WITHIN => {
                    return Err(
                        format!("{name} is not done after {DONE_WITHIN:?}: {}", process.said()).into()
                    );
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if !status.success() {
            return Err(format!("{name} ended with {status}: {}", process.said()).into());
        }
        let printed = std::fs::read_to_string(folder.join(format!("{name}.log")))?;
        let from = printed.find('{').ok_or_else(|| format!("{name} printed no report: {printed}"))?;
        let report: serde_json::Value = serde_json::from_str(&printed[from..])?;
        let bytes = report["bytes"].as_u64().unwrap_or(0);
        println!(
            "{}: killed after {}; then done in {:.1?}, {:.1?} in all: {} streams, {} extents, {:.1} MiB, of which {:.1} MiB \
             in the last run",
            self.name,
            killed_at.join(" and "),
            began_at.elapsed(),
            started_at.elapsed(),
            report["streams"],
            report["extents"],
            mib(bytes),
            mib(report["copied_bytes"].as_u64().unwrap_or(0)),
        );
        Ok(bytes)
    }

    fn passed_bytes(&self) -> u64 {
        self.way.map_or(0, Proxy::passed_bytes)
    }

    fn start(&self, name: &str, binary: &Path, folder: &Path) -> Outcome<Service> {
        let mut arguments: Vec<String> = ["migrate", "--json", "--quiet"].map(str::to_owned).to_vec();
        arguments.extend(self.words.iter().chain(self.stamp).cloned());
        let mut process = Service::new(name, binary, arguments, folder).with_variables(&KEYS);
        process.start()?;
        Ok(process)
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Bytes that a process has written so far to files.
fn written_bytes(process_id: u32) -> Outcome<u64> {
    let counts = std::fs::read_to_string(format!("/proc/{process_id}/io"))?;
    let written = counts.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok());
    Ok(written.ok_or("no counts of a process")?)
}

/// Bytes of the files of a folder.
pub(super) fn folder_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => folder_bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
