//! Transactions and reads of one generation of a stamp, and whether it is still the same store that answers.
//!
//! What always holds: one try of a request ends within a named time; an answer of another cluster, or of a
//! revision below one that was known when the request was sent, makes this end for good: whoever uses it
//! drops everything.

use crate::error::StampError;
use crate::metadata::wire::{
    KeyKind, LifeEntry, decode_life, decode_value, encode_value, key_text, kind_prefix, life_key, parse_key,
};
use crate::settings::Breach;
use crate::stores::key_values::{
    KeyAnswer, KeyCompare, KeyTransaction, PagedRead, Selection, Snapshot, StoreLease, StoreState,
};
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::{
    Compare, DocumentRead, Key, OwnEntry, Owner, RangeId, Revision, StampLife, StoredError, Transaction,
    TransactionAnswer, Value,
};
use std::collections::BTreeMap;

/// What is known of the store that answers.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    cluster: Option<u64>,
    revision: Revision,
    is_other: bool,
}

/// Values at one revision.
pub(crate) struct Values {
    pub(crate) revision: Revision,
    pub(crate) values: BTreeMap<Key, (Value, Revision)>,
}

impl Values {
    pub(crate) fn get(&self, key: Key) -> Option<&Value> {
        self.values.get(&key).map(|(value, _)| value)
    }

    /// When a key was changed last; 0 if it is not there.
    pub(crate) fn changed_at(&self, key: Key) -> Revision {
        self.values.get(&key).map_or(Revision(0), |(_, revision)| *revision)
    }

    pub(crate) fn own(&self, range: RangeId) -> Option<OwnEntry> {
        match self.get(Key::Own(range)) {
            Some(Value::Own(own)) => Some(*own),
            _ => None,
        }
    }
}

/// The metadata store as one life of a process knows it.
pub(crate) struct Metadata {
    surroundings: Surroundings,
    life: StampLife,
    known: Mutex<Known>,
}

impl Metadata {
    pub(crate) fn new(surroundings: Surroundings, life: StampLife) -> Self {
        Metadata { surroundings, life, known: Mutex::default() }
    }

    /// Whether another store has answered, or an older state of this one.
    pub(crate) fn is_other_store(&self) -> bool {
        self.known.lock().is_other
    }

    /// The newest revision that an answer has had.
    pub(crate) fn known_revision(&self) -> Revision {
        self.known.lock().revision
    }

    fn note(&self, before: Known, state: StoreState) -> bool {
        let mut known = self.known.lock();
        let is_other_cluster = known.cluster.is_some_and(|cluster| cluster != state.cluster);
        known.is_other |= is_other_cluster || state.revision < before.revision;
        known.cluster.get_or_insert(state.cluster);
        known.revision = known.revision.max(state.revision);
        known.is_other
    }

    /// Sends a transaction once.
    pub(crate) async fn commit(&self, transaction: &Transaction) -> TransactionAnswer {
        self.commit_with(transaction, None).await
    }

    /// Sends a transaction once, whose puts go with `lease`, if there is one.
    pub(crate) async fn commit_with(
        &self,
        transaction: &Transaction,
        lease: Option<StoreLease>,
    ) -> TransactionAnswer {
        self.send(self.keyed(transaction, lease)).await
    }

    /// Sends once what is written before the life is in force, and never after that: a try that arrives late
    /// finds the life there and changes nothing, whoever has changed or removed the keys since then.
    pub(crate) async fn commit_before_life(&self, transaction: &Transaction) -> TransactionAnswer {
        let mut keyed = self.keyed(transaction, None);
        let life = life_key(self.life.stamp);
        keyed.compares.push(KeyCompare::ChangedAt(life, Revision(0)));
        self.send(keyed).await
    }

    /// Sends once what the owner of a range writes beside it, under keys as the store has them: only while
    /// the range is its own.
    pub(crate) async fn commit_beside(
        &self,
        range: RangeId,
        owner: Owner,
        puts: &[(String, Bytes)],
    ) -> TransactionAnswer {
        let mut transaction = Transaction::new(self.life.generation);
        transaction.compares.push(Compare::Is(Key::Own(range), Value::Own(OwnEntry::of(owner))));
        let mut keyed = self.keyed(&transaction, None);
        keyed.puts.extend(puts.iter().map(|(key, value)| (key.clone(), value.clone(), None)));
        self.send(keyed).await
    }

    async fn send(&self, keyed: KeyTransaction) -> TransactionAnswer {
        let before = *self.known.lock();
        let answer = self.surroundings.try_key(self.surroundings.keys.commit(&keyed)).await;
        match answer {
            Some(KeyAnswer::Committed(state)) if !self.note(before, state) => {
                TransactionAnswer::Committed(state.revision)
            }
            Some(KeyAnswer::CompareFailed(state)) if !self.note(before, state) => {
                TransactionAnswer::CompareFailed
            }
            _ => TransactionAnswer::Unknown,
        }
    }

    fn keyed(&self, transaction: &Transaction, lease: Option<StoreLease>) -> KeyTransaction {
        let generation = transaction.generation;
        let text = |key: Key| key_text(generation, key);
        let bytes = |key: Key, value: &Value| encode_value(&text(key), value, self.life.stamp);
        let compare = |compare: &Compare| match compare {
            Compare::Is(key, value) => KeyCompare::Is(text(*key), bytes(*key, value)),
            Compare::ChangedAt(key, revision) => KeyCompare::ChangedAt(text(*key), *revision),
            Compare::Exists(key) => KeyCompare::Exists(text(*key)),
        };
        // A planted fault: a trim is written over whatever is there; everything else keeps its compares.
        let drops = transaction.puts.iter().any(|(key, _)| matches!(key, Key::Dropped(_)));
        let is_off = self.surroundings.settings.planted.has(Breach::NoRevisionCompare) && drops;
        let is_compared = |compare: &&Compare| {
            !(is_off && matches!(compare, Compare::ChangedAt(Key::Document(_), revision) if revision.0 > 0))
        };
        KeyTransaction {
            compares: transaction.compares.iter().filter(is_compared).map(compare).collect(),
            puts: transaction
                .puts
                .iter()
                .map(|(key, value)| (text(*key), bytes(*key, value), lease))
                .collect(),
            deletes: transaction.deletes.iter().map(|key| text(*key)).collect(),
        }
    }

    async fn snapshot(&self, what: &str, selections: &[Selection]) -> Result<Snapshot, StampError> {
        let before = *self.known.lock();
        let mut read = PagedRead::new(selections);
        // Each page has the time of a try: lists are as long as what was dropped is much.
        while let Some((selections, at)) = read.next_page() {
            let page = self.surroundings.keys.read_page(&selections, at);
            let answer = self.surroundings.try_key(page).await;
            let answer = answer.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
            let added = answer.and_then(|page| read.add(page));
            added.map_err(|error| StampError::store(what, error))?;
        }
        let snapshot = read.into_snapshot();
        if self.note(before, snapshot.state) {
            return Err(StampError::LeaseEnded);
        }
        Ok(snapshot)
    }

    fn values(&self, snapshot: Snapshot) -> Result<Values, StoredError> {
        let mut values = BTreeMap::new();
        for entry in snapshot.entries {
            let Some(key) = parse_key(&entry.key) else {
                let (what, why) = (format!("key {}", entry.key), "it has another form".to_owned());
                return Err(StoredError::Malformed { what, why });
            };
            let value = decode_value(&entry.key, key, &entry.value, self.life.stamp)?;
            values.insert(key, (value, entry.changed_at));
        }
        Ok(Values { revision: snapshot.state.revision, values })
    }

    /// Reads keys at one revision.
    pub(crate) async fn read(&self, keys: &[Key]) -> Result<Values, StampError> {
        let text = |key: &Key| Selection::Key(key_text(self.life.generation, *key));
        let selections: Vec<Selection> = keys.iter().map(text).collect();
        let snapshot = self.snapshot("metadata", &selections).await?;
        Ok(self.values(snapshot)?)
    }

    /// Reads all keys of some kinds, and some keys, at one revision.
    pub(crate) async fn list(&self, kinds: &[KeyKind], keys: &[Key]) -> Result<Values, StampError> {
        let generation = self.life.generation;
        let kinds = kinds.iter().map(|kind| Selection::Prefix(kind_prefix(generation, *kind)));
        let keys = keys.iter().map(|key| Selection::Key(key_text(generation, *key)));
        let selections: Vec<Selection> = kinds.chain(keys).collect();
        let snapshot = self.snapshot("metadata", &selections).await?;
        Ok(self.values(snapshot)?)
    }

    /// Reads the document of a range, for `choose_after_transaction`.
    ///
    /// # Errors
    ///
    /// If the document is damaged.
    pub(crate) async fn read_document(&self, range: RangeId) -> Result<DocumentRead, StampError> {
        let values = match self.read(&[Key::Document(range)]).await {
            Ok(values) => values,
            Err(StampError::Stored(error)) => return Err(error.into()),
            Err(_) => return Ok(DocumentRead::Unknown),
        };
        Ok(match values.values.get(&Key::Document(range)) {
            Some((Value::Document(document), revision)) => {
                DocumentRead::There { mark: document.mark, revision: *revision }
            }
            _ => DocumentRead::Gone,
        })
    }
}

/// Reads which life of the metadata store is in force; none if there is no stamp.
pub(crate) async fn read_life(surroundings: &Surroundings) -> Result<Option<LifeEntry>, StampError> {
    let stamp = surroundings.settings.stamp;
    let selections = [Selection::Key(life_key(stamp))];
    let answer = surroundings.try_key(surroundings.keys.read(&selections)).await;
    let answer = answer.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
    let snapshot = answer.map_err(|error| StampError::store("the life of the stamp", error))?;
    let entry = snapshot.entries.first().map(|entry| decode_life(&entry.value, stamp));
    Ok(entry.transpose()?)
}
