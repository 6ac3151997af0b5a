//! Files of settings in TOML, from their text to typed values: the rules of `--simulate`, the mixes of
//! `larimar stress`, the settings of the server.
//!
//! ```
//! use settings_file::{Section, parse};
//!
//! let text = "[limits]\nrate = 5\n";
//! let parsed = parse(text).expect("TOML");
//! let file = Section::new(text, "the file", parsed.get_ref(), &["limits"]).expect("known keys");
//! let limits = file.section("limits", &["rate"]).expect("known keys").expect("the table is there");
//! assert_eq!(limits.count("rate", 1..=9), Ok(Some(5)));
//! let mistake = limits.count("rate", 1..=4).expect_err("too large");
//! assert_eq!(mistake.to_string(), "line 2: rate in limits must be a whole number from 1 to 4");
//! ```
//!
//! What always holds: a key that is not known, or a value that makes no sense, is an error that names its
//! line; nothing is ignored; a file has [`FILE_SIZE_BYTES_MAX`] at most. Absent: reading files.

mod mistake;
mod section;

pub use mistake::{SettingsFileError, meant};
pub use section::Section;

use mistake::line_of;
use toml::Spanned;
use toml::de::DeTable;

/// The longest duration that a file may name.
pub const SECONDS_MAX: f64 = 1e6;

/// Bytes of a file at most.
pub const FILE_SIZE_BYTES_MAX: usize = 1 << 20;

/// The file's tree, in which each key knows its place.
pub fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, SettingsFileError> {
    if text.len() > FILE_SIZE_BYTES_MAX {
        let what = format!("the file has more than {FILE_SIZE_BYTES_MAX} bytes");
        return Err(SettingsFileError { line: 1, what });
    }
    DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let words: Vec<&str> = error.message().split_whitespace().collect();
        SettingsFileError { line: line_of(text, at), what: format!("this is not TOML: {}", words.join(" ")) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_name_their_lines() {
        for (text, expected) in [
            ("\n\nb = 1", "line 3: the file has no key \"b\""),
            ("aa = 1", "line 1: the file has no key \"aa\"; did you mean a?"),
            ("a = ", "line 1: this is not TOML: "),
            ("a = 1\na = 2", "line 2: this is not TOML: duplicate key"),
        ] {
            let read = |text| {
                let parsed = parse(text)?;
                Section::new(text, "the file", parsed.get_ref(), &["a"]).map(drop)
            };
            let error = read(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        assert_eq!(parse(&"#".repeat(FILE_SIZE_BYTES_MAX + 1)).expect_err("too large").line, 1);
    }

    #[test]
    fn all_unknown_keys_are_named_in_the_order_of_the_file() {
        let text = "zz = 1\na = 2\n\nbb = 3\n";
        let parsed = parse(text).expect("TOML");
        let (section, mistakes) = Section::with_unknown_keys(text, "the file", parsed.get_ref(), &["a"]);
        let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!((lines, section.count("a", 0..=9)), (vec![1, 4], Ok(Some(2))));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            if let Ok(parsed) = parse(&text) {
                let _ = Section::new(&text, "the file", parsed.get_ref(), &["a"]);
            }
        }
    }
}
