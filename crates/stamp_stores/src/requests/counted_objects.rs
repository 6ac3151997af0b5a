//! An object store whose requests are counted.

use crate::requests::counts::{RequestCounts, RequestKind};
use async_trait::async_trait;
use base::Clock;
use bytes::Bytes;
use stamp::PutAnswer;
use stamp_streams::{ListPage, ObjectStore, StoreError};
use std::sync::Arc;

/// A store, and the counts of what is sent to it.
pub(crate) struct CountedObjects<S> {
    pub(crate) store: S,
    pub(crate) counts: Arc<RequestCounts>,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for CountedObjects<S> {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        let under_way = self.counts.begin(RequestKind::Create, &self.clock);
        let size_bytes = content.len();
        let answer = self.store.create(name, content).await;
        under_way.end(matches!(answer, PutAnswer::Created | PutAnswer::Refused), size_bytes);
        answer
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let under_way = self.counts.begin(RequestKind::Read, &self.clock);
        let answer = self.store.read(name, offset, length).await;
        let is_answered = matches!(answer, Ok(_) | Err(StoreError::NotThere));
        under_way.end(is_answered, answer.as_ref().map_or(0, Bytes::len));
        answer
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let under_way = self.counts.begin(RequestKind::List, &self.clock);
        let answer = self.store.list(prefix, after).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let under_way = self.counts.begin(RequestKind::Delete, &self.clock);
        let answer = self.store.delete(name).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }
}
