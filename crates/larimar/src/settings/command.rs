//! `larimar config`: looks for mistakes, shows which values hold and where they come from, prints a commented
//! file.
//!
//! What always holds: nothing is opened but what a start reads before it touches anything; no key of an
//! account is printed.

use crate::configuration::accounts::holds_account;
use crate::settings::example;
use crate::settings::merge::{Entry, Origin};
use crate::settings::setting::Change;
use crate::settings::toml_text;
use front_end::accounts::may_be_shown;
use std::io::{self, Write};
use std::path::Path;

/// What stands in the place of keys.
const HIDDEN: &str = "...";

/// Prints the commented file.
pub(crate) fn print_example(out: &mut dyn Write) -> io::Result<()> {
    print(&example::text(), out)
}

/// Prints that there is no mistake.
pub(crate) fn print_checked(entries: &[Entry], file: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let count = entries.iter().filter(|entry| matches!(entry.origin, Origin::File { .. })).count();
    let line = match file {
        Some(file) => format!("{}: no mistake; {count} of its settings are in force\n", file.display()),
        None => "no file is given with --config or LARIMAR_CONFIG; flags and variables have no mistake\n"
            .to_owned(),
    };
    print(&line, out)
}

/// Prints each setting as a line of a file, and where its value comes from as a comment.
pub(crate) fn print_shown(entries: &[Entry], file: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<(String, String)> = entries.iter().map(|entry| shown(entry, file)).collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default().min(WIDTH_MAX);
    let text: String = lines.iter().map(|(line, origin)| format!("{line:width$}  # {origin}\n")).collect();
    print(&text, out)
}

/// Columns before the origins, unless a line is longer.
const WIDTH_MAX: usize = 60;

/// A setting as people and programs may see it: without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownSetting {
    pub(crate) key: &'static str,
    /// As it stands in a file; `None`: it is not set.
    pub(crate) value: Option<String>,
    /// Where it comes from; of one that is not set, what that means.
    pub(crate) origin: String,
    pub(crate) change: Change,
}

impl ShownSetting {
    /// Of this entry, of a server with this file of settings.
    pub(crate) fn of(entry: &Entry, file: Option<&Path>) -> Self {
        let setting = entry.setting;
        let note = entry.note().map_or_else(String::new, |note| format!("; {note}"));
        let (key, change) = (setting.key, setting.change);
        if entry.values.is_empty() {
            return ShownSetting { key, value: None, origin: format!("{}{note}", setting.unset), change };
        }
        let texts = entry.values.iter().map(|value| value.to_string_lossy());
        let values: Vec<String> = match key {
            "accounts" => texts.flat_map(|text| account_names(&text)).collect(),
            // An account in the place of its name.
            "versioned_accounts" => texts.map(|text| hidden_unless(may_be_shown(&text), &text)).collect(),
            // Or of the file that holds it.
            "accounts_file" => texts.map(|text| hidden_unless(!holds_account(&text), &text)).collect(),
            _ => texts.map(|text| text.into_owned()).collect(),
        };
        let origin = match (&entry.origin, file) {
            (Origin::File { line }, Some(file)) => format!("{} line {line}", file.display()),
            (Origin::File { line }, None) => format!("line {line}"),
            (Origin::Variable(variable), _) => variable.clone(),
            (Origin::Flag, _) => setting.flag.to_owned(),
            (Origin::Default, _) => "default".to_owned(),
        };
        let value = Some(toml_text::value(setting.kind, &values));
        ShownSetting { key, value, origin: origin + &note, change }
    }
}

fn shown(entry: &Entry, file: Option<&Path>) -> (String, String) {
    let ShownSetting { key, value, origin, .. } = ShownSetting::of(entry, file);
    match value {
        None => (format!("# {key} is not set"), origin),
        Some(value) => (format!("{key} = {value}"), origin),
    }
}

fn hidden_unless(may_be_shown: bool, text: &str) -> String {
    if may_be_shown { text } else { HIDDEN }.to_owned()
}

/// Accounts without their keys.
fn account_names(text: &str) -> Vec<String> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| match part.split_once(':') {
            Some((name, _)) if may_be_shown(name) => format!("{name}:{HIDDEN}"),
            _ => HIDDEN.to_owned(),
        })
        .collect()
}

/// A reader that has had enough, such as `head`, is no failure.
fn print(text: &str, out: &mut dyn Write) -> io::Result<()> {
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::SETTINGS;

    #[test]
    fn values_are_shown_with_their_origin_and_accounts_without_keys() {
        let entry = |key, values: &[&str], origin| Entry {
            setting: SETTINGS.iter().find(|setting| setting.key == key).expect("a setting"),
            values: values.iter().map(Into::into).collect(),
            origin,
            service_address: None,
        };
        let by_kubernetes =
            |entry: Entry| Entry { service_address: Some("LARIMAR_BLOB_PORT".to_owned()), ..entry };
        let file = Some(Path::new("f.toml"));
        for (entry, line, origin) in [
            (entry("table_port", &["7"], Origin::File { line: 3 }), "table_port = 7", "f.toml line 3"),
            (entry("data", &["larimar-data"], Origin::Default), "data = \"larimar-data\"", "default"),
            (entry("ready_file", &[], Origin::Default), "# ready_file is not set", "none is written"),
            (
                entry(
                    "accounts",
                    &["abc:SECRET;def:SECRET"],
                    Origin::Variable("AZURITE_ACCOUNTS".to_owned()),
                ),
                "accounts = [\"abc:...\", \"def:...\"]",
                "AZURITE_ACCOUNTS",
            ),
            (entry("accounts", &["SECRET"], Origin::Flag), "accounts = [\"...\"]", "--account"),
            // A key was shown that stood in the place of something else.
            (
                entry("accounts_file", &["abc:U0VDUkVU"], Origin::Flag),
                "accounts_file = \"...\"",
                "--accounts-file",
            ),
            (
                entry("accounts_file", &["abc:U0VDUkVU;def:U0VDUkVU"], Origin::Flag),
                "accounts_file = \"...\"",
                "--accounts-file",
            ),
            (
                entry("accounts_file", &["/etc/a"], Origin::Flag),
                "accounts_file = \"/etc/a\"",
                "--accounts-file",
            ),
            (
                entry("versioned_accounts", &["abc", "def:U0VDUkVU"], Origin::Flag),
                "versioned_accounts = [\"abc\", \"...\"]",
                "--versioned-account",
            ),
            (
                by_kubernetes(entry("blob_port", &["10000"], Origin::Default)),
                "blob_port = 10000",
                "default; LARIMAR_BLOB_PORT is not taken, as it is the address of a service, such as Kubernetes sets \
                 (enableServiceLinks: false keeps them away)",
            ),
        ] {
            assert_eq!(shown(&entry, file), (line.to_owned(), origin.to_owned()));
        }
    }
}
