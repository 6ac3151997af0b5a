//! Transactions, reads and leases over the gateway.
//!
//! What always holds: a transaction is sent once, unless nothing of it was sent or its refusal proves that
//! nothing was done; reads are linearizable, and all pages of one are of one revision.

use crate::etcd::errors::{AskError, EtcdError};
use crate::etcd::json::{
    Page, Piece, SELECTIONS_MAX, commit_answer, commit_request, grant_answer, keep_alive_answer,
    key_lease_answer, lease_left_answer, read_answer, read_request,
};
use crate::etcd::members::{Ask, Members};
use crate::etcd::watch::SharedWatch;
use async_trait::async_trait;
use base::Clock;
use serde_json::json;
use stamp::Revision;
use stamp_streams::{
    KeyAnswer, KeyTransaction, KeyValues, ReadPage, Selection, Snapshot, StoreError, StoreLease, StoreState,
};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a short answer, at most.
const SHORT_SIZE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a page of a read, at most: pages of a few selections, whose documents have up to 256 KiB, in
/// base64.
const READ_SIZE_BYTES_MAX: usize = 256 << 20;

/// Keys of one etcd, below a prefix.
pub(crate) struct EtcdKeys {
    pub(crate) members: Members,
    pub(crate) base: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wait_for: Duration,
    pub(crate) watch: SharedWatch,
}

/// A read that brought nothing.
fn read_error(error: AskError) -> StoreError {
    match error {
        AskError::Nothing(EtcdError::Refused(what) | EtcdError::LogIn(what)) => StoreError::Refused(what),
        error => StoreError::Unavailable(error.shown()),
    }
}

/// A change of a lease that did not come about, or may have.
fn lease_error(error: AskError) -> StoreError {
    match error {
        AskError::Nothing(EtcdError::NoLease) => StoreError::NotThere,
        AskError::MayBeDone(what) => StoreError::UnknownOutcome(what),
        error => read_error(error),
    }
}

impl EtcdKeys {
    async fn ask(&self, path: &str, body: bytes::Bytes, size_max: usize) -> Result<bytes::Bytes, AskError> {
        self.members.ask(&Ask { path, body, size_max, is_repeatable: true }).await
    }

    /// Reads pieces in one transaction.
    async fn read_pieces(
        &self,
        pieces: &[Piece],
        at: Option<Revision>,
    ) -> Result<(StoreState, Vec<Page>), StoreError> {
        let body = self.ask("/v3/kv/txn", read_request(pieces, at), READ_SIZE_BYTES_MAX).await;
        let body = body.map_err(read_error)?;
        read_answer(&body, pieces.len(), &self.base).map_err(StoreError::Unavailable)
    }

    /// The state now.
    async fn state(&self) -> Result<StoreState, StoreError> {
        Ok(self.read_pieces(&[Piece { from: vec![0], end: None }], None).await?.0)
    }

    async fn lease(&self, path: &str, body: serde_json::Value) -> Result<bytes::Bytes, StoreError> {
        self.ask(path, body.to_string().into(), SHORT_SIZE_BYTES_MAX).await.map_err(lease_error)
    }
}

/// What of a selection is behind a key, which has the base in front.
fn behind(selection: &Selection, key: &[u8], base: &str) -> Option<Selection> {
    let after = std::str::from_utf8(key.strip_prefix(base.as_bytes())?).ok()?.to_owned();
    match selection {
        Selection::Key(_) => None,
        Selection::Prefix(prefix) | Selection::Behind { prefix, .. } => {
            Some(Selection::Behind { prefix: prefix.clone(), after })
        }
    }
}

#[async_trait]
impl KeyValues for EtcdKeys {
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer {
        let body = commit_request(transaction, &self.base);
        let ask = Ask { path: "/v3/kv/txn", body, size_max: SHORT_SIZE_BYTES_MAX, is_repeatable: false };
        match self.members.ask(&ask).await {
            Ok(body) => match commit_answer(&body) {
                Ok((true, state)) => KeyAnswer::Committed(state),
                Ok((false, state)) => KeyAnswer::CompareFailed(state),
                Err(why) => {
                    tracing::warn!(why, "an answer of etcd can't be read");
                    KeyAnswer::Unknown
                }
            },
            // A put under a lease that has ended is one more compare that fails.
            Err(AskError::Nothing(EtcdError::NoLease)) => {
                self.state().await.map_or(KeyAnswer::Unknown, KeyAnswer::CompareFailed)
            }
            Err(error) => {
                if matches!(error, AskError::Nothing(_)) {
                    tracing::warn!("etcd refuses a transaction: {}", error.shown());
                }
                KeyAnswer::Unknown
            }
        }
    }

    async fn read_page(
        &self,
        selections: &[Selection],
        at: Option<Revision>,
    ) -> Result<ReadPage, StoreError> {
        if selections.is_empty() {
            let snapshot = Snapshot { state: self.state().await?, entries: Vec::new() };
            return Ok(ReadPage { snapshot, rest: Vec::new() });
        }
        let (now, later) = selections.split_at(selections.len().min(SELECTIONS_MAX));
        let pieces: Vec<Piece> = now.iter().map(|selection| Piece::of(selection, &self.base)).collect();
        let (state, pages) = self.read_pieces(&pieces, at).await?;
        let mut rest = Vec::new();
        for (selection, page) in now.iter().zip(&pages) {
            rest.extend(page.more_behind.as_ref().and_then(|key| behind(selection, key, &self.base)));
        }
        rest.extend_from_slice(later);
        let entries = pages.into_iter().flat_map(|page| page.entries).collect();
        Ok(ReadPage { snapshot: Snapshot { state, entries }, rest })
    }

    async fn wait_for_change(&self, after: Revision) -> Result<(), StoreError> {
        self.watch.wait(&self.members, &self.base, &self.clock, after, self.wait_for).await
    }

    async fn grant(&self, ttl: Duration) -> Result<StoreLease, StoreError> {
        // In whole seconds; a longer lease is never a danger.
        let ttl_s = ttl.as_millis().div_ceil(1000).max(1);
        let body = self.lease("/v3/lease/grant", json!({ "TTL": ttl_s.to_string() })).await?;
        grant_answer(&body).map(StoreLease).map_err(StoreError::UnknownOutcome)
    }

    async fn keep_alive(&self, lease: StoreLease) -> Result<(), StoreError> {
        let body = self.lease("/v3/lease/keepalive", json!({ "ID": lease.0.to_string() })).await?;
        match keep_alive_answer(&body) {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::NotThere),
            Err(why) => Err(StoreError::UnknownOutcome(why)),
        }
    }

    async fn revoke(&self, lease: StoreLease) -> Result<(), StoreError> {
        let revoked = self.lease("/v3/lease/revoke", json!({ "ID": lease.0.to_string() })).await;
        match revoked {
            // It has ended already.
            Ok(_) | Err(StoreError::NotThere) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let body = json!({ "revision": revision.0.to_string() }).to_string().into();
        match self.ask("/v3/kv/compaction", body, SHORT_SIZE_BYTES_MAX).await {
            // One that is compacted away already: somebody else sees to it, too.
            Ok(_) | Err(AskError::Nothing(EtcdError::Compacted(_))) => Ok(()),
            Err(error) => Err(read_error(error)),
        }
    }

    async fn lease_left(&self, key: &str) -> Result<Option<Duration>, StoreError> {
        let piece = Piece::of(&Selection::Key(key.to_owned()), &self.base);
        let body = self.ask("/v3/kv/txn", read_request(&[piece], None), READ_SIZE_BYTES_MAX).await;
        let lease = key_lease_answer(&body.map_err(read_error)?).map_err(StoreError::Unavailable)?;
        let Some(lease) = lease else { return Ok(None) };
        let request = json!({ "ID": lease.to_string() }).to_string().into();
        match self.ask("/v3/lease/timetolive", request, SHORT_SIZE_BYTES_MAX).await {
            Ok(body) => lease_left_answer(&body).map_err(StoreError::Unavailable),
            // It has ended since.
            Err(AskError::Nothing(EtcdError::NoLease)) => Ok(None),
            Err(error) => Err(read_error(error)),
        }
    }
}
