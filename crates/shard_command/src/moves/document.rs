//! A plan as a file, between `plan` and `apply`.
//!
//! ```json
//! { "format": 1, "catalog": "…", "catalog_id": "…", "epoch": 7, "schema": "v1-…", "offline": false,
//!   "request": { "kind": "drain", "shard": "b" },
//!   "moves": [ { "map": "m", "mapping": "virtual-3", "from": "b", "to": "a", "mode": "read-only",
//!                "rows": 1000, "bytes": 64000, "pause_ms": 1000 } ] }
//! ```
//!
//! What always holds: a plan is applied to the epoch that it was made for, or refused.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use shard_backend::MoveMode;
use shard_map::{Catalog, Epoch, MappingId, Name};
use shard_mover::{MoveOrder, PlannedMove};
use std::time::Duration;

use super::request::PlanRequest;

/// The newest format, which is written.
const FORMAT: u64 = 1;

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    format: u64,
    pub(crate) catalog: Name,
    catalog_id: String,
    pub(crate) epoch: Epoch,
    pub(crate) schema: String,
    pub(crate) offline: bool,
    pub(crate) request: PlanRequest,
    pub(crate) moves: Vec<MoveLine>,
}

/// A move of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MoveLine {
    pub(crate) map: Name,
    pub(crate) mapping: String,
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) mode: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) pause_ms: u64,
}

/// Why a file is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanDocumentError {
    /// It is no JSON of a plan.
    #[error("this is no plan: {0}")]
    Json(#[from] serde_json::Error),
    /// A newer version wrote it.
    #[error("the plan has format {0}, and this version reads formats up to {FORMAT}; use a newer version")]
    Newer(u64),
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl PlanDocument {
    pub(crate) fn new(
        catalog: &Catalog,
        schema: String,
        offline: bool,
        request: PlanRequest,
        moves: &[PlannedMove],
    ) -> Self {
        PlanDocument {
            format: FORMAT,
            catalog: catalog.name().clone(),
            catalog_id: id_text(catalog),
            epoch: catalog.epoch(),
            schema,
            offline,
            request,
            moves: moves.iter().map(MoveLine::of).collect(),
        }
    }

    /// Reads a plan.
    pub fn parse(text: &str) -> Result<Self, PlanDocumentError> {
        let Format { format } = serde_json::from_str(text)?;
        if format > FORMAT {
            return Err(PlanDocumentError::Newer(format));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Its JSON.
    pub fn to_json(&self) -> String {
        // Numbers and texts have a form in JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// What it is to reach.
    pub fn request(&self) -> &PlanRequest {
        &self.request
    }

    /// Whether it was made for this catalog.
    pub(crate) fn is_of(&self, catalog: &Catalog) -> bool {
        self.catalog_id == id_text(catalog)
    }

    /// What the map's history says of its changes: by it an application that was cut off is known again.
    pub(crate) fn note(&self) -> String {
        let digest = Sha256::digest(self.to_json());
        let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("apply of plan {digits}")
    }
}

fn id_text(catalog: &Catalog) -> String {
    catalog.id().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl MoveLine {
    /// Whether a move is this one.
    pub(crate) fn is_of(&self, order: &MoveOrder) -> bool {
        (&order.map, &order.mapping, &order.from, &order.to)
            == (&self.map, &self.mapping, &self.from, &self.to)
    }

    fn of(planned: &PlannedMove) -> Self {
        MoveLine {
            map: planned.map.clone(),
            mapping: planned.mapping.to_string(),
            from: planned.from.clone(),
            to: planned.to.clone(),
            mode: planned.mode.to_string(),
            rows: planned.rows,
            bytes: planned.bytes,
            pause_ms: u64::try_from(planned.pause.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// The move in a catalog; none if it has no such mapping.
    pub(crate) fn planned(&self, catalog: &Catalog) -> Option<PlannedMove> {
        let map = catalog.map(self.map.as_str())?;
        let is_offline = self.mode == MoveMode::Offline.to_string();
        Some(PlannedMove {
            map: self.map.clone(),
            mapping: MappingId::parse(&self.mapping, map.key_type())?,
            from: self.from.clone(),
            to: self.to.clone(),
            mode: if is_offline { MoveMode::Offline } else { MoveMode::ReadOnly },
            rows: self.rows,
            bytes: self.bytes,
            pause: Duration::from_millis(self.pause_ms),
        })
    }
}
