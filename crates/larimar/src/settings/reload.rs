//! SIGHUP, or a request of the admin side, with a file of settings: it is read again, and what can change at
//! run time is in force then. Without such a file it is one of rules that is read again.
//!
//! What always holds: all or none. Everything is read and checked before anything changes; a mistake leaves
//! the values from before, and is one line of the log. Settings that need a restart are named, and named
//! again with each signal until the file and the process agree. The thread that accepts connections waits for
//! no file: they are read apart. The outcome is said whatever is logged.

use crate::apart::run_apart;
use crate::arguments::Chore;
use crate::configuration::accounts::AccountsDigest;
use crate::configuration::certificate::Certificate;
use crate::configuration::simulation::Simulated;
use crate::configuration::{Configuration, DevelopmentSettings, Host};
use crate::output::log::{self, LogControl, announce};
use crate::settings::command::ShownSetting;
use crate::settings::live::{ReloadOutcome, SettingsControl};
use crate::settings::merge::Entry;
use crate::settings::setting::Change;
use crate::settings::sources::{Gathered, Sources};
use std::sync::Arc;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::filter::Targets;

/// What can change while the server runs.
#[derive(Clone, Copy)]
pub(crate) struct Live<'a> {
    pub(crate) certificate: Option<&'a Certificate>,
    pub(crate) simulated: Option<&'a Simulated>,
}

/// What was read, checked as a start would.
struct Read {
    entries: Vec<Entry>,
    levels: Targets,
    configuration: Configuration,
}

/// Reads the file of settings again.
pub(crate) struct Reload {
    sources: Arc<Sources>,
    /// The values that are in force, in the order of the table.
    entries: Vec<Entry>,
    /// What the file with accounts held at the start.
    accounts_file: Option<AccountsDigest>,
    /// The host that the server listens on.
    host: Host,
    log: LogControl,
    /// The admin side's hand to it.
    control: SettingsControl,
    requests: mpsc::Receiver<oneshot::Sender<ReloadOutcome>>,
    /// How often it was done: of equal lines the log leaves out all but one in some seconds.
    count: u64,
}

impl Reload {
    /// Of a server that has started with these settings.
    pub(crate) fn new(
        sources: Sources,
        entries: Vec<Entry>,
        configuration: &Configuration,
        log: LogControl,
    ) -> Self {
        let (accounts_file, host) = (configuration.accounts_file, configuration.addresses.host.clone());
        let (control, requests) = SettingsControl::new(shown(&entries, &sources));
        let sources = Arc::new(sources);
        Reload { sources, entries, accounts_file, host, log, control, requests, count: 0 }
    }

    /// What the admin side has of the settings.
    pub(crate) fn control(&self) -> SettingsControl {
        self.control.clone()
    }

    /// What is logged.
    pub(crate) fn log(&self) -> LogControl {
        self.log.clone()
    }

    /// Whether there is a file to read again.
    pub(crate) fn has_file(&self) -> bool {
        self.sources.file().is_some()
    }

    /// Reads the file again with each signal, if they come, and each request.
    pub(crate) async fn follow(
        &mut self,
        mut signals: Option<Signal>,
        live: Live<'_>,
    ) -> std::convert::Infallible {
        loop {
            let request = tokio::select! {
                () = next(&mut signals) => None,
                request = self.requests.recv() => request,
            };
            let outcome = if self.has_file() {
                self.read_again(live).await
            } else if let Some(simulated) = live.simulated.filter(|simulated| simulated.has_file()) {
                simulated.read_again().await
            } else {
                Err("there is no file of settings: the server was started without --config".to_owned())
            };
            if self.has_file() || live.simulated.is_some() {
                let (Ok(words) | Err(words)) = &outcome;
                announce(words);
            }
            if let Some(request) = request {
                // Who has gone does not want it.
                let _ = request.send(outcome);
            }
        }
    }

    async fn read_again(&mut self, live: Live<'_>) -> ReloadOutcome {
        let (sources, host) = (self.sources.clone(), self.host.clone());
        let read = run_apart(move || read(&sources, &host)).await;
        self.count += 1;
        let again = format!("the settings were read again ({}.)", self.count);
        match read {
            Ok(read) => {
                let plan = self.adopt(read, live);
                self.control.note(shown(&self.entries, &self.sources));
                Ok(format!("{again} and are in force{}", plan.in_words()))
            }
            Err(mistake) => Err(format!("{again}, those from before stay in force: {mistake}")),
        }
    }

    /// Puts in force what was read, as far as that can be done now. It can't fail.
    fn adopt(&mut self, read: Read, live: Live<'_>) -> Plan {
        let Read { entries, levels, configuration } = read;
        let Configuration { tls, accounts_file, development, .. } = configuration;
        let DevelopmentSettings { simulated, .. } = development;
        let can = Live {
            certificate: live.certificate.filter(|_| tls.is_some()),
            simulated: live.simulated.filter(|_| simulated.is_some()),
        };
        let are_other_accounts = accounts_file != self.accounts_file;
        let plan = plan(&self.entries, &entries, are_other_accounts, |key| match key {
            "tls_cert" | "tls_key" => can.certificate.is_some(),
            "simulate" => can.simulated.is_some(),
            _ => true,
        });
        if let (Some(certificate), Some(read)) = (can.certificate, tls) {
            certificate.adopt(read);
        }
        if let (Some(running), Some(read)) = (can.simulated, simulated) {
            running.adopt(read);
        }
        self.log.replace(levels);
        for (entry, next) in self.entries.iter_mut().zip(entries) {
            if !plan.at_start.contains(&entry.setting.key) {
                *entry = next;
            }
        }
        plan
    }
}

/// The next signal, if they come.
async fn next(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => {
            signals.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The values as they may be shown.
fn shown(entries: &[Entry], sources: &Sources) -> Arc<[ShownSetting]> {
    entries.iter().map(|entry| ShownSetting::of(entry, sources.file())).collect()
}

/// Reads and checks everything, or says the first mistake. It may wait for a disk, and for a name server if
/// the host is another one than `known`.
fn read(sources: &Sources, known: &Host) -> Result<Read, String> {
    let Gathered { entries, arguments } = sources.gather().map_err(|mistakes| first_of(&mistakes))?;
    let Chore::Serve(arguments) = arguments.chore() else {
        return Err("this command line serves nothing".to_owned());
    };
    let blame = |mistake: String| sources.blame(&entries, &mistake);
    let levels = log::parse_levels(&arguments.settings.log).map_err(|error| blame(error.to_string()))?;
    let configuration = Configuration::from_arguments(*arguments, &sources.environment(), Some(known))
        .map_err(|error| blame(error.to_string()))?;
    Ok(Read { entries, levels, configuration })
}

/// The first of some mistakes, and how many there are.
pub(crate) fn first_of(mistakes: &[String]) -> String {
    let first = mistakes.first().map_or("", String::as_str);
    match mistakes.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} (and {} more; larimar config check names them all)", count - 1),
    }
}

/// What a file that was read again changes, by keys.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    at_run_time: Vec<&'static str>,
    at_start: Vec<&'static str>,
}

/// Compares the values in force with those that were read, and `are_other_accounts` says whether the content
/// of the file with accounts is another one. `can` says whether a setting that changes at run time can do so
/// in this process.
fn plan(now: &[Entry], next: &[Entry], are_other_accounts: bool, can: impl Fn(&str) -> bool) -> Plan {
    let changed = now.iter().zip(next).filter(|(now, next)| {
        now.values != next.values || are_other_accounts && now.setting.key == "accounts_file"
    });
    let (at_run_time, at_start) = changed
        .map(|(now, _)| now.setting)
        .partition::<Vec<_>, _>(|setting| setting.change == Change::AtRunTime && can(setting.key));
    let keys = |settings: Vec<&'static crate::settings::setting::Setting>| {
        settings.into_iter().map(|setting| setting.key).collect()
    };
    Plan { at_run_time: keys(at_run_time), at_start: keys(at_start) }
}

impl Plan {
    fn in_words(&self) -> String {
        let mut words = match self.at_run_time.is_empty() {
            true => String::new(),
            false => format!("; changed: {}", self.at_run_time.join(", ")),
        };
        if !self.at_start.is_empty() {
            words.push_str(&format!("; what changes with the next start only: {}", self.at_start.join(", ")));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::file;
    use crate::settings::merge::merge;
    use crate::settings::typed::Values;

    fn entries(text: &str) -> Vec<Entry> {
        merge(&Values::new(), &|_| None, &file::read(text).expect("a good file"), None).expect("no mistake")
    }

    #[test]
    fn what_changed_is_divided_by_when_it_can() {
        for (before, after, simulates, expected) in [
            ("", "", true, ""),
            ("log = \"info\"", "\n# moved\nlog = \"info\"", true, ""),
            // The default, written down.
            ("", "log = \"warn\"\ntable_port = 10002", true, ""),
            ("", "log = \"info\"", true, "; changed: log"),
            ("log = \"info\"", "", true, "; changed: log"),
            ("simulate = \"a\"", "simulate = \"b\"", true, "; changed: simulate"),
            ("", "simulate = \"b\"", false, "; what changes with the next start only: simulate"),
            (
                "",
                "host = \"::1\"\nlog = \"info\"\nmax_ranges = 9",
                true,
                "; changed: log; what changes with the next start only: host, max_ranges",
            ),
        ] {
            let can = |key: &str| key != "simulate" || simulates;
            let plan = plan(&entries(before), &entries(after), false, can);
            assert_eq!(plan.in_words(), expected, "{before:?} {after:?}");
        }
    }

    /// A key that was taken out of the file with accounts still opened what it had opened, and the reload was
    /// said to be in force.
    #[test]
    fn other_accounts_in_the_same_file_wait_for_the_next_start() {
        for (before, after, expected) in [
            (
                "accounts_file = \"a\"",
                "accounts_file = \"a\"",
                "; what changes with the next start only: accounts_file",
            ),
            (
                "accounts_file = \"a\"",
                "accounts_file = \"b\"",
                "; what changes with the next start only: accounts_file",
            ),
            ("accounts_file = \"a\"", "", "; what changes with the next start only: accounts_file"),
        ] {
            let plan = plan(&entries(before), &entries(after), true, |_| true);
            assert_eq!(plan.in_words(), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn of_several_mistakes_the_first_is_said() {
        let mistakes = |count: usize| (0..count).map(|index| format!("m{index}")).collect::<Vec<_>>();
        for (count, expected) in
            [(0, ""), (1, "m0"), (3, "m0 (and 2 more; larimar config check names them all)")]
        {
            assert_eq!(first_of(&mistakes(count)), expected);
        }
    }
}
