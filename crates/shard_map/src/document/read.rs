//! Reads a catalog's document. What always holds: what is read is right as a whole; no text panics.

use super::error::DocumentError;
use super::format::{Document, FORMAT, HashText, Head, MapText};
use super::value_json::key_from_json;
use crate::catalog::catalog::{Catalog, CatalogError};
use crate::catalog::frozen::Frozen;
use crate::catalog::map::{Hashed, ShardMap};
use crate::catalog::map_builder::MapBuilder;
use crate::catalog::map_error::MapError;
use crate::catalog::mapping_id::MappingId;
use crate::catalog::placement::{Epoch, Placement, State};
use crate::key::error::KeyError;
use crate::key::hash::KeyHash;
use crate::key::value::KeyValue;
use crate::name::Name;
use base::guid::{parse_bare_guid, parse_guid};
use serde_json::Value;
use std::sync::Arc;

impl Catalog {
    /// Reads a document of this or an earlier format.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let shape = |error: serde_json::Error| DocumentError::Shape(error.to_string());
        let head: Head = serde_json::from_str(text).map_err(shape)?;
        match head.format {
            None => return Err(DocumentError::NoFormat),
            Some(format) if format > FORMAT => return Err(DocumentError::Newer(format)),
            Some(_) => {}
        }
        catalog(serde_json::from_str(text).map_err(shape)?)
    }
}

fn catalog(document: Document) -> Result<Catalog, DocumentError> {
    let id = parse_guid(&document.id).or_else(|| parse_bare_guid(&document.id));
    let id = id.ok_or_else(|| DocumentError::Id(document.id.chars().take(64).collect()))?;
    let mut catalog = Catalog::new(document.name, id);
    catalog.epoch = document.epoch;
    for mut shard in document.shards {
        if shard.since == Epoch(0) {
            shard.since = document.epoch;
        }
        let name = shard.name.clone();
        if catalog.shards.insert(name.clone(), shard).is_some() {
            return Err(DocumentError::Twice { what: "shards", name });
        }
    }
    for text in document.maps {
        let name = text.name.clone();
        let map = map(text, document.epoch)?;
        if catalog.maps.insert(name.clone(), Arc::new(map)).is_some() {
            return Err(DocumentError::Twice { what: "maps", name });
        }
    }
    catalog.check()?;
    Ok(catalog)
}

fn map(text: MapText, epoch: Epoch) -> Result<ShardMap, DocumentError> {
    let reader = Reader { name: text.name, epoch };
    let mut map = MapBuilder::new(reader.name.clone(), text.key.clone());
    map.since(text.since.unwrap_or(epoch));
    for pin in text.pins {
        let place = || format!("a pin to `{}`", pin.shard);
        let key = reader.key(key_from_json(&pin.key, &text.key), place)?;
        map.pin(&key, reader.placement(pin.shard.clone(), pin.state, pin.since)).map_err(right)?;
    }
    for range in text.ranges {
        let place = || format!("a range on `{}`", range.shard);
        let bound = |json: &Value| reader.key(key_from_json(json, &text.key), place);
        let low = range.low.as_ref().map(bound).transpose()?.unwrap_or_default();
        let high = range.high.as_ref().map(bound).transpose()?;
        let placement = reader.placement(range.shard.clone(), range.state, range.since);
        map.range(&low, high.as_deref(), placement).map_err(right)?;
    }
    if let Some(hash) = text.hash {
        let HashText { name, version, columns, count, placements } = hash;
        let Some(hash) = KeyHash::named(&name, version) else {
            return Err(right(MapError::UnknownHash { map: reader.name, name, version }));
        };
        map.hash(Hashed { hash, columns, count }).map_err(right)?;
        for run in placements {
            let placement = reader.placement(run.shard, run.state, run.since);
            map.place(run.first, run.last, placement).map_err(right)?;
        }
    }
    for frozen in text.frozen {
        let Some(mapping) = MappingId::parse(&frozen.mapping, &text.key) else {
            return Err(right(MapError::FrozenNothing { map: reader.name, mapping: frozen.mapping }));
        };
        map.freeze(mapping, Frozen { by: frozen.by, since: frozen.since.unwrap_or(epoch) });
    }
    map.build().map_err(right)
}

fn right(error: MapError) -> DocumentError {
    DocumentError::Catalog(CatalogError::Map(error))
}

/// What all mappings of a map are read with.
struct Reader {
    name: Name,
    epoch: Epoch,
}

impl Reader {
    fn placement(&self, shard: Name, state: State, since: Option<Epoch>) -> Placement {
        Placement { shard, state, since: since.unwrap_or(self.epoch) }
    }

    fn key(
        &self,
        key: Result<Vec<KeyValue>, KeyError>,
        place: impl Fn() -> String,
    ) -> Result<Vec<KeyValue>, DocumentError> {
        key.map_err(|error| DocumentError::Key { map: self.name.clone(), place: place(), error })
    }
}
