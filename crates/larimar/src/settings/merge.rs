//! Which value of each setting holds: that of its flag, else of its variable, else of the file, else the
//! default.
//!
//! Two kinds are taken as one: `data`, `in_memory` and `stamp` exclude each other, and accounts of a higher
//! source replace those of a lower one, from whichever of `accounts` and `accounts_file`: keys that a file
//! has left behind must not open what a flag was to guard.
//!
//! A variable that a setting's flag would have, but the setting has not, is a mistake. Addresses that
//! Kubernetes puts into variables with the names of ports are left alone.
//!
//! What always holds: pure; each mistake is one line that names its place; no value is repeated in one, but
//! levels of the log.

use crate::output::log;
use crate::settings::file::FileValue;
use crate::settings::kind::Kind;
use crate::settings::setting::Setting;
use crate::settings::table::SETTINGS;
use crate::settings::typed::Values;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Accounts for another emulator, taken where there are none for this server.
const AZURITE_ACCOUNTS: &str = "AZURITE_ACCOUNTS";

/// What stands between several texts of a variable.
const SEPARATOR: char = ';';

/// What a variable begins with that Kubernetes sets for a service: `LARIMAR_BLOB_PORT` is the address of one
/// that is called `larimar-blob`.
const SERVICE_ADDRESSES: [&str; 3] = ["tcp://", "udp://", "sctp://"];

/// Where a value comes from; the later ones beat the earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File {
        /// Counted from 1.
        line: usize,
    },
    Variable(String),
    Flag,
}

impl Origin {
    fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Variable(_) => 2,
            Origin::Flag => 3,
        }
    }
}

/// A setting, its value and where that comes from.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) setting: &'static Setting,
    /// Empty: it is not set.
    pub(crate) values: Vec<OsString>,
    pub(crate) origin: Origin,
    /// A variable of the setting that holds the address of a service, and counts as not set.
    pub(crate) service_address: Option<String>,
}

impl Entry {
    fn new(setting: &'static Setting, values: Vec<OsString>, origin: Origin) -> Self {
        Entry { setting, values, origin, service_address: None }
    }

    fn by_default(setting: &'static Setting) -> Self {
        let values = if setting.default.is_empty() { Vec::new() } else { vec![setting.default.into()] };
        Entry::new(setting, values, Origin::Default)
    }

    /// Whether it says more than nothing.
    fn is_given(&self) -> bool {
        self.origin != Origin::Default && !(self.setting.kind == Kind::Switch && self.values == ["false"])
    }

    /// What is odd about where it comes from, though no mistake.
    pub(crate) fn note(&self) -> Option<String> {
        let variable = self.service_address.as_ref()?;
        Some(format!(
            "{variable} is not taken, as it is the address of a service, such as Kubernetes sets \
             (enableServiceLinks: false keeps them away)"
        ))
    }

    /// What mistakes call it.
    pub(crate) fn label(&self, file: Option<&Path>) -> String {
        match (&self.origin, file) {
            (Origin::File { line }, Some(file)) => {
                format!("{} line {line}: {}", file.display(), self.setting.key)
            }
            (Origin::Variable(variable), _) => variable.clone(),
            _ => self.setting.flag.to_owned(),
        }
    }
}

/// All settings with the values that hold, in the order of the table; or all mistakes that can be seen in
/// where they come from. `file` names the file in these.
pub(crate) fn merge(
    typed: &Values,
    environment: &dyn Fn(&str) -> Option<OsString>,
    in_file: &[FileValue],
    file: Option<&Path>,
) -> Result<Vec<Entry>, Vec<String>> {
    let mut mistakes: Vec<String> =
        SETTINGS.iter().filter_map(|setting| misnamed(setting, environment)).collect();
    let mut entries: Vec<Entry> = SETTINGS
        .iter()
        .map(|setting| {
            if let Some(values) = typed.get(setting.key) {
                return Entry::new(setting, values.clone(), Origin::Flag);
            }
            let service_address = service_address(setting, environment);
            if service_address.is_none() {
                match of_environment(setting, environment) {
                    Ok(Some(entry)) => return entry,
                    Ok(None) => {}
                    Err(mistake) => mistakes.push(mistake),
                }
            }
            let entry = match in_file.iter().find(|value| value.key == setting.key) {
                None => Entry::by_default(setting),
                Some(found) => {
                    let values = found.values.iter().map(OsString::from).collect();
                    Entry::new(setting, values, Origin::File { line: found.line })
                }
            };
            Entry { service_address, ..entry }
        })
        .collect();
    for (one, other) in [("data", "in_memory"), ("stamp", "data"), ("stamp", "in_memory")] {
        if let Some(both) = keep_higher(&mut entries, one, other) {
            mistakes.extend(excluded(&both, file, "can't both be set"));
        }
    }
    if let Some(both) = keep_higher(&mut entries, "accounts", "accounts_file")
        && let Origin::Variable(variable) = &both[0].origin
    {
        if variable == AZURITE_ACCOUNTS {
            reset(&mut entries, "accounts");
        } else {
            mistakes.extend(excluded(&both, file, "are both set; keep one of them"));
        }
    }
    const NEEDED: [(&str, &str); 6] = [
        ("tls_cert", "tls_key"),
        ("tls_key", "tls_cert"),
        ("oauth", "tls_cert"),
        ("stamp", "store"),
        ("stamp", "etcd"),
        ("store", "stamp"),
    ];
    for (key, needed) in NEEDED {
        mistakes.extend(missing(&entries, key, needed, file));
    }
    if mistakes.is_empty() { Ok(entries) } else { Err(mistakes) }
}

/// The mistake of a variable that is called as the flag, where the setting's is not.
fn misnamed(setting: &Setting, environment: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    let misnamed = setting.misnamed_variable().filter(|variable| environment(variable).is_some())?;
    Some(format!("{misnamed} is set, but no setting has this variable; did you mean {}?", setting.variable()))
}

/// A port's variable that holds the address of a service.
fn service_address(setting: &Setting, environment: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    if !matches!(setting.kind, Kind::Port | Kind::PortOrNone) {
        return None;
    }
    let variable = setting.variable();
    let value = environment(&variable)?;
    let is_address = SERVICE_ADDRESSES.iter().any(|start| value.as_bytes().starts_with(start.as_bytes()));
    is_address.then_some(variable)
}

/// A setting's value in the environment, if there is one.
fn of_environment(
    setting: &'static Setting,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Entry>, String> {
    let variable = setting.variable();
    let entry = |variable: &str, values| Entry::new(setting, values, Origin::Variable(variable.to_owned()));
    if setting.key == "accounts" {
        // What is in them is read where accounts are.
        let given = [variable.as_str(), AZURITE_ACCOUNTS]
            .into_iter()
            .find_map(|variable| environment(variable).map(|value| entry(variable, vec![value])));
        return Ok(given);
    }
    let Some(value) = environment(&variable) else { return Ok(None) };
    if setting.kind == Kind::Levels {
        if value.to_str().is_some_and(|text| text.trim().is_empty()) {
            return Ok(None);
        }
        log::check_levels(&variable, &value).map_err(|error| error.to_string())?;
    }
    if value.is_empty() {
        return Err(format!("{variable} is set but empty; unset it, or give it a value"));
    }
    let values: Vec<OsString> = match (setting.kind, value.to_str()) {
        (Kind::Texts, Some(text)) => {
            let parts = text.split(SEPARATOR).map(str::trim).filter(|part| !part.is_empty());
            let parts: Vec<OsString> = parts.map(OsString::from).collect();
            if parts.is_empty() {
                return Err(format!("{variable} is set but names nothing; unset it, or give it a value"));
            }
            parts
        }
        (Kind::Texts, None) => return Err(format!("{variable} is not UTF-8 text")),
        _ => {
            setting.kind.check(&value).map_err(|wrong| format!("{variable}{wrong}"))?;
            vec![value]
        }
    };
    Ok(Some(entry(&variable, values)))
}

/// Of two settings that exclude each other the one of the higher source; both if they are of the same one.
/// On the command line that is left to its parser.
fn keep_higher(entries: &mut [Entry], first: &str, second: &str) -> Option<[Entry; 2]> {
    let at = |key: &str| entries.iter().position(|entry| entry.setting.key == key);
    let (first, second) = (at(first)?, at(second)?);
    if !entries[first].is_given() || !entries[second].is_given() {
        return None;
    }
    let (rank, other) = (entries[first].origin.rank(), entries[second].origin.rank());
    match rank.cmp(&other) {
        std::cmp::Ordering::Less => entries[first] = Entry::by_default(entries[first].setting),
        std::cmp::Ordering::Greater => entries[second] = Entry::by_default(entries[second].setting),
        std::cmp::Ordering::Equal if entries[first].origin != Origin::Flag => {
            return Some([entries[first].clone(), entries[second].clone()]);
        }
        std::cmp::Ordering::Equal => {}
    }
    None
}

fn reset(entries: &mut [Entry], key: &str) {
    for entry in entries.iter_mut().filter(|entry| entry.setting.key == key) {
        *entry = Entry::by_default(entry.setting);
    }
}

fn excluded(both: &[Entry; 2], file: Option<&Path>, end: &str) -> Option<String> {
    let [first, second] = both;
    let other = match &second.origin {
        Origin::Variable(variable) => variable.as_str(),
        _ => second.setting.key,
    };
    Some(format!("{} and {other} {end}", first.label(file)))
}

/// The mistake of a setting that is nothing without another one. Of flags it is left to the parser.
fn missing(entries: &[Entry], key: &str, needed: &str, file: Option<&Path>) -> Option<String> {
    let find = |key: &str| entries.iter().find(|entry| entry.setting.key == key);
    let (entry, needed) = (find(key)?, find(needed)?);
    let is_lone = entry.is_given() && entry.origin != Origin::Flag && !needed.is_given();
    is_lone.then(|| format!("{} needs {}, which is not set", entry.label(file), needed.setting.key))
}

/// The values of the environment and of the file as words of a command line.
pub(crate) fn as_flags(entries: &[Entry]) -> Vec<OsString> {
    let mut words = Vec::new();
    for entry in
        entries.iter().filter(|entry| matches!(entry.origin, Origin::File { .. } | Origin::Variable(_)))
    {
        let setting = entry.setting;
        if setting.kind == Kind::Switch {
            words.extend(entry.is_given().then(|| OsString::from(setting.flag)));
            continue;
        }
        if setting.key == "accounts" && matches!(entry.origin, Origin::Variable(_)) {
            continue;
        }
        for value in &entry.values {
            let mut word = OsString::from(setting.flag);
            word.push(OsStr::new("="));
            word.push(value);
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests;
