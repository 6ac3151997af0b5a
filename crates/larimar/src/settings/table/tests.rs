//! The table of settings is the command line's, and the document's.

use super::*;
use crate::arguments::Arguments;
use clap::CommandFactory;
use std::collections::BTreeSet;

/// A flag that the table lacks can't be set in a file, nor by a variable.
#[test]
fn the_table_is_the_command_line() {
    let command = Arguments::command();
    let serve = command.find_subcommand("serve").expect("serve");
    let ids: BTreeSet<&str> = serve.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    let keys: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.key).chain(["config"]).collect();
    assert_eq!(ids, keys);
    for setting in &SETTINGS {
        let arg = serve.get_arguments().find(|arg| arg.get_id() == setting.key).expect("one of them");
        assert_eq!(Some(setting.flag), arg.get_long().map(|long| format!("--{long}")).as_deref());
        let takes_value = arg.get_action().takes_values();
        assert_eq!(takes_value, setting.kind != Kind::Switch, "{}", setting.key);
        assert_eq!(takes_value, !setting.operand.is_empty(), "{}", setting.key);
        if takes_value {
            let defaults = arg.get_default_values().iter().filter_map(|value| value.to_str());
            assert_eq!(defaults.collect::<Vec<_>>().join(" "), setting.default, "{}", setting.key);
        }
        assert!(setting.default.is_empty() != setting.unset.is_empty(), "{}", setting.key);
        assert!(setting.default.is_empty() != setting.example.is_empty(), "{}", setting.key);
        for value in [setting.default, setting.example].into_iter().filter(|value| !value.is_empty()) {
            assert_eq!(setting.kind.check(value.as_ref()), Ok(()), "{}", setting.key);
        }
    }
}

#[test]
fn variables_of_repeated_flags_are_mistaken_for_others() {
    let misnamed: Vec<String> = SETTINGS.iter().filter_map(Setting::misnamed_variable).collect();
    let expected = ["admin_name", "account", "versioned_account"];
    let expected = expected.map(|name| format!("LARIMAR_{}", name.to_uppercase()));
    assert_eq!(misnamed, expected);
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");

fn row(setting: &Setting) -> String {
    let Setting { key, flag, operand, unit, meaning, .. } = setting;
    let flag = if operand.is_empty() { (*flag).to_owned() } else { format!("{flag} {operand}") };
    let default = match setting.default {
        "" => setting.unset.to_owned(),
        default => format!("`{default}`"),
    };
    let change = if setting.change == Change::AtRunTime { "yes" } else { "no" };
    let (key, flag, wanted) = (format!("`{key}`"), format!("`{flag}`"), setting.kind.wanted());
    let variable = format!("`{}`", setting.variable());
    let cells: [&str; 8] = [&key, &flag, &variable, &default, unit, &wanted, change, meaning];
    cells.iter().map(|cell| format!("| {} ", cell.replace('|', "\\|"))).collect::<String>() + "|"
}

/// On a mismatch the test prints the rows as they should be.
#[test]
fn the_reference_lists_every_setting() {
    let document = std::fs::read_to_string(DOCUMENT).expect("the page");
    let section = document.split("\n## ").find(|section| section.starts_with("Every setting\n"));
    let found: Vec<&str> =
        section.unwrap_or_default().lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = SETTINGS.iter().map(row).collect();
    assert!(found == expected, "the rows should be\n{}", expected.join("\n"));
}
