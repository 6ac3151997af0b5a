//! A model of the metadata store: revisions, transactions, leases, changes of the leader, loss.
//!
//! What always holds: a transaction that arrives while there is a leader happens as a whole or not at all;
//! one that arrives while there is none gets no answer.

use crate::network::Link;
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::{ExtentName, Key, OwnEntry, RangeDocument, RangeId, Revision, StampId, Value};
use stamp_streams::{
    KeyAnswer, KeyCompare, KeyEntry, KeyTransaction, KeyValues, ReadPage, Selection, Snapshot, StoreError,
    StoreLease, StoreState, decode_value, parse_key,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Keys of a selection that a page has.
const PAGE_KEYS: usize = 40;
/// Reads of several pages that go on at a time; older ones find what they read forgotten.
const PAGED_READS_MAX: usize = 16;

#[derive(Clone)]
struct Held {
    value: Bytes,
    changed_at: Revision,
    lease: Option<StoreLease>,
}

#[derive(Clone)]
struct LeaseState {
    ttl: Duration,
    ends_at: Instant,
}

/// The keys at a time, for a restore under the same numbers: a planted fault.
#[derive(Clone)]
pub(crate) struct Kept {
    keys: BTreeMap<String, Held>,
    pub(crate) revision: u64,
}

struct KeysState {
    cluster: u64,
    revision: u64,
    keys: BTreeMap<String, Held>,
    leases: BTreeMap<StoreLease, LeaseState>,
    leases_made: u64,
    no_leader_until: Option<Instant>,
    is_lost: bool,
    last_answer: Instant,
    /// What keys held at revisions that reads of several pages are of.
    paged: VecDeque<(u64, BTreeMap<String, Held>)>,
}

/// The store itself.
pub(crate) struct SimKeys {
    state: Mutex<KeysState>,
    stamp: StampId,
    /// A planted fault: own entries are compared by their epoch alone, revisions of documents not at all.
    pub(crate) compares_epoch_alone: bool,
}

impl SimKeys {
    pub(crate) fn new(stamp: StampId, compares_epoch_alone: bool) -> Self {
        let state = KeysState {
            cluster: 1,
            revision: 1,
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            leases_made: 0,
            no_leader_until: None,
            is_lost: false,
            last_answer: Instant::now(),
            paged: VecDeque::new(),
        };
        SimKeys { state: Mutex::new(state), stamp, compares_epoch_alone }
    }

    /// Carries out a request, if the store answers at all.
    fn answer<T>(&self, request: impl FnOnce(&mut KeysState) -> T) -> Option<T> {
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.is_lost || state.no_leader_until.is_some_and(|until| now < until) {
            return None;
        }
        expire(&mut state, now);
        state.last_answer = now;
        Some(request(&mut state))
    }

    fn commit(&self, transaction: &KeyTransaction) -> Option<KeyAnswer> {
        self.answer(|state| {
            if !transaction.compares.iter().all(|compare| self.compare(state, compare)) {
                return KeyAnswer::CompareFailed(state_of(state));
            }
            let missing = |lease: &StoreLease| !state.leases.contains_key(lease);
            if transaction.puts.iter().filter_map(|(_, _, lease)| lease.as_ref()).any(missing) {
                return KeyAnswer::CompareFailed(state_of(state));
            }
            state.revision += 1;
            let changed_at = Revision(state.revision);
            for (key, value, lease) in &transaction.puts {
                let held = Held { value: value.clone(), changed_at, lease: *lease };
                state.keys.insert(key.clone(), held);
            }
            for key in &transaction.deletes {
                state.keys.remove(key);
            }
            KeyAnswer::Committed(state_of(state))
        })
    }

    fn compare(&self, state: &KeysState, compare: &KeyCompare) -> bool {
        let held = |key: &String| state.keys.get(key);
        match compare {
            KeyCompare::Is(key, value) if self.compares_epoch_alone && key.contains("/own/") => {
                let own = |bytes: &[u8]| self.own_of(key, bytes).map(|own| own.epoch);
                held(key).is_some_and(|held| own(&held.value) <= own(value))
            }
            KeyCompare::ChangedAt(key, _) if self.compares_epoch_alone && key.contains("/document/") => true,
            KeyCompare::Is(key, value) => held(key).is_some_and(|held| held.value == *value),
            KeyCompare::ChangedAt(key, revision) => {
                held(key).map_or(Revision(0), |held| held.changed_at) == *revision
            }
            KeyCompare::Exists(key) => held(key).is_some(),
        }
    }

    fn own_of(&self, text: &str, bytes: &[u8]) -> Option<OwnEntry> {
        match decode_value(text, parse_key(text)?, bytes, self.stamp) {
            Ok(Value::Own(own)) => Some(own),
            _ => None,
        }
    }

    /// A page of what is selected, now or as it was at a revision that a page has had; an error: that is
    /// forgotten.
    fn read(&self, selections: &[Selection], at: Option<Revision>) -> Option<Result<ReadPage, StoreError>> {
        self.answer(|state| {
            let keys = match at {
                None => &state.keys,
                Some(at) => match state.paged.iter().find(|(revision, _)| *revision == at.0) {
                    Some((_, keys)) => keys,
                    None => return Err(StoreError::Unavailable("compacted".to_owned())),
                },
            };
            let (mut entries, mut rest) = (BTreeMap::new(), Vec::new());
            for selection in selections {
                let is_selected = |key: &str| match selection {
                    Selection::Key(selected) => key == selected,
                    Selection::Prefix(prefix) => key.starts_with(prefix.as_str()),
                    Selection::Behind { prefix, after } => {
                        key.starts_with(prefix.as_str()) && key > after.as_str()
                    }
                };
                let mut selected = keys.iter().filter(|(key, _)| is_selected(key));
                let mut last = None;
                for (key, held) in selected.by_ref().take(PAGE_KEYS) {
                    let (value, changed_at) = (held.value.clone(), held.changed_at);
                    entries.insert(key.clone(), KeyEntry { key: key.clone(), value, changed_at });
                    last = Some(key.clone());
                }
                if let (Some(after), Some(_)) = (last, selected.next())
                    && let Selection::Prefix(prefix) | Selection::Behind { prefix, .. } = selection
                {
                    rest.push(Selection::Behind { prefix: prefix.clone(), after });
                }
            }
            if at.is_none() && !rest.is_empty() {
                let keys = state.keys.clone();
                state.paged.push_back((state.revision, keys));
                if state.paged.len() > PAGED_READS_MAX {
                    state.paged.pop_front();
                }
            }
            let entries = entries.into_values().collect();
            Ok(ReadPage { snapshot: Snapshot { state: state_of(state), entries }, rest })
        })
    }

    fn end_lease(state: &mut KeysState, lease: StoreLease) {
        state.leases.remove(&lease);
        let before = state.keys.len();
        state.keys.retain(|_, held| held.lease != Some(lease));
        state.revision += u64::from(state.keys.len() < before);
    }

    /// There is no leader for so long; the next one gives every lease its time again.
    pub(crate) fn change_leader(&self, gone_for: Duration) {
        let mut state = self.state.lock();
        let until = Instant::now() + gone_for;
        state.no_leader_until = Some(until);
        for lease in state.leases.values_mut() {
            lease.ends_at = lease.ends_at.max(until + lease.ttl);
        }
    }

    /// A lease that lives is ended, as a stuck old leader does.
    pub(crate) fn end_a_live_lease(&self, choose: impl FnOnce(usize) -> usize) {
        let mut state = self.state.lock();
        let leases: Vec<StoreLease> = state.leases.keys().copied().collect();
        if !leases.is_empty() {
            let lease = leases[choose(leases.len())];
            Self::end_lease(&mut state, lease);
        }
    }

    /// All is gone; nothing is answered until there is a new one.
    pub(crate) fn lose(&self) -> Kept {
        let mut state = self.state.lock();
        state.is_lost = true;
        let kept = Kept { keys: std::mem::take(&mut state.keys), revision: state.revision };
        state.leases.clear();
        state.paged.clear();
        kept
    }

    /// A new, empty store answers, from this revision on.
    pub(crate) fn renew(&self, revision: u64) {
        let mut state = self.state.lock();
        state.is_lost = false;
        state.cluster += 1;
        state.revision = revision;
        state.no_leader_until = None;
    }

    /// For how long nothing has been answered.
    pub(crate) fn silent_for(&self) -> Duration {
        self.state.lock().last_answer.elapsed()
    }

    pub(crate) fn keep(&self) -> Kept {
        let state = self.state.lock();
        Kept { keys: state.keys.clone(), revision: state.revision }
    }

    /// A planted fault: the restored store goes on with the numbers of the lost one.
    pub(crate) fn renumber(&self, as_of: &Kept) {
        let mut state = self.state.lock();
        state.cluster -= 1;
        for (key, held) in &mut state.keys {
            if let Some(kept) = as_of.keys.get(key) {
                held.changed_at = kept.changed_at;
            }
        }
    }

    /// All documents, as they are now.
    pub(crate) fn documents(&self) -> Vec<Arc<RangeDocument>> {
        let state = self.state.lock();
        let generation = self.generation(&state);
        let decode = |(text, held): (&String, &Held)| {
            let key = parse_key(text).filter(|key| matches!(key, Key::Document(_)))?;
            match decode_value(text, key, &held.value, self.stamp) {
                Ok(Value::Document(document)) => Some(document),
                _ => None,
            }
        };
        let in_force = state.keys.iter().filter(|(text, _)| {
            generation.as_ref().is_some_and(|generation| text.starts_with(generation.as_str()))
        });
        in_force.filter_map(decode).collect()
    }

    /// The prefix of the keys that are in force.
    fn generation(&self, state: &KeysState) -> Option<String> {
        let held = state.keys.get(&format!("{}/life", self.stamp))?;
        let generation: [u8; 16] = held.value.get(17..33)?.try_into().ok()?;
        Some(format!("{:032x}/", u128::from_le_bytes(generation)))
    }

    /// Whether a document in force names the extent.
    pub(crate) fn names(&self, extent: ExtentName) -> bool {
        self.documents().iter().any(|document| document.names(extent))
    }

    /// All ranges, as they are now.
    pub(crate) fn ranges(&self) -> Vec<RangeId> {
        self.documents().iter().map(|document| document.range).collect()
    }

    /// Puts other bytes in the place of a value: damage.
    pub(crate) fn replace(&self, is_it: impl Fn(&str) -> bool, change: impl Fn(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        for (_, held) in state.keys.iter_mut().filter(|(key, _)| is_it(key)) {
            let mut bytes = held.value.to_vec();
            change(&mut bytes);
            held.value = bytes.into();
        }
    }
}

fn state_of(state: &KeysState) -> StoreState {
    StoreState { cluster: state.cluster, revision: Revision(state.revision) }
}

fn expire(state: &mut KeysState, now: Instant) {
    let ended: Vec<StoreLease> =
        state.leases.iter().filter(|(_, lease)| lease.ends_at <= now).map(|(id, _)| *id).collect();
    for lease in ended {
        SimKeys::end_lease(state, lease);
    }
}

/// The store as a host reaches it.
pub(crate) struct HostKeys {
    pub(crate) store: Arc<SimKeys>,
    pub(crate) link: Arc<Link>,
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("reset".to_owned())
}

#[async_trait]
impl KeyValues for HostKeys {
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer {
        let (store, transaction) = (self.store.clone(), transaction.clone());
        let answer = self.link.call(true, move || store.commit(&transaction)).await;
        answer.unwrap_or(KeyAnswer::Unknown)
    }

    async fn read_page(
        &self,
        selections: &[Selection],
        at: Option<Revision>,
    ) -> Result<ReadPage, StoreError> {
        let (store, selections) = (self.store.clone(), selections.to_vec());
        let read = move || store.read(&selections, at);
        self.link.call(false, read).await.unwrap_or_else(|| Err(unavailable()))
    }

    async fn wait_for_change(&self, _after: Revision) -> Result<(), StoreError> {
        self.link.call(false, || Some(())).await.ok_or_else(unavailable)
    }

    async fn grant(&self, ttl: Duration) -> Result<StoreLease, StoreError> {
        let store = self.store.clone();
        let grant = move || {
            store.answer(|state| {
                state.leases_made += 1;
                let lease = StoreLease(state.leases_made);
                state.leases.insert(lease, LeaseState { ttl, ends_at: Instant::now() + ttl });
                lease
            })
        };
        self.link.call(true, grant).await.ok_or_else(unavailable)
    }

    async fn keep_alive(&self, lease: StoreLease) -> Result<(), StoreError> {
        let store = self.store.clone();
        let keep = move || {
            store.answer(|state| match state.leases.get_mut(&lease) {
                Some(kept) => {
                    kept.ends_at = Instant::now() + kept.ttl;
                    Ok(())
                }
                None => Err(StoreError::NotThere),
            })
        };
        self.link.call(true, keep).await.unwrap_or_else(|| Err(unavailable()))
    }

    async fn revoke(&self, lease: StoreLease) -> Result<(), StoreError> {
        let store = self.store.clone();
        let revoke = move || store.answer(|state| SimKeys::end_lease(state, lease));
        self.link.call(true, revoke).await.ok_or_else(unavailable)
    }

    async fn compact(&self, _revision: Revision) -> Result<(), StoreError> {
        // It keeps nothing that keys held before.
        self.link.call(true, || Some(())).await.ok_or_else(unavailable)
    }

    async fn lease_left(&self, key: &str) -> Result<Option<Duration>, StoreError> {
        let (store, key) = (self.store.clone(), key.to_owned());
        let left = move || {
            store.answer(|state| {
                let lease = state.leases.get(&state.keys.get(&key)?.lease?)?;
                Some(lease.ends_at.saturating_duration_since(Instant::now()))
            })
        };
        self.link.call(false, left).await.ok_or_else(unavailable)
    }
}
