//! What the map has, and which changes of it a move made.
//!
//! What always holds: a change is the move's own if its note says so; the note is in the record of the
//! change, so both are there or neither.

use super::choose_action::{Observed, OwnChanges};
use crate::error::MoveError;
use crate::limits::PAGE;
use crate::log::id::MoveId;
use crate::log::state::{Move, MoveOrder};
use shard_backend::Shardlet;
use shard_map::{Catalog, Epoch, MappingId};
use shard_store::{CatalogHome, HomeError};

/// How often a look begins again because the map changed meanwhile.
const LOOKS_MAX: u32 = 16;

/// What a change of a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnChange {
    Mark,
    Place,
    Open,
    Reopen,
}

impl OwnChange {
    const ALL: [OwnChange; 4] = [OwnChange::Mark, OwnChange::Place, OwnChange::Open, OwnChange::Reopen];

    /// The note of the change in the map's history.
    pub(crate) fn note(self, id: &MoveId) -> String {
        let name = match self {
            OwnChange::Mark => "mark",
            OwnChange::Place => "place",
            OwnChange::Open => "open",
            OwnChange::Reopen => "reopen",
        };
        format!("move {id}: {name}")
    }
}

/// The map as a mover knows it, and the own changes of one move up to there.
pub(crate) struct Watch {
    pub(crate) catalog: Catalog,
    own: OwnChanges,
    seen_upto: Epoch,
}

impl Watch {
    pub(crate) async fn new(home: &CatalogHome, of: &Move) -> Result<Self, MoveError> {
        let (catalog, own) = (home.load().await?, OwnChanges::default());
        Ok(Watch { catalog, own, seen_upto: of.order.catalog_epoch })
    }

    /// The epoch of the move's mark, if it was seen.
    pub(crate) fn own_mark(&self) -> Option<Epoch> {
        self.own.mark
    }

    /// Looks at the newest epoch.
    pub(crate) async fn look(&mut self, home: &CatalogHome, of: &Move) -> Result<Observed, MoveError> {
        for _ in 0..LOOKS_MAX {
            self.read_history(home, of).await?;
            self.catalog = home.refresh(&self.catalog).await?;
            if self.catalog.epoch() <= self.seen_upto {
                let placement = mapping_of(&self.catalog, &of.order)
                    .and_then(|(map, mapping)| self.catalog.map(map)?.placement(&mapping).cloned());
                return Ok(Observed { own: self.own, placement, epoch: self.catalog.epoch() });
            }
            // Another changed it right now, and the change may be one of this move.
        }
        Err(HomeError::Busy { place: home.place().to_owned(), attempts: LOOKS_MAX }.into())
    }

    async fn read_history(&mut self, home: &CatalogHome, of: &Move) -> Result<(), MoveError> {
        loop {
            let entries = home.history(self.seen_upto, PAGE).await?;
            for entry in &entries {
                for change in OwnChange::ALL {
                    if entry.note == change.note(&of.id) {
                        self.own.set(change, entry.diff.to);
                    }
                }
                self.seen_upto = entry.diff.to;
            }
            if entries.len() < PAGE {
                return Ok(());
            }
        }
    }
}

impl OwnChanges {
    fn set(&mut self, change: OwnChange, epoch: Epoch) {
        let place = match change {
            OwnChange::Mark => &mut self.mark,
            OwnChange::Place => &mut self.place,
            OwnChange::Open => &mut self.open,
            OwnChange::Reopen => &mut self.reopen,
        };
        *place = place.or(Some(epoch));
    }
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
