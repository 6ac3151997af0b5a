//! The facade: moves of a catalog's mappings between its shards.

use super::choose_action::Wish;
use crate::error::MoveError;
use crate::integrity::finding::IntegrityReport;
use crate::integrity::progress::CheckSink;
use crate::integrity::repair_plan::{RepairPlan, RepairReport};
use crate::integrity::rules::Rules;
use crate::limits::REASON_CHARS_MAX;
use crate::log::id::MoveId;
use crate::log::move_log::MoveLog;
use crate::log::state::Move;
use crate::plan::facts::{Facts, PlanSettings};
use crate::plan::plan::PlannedMove;
use crate::progress::ProgressSink;
use crate::settings::MoverSettings;
use base::{Clock, Random};
use shard_backend::{Backend, Schema};
use shard_map::{Catalog, Name};
use shard_store::{CatalogHome, LocalStores, Records};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows of the shards that can be reached, by the shards' names.
pub type Backends = BTreeMap<Name, Arc<dyn Backend>>;

/// A catalog's shards, as a mover reaches them.
#[derive(Clone)]
pub struct Shards {
    /// The copies of the map in the shards.
    pub locals: LocalStores,
    /// Their rows.
    pub backends: Backends,
}

/// Moves mappings of one map. Cheap to clone; several moves of different mappings may run at once, here and
/// in other processes.
#[derive(Clone)]
pub struct Mover {
    pub(crate) home: CatalogHome,
    pub(crate) log: MoveLog,
    pub(crate) shards: Shards,
    pub(crate) schema: Arc<Schema>,
    pub(crate) settings: MoverSettings,
    pub(crate) clock: Arc<dyn Clock>,
}

/// All moves beside a map's home, the oldest first.
pub async fn moves_beside(
    records: Arc<dyn Records>,
    (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
) -> Result<Vec<Move>, MoveError> {
    MoveLog { records, clock, random }.all().await
}

/// The shards that the last publish of a whole map could not reach, and why, beside the map's home.
pub async fn unreached_beside(
    records: Arc<dyn Records>,
    (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
) -> Result<BTreeMap<Name, String>, MoveError> {
    MoveLog { records, clock, random }.unreached().await
}

impl Mover {
    /// `records` is the place of the map's home.
    pub fn new(
        records: Arc<dyn Records>,
        shards: Shards,
        schema: Arc<Schema>,
        settings: MoverSettings,
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
    ) -> Self {
        let home = CatalogHome::new(records.clone(), clock.clone(), random.clone());
        let log = MoveLog { records, clock: clock.clone(), random };
        Mover { home, log, shards, schema, settings, clock }
    }

    /// Begins a planned move: from here on it is found by [`Mover::moves`]. Nothing is changed yet.
    pub async fn begin(&self, planned: &PlannedMove) -> Result<MoveId, MoveError> {
        self.begin_move(planned).await
    }

    /// Goes on with a move to its end, from whatever state it is in: done, failed or undone.
    pub async fn finish(&self, id: &MoveId, progress: &ProgressSink) -> Result<Move, MoveError> {
        self.drive(id, Wish::Finish, progress).await
    }

    /// Undoes a move that was not switched yet: the mapping is online on the source again, and the copy's
    /// rows are deleted.
    pub async fn undo(&self, id: &MoveId, progress: &ProgressSink) -> Result<Move, MoveError> {
        self.drive(id, Wish::Undo, progress).await
    }

    /// Deletes the rows that the source of a finished move still has. The mapping is frozen meanwhile: it
    /// keeps its keys, and is moved nowhere.
    pub async fn delete_source(&self, id: &MoveId, progress: &ProgressSink) -> Result<Move, MoveError> {
        self.drive(id, Wish::DeleteSource, progress).await
    }

    /// A move with all its states.
    pub async fn read(&self, id: &MoveId) -> Result<Move, MoveError> {
        self.log.read(id).await
    }

    /// All moves, the oldest first.
    pub async fn moves(&self) -> Result<Vec<Move>, MoveError> {
        self.log.all().await
    }

    /// What plans for a catalog are made of: sizes are measured on the shards that have the mappings. The
    /// catalog is the home's, or what changes that move nothing make of it.
    pub async fn facts(&self, catalog: &Catalog, settings: PlanSettings) -> Result<Facts, MoveError> {
        self.measure(catalog, settings).await
    }

    /// Checks rules over all shards of the map, and changes nothing.
    pub async fn check_integrity(
        &self,
        rules: &Rules,
        progress: &CheckSink,
    ) -> Result<IntegrityReport, MoveError> {
        self.check_rules(rules, progress).await
    }

    /// Deletes copies of rows from shards that the map does not name for them.
    pub async fn repair(&self, plan: &RepairPlan) -> Result<RepairReport, MoveError> {
        self.repair_rows(plan).await
    }

    /// The rows of a shard.
    pub(crate) fn backend(&self, shard: &Name) -> Result<Arc<dyn Backend>, MoveError> {
        let found = self.shards.backends.get(shard).cloned();
        found.ok_or_else(|| MoveError::NoBackend(shard.clone()))
    }

    /// Brings all shards up to the map. The shards that could not be, and why: they are remembered beside the
    /// map until a later call reaches them.
    pub async fn publish_map(&self) -> Result<BTreeMap<Name, String>, MoveError> {
        let catalog = self.home.load().await?;
        let published = self.home.publish(&catalog, &self.shards.locals).await?;
        let cut = |why: &str| why.chars().take(REASON_CHARS_MAX).collect::<String>();
        let held = published.held.iter().map(|held| {
            let names: Vec<&str> = held.waits_for.iter().map(Name::as_str).collect();
            let why = format!("it waits for {}, which may still have the keys", names.join(", "));
            (held.shard.clone(), cut(&why))
        });
        let failed = published.failed.iter().map(|(shard, why)| (shard.clone(), cut(why)));
        let unreached = held.chain(failed).collect();
        self.log.put_unreached(&unreached).await?;
        Ok(unreached)
    }

    /// The home of the map.
    pub fn home(&self) -> &CatalogHome {
        &self.home
    }
}
