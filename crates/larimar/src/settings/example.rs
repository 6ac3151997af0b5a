//! A file of settings with every setting, its default, unit, bounds and whether it changes at run time, all
//! as comments.

use crate::settings::setting::{Change, Setting};
use crate::settings::table::SETTINGS;
use crate::settings::toml_text;
use std::fmt::Write;

/// Columns of a comment.
const COLUMNS: usize = 100;

const HEAD: &str = "\
# Settings of larimar, for `larimar --config FILE`. A flag beats the variable of the environment, which
# beats this file, which beats the default. `larimar config check --config FILE` looks for mistakes,
# `larimar config show --config FILE` shows which value holds, and where it comes from.
# SIGHUP has the file read again: what changes at run time is in force then, all of it or, if the file has a
# mistake, nothing.
";

/// The file.
pub(crate) fn text() -> String {
    let mut text = HEAD.to_owned();
    let mut group = "";
    for setting in &SETTINGS {
        if setting.group != group {
            group = setting.group;
            // Writing to a string can't fail.
            let _ = write!(text, "\n\n# ---- {group}\n");
        }
        text.push('\n');
        for line in wrapped(&comment(setting)) {
            let _ = writeln!(text, "# {line}");
        }
        let value = if setting.default.is_empty() { setting.example } else { setting.default };
        let _ = writeln!(text, "#{} = {}", setting.key, toml_text::value(setting.kind, &[value.to_owned()]));
    }
    text
}

fn comment(setting: &Setting) -> String {
    let mut comment = sentence(setting.meaning);
    match setting.default {
        "" => comment.push_str(&format!(" Not set: {}.", setting.unset)),
        default => comment.push_str(&format!(" Default: {default}.")),
    }
    if !setting.unit.is_empty() {
        comment.push_str(&format!(" Unit: {}.", setting.unit));
    }
    if !setting.kind.wanted().is_empty() {
        comment.push_str(&format!(" Values: {}.", setting.kind.wanted()));
    }
    comment.push_str(match setting.change {
        Change::AtRunTime => " Changes at run time.",
        Change::AtStart => " Changes with the next start.",
    });
    let operand = if setting.operand.is_empty() { String::new() } else { format!(" {}", setting.operand) };
    comment.push_str(&format!(" Flag: {}{operand}. Variable: {}.", setting.flag, setting.variable()));
    comment
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Lines of at most [`COLUMNS`], unless a word is longer.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::file;

    /// A commented value that is wrong is found when somebody takes the comment sign away.
    #[test]
    fn the_file_is_good_and_so_is_each_commented_value() {
        let text = text();
        assert_eq!(file::read(&text), Ok(Vec::new()));
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
        let live: String = text
            .lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')))
            .map(|line| format!("{line}\n"))
            .collect();
        let found = file::read(&live).expect("good values");
        assert_eq!(found.len(), SETTINGS.len(), "{live}");
    }
}
