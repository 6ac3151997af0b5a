//! Objects in memory: for tests, and for trying in one process.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::PutAnswer;
use stamp_streams::{LIST_PAGE_NAMES_MAX, ListPage, ObjectStore, StoreError};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Objects in memory, bounded by what is put there.
#[derive(Debug, Default)]
pub(crate) struct MemoryObjects {
    objects: Mutex<BTreeMap<String, Bytes>>,
}

#[async_trait]
impl ObjectStore for MemoryObjects {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        let mut objects = self.objects.lock();
        if objects.contains_key(name) {
            return PutAnswer::Refused;
        }
        objects.insert(name.to_owned(), content);
        PutAnswer::Created
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let content = self.objects.lock().get(name).cloned().ok_or(StoreError::NotThere)?;
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
        Ok(content.slice(index(offset)..index(offset.saturating_add(length))))
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let objects = self.objects.lock();
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let behind = objects.range::<str, _>((from, Bound::Unbounded)).map(|(name, _)| name);
        let mut names: Vec<String> = behind
            .take_while(|name| name.starts_with(prefix))
            .take(LIST_PAGE_NAMES_MAX + 1)
            .cloned()
            .collect();
        let has_more = names.len() > LIST_PAGE_NAMES_MAX;
        names.truncate(LIST_PAGE_NAMES_MAX);
        Ok(ListPage { names, has_more })
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.objects.lock().remove(name);
        Ok(())
    }
}
