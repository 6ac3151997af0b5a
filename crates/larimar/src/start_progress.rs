//! What a start is at that takes long: a line on standard error after two seconds, and others now and then.
//!
//! Why a thread of its own: a start reads on the thread that would tell of it. What always holds: where the
//! log is off nothing is printed; no thread to be had is no reason not to start.

use crate::configuration::Storage;
use crate::output::progress::time_text;
use base::Metrics;
use base::metrics::Value;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tracing::Level;

/// The first line comes after so long, and the others at such distances.
const FIRST_AFTER: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(5);

/// Prints until it is dropped.
pub(crate) struct StartProgress {
    _ends: Option<Sender<()>>,
}

impl StartProgress {
    /// Of a start whose layers record there. In memory there is nothing to read.
    pub(crate) fn begin(storage: &Storage, metrics: &Metrics) -> Self {
        if !tracing::enabled!(Level::ERROR) || *storage == Storage::Memory {
            return StartProgress { _ends: None };
        }
        let (sender, receiver) = channel();
        let metrics = metrics.clone();
        let read_before = read_bytes();
        let run = move || {
            let (mut wait, mut seconds) = (FIRST_AFTER, 0);
            while receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                seconds += wait.as_secs();
                wait = EVERY;
                let read = read_bytes().saturating_sub(read_before);
                let ranges =
                    ["larimar_start_ranges_read", "larimar_start_ranges"].map(|name| number(&metrics, name));
                // Who has closed it does not want to know.
                let _ = writeln!(std::io::stderr(), "{}", text(seconds, read, ranges));
            }
        };
        let started = std::thread::Builder::new().name("start-progress".to_owned()).spawn(run);
        StartProgress { _ends: started.is_ok().then_some(sender) }
    }
}

fn text(seconds: u64, read: u64, [ranges, all]: [u64; 2]) -> String {
    let (mib, rate) = (read >> 20, (read >> 20) / seconds.max(1));
    let of = if all == 0 { String::new() } else { format!(", {ranges} of {all} ranges") };
    format!("starting for {}: {mib} MiB of the data folder are read ({rate} MiB/s){of}", time_text(seconds))
}

/// Bytes that this process has read since it began; 0: the kernel does not say.
fn read_bytes() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap_or(0)
}

/// The value of a family without labels; 0: there is none.
pub(crate) fn number(metrics: &Metrics, name: &str) -> u64 {
    let found = metrics.read().into_iter().find(|found| found.family.name == name);
    match found.and_then(|found| found.series.into_iter().next()).map(|series| series.value) {
        Some(Value::Number(number)) => number,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        assert_eq!(
            text(7, 700 << 20, [3, 12]),
            "starting for 7 s: 700 MiB of the data folder are read (100 MiB/s), 3 of 12 ranges"
        );
        assert_eq!(text(2, 0, [0, 0]), "starting for 2 s: 0 MiB of the data folder are read (0 MiB/s)");
        assert!(read_bytes() > 0);
    }
}
