//! A model of the object store. What always holds: an object is created once; a listing may lag, a read not.

use crate::network::Link;
use async_trait::async_trait;
use base::checksum::crc64;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::PutAnswer;
use stamp_streams::{LIST_PAGE_NAMES_MAX, ListPage, ObjectStore, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// It answers nothing that helps.
    Down,
    /// It refuses what is new.
    Full,
}

pub(crate) struct ObjectsState {
    objects: BTreeMap<String, (Bytes, Instant)>,
    deleted: BTreeMap<String, Instant>,
    pub(crate) health: Health,
    /// It does not answer for names that begin so, until then.
    pub(crate) stuck: Option<(String, Instant)>,
    /// For how long a listing may lack what was created, and have what was deleted.
    pub(crate) list_lag: Duration,
}

/// What is asked when an object is deleted: what is wrong with it.
pub(crate) type DeletionCheck = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The store itself.
pub(crate) struct SimObjects {
    pub(crate) state: Mutex<ObjectsState>,
    pub(crate) wrong: Mutex<Option<String>>,
    pub(crate) check: Mutex<Option<Box<DeletionCheck>>>,
    pub(crate) reads: AtomicUsize,
}

impl SimObjects {
    pub(crate) fn new(list_lag: Duration) -> Self {
        let state = ObjectsState {
            objects: BTreeMap::new(),
            deleted: BTreeMap::new(),
            health: Health::Well,
            stuck: None,
            list_lag,
        };
        SimObjects {
            state: Mutex::new(state),
            wrong: Mutex::default(),
            check: Mutex::default(),
            reads: AtomicUsize::new(0),
        }
    }

    fn is_stuck(state: &ObjectsState, name: &str) -> bool {
        let now = Instant::now();
        let is_it = |(prefix, until): &(String, Instant)| name.starts_with(prefix.as_str()) && now < *until;
        state.health == Health::Down || state.stuck.as_ref().is_some_and(is_it)
    }

    pub(crate) fn create(&self, name: &str, content: Bytes) -> Option<PutAnswer> {
        let mut state = self.state.lock();
        if Self::is_stuck(&state, name) {
            return None;
        }
        if state.objects.contains_key(name) {
            return Some(PutAnswer::Refused);
        }
        if state.health == Health::Full {
            return Some(PutAnswer::Failed { status: 507 });
        }
        // Nothing depends on a bundle: one in four is damaged.
        let is_damaged = name.contains("/bundle/") && crc64(&[name.as_bytes()]).is_multiple_of(4);
        let content = if is_damaged { content.slice(1..) } else { content };
        state.objects.insert(name.to_owned(), (content, Instant::now()));
        Some(PutAnswer::Created)
    }

    pub(crate) fn read(&self, name: &str) -> Option<Result<Bytes, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
        if Self::is_stuck(&state, name) {
            return None;
        }
        let found = state.objects.get(name).map(|(content, _)| content.clone());
        Some(found.ok_or(StoreError::NotThere))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Option<ListPage> {
        let state = self.state.lock();
        if state.health == Health::Down {
            return None;
        }
        let is_new = |at: &Instant| at.elapsed() < state.list_lag;
        let there = state.objects.iter().filter(|(_, (_, at))| !is_new(at)).map(|(name, _)| name);
        let gone = state.deleted.iter().filter(|(_, at)| is_new(at)).map(|(name, _)| name);
        let mut names: Vec<String> =
            there.chain(gone).filter(|name| name.starts_with(prefix)).cloned().collect();
        names.retain(|name| after.is_none_or(|after| name.as_str() > after));
        names.sort();
        names.dedup();
        let has_more = names.len() > LIST_PAGE_NAMES_MAX;
        names.truncate(LIST_PAGE_NAMES_MAX);
        Some(ListPage { names, has_more })
    }

    fn delete(&self, name: &str) -> Option<()> {
        if self.state.lock().health == Health::Down {
            return None;
        }
        let is_there = self.state.lock().objects.contains_key(name);
        if is_there && let Some(wrong) = self.check.lock().as_ref().and_then(|check| check(name)) {
            self.wrong.lock().get_or_insert(wrong);
        }
        let mut state = self.state.lock();
        if state.objects.remove(name).is_some() {
            state.deleted.insert(name.to_owned(), Instant::now());
        }
        Some(())
    }

    pub(crate) fn list_lag(&self) -> Duration {
        self.state.lock().list_lag
    }

    /// All names, whatever listings show.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().objects.keys().cloned().collect()
    }

    /// Puts other bytes in the place of an object: damage.
    pub(crate) fn replace(&self, name: &str, content: Bytes) {
        self.state.lock().objects.insert(name.to_owned(), (content, Instant::now()));
    }
}

/// The store as a host reaches it.
pub(crate) struct HostObjects {
    pub(crate) store: Arc<SimObjects>,
    pub(crate) link: Arc<Link>,
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("reset".to_owned())
}

#[async_trait]
impl ObjectStore for HostObjects {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        let (store, name) = (self.store.clone(), name.to_owned());
        let answer = self.link.call(true, move || store.create(&name, content)).await;
        answer.unwrap_or(PutAnswer::Unknown)
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let content = self.link.call(false, move || store.read(&name)).await.ok_or_else(unavailable)??;
        let from = (offset as usize).min(content.len());
        let to = from.saturating_add(length as usize).min(content.len());
        Ok(content.slice(from..to))
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let (store, prefix, after) = (self.store.clone(), prefix.to_owned(), after.map(str::to_owned));
        let listed = self.link.call(false, move || store.list(&prefix, after.as_deref())).await;
        listed.ok_or_else(unavailable)
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let answer = self.link.call(true, move || store.delete(&name)).await;
        answer.ok_or_else(|| StoreError::UnknownOutcome("reset".to_owned()))
    }
}
