//! Operations over a map's home.
//!
//! What always holds: a dry run changes nothing and refuses what the run would refuse; a description that
//! does not fit is refused before anything is made.

use crate::description::{Description, MapDescription};
use crate::keys::key_of;
use crate::keys_stay::check_keys_stay;
use crate::outcome::Outcome;
use crate::recover;
use crate::run::{OperationError, Run};
use futures_util::future::LocalBoxFuture;
use shard_map::{
    Catalog, Change, Diff, Epoch, KeyError, KeyType, KeyValue, MapChange, MappingId, Name, ShardMap,
};
use shard_store::{HomeError, differences, read_copies};
use std::collections::BTreeSet;

/// What is done with a map.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Creates a catalog as described.
    Init(Description),
    /// Adds shards, maps, pins and ranges of a description that are not there.
    Add {
        /// What is to be there.
        described: Description,
        /// Whether keys that come to another shard have no rows, or rows that are there already.
        has_no_data: bool,
    },
    /// Gives a key a shard of its own, or takes that away: the key has a text for each column.
    Pin {
        /// The map.
        map: Name,
        /// The key.
        key: Vec<String>,
        /// The shard; none: the pin is removed.
        shard: Option<Name>,
        /// Whether the key has no rows, or they are on its next shard already.
        has_no_data: bool,
    },
    /// Shows the catalog, or one of its maps.
    Show(Option<Name>),
    /// Prints the catalog's document.
    Export,
    /// Reads all of the home, and compares it with the shards' copies.
    Check,
    /// The changes after an epoch, at most so many.
    History(Epoch, usize),
    /// Brings the shards' copies up to the map.
    Publish,
    /// Makes a map out of the copies of these shards (none: of all that there are).
    Recover(Option<BTreeSet<Name>>),
}

impl Operation {
    /// Does it.
    pub fn run<'a>(&'a self, run: &'a Run) -> LocalBoxFuture<'a, Result<Outcome, OperationError>> {
        Box::pin(async move {
            match self {
                Operation::Init(described) => init(run, described).await,
                Operation::Add { described, has_no_data } => {
                    let note = format!("added from a description of {}", described.catalog);
                    change(run, &note, |catalog| {
                        let changes = additions(catalog, described)?;
                        check_keys_stay(catalog, &changes, *has_no_data)?;
                        Ok(changes)
                    })
                    .await
                }
                Operation::Pin { map, key, shard, has_no_data } => {
                    let verb = if shard.is_some() { "pinned" } else { "unpinned" };
                    let note = format!("{verb} {} of {map}", key.join(", "));
                    change(run, &note, |catalog| {
                        let changes = pin(catalog, map, key, shard.as_ref())?;
                        check_keys_stay(catalog, &changes, *has_no_data)?;
                        Ok(changes)
                    })
                    .await
                }
                Operation::Show(map) => {
                    let catalog = run.home.load().await?;
                    if let Some(map) = map {
                        find(&catalog, map)?;
                    }
                    Ok(Outcome::Shown(catalog, map.clone()))
                }
                Operation::Export => Ok(Outcome::Exported(run.home.load().await?)),
                Operation::Check => {
                    let catalog = run.home.load().await?;
                    let found = match run.shards.is_empty() {
                        true => Vec::new(),
                        false => differences(&catalog, &read_copies(&catalog, &run.shards).await),
                    };
                    Ok(Outcome::Checked { catalog, differences: found, has_copies: !run.shards.is_empty() })
                }
                Operation::History(after, count_max) => {
                    Ok(Outcome::History(run.home.history(*after, *count_max).await?))
                }
                Operation::Publish => publish(run).await,
                Operation::Recover(believed) => recover::recover_map(run, believed.as_ref()).await,
            }
        })
    }
}

/// A home that is empty under the same name is one whose creation was cut off; that goes on.
async fn init(run: &Run, described: &Description) -> Result<Outcome, OperationError> {
    let blank = Catalog::new(described.catalog.clone(), [0; 16]);
    let planned = blank.apply(&described.changes())?;
    let there = match run.home.load().await {
        Ok(there) if there.epoch() == Epoch(0) && *there.name() == described.catalog => Some(there),
        Ok(there) => {
            return Err(HomeError::Exists {
                place: run.home.place().to_owned(),
                name: there.name().to_string(),
            }
            .into());
        }
        Err(HomeError::NoCatalog { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if run.is_dry {
        return Ok(Outcome::Changed { diff: planned.diff, is_dry: true });
    }
    let created = match there {
        Some(there) => there,
        None => run.home.create(&described.catalog).await?,
    };
    let decide = |catalog: &Catalog| match catalog.epoch() {
        Epoch(0) => Ok(described.changes()),
        _ => Err(HomeError::Exists { place: run.home.place().to_owned(), name: catalog.name().to_string() }),
    };
    let changed = run.home.change(&created, "created from a description", decide).await?;
    Ok(Outcome::Changed { diff: changed.diff, is_dry: false })
}

async fn change(
    run: &Run,
    note: &str,
    decide: impl Fn(&Catalog) -> Result<Vec<Change>, OperationError> + Send + Sync,
) -> Result<Outcome, OperationError> {
    let known = run.home.load().await?;
    let diff: Diff = match run.is_dry {
        true => known.apply(&decide(&known)?)?.diff,
        false => run.home.change(&known, note, |catalog| decide(catalog)).await?.diff,
    };
    Ok(Outcome::Changed { diff, is_dry: run.is_dry })
}

async fn publish(run: &Run) -> Result<Outcome, OperationError> {
    let catalog = run.home.load().await?;
    if run.is_dry {
        let copies = read_copies(&catalog, &run.shards).await;
        let found = differences(&catalog, &copies);
        return Ok(Outcome::Checked { catalog, differences: found, has_copies: true });
    }
    Ok(Outcome::Published(run.home.publish(&catalog, &run.shards).await?))
}

pub(crate) fn find<'a>(catalog: &'a Catalog, map: &Name) -> Result<&'a ShardMap, OperationError> {
    catalog.map(map.as_str()).map(AsRef::as_ref).ok_or_else(|| {
        let names: Vec<&str> = catalog.maps().map(|map| map.name().as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        OperationError::NoMap { catalog: catalog.name().clone(), map: map.clone(), known }
    })
}

fn pin(
    catalog: &Catalog,
    map: &Name,
    key: &[String],
    shard: Option<&Name>,
) -> Result<Vec<Change>, OperationError> {
    let key = key_of(find(catalog, map)?.key_type(), key);
    let key = key.map_err(|error| OperationError::Key(map.clone(), error))?;
    let change = match shard {
        Some(shard) => MapChange::Pin { key, shard: shard.clone() },
        None => MapChange::Unpin { key },
    };
    Ok(vec![Change::Map(map.clone(), change)])
}

/// What of a description the catalog does not have.
fn additions(catalog: &Catalog, described: &Description) -> Result<Vec<Change>, OperationError> {
    if *catalog.name() != described.catalog {
        let (there, described) = (catalog.name().clone(), described.catalog.clone());
        return Err(OperationError::OtherCatalog { there, described });
    }
    let mut changes = Vec::new();
    for shard in &described.shards {
        match catalog.shard(shard.name.as_str()) {
            None => changes.push(Change::AddShard(shard.clone())),
            Some(there) if there.location == shard.location && there.tags == shard.tags => {}
            Some(_) => return Err(OperationError::Differs(format!("shard `{}`", shard.name))),
        }
    }
    for MapDescription { map, .. } in &described.maps {
        match catalog.map(map.name().as_str()) {
            None => changes.push(Change::AddMap(map.clone())),
            Some(there) => changes.extend(mappings(there, map)?),
        }
    }
    Ok(changes)
}

/// Pins and ranges that a map does not have.
fn mappings(there: &ShardMap, described: &ShardMap) -> Result<Vec<Change>, OperationError> {
    let name = there.name();
    let hash = |map: &ShardMap| map.virtual_shards().map(shard_map::VirtualShards::hashed);
    if there.key_type() != described.key_type() || hash(there) != hash(described) {
        return Err(OperationError::Differs(format!("map `{name}` (its key or hash)")));
    }
    let values = |read: Result<Vec<KeyValue>, KeyError>| {
        read.map_err(|error| OperationError::Key(name.clone(), error))
    };
    let key: &KeyType = described.key_type();
    let mut changes = Vec::new();
    for (mapping, placement) in described.mappings() {
        let shard = placement.shard.clone();
        match (there.placement(&mapping), &mapping) {
            (Some(known), _) if known.shard == shard => {}
            (Some(_), _) => return Err(OperationError::Differs(described.mapping_text(&mapping))),
            (None, MappingId::Pin(pinned)) => {
                let key = values(key.decode(pinned.as_bytes()))?;
                changes.push(Change::Map(name.clone(), MapChange::Pin { key, shard }));
            }
            (None, MappingId::Range(low)) => {
                let range = described.ranges().find(|(found, _)| *found == low);
                let high = range.and_then(|(_, range)| range.high.as_ref());
                let high = high.map(|high| values(key.decode_bound(high.as_bytes()))).transpose()?;
                let low = values(key.decode_bound(low.as_bytes()))?;
                changes.push(Change::Map(name.clone(), MapChange::AddRange { low, high, shard }));
            }
            // Virtual shards are there if the hash is the same.
            (None, MappingId::Virtual(_)) => {}
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests;
