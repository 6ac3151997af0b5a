//! For how long the newest beat, or another key, of each process has been its newest, by this process's own
//! clock: pure.
//!
//! What always holds: the time is never longer than it is. It counts from when the answer that first showed
//! the beat had come, to before the newest request was sent.

use stamp::{Incarnation, Revision};
use std::collections::BTreeMap;
use std::time::Duration;

/// The newest beats, and when they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct BeatsSeen {
    beats: BTreeMap<Incarnation, (Revision, Duration)>,
}

impl BeatsSeen {
    /// A read whose answer came at `answered_at` has these newest beats; all others are forgotten.
    pub(crate) fn saw(&mut self, beats: &BTreeMap<Incarnation, Revision>, answered_at: Duration) {
        self.beats.retain(|incarnation, _| beats.contains_key(incarnation));
        for (incarnation, beat) in beats {
            match self.beats.get(incarnation) {
                Some((known, _)) if known == beat => {}
                _ => {
                    self.beats.insert(*incarnation, (*beat, answered_at));
                }
            }
        }
    }

    /// For how long the newest beat of `incarnation` has been known.
    pub(crate) fn silent_for(&self, incarnation: Incarnation, now: Duration) -> Duration {
        self.beats.get(&incarnation).map_or(Duration::ZERO, |(_, seen_at)| now.saturating_sub(*seen_at))
    }

    /// For how long a key that changes as beats do has been seen as it is, if it is there.
    pub(crate) fn seen_for(&self, incarnation: Incarnation, now: Duration) -> Option<Duration> {
        self.beats.get(&incarnation).map(|(_, seen_at)| now.saturating_sub(*seen_at))
    }

    /// Whether no process with a lower name than `mine` has beaten within `within`, but for those that are
    /// `out`.
    pub(crate) fn is_first(
        &self,
        mine: Incarnation,
        out: impl Fn(Incarnation) -> bool,
        within: Duration,
        now: Duration,
    ) -> bool {
        let mut before = self.beats.range(..mine).filter(|(other, _)| !out(**other));
        before.all(|(_, (_, seen_at))| now.saturating_sub(*seen_at) >= within)
    }

    /// For how long `beat` has been the newest of `incarnation`, if it was so in a read sent at `sent_at`.
    pub(crate) fn unchanged_for(
        &self,
        incarnation: Incarnation,
        beat: Revision,
        sent_at: Duration,
    ) -> Duration {
        match self.beats.get(&incarnation) {
            Some((known, seen_at)) if *known == beat => sent_at.saturating_sub(*seen_at),
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_first_answer_with_this_beat() {
        let (process, second) = (Incarnation(1), Duration::from_secs);
        let mut seen = BeatsSeen::default();
        let beats = |beat| BTreeMap::from([(process, Revision(beat))]);
        seen.saw(&beats(5), second(10));
        seen.saw(&beats(5), second(14));
        assert_eq!(seen.unchanged_for(process, Revision(5), second(19)), second(9));
        assert_eq!(seen.unchanged_for(process, Revision(6), second(19)), Duration::ZERO);
        seen.saw(&beats(6), second(20));
        assert_eq!(seen.unchanged_for(process, Revision(6), second(21)), second(1));
        seen.saw(&BTreeMap::new(), second(22));
        assert_eq!(seen.unchanged_for(process, Revision(6), second(30)), Duration::ZERO);
    }

    #[test]
    fn one_of_those_that_live_is_first_in_line() {
        let (name, second) = (|number| Incarnation(number), Duration::from_secs);
        let mut seen = BeatsSeen::default();
        // The owner 1 is silent, 2 has gone, 3 and 4 live.
        seen.saw(&BTreeMap::from([1, 2, 3, 4].map(|process| (name(process), Revision(5)))), second(10));
        seen.saw(
            &BTreeMap::from(
                [(1, 5), (2, 5), (3, 6), (4, 6)].map(|(process, beat)| (name(process), Revision(beat))),
            ),
            second(20),
        );
        let out = |owner: Incarnation| owner == name(1);
        let first = [2, 3, 4].map(|mine| seen.is_first(name(mine), out, second(5), second(21)));
        assert_eq!(first, [true, true, false]);
        let out = |owner: Incarnation| [name(1), name(3)].contains(&owner);
        assert!(seen.is_first(name(4), out, second(5), second(21)), "3 can't take the range");
        assert_eq!(seen.seen_for(name(3), second(25)), Some(second(5)));
        assert_eq!(seen.seen_for(name(5), second(25)), None);
    }
}
