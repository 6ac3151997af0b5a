//! The stored clock of dropped extents, as a sweeper drives it.
//!
//! What always holds: the clock is moved by a write that compares the one before it, and only by time that
//! passed here between the two: so no time counts twice, whoever else sweeps.

use crate::collection::ages::Ages;
use crate::membership::life::Life;
use crate::metadata::wire::ages_key;
use crate::stores::key_values::{KeyAnswer, KeyCompare, KeyTransaction, Selection};
use stamp::Revision;
use std::time::Duration;

/// What is stored, and since when this process knows it.
#[derive(Clone, Debug)]
pub(super) struct AgeClock {
    ages: Ages,
    changed_at: Revision,
    /// By the monotonic clock.
    since: Duration,
}

impl AgeClock {
    /// As it is stored now; none if the store does not answer.
    pub(super) async fn read(life: &Life) -> Option<Self> {
        let surroundings = &life.surroundings;
        let key = ages_key(life.life().generation);
        let selections = [Selection::Key(key)];
        let snapshot = surroundings.try_key(surroundings.keys.read(&selections)).await?.ok()?;
        let since = surroundings.clock.monotonic();
        let entry = snapshot.entries.first();
        let ages = entry.map(|entry| Ages::decode(&entry.value));
        if ages == Some(None) {
            tracing::warn!("the ages of dropped extents can't be read: they begin anew");
        }
        let changed_at = entry.map_or(Revision(0), |entry| entry.changed_at);
        Some(AgeClock { ages: ages.flatten().unwrap_or_default(), changed_at, since })
    }

    /// How long ago `revision` was there at least, `now` by the monotonic clock.
    pub(super) fn age(&self, life: &Life, revision: Revision, now: Duration) -> Duration {
        match self.ages.age(revision) {
            Duration::ZERO => Duration::ZERO,
            age => age + self.passed(life, now),
        }
    }

    fn passed(&self, life: &Life, now: Duration) -> Duration {
        now.saturating_sub(self.since) * life.surroundings.settings.age_factor
    }

    /// Stores that it is `now`, when `revision` was there; none if another has moved it, or the outcome is
    /// not known.
    pub(super) async fn moved(self, life: &Life, revision: Revision, now: Duration) -> Option<Self> {
        let surroundings = &life.surroundings;
        let ages = self.ages.later(self.passed(life, now), revision);
        let key = ages_key(life.life().generation);
        let transaction = KeyTransaction {
            compares: vec![KeyCompare::ChangedAt(key.clone(), self.changed_at)],
            puts: vec![(key, ages.encode().into(), None)],
            deletes: Vec::new(),
        };
        match surroundings.try_key(surroundings.keys.commit(&transaction)).await {
            Some(KeyAnswer::Committed(state)) => {
                Some(AgeClock { ages, changed_at: state.revision, since: now })
            }
            _ => None,
        }
    }
}
