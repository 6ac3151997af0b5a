//! Settings on the command line, before it is parsed: which flags stand there, and where the others can be
//! added.
//!
//! What always holds: nothing is refused here. What makes no sense is found by the parser, which reads the
//! same words afterwards.

use crate::settings::setting::Setting;
use crate::settings::table::SETTINGS;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The flag that names the file of settings.
pub(crate) const CONFIG_FLAG: &str = "--config";

/// Words that ask for a text, and for nothing else.
const HELP_WORDS: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Values of settings, by their keys.
pub(crate) type Values = BTreeMap<&'static str, Vec<OsString>>;

/// The settings of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Where the flags begin: the program's name and the commands stand before.
    pub(crate) begin: usize,
    pub(crate) values: Values,
    pub(crate) config: Option<PathBuf>,
}

/// What is typed for the server; `None`: the command has none of its settings.
pub(crate) fn typed(words: &[OsString]) -> Option<Typed> {
    let begin = begin(words)?;
    let flags = words.get(begin..).unwrap_or_default();
    if flags.iter().any(|word| HELP_WORDS.iter().any(|help| word == help)) {
        return None;
    }
    let mut typed = Typed { begin, ..Typed::default() };
    let mut words = flags.iter().peekable();
    while let Some(word) = words.next() {
        let (name, attached) = split(word);
        let mut operand = || match &attached {
            Some(value) => Some(value.clone()),
            None => words.next_if(|next| !next.as_bytes().starts_with(b"--")).cloned(),
        };
        if name == CONFIG_FLAG {
            typed.config = operand().map(PathBuf::from);
        } else if let Some(setting) = SETTINGS.iter().find(|setting| name == setting.flag) {
            let value = if takes_operand(setting) { operand() } else { Some("true".into()) };
            typed.values.entry(setting.key).or_default().extend(value);
        }
    }
    Some(typed)
}

fn takes_operand(setting: &Setting) -> bool {
    !setting.operand.is_empty()
}

/// Where the flags of the server begin, if the command is about it.
fn begin(words: &[OsString]) -> Option<usize> {
    let word = |index: usize| words.get(index).and_then(|word| word.to_str());
    match (word(1), word(2)) {
        (Some("serve"), _) => Some(2),
        (Some("config"), Some("check" | "show")) => Some(3),
        (Some(first), _) if first.starts_with('-') => Some(1),
        (None, _) if words.len() <= 1 => Some(1),
        _ => None,
    }
}

/// `--name=value` in two.
fn split(word: &OsStr) -> (&OsStr, Option<OsString>) {
    let bytes = word.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Typed> {
        let words: Vec<OsString> = ["larimar"].iter().chain(words).map(OsString::from).collect();
        typed(&words)
    }

    #[test]
    fn flags_are_found_and_other_commands_have_none() {
        for (words, begin, config, keys) in [
            (&[][..], 1, None, &[][..]),
            (&["--table-port", "7"], 1, None, &[("table_port", "7")]),
            (&["serve", "--table-port=7"], 2, None, &[("table_port", "7")]),
            (&["config", "check", "--config", "f"], 3, Some("f"), &[]),
            (&["config", "show", "--config=f", "--in-memory"], 3, Some("f"), &[("in_memory", "true")]),
            (&["--account", "a:AA==", "--account=b:BB="], 1, None, &[("accounts", "a:AA== b:BB=")]),
            // Mistakes that the parser names.
            (&["--table-port", "--config", "f"], 1, Some("f"), &[("table_port", "")]),
            (&["--config"], 1, None, &[]),
            (&["--nonsense", "serve"], 1, None, &[]),
        ] {
            let typed = read(words).expect("the server's");
            let texts: Vec<(&str, String)> = typed
                .values
                .iter()
                .map(|(key, values)| (*key, values.join(OsStr::new(" ")).into_string().expect("text")))
                .collect();
            let texts: Vec<(&str, &str)> = texts.iter().map(|(key, text)| (*key, text.as_str())).collect();
            assert_eq!((typed.begin, &texts[..]), (begin, keys), "{words:?}");
            assert_eq!(typed.config.as_deref(), config.map(std::path::Path::new), "{words:?}");
        }
        for words in [
            &["check", "x"][..],
            &["sas", "--host", "x"],
            &["config"],
            &["config", "example"],
            &["--help"],
            &["serve", "-h"],
        ] {
            assert_eq!(read(words), None, "{words:?}");
        }
    }
}
