//! A file of settings, from its text to the texts of its values.
//!
//! ```toml
//! table_port = 10002
//! memory_budget = "512MiB"
//! accounts_file = "/etc/larimar/accounts"
//! ```
//!
//! What always holds: all mistakes of a file are found at once, each with its line; no value is repeated in
//! one.

use crate::settings::kind::Kind;
use crate::settings::setting::Setting;
use crate::settings::table::SETTINGS;
use settings_file::{Section, SettingsFileError, parse};

/// A value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileValue {
    pub(crate) key: &'static str,
    pub(crate) values: Vec<String>,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// The values of a file, or all that is wrong with it, in the order of its lines.
pub(crate) fn read(text: &str) -> Result<Vec<FileValue>, Vec<SettingsFileError>> {
    let parsed = parse(text).map_err(|error| vec![error])?;
    let keys: Vec<&'static str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let (section, mut mistakes) = Section::with_unknown_keys(text, "the file", parsed.get_ref(), &keys);
    let mut found = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| section.table.contains_key(setting.key)) {
        let line = section.refuse(setting.key, String::new()).line;
        match value_of(&section, setting) {
            Ok(values) => found.push(FileValue { key: setting.key, values, line }),
            Err(what) => mistakes.push(SettingsFileError { line, what: format!("{}{what}", setting.key) }),
        }
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// The texts of a value that makes sense, or what is wrong, as the end of a sentence.
fn value_of(section: &Section<'_>, setting: &Setting) -> Result<Vec<String>, String> {
    let (key, kind) = (setting.key, setting.kind);
    let text = || section.text(key).ok().flatten().map(|(text, _)| text.to_owned());
    let number = || section.count(key, 0..=u64::MAX).ok().flatten().map(|number| number.to_string());
    let flag = || section.flag(key).ok().flatten().map(|flag| flag.to_string());
    let value = match kind {
        Kind::Texts => {
            let wanted = " must be a text, in quotes, or a list of texts";
            let (texts, _) = section.texts(key).map_err(|_| wanted.to_owned())?;
            return Ok(texts.into_iter().map(str::to_owned).collect());
        }
        Kind::Text | Kind::Path | Kind::Word(_) | Kind::Levels => {
            text().ok_or_else(|| " must be a text, in quotes".to_owned())?
        }
        Kind::Bool | Kind::Switch => flag().ok_or_else(|| format!(" must be {}", kind.wanted()))?,
        Kind::Port | Kind::Whole { .. } => number().ok_or_else(|| format!(" must be {}", kind.wanted()))?,
        Kind::PortOrNone | Kind::Size { .. } | Kind::Seconds { .. } => {
            number().or_else(text).ok_or_else(|| format!(" must be {}", kind.wanted()))?
        }
    };
    kind.check(value.as_ref())?;
    Ok(vec![value])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mistakes(text: &str) -> Vec<String> {
        read(text).expect_err(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_are_read_with_their_lines() {
        let text = "# a comment\ntable_port = 0\nmemory_budget = \"512MiB\"\nscrub_rate = 0\n\nin_memory = true\n\
                    admin_port = \"none\"\naccounts = [\"a:AA\", \"b:BB\"]\nversioned_accounts = \"a\"\n";
        let found = read(text).expect("a good file");
        let found: Vec<(usize, &str, String)> =
            found.iter().map(|value| (value.line, value.key, value.values.join(" "))).collect();
        let expected = [
            (6, "in_memory", "true"),
            (2, "table_port", "0"),
            (7, "admin_port", "none"),
            (8, "accounts", "a:AA b:BB"),
            (9, "versioned_accounts", "a"),
            (3, "memory_budget", "512MiB"),
            (4, "scrub_rate", "0"),
        ];
        assert_eq!(found, expected.map(|(line, key, value)| (line, key, value.to_owned())));
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn all_mistakes_are_named_with_their_lines() {
        let text = "table_prt = 7\nhost = 3\n\nblob_port = 70000\nkey = \"SECRET\"\noauth = \"full\"\n";
        assert_eq!(
            mistakes(text),
            [
                "line 1: the file has no key \"table_prt\"; did you mean table_port?",
                "line 2: host must be a text, in quotes",
                "line 4: blob_port must be a port from 1 to 65535, or 0 for a free one",
                "line 5: the file has no key \"key\"",
                "line 6: oauth must be basic",
            ]
        );
        for (text, expected) in [
            ("table-port = 7", "line 1: the file has no key \"table-port\"; did you mean table_port?"),
            ("\n[data]\npath = \"x\"", "line 2: data must be a text, in quotes"),
            ("accounts = [1]", "line 1: accounts must be a text, in quotes, or a list of texts"),
            ("in_memory = 1", "line 1: in_memory must be true or false"),
            ("max_ranges = 4", "line 1: max_ranges must be a whole number of at least 5"),
            ("memory_budget = 1024", "line 1: memory_budget must be a number of bytes"),
            ("log = \"inof\"", "line 1: log must be off, error"),
            ("a = ", "line 1: this is not TOML: "),
        ] {
            let found = mistakes(text);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{text:?}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = read(&text);
        }
    }
}
