//! Reading a home: the newest snapshot, and the changes after it.
//!
//! What always holds: what is read is one epoch of the catalog, whole. A snapshot that is removed while it is
//! read has a newer one, from which the read begins again.

use super::entry::{Entry, StoredEntry, StoredSnapshot, read};
use super::home::CatalogHome;
use super::home_error::HomeError;
use super::keys::{self, PartsId};
use super::parts::read_parts;
use crate::records::records::Record;
use shard_map::{Catalog, Diff, Epoch};

/// Changes that are requested at once.
const PAGE: usize = 100;
/// Snapshots of a home, at most, beside those that a writer left behind.
const SNAPSHOTS_LISTED: usize = 100;
/// How often a read begins again because its snapshot went.
const READS_MAX: u32 = 5;

impl CatalogHome {
    /// The catalog as it is now.
    pub async fn load(&self) -> Result<Catalog, HomeError> {
        let header = self.header().await?;
        for attempt in 1.. {
            match self.newest_snapshot(&header).await {
                Ok(snapshot) => {
                    let start = snapshot.unwrap_or(header);
                    let missing =
                        || self.damaged(&keys::entry(start.epoch()), "it is missing, and later ones are not");
                    return self.follow(&start).await?.ok_or_else(missing);
                }
                Err(HomeError::Damaged { .. }) if attempt < READS_MAX => {}
                Err(error) => return Err(error),
            }
        }
        Ok(header)
    }

    /// The catalog as it is now, from an earlier epoch of it. If that is none of this home's epochs any more
    /// (the home was recovered, or its history pruned), the catalog is read anew.
    pub async fn refresh(&self, known: &Catalog) -> Result<Catalog, HomeError> {
        match self.follow(known).await? {
            Some(catalog) if catalog.epoch() > known.epoch() => Ok(catalog),
            Some(catalog) => {
                let newest = self.snapshots().await?.pop().and_then(|newest| keys::epoch_of(&newest.key));
                if newest > Some(catalog.epoch()) { self.load().await } else { Ok(catalog) }
            }
            None => self.load().await,
        }
    }

    /// The catalog with all changes that follow; none if later ones do not follow it.
    async fn follow(&self, known: &Catalog) -> Result<Option<Catalog>, HomeError> {
        let mut catalog = known.clone();
        loop {
            let entries = self.entries(catalog.epoch(), PAGE).await?;
            if entries.first().is_some_and(|first| first.diff.from != catalog.epoch()) {
                return Ok(None);
            }
            let patched = catalog.patch_all(entries.iter().map(|entry| &entry.diff));
            catalog = patched.map_err(|error| HomeError::Log { place: self.place().to_owned(), error })?;
            if entries.len() < PAGE {
                return Ok(Some(catalog));
            }
        }
    }

    /// The changes that follow an epoch.
    pub(super) async fn entries(&self, after: Epoch, count_max: usize) -> Result<Vec<Entry>, HomeError> {
        let mut entries = Vec::new();
        let mut from = keys::entry(after);
        while entries.len() < count_max {
            let wanted = (count_max - entries.len()).min(PAGE);
            let page = self.records.list(&from, &keys::behind(keys::ENTRY), wanted).await?;
            for record in &page {
                entries.push(self.entry(record).await?);
            }
            match page.last() {
                Some(last) if page.len() == wanted => from = format!("{}0", last.key),
                _ => break,
            }
        }
        Ok(entries)
    }

    async fn entry(&self, record: &Record) -> Result<Entry, HomeError> {
        let key = &record.key;
        let stored: StoredEntry = read(&record.value).map_err(|why| self.unreadable(key, why))?;
        let StoredEntry { id, at, note, diff, part_count, .. } = stored;
        let diff = match diff {
            Some(diff) => diff,
            None => {
                let text = self.text_of(key, &id, part_count).await?;
                serde_json::from_str::<Diff>(&text).map_err(|error| self.damaged(key, error.to_string()))?
            }
        };
        if keys::epoch_of(key) != Some(diff.from) {
            return Err(self.damaged(key, format!("its change follows epoch {}", diff.from)));
        }
        Ok(Entry { diff, at, note })
    }

    /// The text of a record's parts.
    async fn text_of(&self, key: &str, id: &str, part_count: usize) -> Result<String, HomeError> {
        let id = PartsId::parse(id).ok_or_else(|| self.damaged(key, "its parts have no id"))?;
        let text = read_parts(&*self.records, &id, part_count).await?;
        text.ok_or_else(|| self.damaged(key, format!("one of its {part_count} parts is missing")))
    }

    async fn newest_snapshot(&self, header: &Catalog) -> Result<Option<Catalog>, HomeError> {
        let Some(newest) = self.snapshots().await?.pop() else { return Ok(None) };
        let key = &newest.key;
        let stored: StoredSnapshot = read(&newest.value).map_err(|why| self.unreadable(key, why))?;
        let text = self.text_of(key, &stored.id, stored.part_count).await?;
        let epoch = keys::epoch_of(key).unwrap_or_default();
        let catalog = Catalog::from_json(&text).map_err(|error| HomeError::Snapshot {
            place: self.place().to_owned(),
            epoch,
            error: Box::new(error),
        })?;
        if catalog.epoch() != epoch || catalog.id() != header.id() {
            let what = format!("it is catalog `{}` at epoch {}", catalog.name(), catalog.epoch());
            return Err(self.damaged(key, what));
        }
        Ok(Some(catalog))
    }

    /// The records of snapshots, the newest last.
    pub(super) async fn snapshots(&self) -> Result<Vec<Record>, HomeError> {
        let end = keys::behind(keys::SNAPSHOT);
        let mut found = self.records.list(keys::SNAPSHOT, &end, SNAPSHOTS_LISTED).await?;
        // More than that only if removing them failed again and again.
        while found.len() >= SNAPSHOTS_LISTED {
            let from = found.pop().map(|last| last.key).unwrap_or_default();
            let page = self.records.list(&from, &end, SNAPSHOTS_LISTED).await?;
            let is_last = page.len() < SNAPSHOTS_LISTED;
            found = page;
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}
