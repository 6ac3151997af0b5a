//! Where settings come from, put together: the command line, the environment and the file that one of them
//! names, as one command line that the parser reads.
//!
//! What always holds: command line and environment are those of the start; only the file changes.

use crate::arguments::{Arguments, one_line};
use crate::bounded_file::read_text_bounded;
use crate::settings::merge::{Entry, Origin, as_flags, merge};
use crate::settings::typed::{CONFIG_FLAG, Typed, typed};
use settings_file::FILE_SIZE_BYTES_MAX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names the file of settings, where no flag does.
const CONFIG_VARIABLE: &str = "LARIMAR_CONFIG";

/// Looks a variable up.
pub(crate) type Lookup = fn(&str) -> Option<OsString>;

/// Where settings come from.
#[derive(Debug)]
pub(crate) struct Sources {
    words: Vec<OsString>,
    typed: Typed,
    environment: Lookup,
    /// The file, and what names it.
    file: Option<(PathBuf, &'static str)>,
}

/// The settings that hold, and the arguments that say the same.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) entries: Vec<Entry>,
    pub(crate) arguments: Arguments,
}

impl Sources {
    /// Of a command that settings are for; `None`: it is another one, or asks for help.
    pub(crate) fn of(words: Vec<OsString>, environment: Lookup) -> Option<Self> {
        let typed = typed(&words)?;
        let named = typed.config.clone().map(|path| (path, CONFIG_FLAG));
        let file = named.or_else(|| environment(CONFIG_VARIABLE).map(|path| (path.into(), CONFIG_VARIABLE)));
        Some(Sources { words, typed, environment, file })
    }

    /// The file of settings, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Whether all mistakes are wanted.
    pub(crate) fn is_check(&self) -> bool {
        self.words.get(1..3) == Some(&["config".into(), "check".into()])
    }

    /// The environment.
    pub(crate) fn environment(&self) -> Lookup {
        self.environment
    }

    /// Reads the file and puts everything together; or all mistakes, one line each.
    pub(crate) fn gather(&self) -> Result<Gathered, Vec<String>> {
        let in_file = match &self.file {
            None => Vec::new(),
            Some((path, named_by)) => {
                let text = read_text_bounded(path, FILE_SIZE_BYTES_MAX)
                    .map_err(|error| vec![format!("{named_by} {}: {error}", path.display())])?;
                super::file::read(&text).map_err(|mistakes| {
                    mistakes.iter().map(|mistake| format!("{} {mistake}", path.display())).collect::<Vec<_>>()
                })?
            }
        };
        let entries = merge(&self.typed.values, &self.environment, &in_file, self.file())?;
        let arguments = Arguments::from_words(&self.with_flags(&entries))
            .map_err(|error| vec![self.blame(&entries, &one_line(&error))])?;
        Ok(Gathered { entries, arguments })
    }

    /// The command line with what the environment and the file say, before what was typed.
    fn with_flags(&self, entries: &[Entry]) -> Vec<OsString> {
        let (commands, flags) = self.words.split_at(self.typed.begin.min(self.words.len()));
        [commands, &as_flags(entries), flags].concat()
    }

    /// A mistake that names flags, by the places where their values stand.
    pub(crate) fn blame(&self, entries: &[Entry], mistake: &str) -> String {
        let mut blamed = mistake.to_owned();
        for entry in
            entries.iter().filter(|entry| matches!(entry.origin, Origin::File { .. } | Origin::Variable(_)))
        {
            if let Some(at) = place_of(&blamed, entry.setting.flag) {
                // `--host x: unknown` becomes `f.toml line 3: host: x: unknown`, which is read more easily.
                let second = blamed[at..].split(' ').nth(1).unwrap_or_default();
                let is_of_file = matches!(entry.origin, Origin::File { .. });
                let colon = if is_of_file && second.ends_with(':') { ":" } else { "" };
                let label = entry.label(self.file());
                blamed.replace_range(at..at + entry.setting.flag.len(), &format!("{label}{colon}"));
            }
        }
        blamed
    }
}

/// Where a flag stands in a text, as a whole word.
fn place_of(text: &str, flag: &str) -> Option<usize> {
    let goes_on = |at: usize| {
        text[at + flag.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '-')
    };
    text.match_indices(flag).map(|(at, _)| at).find(|at| !goes_on(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<OsString> {
        None
    }

    fn some(name: &str) -> Option<OsString> {
        (name == "LARIMAR_CACHE_SHARE").then(|| "20".into())
    }

    #[test]
    fn a_flag_is_found_as_a_whole_word() {
        for (text, flag, expected) in [
            ("--account: no", "--account", Some(0)),
            ("--accounts-file x", "--account", None),
            ("the --accounts-file or --account", "--account", Some(23)),
            ("--data", "--data", Some(0)),
            ("none", "--data", None),
        ] {
            assert_eq!(place_of(text, flag), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_name_the_place_of_the_value() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.toml");
        std::fs::write(&path, "\nrange_size = \"1MiB\"\nhost = \"256.1.1.1\"\n").expect("a file");
        let words = ["larimar", "--config", path.to_str().expect("text")].map(OsString::from).to_vec();
        let sources = Sources::of(words, some).expect("the server's");
        let entries = sources.gather().expect("no mistake yet").entries;
        let name = path.display();
        for (mistake, expected) in [
            ("--range-size: too small", format!("{name} line 2: range_size: too small")),
            ("--host 256.1.1.1: unknown", format!("{name} line 3: host: 256.1.1.1: unknown")),
            ("--cache-share: of 20", "LARIMAR_CACHE_SHARE: of 20".to_owned()),
            ("--data: missing", "--data: missing".to_owned()),
            ("--data and --host are the same", format!("--data and {name} line 3: host are the same")),
        ] {
            assert_eq!(sources.blame(&entries, mistake), expected);
        }
    }

    #[test]
    fn a_missing_file_names_its_flag() {
        let words = ["larimar", "--config", "/does/not/exist"].map(OsString::from).to_vec();
        let mistakes = Sources::of(words, nothing).expect("the server's").gather().expect_err("no file");
        assert!(mistakes.len() == 1 && mistakes[0].starts_with("--config /does/not/exist: "), "{mistakes:?}");
    }
}
