//! The log on standard error: what `LARIMAR_LOG` or the server's settings ask for, in colours on a terminal,
//! without floods of equal lines. What is logged can be changed while the program runs.

use crate::output::error_line::print_error;
use crate::output::repeated_lines::RepeatedLines;
use base::Clock;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{IsTerminal, Stderr};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{DefaultFields, Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// Names what is logged.
const VARIABLE: &str = "LARIMAR_LOG";
/// The same of the server.
const FLAG: &str = "--log";
/// What is logged if nobody says otherwise: warnings and worse.
pub(crate) const USUAL: &str = "warn";
/// Whoever sets it to something wants no colours anywhere.
const NO_COLOR: &str = "NO_COLOR";

/// Why it is not known what to log.
#[derive(Debug, thiserror::Error)]
#[error(
    "{place} {value:?}: give off, error, warn, info, debug or trace, or several such as warn,partition=debug"
)]
pub(crate) struct LogError {
    place: String,
    value: OsString,
}

/// Nothing, for commands that try things out in memory: what is said of these is not so on disk, and they
/// print what they found.
pub(crate) const OFF: &str = "off";

/// What the environment asks for, else what is usual.
pub(crate) fn levels_of(
    environment: &dyn Fn(&str) -> Option<OsString>,
    usual: &str,
) -> Result<Targets, LogError> {
    parse_filter(environment(VARIABLE), usual)
}

/// Levels as the flag has them.
pub(crate) fn parse_levels(text: &str) -> Result<Targets, LogError> {
    parse_filter(Some(text.into()), USUAL).map_err(|error| LogError { place: FLAG.to_owned(), ..error })
}

/// Whether levels make sense; the mistake names the `place` where they stand.
pub(crate) fn check_levels(place: &str, value: &OsStr) -> Result<(), LogError> {
    let found = parse_filter(Some(value.to_owned()), USUAL);
    found.map(drop).map_err(|error| LogError { place: place.to_owned(), ..error })
}

/// Events as they are written.
type Written<W> = tracing_subscriber::fmt::Subscriber<DefaultFields, Lines, LevelFilter, W>;

/// Changes what is logged.
#[derive(Clone)]
pub(crate) struct LogControl {
    handle: reload::Handle<Targets, Written<fn() -> Stderr>>,
}

impl LogControl {
    /// From now on these levels are logged.
    pub(crate) fn replace(&self, levels: Targets) {
        // It can only fail when the log has ended, with the program.
        let _ = self.handle.reload(levels);
    }

    /// What is logged.
    pub(crate) fn levels(&self) -> String {
        self.handle.with_current(Targets::to_string).unwrap_or_default()
    }
}

/// Says what somebody waits for, such as the outcome of a signal: as a warning, or where no warning is logged
/// as a line on standard error.
pub(crate) fn announce(text: &str) {
    if tracing::enabled!(Level::WARN) { tracing::warn!("{text}") } else { print_error(text) }
}

/// Starts the log.
pub(crate) fn start(
    levels: Targets,
    environment: &dyn Fn(&str) -> Option<OsString>,
    clock: Arc<dyn Clock>,
) -> LogControl {
    let wants_no_colours = environment(NO_COLOR).is_some_and(|value| !value.is_empty());
    let in_colours = std::io::stderr().is_terminal() && !wants_no_colours;
    let (filter, handle) = reload::Layer::new(levels);
    subscriber(filter, in_colours, clock, std::io::stderr as fn() -> Stderr).init();
    LogControl { handle }
}

fn subscriber<W, F>(
    filter: F,
    in_colours: bool,
    clock: Arc<dyn Clock>,
    writer: W,
) -> impl Subscriber + Send + Sync + 'static
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    F: Layer<Written<W>> + Send + Sync + 'static,
{
    let format = Format::default().without_time().with_ansi(in_colours);
    let lines = Lines { format, repeated: Mutex::default(), clock };
    let builder = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(in_colours);
    builder.event_format(lines).with_writer(writer).finish().with(filter)
}

/// What is logged. A word alone is a level: a misspelt one would be taken for the name of a module, and
/// nothing logged.
fn parse_filter(value: Option<OsString>, usual: &str) -> Result<Targets, LogError> {
    let value = value.unwrap_or_default();
    let parsed = value.to_str().and_then(|text| {
        let text = if text.trim().is_empty() { usual } else { text };
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        let is_level = |part: &str| part.parse::<LevelFilter>().is_ok();
        // By modules only: filters by spans and their fields would bring a library of regular expressions
        // with them.
        let is_clear = |part: &str| match part.split_once('=') {
            Some((module, level)) => !module.is_empty() && !module.contains('[') && is_level(level),
            None => is_level(part),
        };
        parts.iter().copied().all(is_clear).then(|| parts.join(",").to_lowercase().parse().ok()).flatten()
    });
    parsed.ok_or(LogError { place: VARIABLE.to_owned(), value })
}

/// The usual format, but that of equal warnings and errors few are logged.
struct Lines {
    format: Format<Full, ()>,
    repeated: Mutex<RepeatedLines>,
    clock: Arc<dyn Clock>,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        let mut left_out_count = 0;
        // Who asks for more wants all of it.
        if *event.metadata().level() <= Level::WARN {
            let mut repeated = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
            match repeated.admit(line, self.clock.monotonic()) {
                Some(count) => left_out_count = count,
                None => return Ok(()),
            }
        }
        SystemTime.format_time(&mut writer)?;
        match left_out_count {
            0 => writeln!(writer, " {line}"),
            count => writeln!(writer, " {line} (and {count} times more since this was last told)"),
        }
    }
}

/// A log that nobody reads, whose levels can be changed.
#[cfg(test)]
pub(crate) fn control_for_tests() -> LogControl {
    let (filter, handle) = reload::Layer::new(Targets::new());
    // The handle only works as long as there is a filter.
    Box::leak(Box::new(filter));
    LogControl { handle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BoxFuture, Ticks};
    use std::os::unix::ffi::OsStringExt;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Seconds, set by hand.
    #[derive(Default)]
    struct SetClock(AtomicU64);

    impl Clock for SetClock {
        fn now(&self) -> Ticks {
            Ticks(0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            unreachable!("the log waits for nothing")
        }
    }

    /// What was logged.
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Logged {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A full disk filled the log with a line for each write that was refused.
    #[test]
    fn equal_warnings_are_few_lines_and_other_events_all_of_theirs() {
        let (clock, written) = (Arc::new(SetClock::default()), Logged::default());
        let writer = written.clone();
        let filter = parse_filter(Some("info".into()), USUAL).unwrap();
        let subscriber = subscriber(filter, false, clock.clone(), move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            for second in [0, 1, 2, 11] {
                clock.0.store(second, Ordering::Relaxed);
                tracing::error!("a write was refused");
                tracing::error!(extent = second, "an extent can't be read");
                tracing::info!("something was done");
            }
        });
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let with = |part: &str| log.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
        let refused = with("a write was refused");
        assert_eq!(refused.len(), 2, "{log}");
        assert!(
            refused[0].contains("Z ERROR larimar::output::log") && refused[0].ends_with("refused"),
            "{log}"
        );
        assert!(refused[1].ends_with("refused (and 2 times more since this was last told)"), "{log}");
        assert_eq!(
            (with("an extent").len(), with("something").len(), log.lines().count()),
            (4, 4, 10),
            "{log}"
        );
    }

    #[test]
    fn levels_change_while_it_runs() {
        let (clock, written) = (Arc::new(SetClock::default()), Logged::default());
        let writer = written.clone();
        let (filter, handle) = reload::Layer::new(parse_levels("warn").unwrap());
        let subscriber = subscriber(filter, false, clock, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("before");
            handle.reload(parse_levels("info").unwrap()).unwrap();
            tracing::info!("between");
            handle.reload(parse_levels("error").unwrap()).unwrap();
            tracing::warn!("after");
        });
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(log.lines().count() == 1 && log.contains("between"), "{log}");
    }

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
            let filter = parse_filter(value.map(OsString::from), USUAL).expect("understood");
            assert_eq!(filter.to_string(), expected, "{value:?}");
        }
        let garbage = OsString::from_vec(vec![b'i', 0xff]);
        for value in
            [OsString::from("inof"), "partition=loud".into(), "warn,=,".into(), "a[b]=info".into(), garbage]
        {
            let refused = parse_filter(Some(value), USUAL).expect_err("refused").to_string();
            assert!(refused.starts_with("LARIMAR_LOG ") && refused.lines().count() == 1, "{refused}");
        }
    }
}
