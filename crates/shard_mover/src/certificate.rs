//! The certificate of a move: what was moved and how that is known, for the history and for auditors.
//!
//! ```json
//! { "format": 1, "move": "…", "map": "tenants", "mapping": "virtual-17", "from": "one", "to": "two",
//!   "mode": "read-only", "schema": "v1-…",
//!   "marked": 41, "placed": 44, "switched": 45,                    epochs of the map
//!   "planned_at": "…", "marked_at": "…", "verified_at": "…", "switched_at": "…",
//!   "hash": "hmac-sha256-128", "hash_version": 1, "key_id": "2026-11",
//!   "tables": [ { "table": "orders", "rows": 3, "digest": "00…", "high_water": ["17", "9"] } ] }
//! ```
//!
//! What always holds: it is a function of the move's states, so all movers of a move make the same. Both
//! sides had these rows, each read to its end while no client could write them.

use crate::log::state::{Move, MoveState};
use crate::rows::report::TableReport;
use serde::{Deserialize, Serialize};
use shard_backend::RowHasher;
use shard_map::{Epoch, Name};

/// The newest format, which is written.
const FORMAT: u64 = 1;

/// What was moved, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The format.
    pub format: u64,
    /// The move, mapping and shards.
    #[serde(flatten)]
    pub what: CertificateSubject,
    /// The epochs that it made.
    #[serde(flatten)]
    pub epochs: CertificateEpochs,
    /// When its steps were done.
    #[serde(flatten)]
    pub times: CertificateTimes,
    /// The hash of the digests.
    pub hash: String,
    /// Its version, and that of canonical rows.
    pub hash_version: u32,
    /// Which key the digests are made with.
    pub key_id: String,
    /// What was equal on both sides.
    pub tables: Vec<TableReport>,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateSubject {
    /// The move's id.
    #[serde(rename = "move")]
    pub id: String,
    /// The map.
    pub map: Name,
    /// The mapping's id.
    pub mapping: String,
    /// The shard that had it.
    pub from: Name,
    /// The shard that has it.
    pub to: Name,
    /// `read-only` or `offline`.
    pub mode: String,
    /// The fingerprint of the schema.
    pub schema: String,
}

/// Epochs of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateEpochs {
    /// Writers were refused from here on.
    pub marked: Epoch,
    /// The mapping was on the target.
    pub placed: Epoch,
    /// It was open there.
    pub switched: Epoch,
}

/// Times, by the clocks of the movers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateTimes {
    /// When the move began.
    pub planned_at: String,
    /// When the map had the mark.
    pub marked_at: String,
    /// When both sides were compared.
    pub verified_at: String,
    /// When the mapping was open on the target.
    pub switched_at: String,
}

impl Certificate {
    /// The certificate of a move that was switched; none before.
    pub fn of(of: &Move) -> Option<Self> {
        let order = &of.order;
        let (key_id, tables) = of.find(|state| match state {
            MoveState::Verified { key_id, tables } => Some((key_id.clone(), tables.clone())),
            _ => None,
        })?;
        let switched =
            of.find(|state| if let MoveState::Switched { epoch } = state { Some(*epoch) } else { None })?;
        Some(Certificate {
            format: FORMAT,
            what: CertificateSubject {
                id: of.id.to_string(),
                map: order.map.clone(),
                mapping: order.mapping.clone(),
                from: order.from.clone(),
                to: order.to.clone(),
                mode: order.mode().to_string(),
                schema: order.schema.clone(),
            },
            epochs: CertificateEpochs { marked: of.marked_epoch()?, placed: of.placed_epoch()?, switched },
            times: CertificateTimes {
                planned_at: of.at("planned")?,
                marked_at: of.at("marked")?,
                verified_at: of.at("verified")?,
                switched_at: of.at("switched")?,
            },
            hash: RowHasher::NAME.to_owned(),
            hash_version: RowHasher::VERSION,
            key_id,
            tables,
        })
    }

    /// Its JSON.
    pub fn to_json(&self) -> String {
        // Numbers and texts have a form in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}
