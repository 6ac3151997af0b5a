//! The log on standard error: what `LARIMAR_LOG` asks for, in colours on a terminal.

use std::ffi::OsString;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Names what is logged.
const VARIABLE: &str = "LARIMAR_LOG";
/// What is logged if nobody says otherwise: warnings and worse.
const USUAL: &str = "warn";
/// Whoever sets it to something wants no colours anywhere.
const NO_COLOR: &str = "NO_COLOR";

/// Why it is not known what to log.
#[derive(Debug, thiserror::Error)]
#[error(
    "{VARIABLE} {value:?}: give off, error, warn, info, debug or trace, or several such as warn,partition=debug"
)]
pub(crate) struct LogError {
    value: OsString,
}

/// Starts the log, as the environment asks for it.
pub(crate) fn start(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<(), LogError> {
    let filter = parse_filter(environment(VARIABLE))?;
    let wants_no_colours = environment(NO_COLOR).is_some_and(|value| !value.is_empty());
    let in_colours = std::io::stderr().is_terminal() && !wants_no_colours;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(in_colours)
        .with_writer(std::io::stderr)
        .init();
    Ok(())
}

/// What is logged. A word alone is a level: a misspelt one would be taken for the name of a module, and nothing logged.
fn parse_filter(value: Option<OsString>) -> Result<EnvFilter, LogError> {
    let value = value.unwrap_or_default();
    let parsed = value.to_str().and_then(|text| {
        let text = if text.trim().is_empty() { USUAL } else { text };
        let is_level = |part: &str| part.is_empty() || part.parse::<LevelFilter>().is_ok();
        let is_clear = text.split(',').all(|part| part.contains(['=', '[']) || is_level(part));
        is_clear.then(|| EnvFilter::builder().parse(text).ok()).flatten()
    });
    parsed.ok_or(LogError { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn what_is_logged_is_understood_or_refused() {
        for (value, expected) in [
            (None, "warn"),
            (Some(""), "warn"),
            (Some(" "), "warn"),
            (Some("info"), "info"),
            (Some("OFF"), "off"),
            (Some("warn,partition=debug"), "partition=debug,warn"),
        ] {
            let filter = parse_filter(value.map(OsString::from)).expect("understood");
            assert_eq!(filter.to_string(), expected, "{value:?}");
        }
        let garbage = OsString::from_vec(vec![b'i', 0xff]);
        for value in [OsString::from("inof"), "partition=loud".into(), "warn,=,".into(), garbage] {
            let refused = parse_filter(Some(value)).expect_err("refused").to_string();
            assert!(refused.starts_with("LARIMAR_LOG ") && refused.lines().count() == 1, "{refused}");
        }
    }
}
