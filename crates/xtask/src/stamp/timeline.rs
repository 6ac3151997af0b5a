//! When writes were acknowledged, kept as the gaps between them, and how long a fault kept the stamp from
//! serving: a pure decision over these gaps.
//!
//! What always holds: a pause that still lasts counts as long as it has lasted.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A shorter pause is none.
const GAP_MIN: Duration = Duration::from_millis(500);

/// A span without any acknowledgement.
pub(super) type Gap = (Instant, Instant);

/// Acknowledgements of all writers.
pub(super) struct Timeline {
    inner: Mutex<Inner>,
}

struct Inner {
    last_at: Instant,
    gaps: Vec<Gap>,
}

impl Timeline {
    pub(super) fn start() -> Self {
        let inner = Inner { last_at: Instant::now(), gaps: Vec::new() };
        Timeline { inner: Mutex::new(inner) }
    }

    /// A write was acknowledged now.
    pub(super) fn acknowledged(&self) {
        let now = Instant::now();
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if now.saturating_duration_since(inner.last_at) >= GAP_MIN {
            let gap = (inner.last_at, now);
            inner.gaps.push(gap);
        }
        inner.last_at = inner.last_at.max(now);
    }

    /// All gaps until now; one that lasts until now is the last of them.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut gaps = inner.gaps.clone();
        let now = Instant::now();
        if now.saturating_duration_since(inner.last_at) >= GAP_MIN {
            gaps.push((inner.last_at, now));
        }
        gaps
    }
}

/// What a fault did to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// From the fault (or from its end, where it hits all processes) to the end of the longest gap.
    pub(super) served_again_after: Duration,
    /// Other gaps after the fault.
    pub(super) other_gaps: usize,
}

/// The longest gap that ends after `from` decides; none: served all the time.
pub(super) fn outage(gaps: &[Gap], from: Instant) -> Outage {
    let after: Vec<&Gap> = gaps.iter().filter(|(_, end)| *end > from).collect();
    let longest = after.iter().max_by_key(|(start, end)| *end - *start);
    Outage {
        served_again_after: longest.map_or(Duration::ZERO, |(_, end)| *end - from),
        other_gaps: after.len().saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_after_the_fault_decides() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let gap = |start, end| (at(start), at(end));
        // Gaps, fault, served again after, others.
        let cases: [(&[Gap], u64, u64, usize); 5] = [
            (&[], 1000, 0, 0),
            (&[gap(0, 900)], 1000, 0, 0),
            (&[gap(900, 5000)], 1000, 4000, 0),
            (&[gap(1500, 5000), gap(6000, 7000)], 1000, 4000, 1),
            (&[gap(900, 1600), gap(4000, 9000)], 1000, 8000, 1),
        ];
        for (gaps, fault, after, others) in cases {
            let wanted = Outage { served_again_after: Duration::from_millis(after), other_gaps: others };
            assert_eq!(outage(gaps, at(fault)), wanted, "{after}");
        }
    }
}
