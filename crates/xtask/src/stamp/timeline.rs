//! When a writer's changes were acknowledged, kept as the gaps between them, and how long a fault kept the
//! stamp from serving: a pure decision over these gaps.
//!
//! What always holds: a gap that still lasts counts as long as it has lasted. Each writer has gaps of its
//! own, since its rows lie in other ranges than those of the others.

use std::time::{Duration, Instant};

/// A shorter pause is none.
const GAP_MIN: Duration = Duration::from_millis(500);
/// A gap behind what is allowed makes a fault late from this length on; a shorter one is a busy machine's.
const LATE_GAP_MIN: Duration = Duration::from_secs(2);

/// A span without any acknowledgement.
pub(super) type Gap = (Instant, Instant);

/// Acknowledgements of one writer.
pub(super) struct Timeline {
    last_at: Instant,
    gaps: Vec<Gap>,
}

impl Timeline {
    /// It begins now.
    pub(super) fn start() -> Self {
        Timeline { last_at: Instant::now(), gaps: Vec::new() }
    }

    /// A change was acknowledged now.
    pub(super) fn acknowledge(&mut self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.last_at) >= GAP_MIN {
            self.gaps.push((self.last_at, now));
        }
        self.last_at = now;
    }

    /// All gaps up to an instant; one that lasts until then is the last of them.
    pub(super) fn gaps(&self, until: Instant) -> Vec<Gap> {
        let lasting =
            (until.saturating_duration_since(self.last_at) >= GAP_MIN).then_some((self.last_at, until));
        self.gaps.iter().copied().chain(lasting).collect()
    }
}

/// What a fault did to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// From the fault (or from its end, where it hits all processes) to the end of the longest gap that began
    /// in what is allowed, or of the last one that is late.
    pub(super) served_again_after: Duration,
    /// That gap still lasted when the observation ended: it served again later than that, if at all.
    pub(super) lasts: bool,
    /// Something was not served after what is allowed.
    pub(super) is_late: bool,
    /// Other gaps after the fault.
    pub(super) other_gaps: usize,
}

/// One writer's outage, observed until an instant.
pub(super) fn outage(gaps: &[Gap], from: Instant, allowed: Duration, until: Instant) -> Outage {
    let after: Vec<Gap> = gaps.iter().copied().filter(|(_, end)| *end > from).collect();
    let is_late = |(start, end): &&Gap| *end > from + allowed && *end - *start >= LATE_GAP_MIN;
    let late = after.iter().filter(is_late).map(|(_, end)| *end).max();
    let in_time = after.iter().filter(|(start, _)| *start < from + allowed);
    let longest = in_time.max_by_key(|(start, end)| *end - *start).map(|(_, end)| *end);
    let served_again = late.or(longest);
    Outage {
        served_again_after: served_again.map(|end| end - from).unwrap_or_default(),
        lasts: served_again.is_some_and(|end| end >= until),
        is_late: late.is_some(),
        other_gaps: after.len().saturating_sub(1),
    }
}

/// Gaps of an observation that ended before the writers did: one that lasts then ends there.
pub(super) fn until(writers: &[Vec<Gap>], until: Instant) -> Vec<Vec<Gap>> {
    let seen = |gaps: &Vec<Gap>| {
        let seen = gaps.iter().filter(|(start, _)| *start < until);
        seen.map(|(start, end)| (*start, (*end).min(until))).collect()
    };
    writers.iter().map(seen).collect()
}

/// The outage of the writer that waited longest.
pub(super) fn worst_outage(writers: &[Vec<Gap>], from: Instant, allowed: Duration, until: Instant) -> Outage {
    let outages = writers.iter().map(|gaps| outage(gaps, from, allowed, until));
    let worst = outages.max_by_key(|outage| (outage.is_late, outage.served_again_after));
    let nobody_wrote =
        Outage { served_again_after: Duration::MAX, lasts: true, is_late: true, other_gaps: 0 };
    worst.unwrap_or(nobody_wrote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_after_the_fault_decides_and_a_late_one_fails() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let gap = |start, end| (at(start), at(end));
        // Gaps, served again after, lasts, late, others. The fault is at 1 s, 7 s are allowed, 22.5 s seen.
        let cases: [(&[Gap], u64, bool, bool, usize); 10] = [
            (&[], 0, false, false, 0),
            (&[gap(0, 900)], 0, false, false, 0),
            (&[gap(900, 5000)], 4000, false, false, 0),
            (&[gap(1500, 5000), gap(6000, 7000)], 4000, false, false, 1),
            (&[gap(900, 1600), gap(4000, 7000)], 6000, false, false, 1),
            (&[gap(1100, 8100)], 7100, false, true, 0),
            // A short one of a busy machine, whenever it comes.
            (&[gap(900, 2000), gap(9000, 10_000)], 1000, false, false, 1),
            (&[gap(900, 4000), gap(20_000, 22_400)], 21_400, false, true, 1),
            (&[gap(900, 4000), gap(20_000, 22_500)], 21_500, true, true, 1),
            (&[gap(7500, 8200)], 7200, false, false, 0),
        ];
        let allowed = Duration::from_secs(7);
        for (gaps, after, lasts, is_late, other_gaps) in cases {
            let served_again_after = Duration::from_millis(after);
            let wanted = Outage { served_again_after, lasts, is_late, other_gaps };
            assert_eq!(outage(gaps, at(1000), allowed, at(22_500)), wanted, "{after}");
        }
        let writers = [vec![gap(900, 5000)], vec![gap(900, 8500)], Vec::new()];
        let worst = |writers| worst_outage(writers, at(1000), allowed, at(22_500));
        assert!(worst(&writers).is_late, "one writer's range is late");
        assert!(worst(&[]).is_late, "nobody wrote");
    }

    #[test]
    fn what_comes_after_the_observation_is_not_of_the_fault() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let gaps = vec![(at(0), at(900)), (at(1000), at(3000)), (at(2500), at(9000))];
        assert_eq!(until(&[gaps], at(2000)), [vec![(at(0), at(900)), (at(1000), at(2000))]]);
    }

    #[test]
    fn a_gap_that_lasts_is_one() {
        let mut timeline = Timeline::start();
        timeline.acknowledge();
        let until = timeline.last_at + Duration::from_secs(3);
        assert_eq!(timeline.gaps(until), [(timeline.last_at, until)]);
        assert_eq!(timeline.gaps(timeline.last_at), []);
    }
}
