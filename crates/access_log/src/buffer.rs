//! Lines on their way from the workers to the thread that writes them.
//!
//! What always holds: it is bounded; a line that has no place is left out whole and counted.

use base::Metrics;
use base::metrics::{Counter, Family, Unit};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Bytes of lines that wait at most: some thousands.
pub(crate) const BUFFER_SIZE_BYTES_MAX: usize = 1 << 20;
/// With so many they are written at once.
const FULL_SIZE_BYTES: usize = BUFFER_SIZE_BYTES_MAX / 4;

static WRITTEN: Family = Family::counter(
    "larimar_access_log_lines_total",
    Unit::Count,
    &[],
    "Lines of the access log that were written.",
);
static LOST: Family = Family::counter(
    "larimar_access_log_lost_lines_total",
    Unit::Count,
    &[],
    "Lines of the access log that were left out, because they came too fast or could not be written.",
);

/// Lines that wait.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    waiting: Mutex<Waiting>,
    /// Notified when there is much to write, and at the end.
    filled: Condvar,
    pub(crate) counts: LineCounts,
}

/// Lines that were written and lost.
#[derive(Debug)]
pub(crate) struct LineCounts {
    pub(crate) written: Counter,
    pub(crate) lost: Counter,
}

impl LineCounts {
    /// Of a log that begins, or is off.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        LineCounts { written: metrics.counter(&WRITTEN, &[]), lost: metrics.counter(&LOST, &[]) }
    }
}

/// Whole lines.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: u64,
    /// No others come.
    pub(crate) is_closed: bool,
}

impl LineBuffer {
    pub(crate) fn new(counts: LineCounts) -> Self {
        LineBuffer { waiting: Mutex::default(), filled: Condvar::new(), counts }
    }

    /// Adds a line, if there is a place for it.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        let size_bytes = waiting.bytes.len() + line.len();
        if size_bytes > BUFFER_SIZE_BYTES_MAX {
            drop(waiting);
            return self.counts.lost.increment();
        }
        let was_full = waiting.bytes.len() >= FULL_SIZE_BYTES;
        waiting.bytes.extend_from_slice(line);
        waiting.lines += 1;
        drop(waiting);
        if !was_full && size_bytes >= FULL_SIZE_BYTES {
            self.filled.notify_one();
        }
    }

    /// Takes the lines that wait, once there are many or after a while, in exchange for memory that is empty.
    pub(crate) fn take(&self, memory: Vec<u8>, wait_max: Duration) -> Waiting {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.len() < FULL_SIZE_BYTES && !waiting.is_closed {
            self.filled.wait_for(&mut waiting, wait_max);
        }
        let is_closed = waiting.is_closed;
        std::mem::replace(&mut *waiting, Waiting { bytes: memory, lines: 0, is_closed })
    }

    /// No others come.
    pub(crate) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.filled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::Value;

    #[test]
    fn lines_beyond_the_bound_are_left_out_and_counted() {
        let metrics = Metrics::default();
        let buffer = LineBuffer::new(LineCounts::new(&metrics));
        let line = [b'x'; 1000];
        for _ in 0..2000 {
            buffer.push(&line);
        }
        let taken = buffer.take(Vec::new(), Duration::ZERO);
        assert_eq!((taken.lines, taken.bytes.len()), (1048, 1_048_000));
        assert!(!taken.is_closed);
        buffer.push(&line);
        buffer.close();
        let taken = buffer.take(Vec::new(), Duration::from_secs(60));
        assert_eq!((taken.lines, taken.is_closed), (1, true));
        let lost = metrics.read().into_iter().find(|found| found.family.name == LOST.name).unwrap();
        assert_eq!(lost.series[0].value, Value::Number(2000 - 1048));
    }
}
