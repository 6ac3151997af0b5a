//! Brings shards' copies up to the map.
//!
//! What always holds: the order of `choose_writes.rs`; what was written is known to the home before keys are
//! opened elsewhere because of it; every loop has a bound. A publish that was cut off anywhere is finished by
//! the next one.

use super::choose_writes::{CopyMismatch, CopyWrite, Held, ShardCopy, Writes, choose_writes};
use super::losses::Losses;
use crate::error::StoreError;
use crate::home::home::CatalogHome;
use crate::home::home_error::HomeError;
use crate::local::copy::LocalCopy;
use crate::local::local_store::{LocalStore, Replaced, Revision};
use futures_util::future::join_all;
use shard_map::{Catalog, Diff, Epoch, Name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Shards that are read at a time.
const READS_AT_ONCE: usize = 32;
/// How often a publish begins again because another wrote a copy, or a shard went.
const ROUNDS_MAX: u32 = 8;
/// Changes that are requested at once.
const PAGE: usize = 100;

/// The shards that can be reached, by their names in the catalog.
pub type LocalStores = BTreeMap<Name, Arc<dyn LocalStore>>;

/// What a publish came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The epoch of the map that was published.
    pub epoch: Epoch,
    /// Shards whose copy was written.
    pub written: Vec<Name>,
    /// Shards that get keys later.
    pub held: Vec<Held>,
    /// Shards that could not be reached or written, and why.
    pub failed: BTreeMap<Name, String>,
}

impl Published {
    /// Whether each shard has all that it is to have.
    pub fn is_complete(&self) -> bool {
        self.held.is_empty() && self.failed.is_empty()
    }
}

/// Why nothing more is published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A copy does not belong to the map.
    #[error(transparent)]
    Mismatch(#[from] CopyMismatch),
    /// Others write the copies all the time.
    #[error("others wrote the shards' copies {0} times meanwhile; try again")]
    Busy(u32),
}

/// How a write ended.
enum Written {
    Done(Option<Revision>),
    Conflict,
    Failed(String),
}

/// Reads the copies of all shards of the catalog.
pub async fn read_copies(catalog: &Catalog, stores: &LocalStores) -> BTreeMap<Name, ShardCopy> {
    let mut copies = BTreeMap::new();
    let names: Vec<&Name> = catalog.shards().map(|shard| &shard.name).collect();
    for names in names.chunks(READS_AT_ONCE) {
        let reads = names.iter().map(|name| async move {
            let copy = match stores.get(*name) {
                None => ShardCopy::Unreachable("no connection to it is set up".to_owned()),
                Some(store) => match store.read().await {
                    Ok(stored) => ShardCopy::Read(stored),
                    Err(error) => ShardCopy::Unreachable(error.to_string()),
                },
            };
            ((*name).clone(), copy)
        });
        copies.extend(join_all(reads).await);
    }
    copies
}

impl CatalogHome {
    /// Writes all shards' copies that are not as the newest epoch of the map has them, losers before gainers.
    pub async fn publish(&self, known: &Catalog, stores: &LocalStores) -> Result<Published, PublishError> {
        let mut failed = BTreeMap::new();
        let mut catalog = known.clone();
        let mut written = Vec::new();
        for _ in 0..ROUNDS_MAX {
            catalog = self.refresh(&catalog).await?;
            let mut copies = read_copies(&catalog, stores).await;
            for (name, why) in &failed {
                copies.insert(Name::clone(name), ShardCopy::Unreachable(String::clone(why)));
            }
            let floors = self.floors().await?;
            let losses = self.losses(&catalog, &copies, &floors).await?;
            let writes = match choose_writes(&catalog, &copies, &floors, &losses) {
                Ok(writes) => writes,
                // Between the reads of the map and of the copies another publisher may have been here.
                Err(CopyMismatch::OldCatalog { .. })
                    if self.refresh(&catalog).await?.epoch() > catalog.epoch() =>
                {
                    continue;
                }
                Err(mismatch) => return Err(mismatch.into()),
            };
            let held = writes.held.clone();
            if !self.write_all(writes, stores, &mut written, &mut failed).await? {
                continue;
            }
            failed.extend(copies.into_iter().filter_map(|(name, copy)| match copy {
                ShardCopy::Unreachable(why) => Some((name, why)),
                ShardCopy::Read(_) => None,
            }));
            return Ok(Published { epoch: catalog.epoch(), written, held, failed });
        }
        Err(PublishError::Busy(ROUNDS_MAX))
    }

    /// Whether all was written; if not, it is to be chosen anew.
    async fn write_all(
        &self,
        writes: Writes,
        stores: &LocalStores,
        written: &mut Vec<Name>,
        failed: &mut BTreeMap<Name, String>,
    ) -> Result<bool, PublishError> {
        let Writes { close, open, mut revisions, .. } = writes;
        let close_count = close.len();
        let mut is_whole = true;
        for (index, write) in close.into_iter().chain(open).enumerate() {
            if index >= close_count && !is_whole {
                return Ok(false);
            }
            match write_copy(&write, stores, revisions.get(&write.shard)).await {
                Written::Done(revision) => {
                    revisions.extend(revision.map(|revision| (write.shard.clone(), revision)));
                    self.put_floor(&write.shard, write.copy.epoch).await?;
                    if !written.contains(&write.shard) {
                        written.push(write.shard);
                    }
                }
                Written::Conflict => is_whole = false,
                Written::Failed(why) => {
                    failed.insert(write.shard, why);
                    is_whole = false;
                }
            }
        }
        Ok(is_whole)
    }

    /// What shards lost since the epochs of their copies, or since what is known of them.
    async fn losses(
        &self,
        catalog: &Catalog,
        copies: &BTreeMap<Name, ShardCopy>,
        floors: &BTreeMap<Name, Epoch>,
    ) -> Result<Losses, HomeError> {
        let epochs = copies.iter().map(|(name, copy)| match copy {
            ShardCopy::Read(stored) => stored.as_ref().map_or(Epoch(0), |stored| stored.copy.epoch),
            ShardCopy::Unreachable(_) => floors.get(name).copied().unwrap_or_default(),
        });
        let mut after = epochs.min().unwrap_or_default();
        let mut diffs: Vec<Diff> = Vec::new();
        let mut known_after = Epoch(0);
        while after < catalog.epoch() {
            let entries = self.history(after, PAGE).await?;
            let first = entries.first().map_or(catalog.epoch(), |first| first.diff.from);
            if first != after {
                // Pruned, or the epoch is one of a home that was lost.
                known_after = first;
            }
            diffs.extend(entries.into_iter().map(|entry| entry.diff));
            after = diffs.last().map_or(first, |last| last.to);
        }
        Ok(Losses::of(&diffs, known_after))
    }
}

async fn write_copy(write: &CopyWrite, stores: &LocalStores, revision: Option<&Revision>) -> Written {
    let CopyWrite { shard, copy } = write;
    let Some(store) = stores.get(shard) else {
        return Written::Failed("no connection to it is set up".to_owned());
    };
    match store.replace(revision, Some(copy)).await {
        Ok(Replaced::Done(revision)) => Written::Done(revision),
        Ok(Replaced::Conflict) => Written::Conflict,
        Err(error) if error.may_be_done => is_there(&**store, copy, &error).await,
        Err(error) => Written::Failed(error.to_string()),
    }
}

/// Whether a copy of which that is open was written.
async fn is_there(store: &dyn LocalStore, copy: &LocalCopy, error: &StoreError) -> Written {
    match store.read().await {
        Ok(Some(there)) if there.copy == *copy => Written::Done(Some(there.revision)),
        Ok(_) => Written::Conflict,
        Err(_) => Written::Failed(error.to_string()),
    }
}
