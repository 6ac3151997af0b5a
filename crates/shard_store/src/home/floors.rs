//! Epochs that shards' copies are known to have reached: what a publish may rely on of a shard that can't be
//! reached now.
//!
//! A floor is a record without a text, whose key has the shard and the epoch. What always holds: it is put
//! after the copy of that epoch was written, so it may be behind the copy and is never ahead of it.

use super::home::CatalogHome;
use super::home_error::HomeError;
use super::keys;
use shard_map::{Epoch, Name};
use std::collections::BTreeMap;

/// Records that are requested at once.
const PAGE: usize = 100;

impl CatalogHome {
    /// All floors.
    pub(crate) async fn floors(&self) -> Result<BTreeMap<Name, Epoch>, HomeError> {
        let (mut from, to) = (keys::PUBLISHED.to_owned(), keys::behind(keys::PUBLISHED));
        let mut floors = BTreeMap::new();
        loop {
            let page = self.records.list(&from, &to, PAGE).await?;
            // The last one of a shard is the highest.
            floors.extend(page.iter().filter_map(|record| keys::read_published(&record.key)));
            match page.last() {
                Some(last) if page.len() == PAGE => from = format!("{}0", last.key),
                _ => return Ok(floors),
            }
        }
    }

    /// Raises a shard's floor.
    pub(crate) async fn put_floor(&self, shard: &Name, epoch: Epoch) -> Result<(), HomeError> {
        let key = keys::published(shard, epoch);
        self.records.put(&key, "").await?;
        let (from, _) = keys::published_of(shard);
        for former in self.records.list(&from, &key, PAGE).await? {
            self.records.remove(&former.key).await?;
        }
        Ok(())
    }
}
