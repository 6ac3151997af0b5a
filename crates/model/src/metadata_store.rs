//! A model of the metadata store: transactions over keys with revisions, and its loss.
//!
//! A real store counts all transactions. Here each key counts its own, and a clock gives those that are
//! compared with each other: drops, backups, listings, splits. So transactions about two ranges lead to the
//! same state in either order, and the order of any two revisions that the protocol compares is kept.
//!
//! What always holds: a transaction happens as a whole or not at all; a key's revision rises with each change
//! of it; the clock never goes back; a lost store answers nothing.

use stamp::{
    Compare, Generation, Incarnation, Key, OwnEntry, RangeDocument, RangeId, Revision, Transaction,
    TransactionAnswer, Value,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys with values and the revisions of their last changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataStore {
    generation: Generation,
    restores: u64,
    clock: Revision,
    keys: BTreeMap<Key, (Value, Revision)>,
    is_lost: bool,
}

/// Which compares are made; all of them, but for a planted fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// An own entry is only compared by its epoch, and revisions of documents are not compared.
    pub epoch_alone: bool,
    /// Revisions of documents are not compared.
    pub no_revisions: bool,
}

impl MetadataStore {
    /// A store without keys, after this many restores.
    pub fn new(generation: Generation, restores: u64) -> Self {
        let clock = Revision(1);
        MetadataStore { generation, restores, clock, keys: BTreeMap::new(), is_lost: false }
    }

    /// The prefix of its keys.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// How many restores came before it.
    pub fn restores(&self) -> u64 {
        self.restores
    }

    /// The revision of what is read of all keys at a time.
    pub fn revision(&self) -> Revision {
        self.clock
    }

    /// What happens from now on is younger than what was read until now.
    pub fn tick(&mut self) {
        self.clock = Revision(self.clock.0 + 1);
    }

    /// Nothing of it is left.
    pub fn lose(&mut self) {
        self.keys.clear();
        self.is_lost = true;
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Sets a key, as the one that sets the scene, or as a lease of its own does.
    pub fn put(&mut self, key: Key, value: Value) {
        let revision = self.next_revision(key);
        self.keys.insert(key, (value, revision));
    }

    /// Sets a key as of an older revision: only a restore under the same numbers does this.
    pub fn put_as_of(&mut self, key: Key, value: Value, revision: Revision) {
        self.keys.insert(key, (value, revision));
    }

    /// The revision that a change of this key alone gets.
    fn next_revision(&self, key: Key) -> Revision {
        match key {
            Key::Dropped(_) => self.clock,
            _ => Revision(self.changed_at(key).0 + 1),
        }
    }

    /// A process's key is written with its lease.
    pub fn join(&mut self, incarnation: Incarnation) {
        self.put(Key::Process(incarnation), Value::Present);
    }

    /// A key goes with its lease.
    pub fn expire(&mut self, incarnation: Incarnation) {
        self.keys.remove(&Key::Process(incarnation));
    }

    /// A transaction has arrived.
    pub fn commit(&mut self, transaction: &Transaction, leniency: Leniency) -> TransactionAnswer {
        if !self.holds(transaction, leniency) {
            return TransactionAnswer::CompareFailed;
        }
        let documents = transaction.puts.iter().map(|(key, _)| *key).filter(|key| is_document(*key));
        let mut revision = documents.map(|key| self.next_revision(key)).max().unwrap_or(self.clock);
        if !transaction.deletes.is_empty() {
            // Several ranges: younger than all that is known of any of them.
            let gone = transaction.deletes.iter().map(|key| self.next_revision(*key)).max();
            revision = revision.max(self.clock).max(gone.unwrap_or_default());
            self.clock = revision;
            self.tick();
        }
        for (key, value) in &transaction.puts {
            let changed_at = if matches!(key, Key::Dropped(_)) { self.clock } else { revision };
            self.keys.insert(*key, (value.clone(), changed_at));
        }
        for key in &transaction.deletes {
            self.keys.remove(key);
        }
        TransactionAnswer::Committed(revision)
    }

    /// Whether a transaction would commit now.
    pub fn holds(&self, transaction: &Transaction, leniency: Leniency) -> bool {
        let is_ours = transaction.generation == self.generation && !self.is_lost;
        is_ours && transaction.compares.iter().all(|compare| self.compare(compare, leniency))
    }

    fn compare(&self, compare: &Compare, leniency: Leniency) -> bool {
        match compare {
            Compare::Is(Key::Own(range), Value::Own(expected)) if leniency.epoch_alone => {
                self.own(*range).is_some_and(|own| own.epoch <= expected.epoch)
            }
            Compare::ChangedAt(Key::Document(_), _) if leniency.epoch_alone || leniency.no_revisions => true,
            Compare::Is(key, expected) => self.keys.get(key).is_some_and(|(value, _)| value == expected),
            Compare::ChangedAt(key, revision) => self.changed_at(*key) == *revision,
            Compare::Exists(key) => self.keys.contains_key(key),
        }
    }

    /// When a key was changed last; 0 if it is not there.
    pub fn changed_at(&self, key: Key) -> Revision {
        self.keys.get(&key).map_or(Revision(0), |(_, revision)| *revision)
    }

    /// The own entry of a range.
    pub fn own(&self, range: RangeId) -> Option<OwnEntry> {
        match self.keys.get(&Key::Own(range)) {
            Some((Value::Own(own), _)) => Some(*own),
            _ => None,
        }
    }

    /// The document of a range.
    pub fn document(&self, range: RangeId) -> Option<&Arc<RangeDocument>> {
        match self.keys.get(&Key::Document(range)) {
            Some((Value::Document(document), _)) => Some(document),
            _ => None,
        }
    }

    /// All documents.
    pub fn documents(&self) -> impl Iterator<Item = &Arc<RangeDocument>> {
        self.keys.values().filter_map(|(value, _)| match value {
            Value::Document(document) => Some(document),
            _ => None,
        })
    }

    /// The extents that were dropped: length and revision of each.
    pub fn dropped(&self) -> impl Iterator<Item = (stamp::ExtentName, u64, Revision)> {
        self.keys.iter().filter_map(|(key, (value, revision))| match (key, value) {
            (Key::Dropped(extent), Value::Dropped { length }) => Some((*extent, *length, *revision)),
            _ => None,
        })
    }

    /// Whether a process's key is there.
    pub fn has_process(&self, incarnation: Incarnation) -> bool {
        self.keys.contains_key(&Key::Process(incarnation))
    }
}

fn is_document(key: Key) -> bool {
    matches!(key, Key::Document(_))
}
