//! Rows of several shards, merged by a sort key.
//!
//! What always holds: rows come in the order of their keys, those of one key in the order of the shards'
//! names; no more than one batch of each shard is in memory; a shard whose rows are out of order is found.

use super::error::{FanOutError, ShardFailure};
use super::settings::{FanOutSettings, Needed};
use super::within::within;
use base::{BoxFuture, Clock};
use futures_util::StreamExt;
use futures_util::stream;
use shard_map::Name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

/// Rows of one shard in their order, batch by batch.
pub trait BatchSource<R, E>: Send {
    /// The next ones; none at the end. The caller bounds the time.
    fn next_batch(&mut self) -> BoxFuture<'_, Result<Vec<R>, ShardFailure<E>>>;
}

/// Rows of several shards, merged.
pub struct SortedMerge<R, K, E> {
    sources: Vec<Source<R, E>>,
    /// The key of the first row of each source that has one, and the source's index.
    heads: BinaryHeap<Reverse<(K, usize)>>,
    key: fn(&R) -> K,
    /// Rows that are still wanted.
    left: u64,
    is_started: bool,
    /// A call failed or was given up: rows that it had taken are gone.
    is_broken: bool,
    settings: FanOutSettings,
    clock: Arc<dyn Clock>,
    failed: BTreeMap<Name, ShardFailure<E>>,
}

struct Source<R, E> {
    name: Name,
    batches: Box<dyn BatchSource<R, E>>,
    rows: VecDeque<R>,
}

impl<R: Send, K: Ord + Send, E: Send> SortedMerge<R, K, E> {
    /// Merges rows of sources with the names of their shards; of at most `limit` rows.
    pub fn new(
        sources: Vec<(Name, Box<dyn BatchSource<R, E>>)>,
        key: fn(&R) -> K,
        limit: Option<u64>,
        settings: FanOutSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let source = |(name, batches)| Source { name, batches, rows: VecDeque::new() };
        let mut sources: Vec<Source<R, E>> = sources.into_iter().map(source).collect();
        sources.sort_by(|one, other| one.name.cmp(&other.name));
        let (left, heads) = (limit.unwrap_or(u64::MAX), BinaryHeap::new());
        let (is_started, is_broken, failed) = (false, false, BTreeMap::new());
        SortedMerge { sources, heads, key, left, is_started, is_broken, settings, clock, failed }
    }

    /// The next row with its shard's name; none at the end, or at the limit. After an error, or a call that
    /// was given up, only errors follow.
    pub async fn next(&mut self) -> Result<Option<(Name, R)>, FanOutError<E>> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(FanOutError::Broken);
        }
        let next = self.take_next().await?;
        self.is_broken = false;
        Ok(next)
    }

    /// Reads the first batch of each shard, as the first [`SortedMerge::next`] else does.
    pub(super) async fn begin(&mut self) -> Result<(), FanOutError<E>> {
        if self.left > 0 && !std::mem::replace(&mut self.is_started, true) {
            self.is_broken = true;
            self.start().await?;
            self.is_broken = false;
        }
        Ok(())
    }

    async fn take_next(&mut self) -> Result<Option<(Name, R)>, FanOutError<E>> {
        if self.left == 0 {
            return Ok(None);
        }
        if !std::mem::replace(&mut self.is_started, true) {
            self.start().await?;
        }
        let Some(Reverse((key, index))) = self.heads.pop() else { return Ok(None) };
        let source = &mut self.sources[index];
        let Some(row) = source.rows.pop_front() else { return Ok(None) };
        let name = source.name.clone();
        self.left -= 1;
        if self.left > 0 {
            if source.rows.is_empty() {
                let batch = within(&self.settings, &*self.clock, source.batches.next_batch()).await;
                self.put(index, batch)?;
            }
            self.push_head(index, Some(&key))?;
        }
        Ok(Some((name, row)))
    }

    /// Shards whose rows are missing from some row on, and why; empty if all are needed.
    pub fn failed(&self) -> &BTreeMap<Name, ShardFailure<E>> {
        &self.failed
    }

    /// The first batch of each shard, of several at a time.
    async fn start(&mut self) -> Result<(), FanOutError<E>> {
        let (settings, clock) = (&self.settings, &*self.clock);
        let mut sources = Vec::new();
        for (index, source) in self.sources.iter_mut().enumerate() {
            let batch = source.batches.next_batch();
            sources.push(async move { (index, within(settings, clock, batch).await) });
        }
        let mut batches = stream::iter(sources).buffer_unordered(settings.shards_at_once.max(1));
        let mut found = Vec::new();
        while let Some((index, batch)) = batches.next().await {
            let is_last = batch.is_err() && settings.needed == Needed::AllShards;
            found.push((index, batch));
            if is_last {
                break;
            }
        }
        drop(batches);
        for (index, batch) in found {
            self.put(index, batch)?;
        }
        (0..self.sources.len()).try_for_each(|index| self.push_head(index, None))
    }

    fn put(&mut self, index: usize, batch: Result<Vec<R>, ShardFailure<E>>) -> Result<(), FanOutError<E>> {
        match batch {
            Ok(rows) => {
                self.sources[index].rows = rows.into();
                Ok(())
            }
            Err(failure) => self.fail(index, failure),
        }
    }

    fn fail(&mut self, index: usize, failure: ShardFailure<E>) -> Result<(), FanOutError<E>> {
        let source = &mut self.sources[index];
        source.rows.clear();
        let shard = source.name.clone();
        match self.settings.needed {
            Needed::AllShards => Err(FanOutError::Shard { shard, failure }),
            Needed::SomeShards => {
                self.failed.insert(shard, failure);
                Ok(())
            }
        }
    }

    fn push_head(&mut self, index: usize, after: Option<&K>) -> Result<(), FanOutError<E>> {
        let Some(row) = self.sources[index].rows.front() else { return Ok(()) };
        let key = (self.key)(row);
        if after.is_some_and(|after| key < *after) {
            return self.fail(index, ShardFailure::OutOfOrder);
        }
        self.heads.push(Reverse((key, index)));
        Ok(())
    }
}
