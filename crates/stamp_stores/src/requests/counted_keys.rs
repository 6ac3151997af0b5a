//! A metadata store whose requests are counted.

use crate::requests::counts::{RequestCounts, RequestKind};
use async_trait::async_trait;
use base::Clock;
use stamp::Revision;
use stamp_streams::{KeyAnswer, KeyTransaction, KeyValues, ReadPage, Selection, StoreError, StoreLease};
use std::sync::Arc;
use std::time::Duration;

/// A store, and the counts of what is sent to it.
pub(crate) struct CountedKeys<S> {
    pub(crate) store: S,
    pub(crate) counts: Arc<RequestCounts>,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl<S: KeyValues> KeyValues for CountedKeys<S> {
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer {
        let under_way = self.counts.begin(RequestKind::Commit, &self.clock);
        let answer = self.store.commit(transaction).await;
        let size_bytes = transaction.puts.iter().map(|(key, value, _)| key.len() + value.len()).sum();
        under_way.end(answer != KeyAnswer::Unknown, size_bytes);
        answer
    }

    async fn read_page(
        &self,
        selections: &[Selection],
        at: Option<Revision>,
    ) -> Result<ReadPage, StoreError> {
        let under_way = self.counts.begin(RequestKind::ReadKeys, &self.clock);
        let answer = self.store.read_page(selections, at).await;
        let size_of = |page: &ReadPage| {
            page.snapshot.entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum()
        };
        under_way.end(answer.is_ok(), answer.as_ref().map_or(0, size_of));
        answer
    }

    async fn wait_for_change(&self, after: Revision) -> Result<(), StoreError> {
        let under_way = self.counts.begin(RequestKind::Wait, &self.clock);
        let answer = self.store.wait_for_change(after).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }

    async fn grant(&self, ttl: Duration) -> Result<StoreLease, StoreError> {
        let under_way = self.counts.begin(RequestKind::Grant, &self.clock);
        let answer = self.store.grant(ttl).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }

    async fn keep_alive(&self, lease: StoreLease) -> Result<(), StoreError> {
        let under_way = self.counts.begin(RequestKind::KeepAlive, &self.clock);
        let answer = self.store.keep_alive(lease).await;
        under_way.end(matches!(answer, Ok(()) | Err(StoreError::NotThere)), 0);
        answer
    }

    async fn revoke(&self, lease: StoreLease) -> Result<(), StoreError> {
        let under_way = self.counts.begin(RequestKind::Revoke, &self.clock);
        let answer = self.store.revoke(lease).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let under_way = self.counts.begin(RequestKind::Compact, &self.clock);
        let answer = self.store.compact(revision).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }

    async fn lease_left(&self, key: &str) -> Result<Option<Duration>, StoreError> {
        let under_way = self.counts.begin(RequestKind::ReadKeys, &self.clock);
        let answer = self.store.lease_left(key).await;
        under_way.end(answer.is_ok(), 0);
        answer
    }
}
