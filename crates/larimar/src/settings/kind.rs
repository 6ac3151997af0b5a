//! What values a setting takes: the test of a text, and its words for people.
//!
//! What always holds: a text that passes here is a text that the command line takes.

use crate::arguments::byte_size::parse_byte_size;
use crate::arguments::stamp_arguments::parse_seconds_in;
use crate::output::log;
use std::ffi::OsStr;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// The name of a file or folder, or of something else that the system names.
    Path,
    /// Several texts: a list in the file, a repeated flag, `;` between them in a variable.
    Texts,
    /// A port.
    Port,
    /// A port, or `none`.
    PortOrNone,
    /// A whole number in these bounds.
    Whole {
        /// The least.
        least: u64,
        /// The most, if there is one.
        most: Option<u64>,
    },
    /// A number of bytes, or one with a unit.
    Size {
        /// The fewest bytes.
        least: u64,
    },
    /// True or false; the flag takes either.
    Bool,
    /// True or false; the flag alone stands for true.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// What is logged.
    Levels,
    /// A number of seconds in these bounds, with or without an s behind it.
    Seconds {
        /// The fewest.
        least: u64,
        /// The most.
        most: u64,
    },
}

impl Kind {
    /// What is wrong with a text, as the end of a sentence that begins with the setting's name.
    pub(crate) fn check(self, text: &OsStr) -> Result<(), String> {
        if matches!(self, Kind::Path | Kind::Texts) {
            return Ok(());
        }
        let Some(text) = text.to_str() else { return Err(" is not UTF-8 text".to_owned()) };
        let is_good = match self {
            Kind::Text | Kind::Path | Kind::Texts => true,
            Kind::Port => text.parse::<u16>().is_ok(),
            Kind::PortOrNone => text == "none" || text.parse::<u16>().is_ok(),
            Kind::Whole { least, most } => text
                .parse()
                .is_ok_and(|number: u64| number >= least && most.is_none_or(|most| number <= most)),
            Kind::Size { least } => parse_byte_size(text).is_ok_and(|size| size >= least),
            Kind::Bool | Kind::Switch => matches!(text, "true" | "false"),
            Kind::Word(words) => words.contains(&text),
            Kind::Levels => log::parse_levels(text).is_ok(),
            Kind::Seconds { least, most } => parse_seconds_in(text, &(least..=most)).is_ok(),
        };
        if is_good { Ok(()) } else { Err(format!(" must be {}", self.wanted())) }
    }

    /// What it takes, in words; empty: anything.
    pub(crate) fn wanted(self) -> String {
        match self {
            Kind::Text | Kind::Path | Kind::Texts => String::new(),
            Kind::Port => "a port from 1 to 65535, or 0 for a free one".to_owned(),
            Kind::PortOrNone => "a port from 1 to 65535, 0 for a free one, or none".to_owned(),
            Kind::Whole { least, most: Some(most) } => format!("a whole number from {least} to {most}"),
            Kind::Whole { least, most: None } => format!("a whole number of at least {least}"),
            Kind::Size { least } => {
                let unit = "a number of bytes, or one with KiB, MiB, GiB or TiB";
                if least == 0 { unit.to_owned() } else { format!("{unit}; at least {}", in_units(least)) }
            }
            Kind::Bool | Kind::Switch => "true or false".to_owned(),
            Kind::Word(words) => words.join(" or "),
            Kind::Seconds { least, most } => {
                format!("a number of seconds from {least} to {most}, such as 10s")
            }
            Kind::Levels => {
                "off, error, warn, info, debug or trace, or several such as warn,partition=debug".to_owned()
            }
        }
    }
}

fn in_units(size: u64) -> String {
    match (size >> 20, size % (1 << 20)) {
        (mib, 0) if mib > 0 => format!("{mib} MiB"),
        _ => format!("{size} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_what_it_says() {
        let percent = Kind::Whole { least: 10, most: Some(90) };
        let count = Kind::Whole { least: 5, most: None };
        let size = Kind::Size { least: 64 << 20 };
        for (kind, text, part) in [
            (Kind::Port, "0", None),
            (Kind::Port, "65535", None),
            (Kind::Port, "65536", Some("from 1 to 65535")),
            (Kind::Port, "none", Some("a port")),
            (Kind::PortOrNone, "none", None),
            (Kind::PortOrNone, "None", Some("or none")),
            (percent, "10", None),
            (percent, "90", None),
            (percent, "9", Some("from 10 to 90")),
            (percent, "91", Some("from 10 to 90")),
            (percent, "ten", Some("from 10 to 90")),
            (count, "5", None),
            (count, "4", Some("at least 5")),
            (count, "99999999999", None),
            (size, "64MiB", None),
            (size, "67108863", Some("at least 64 MiB")),
            (size, "much", Some("KiB, MiB")),
            (Kind::Size { least: 0 }, "0", None),
            (Kind::Bool, "true", None),
            (Kind::Bool, "yes", Some("true or false")),
            (Kind::Switch, "false", None),
            (Kind::Word(&["basic"]), "basic", None),
            (Kind::Word(&["basic"]), "full", Some("must be basic")),
            (Kind::Levels, "warn,partition=debug", None),
            (Kind::Levels, "inof", Some("such as warn,partition=debug")),
            (Kind::Seconds { least: 3, most: 600 }, "3s", None),
            (Kind::Seconds { least: 3, most: 600 }, "600", None),
            (Kind::Seconds { least: 3, most: 600 }, "2s", Some("from 3 to 600")),
            (Kind::Seconds { least: 1, most: 600 }, "601", Some("from 1 to 600")),
            (Kind::Seconds { least: 1, most: 600 }, "1m", Some("such as 10s")),
            (Kind::Text, "", None),
        ] {
            match (kind.check(OsStr::new(text)), part) {
                (Ok(()), None) => {}
                (Err(wrong), Some(part)) => assert!(wrong.contains(part), "{kind:?} {text}: {wrong}"),
                (found, _) => panic!("{kind:?} {text}: {found:?}"),
            }
        }
    }
}
