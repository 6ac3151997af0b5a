//! The facade: a catalog's home in a place for records.
//!
//! What always holds: the catalog is what its log says; of several writers of one epoch one wins, and the
//! others see its change before they decide again; every loop has a bound.

use super::entry::{Entry, FORMAT, Header, Unreadable, read, write};
use super::home_error::HomeError;
use super::keys::{self, PartsId};
use crate::records::records::{Put, Records};
use base::guid::{guid_text, parse_guid};
use base::{Clock, Random};
use shard_map::{Catalog, Name};
use std::sync::Arc;

/// A catalog's home. Cheap to clone.
#[derive(Clone)]
pub struct CatalogHome {
    pub(super) records: Arc<dyn Records>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
}

impl CatalogHome {
    /// The home in a place, where a catalog is or is to be created.
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        CatalogHome { records, clock, random }
    }

    /// Where it is.
    pub fn place(&self) -> &str {
        self.records.place()
    }

    /// Creates a catalog without shards and maps, under an id of chance.
    pub async fn create(&self, name: &Name) -> Result<Catalog, HomeError> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.random.next_u64().to_be_bytes());
        id[8..].copy_from_slice(&self.random.next_u64().to_be_bytes());
        self.put_header(&Catalog::new(name.clone(), id)).await
    }

    /// Creates the home of a catalog that was exported, or rebuilt from shards' copies: at its epoch, under
    /// its id. `note` is what history says of it. Fine if it is there already, as it is.
    pub async fn create_from(&self, catalog: &Catalog, note: &str) -> Result<Catalog, HomeError> {
        let empty = self.put_header(&Catalog::new(catalog.name().clone(), catalog.id())).await?;
        let there = self.load().await?;
        if there == *catalog {
            return Ok(there);
        }
        if there != empty {
            return Err(HomeError::Exists { place: self.place().to_owned(), name: there.name().to_string() });
        }
        if catalog.epoch() > empty.epoch() {
            // A client that knows an epoch of a lost home finds no change that follows it, but this.
            self.write_snapshot(catalog).await?;
            self.append(&empty, catalog, note).await?;
        }
        Ok(catalog.clone())
    }

    async fn put_header(&self, empty: &Catalog) -> Result<Catalog, HomeError> {
        let header = Header { format: FORMAT, name: empty.name().to_string(), id: guid_text(&empty.id()) };
        if self.records.put(keys::CATALOG, &write(&header)).await? == Put::Taken {
            let there = self.header().await?;
            // An earlier attempt of this call may have put it; the id is this one's alone.
            if there.id() != empty.id() || there.name() != empty.name() {
                return Err(HomeError::Exists {
                    place: self.place().to_owned(),
                    name: there.name().to_string(),
                });
            }
        }
        Ok(empty.clone())
    }

    /// The catalog without shards and maps, as it began.
    pub(super) async fn header(&self) -> Result<Catalog, HomeError> {
        let Some(text) = self.records.get(keys::CATALOG).await? else {
            return Err(HomeError::NoCatalog { place: self.place().to_owned() });
        };
        let header: Header = read(&text).map_err(|why| self.unreadable(keys::CATALOG, why))?;
        let name = Name::parse(&header.name).ok();
        match (name, parse_guid(&header.id)) {
            (Some(name), Some(id)) => Ok(Catalog::new(name, id)),
            _ => Err(self.damaged(keys::CATALOG, "it has no name and id")),
        }
    }

    pub(super) fn unreadable(&self, key: &str, why: Unreadable) -> HomeError {
        match why {
            Unreadable::Newer(format) => {
                HomeError::Newer { place: self.place().to_owned(), key: key.to_owned(), format }
            }
            Unreadable::Damaged(what) => self.damaged(key, what),
        }
    }

    pub(super) fn damaged(&self, key: &str, what: impl Into<String>) -> HomeError {
        HomeError::Damaged { place: self.place().to_owned(), key: key.to_owned(), what: what.into() }
    }

    pub(super) fn new_id(&self) -> PartsId {
        PartsId::new(self.clock.now().0, self.random.next_u64())
    }

    /// The changes that follow an epoch, in their order, at most `count_max`. The oldest may have been
    /// removed (`prune`).
    pub async fn history(&self, after: shard_map::Epoch, count_max: usize) -> Result<Vec<Entry>, HomeError> {
        self.entries(after, count_max).await
    }
}
