//! Removing what a home needs no more: old history, and parts that nothing names.
//!
//! What always holds: the catalog can be read at each moment; parts are removed only if no record names them
//! and their writer has had [`ORPHAN_AFTER`].

use super::entry::{StoredEntry, StoredSnapshot, read};
use super::home::CatalogHome;
use super::home_error::HomeError;
use super::keys::{self, PartsId};
use super::parts::remove_parts;
use crate::records::records::Record;
use base::Ticks;
use shard_map::Epoch;
use std::collections::BTreeSet;
use std::time::Duration;

/// After so long a writer that put parts has put the record that names them, or will not any more.
const ORPHAN_AFTER: Duration = Duration::from_secs(3600);
/// Records that are requested at once.
const PAGE: usize = 100;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Changes of the history.
    pub entries: usize,
    /// Texts whose parts nothing named.
    pub orphans: usize,
}

impl CatalogHome {
    /// Removes the changes that led to epochs up to `upto`, as far as two snapshots do not need them, and
    /// parts that nothing names. What is removed can't be undone any more.
    pub async fn prune(&self, upto: Epoch) -> Result<Collected, HomeError> {
        let mut collected = Collected::default();
        let snapshots = self.snapshots().await?;
        if let [oldest, _, ..] = snapshots.as_slice() {
            let oldest = keys::epoch_of(&oldest.key).unwrap_or_default();
            collected.entries = self.remove_entries(upto.min(oldest)).await?;
        }
        collected.orphans = self.remove_orphans().await?;
        Ok(collected)
    }

    async fn remove_entries(&self, upto: Epoch) -> Result<usize, HomeError> {
        let mut count = 0;
        // An entry that follows an epoch below leads to one that is not above, because each later one follows
        // it.
        let end = keys::entry(upto);
        loop {
            let page = self.records.list(keys::ENTRY, &end, PAGE).await?;
            for record in &page {
                self.records.remove(&record.key).await?;
                if let Some(id) = parts_of_entry(record) {
                    remove_parts(&*self.records, &id).await?;
                }
            }
            count += page.len();
            if page.len() < PAGE {
                return Ok(count);
            }
        }
    }

    async fn remove_orphans(&self) -> Result<usize, HomeError> {
        let parts = self.ids(keys::PART, |record| PartsId::of_key(&record.key)).await?;
        // Listed after the parts: what names them was put after them.
        let mut named = self.ids(keys::ENTRY, parts_of_entry).await?;
        named.append(&mut self.ids(keys::SNAPSHOT, parts_of_snapshot).await?);
        let now = self.clock.now();
        let mut count = 0;
        for id in parts.difference(&named) {
            if Ticks(id.ticks()).plus(ORPHAN_AFTER) < now {
                remove_parts(&*self.records, id).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The ids that the records of a prefix have or name.
    async fn ids(
        &self,
        prefix: &str,
        id: impl Fn(&Record) -> Option<PartsId> + Send,
    ) -> Result<BTreeSet<PartsId>, HomeError> {
        let (mut from, to) = (prefix.to_owned(), keys::behind(prefix));
        let mut ids = BTreeSet::new();
        loop {
            let page = self.records.list(&from, &to, PAGE).await?;
            ids.extend(page.iter().filter_map(&id));
            match page.last() {
                Some(last) if page.len() == PAGE => from = format!("{}0", last.key),
                _ => return Ok(ids),
            }
        }
    }
}

fn parts_of_entry(record: &Record) -> Option<PartsId> {
    let entry: StoredEntry = read(&record.value).ok()?;
    PartsId::parse(&entry.id).filter(|_| entry.part_count > 0)
}

fn parts_of_snapshot(record: &Record) -> Option<PartsId> {
    let snapshot: StoredSnapshot = read(&record.value).ok()?;
    PartsId::parse(&snapshot.id)
}
