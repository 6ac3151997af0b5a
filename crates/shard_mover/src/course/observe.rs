//! What the map has of a move's mapping.
//!
//! What always holds: the map itself says whether the move has the mapping: it is frozen by the move from the
//! change that marks it until nothing of the move can be written any more. So a mover that was killed between
//! a change of the map and its record sees what was done, however much of the map's history is gone.

use super::choose_action::{Freeze, Observed};
use crate::error::MoveError;
use crate::log::id::MoveId;
use crate::log::state::{Move, MoveOrder};
use shard_backend::Shardlet;
use shard_map::{Catalog, MappingId};
use shard_store::CatalogHome;

/// What a change of a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnChange {
    Mark,
    Place,
    Open,
    Reopen,
    /// Freezes the mapping for the deletion of the source's rows.
    Freeze,
    Thaw,
}

impl OwnChange {
    /// The note of the change in the map's history.
    pub(crate) fn note(self, id: &MoveId) -> String {
        let name = match self {
            OwnChange::Mark => "mark",
            OwnChange::Place => "place",
            OwnChange::Open => "open",
            OwnChange::Reopen => "reopen",
            OwnChange::Freeze => "freeze",
            OwnChange::Thaw => "thaw",
        };
        format!("{}: {name}", freezer(id))
    }
}

/// By what text a move freezes its mapping.
pub(crate) fn freezer(id: &MoveId) -> String {
    format!("move {id}")
}

/// The map as a mover knows it.
pub(crate) struct Watch {
    pub(crate) catalog: Catalog,
}

impl Watch {
    pub(crate) async fn new(home: &CatalogHome) -> Result<Self, MoveError> {
        Ok(Watch { catalog: home.load().await? })
    }

    /// Looks at the newest epoch.
    pub(crate) async fn look(&mut self, home: &CatalogHome, of: &Move) -> Result<Observed, MoveError> {
        self.catalog = home.refresh(&self.catalog).await?;
        Ok(observed(&self.catalog, of))
    }
}

fn observed(catalog: &Catalog, of: &Move) -> Observed {
    let found = mapping_of(catalog, &of.order);
    let found = found.and_then(|(map, mapping)| Some((catalog.map(map)?, mapping)));
    let placement = found.as_ref().and_then(|(map, mapping)| map.placement(mapping).cloned());
    let freeze = match found.as_ref().and_then(|(map, mapping)| map.frozen_by(mapping)) {
        None => Freeze::None,
        Some(there) if there.by == freezer(&of.id) => Freeze::Own(there.since),
        Some(_) => Freeze::Other,
    };
    Observed { placement, freeze, epoch: catalog.epoch() }
}

/// The move's map and mapping, if the map's keys are still such that it can be read.
pub(crate) fn mapping_of<'a>(catalog: &Catalog, order: &'a MoveOrder) -> Option<(&'a str, MappingId)> {
    let map = catalog.map(order.map.as_str())?;
    Some((order.map.as_str(), MappingId::parse(&order.mapping, map.key_type())?))
}

/// The rows of the move, as the map has them now.
pub(crate) fn shardlet_of(catalog: &Catalog, order: &MoveOrder) -> Option<Shardlet> {
    let (map, mapping) = mapping_of(catalog, order)?;
    Shardlet::new(catalog.map(map)?.clone(), mapping)
}
