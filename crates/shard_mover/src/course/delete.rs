//! Deletes the rows that a side of a move still has, and ends claims.
//!
//! What always holds: a deletion ends with the release of its claim, and of the signatures that were made by
//! it, before its state is put: so no late delete of it hits rows that come there later, of whatever mapping.

use super::mover::Mover;
use super::observe::{Watch, mapping_of, shardlet_of};
use crate::error::{MoveError, is_for_ever};
use crate::limits::REASON_CHARS_MAX;
use crate::log::state::Move;
use crate::plan::refusal::Refusal;
use crate::progress::{Meter, Phase, ProgressSink};
use crate::rows::delete::delete_rows;
use crate::rows::side::Side;
use crate::settings::PlantedFault;
use shard_backend::{BackendError, Shardlet};
use shard_map::{Epoch, Name};

/// What a deletion did.
#[derive(Default)]
pub(super) struct Deleted {
    pub(super) rows: u64,
    /// What is left, if anything is.
    pub(super) note: Option<String>,
}

impl Mover {
    /// Deletes all rows of the mapping from a shard. Where a row can't be read, the rest of its table stays.
    pub(super) async fn delete_all(
        &self,
        of: &Move,
        shard: &Name,
        claim: Epoch,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<Deleted, MoveError> {
        if watch.catalog.shard(shard.as_str()).is_none() {
            let note = format!("shard `{shard}` is not in the catalog any more; nothing was deleted there");
            return Ok(Deleted { rows: 0, note: Some(note) });
        }
        let side = self.side(shard, of, watch)?;
        match self.claim(&side, claim).await {
            Ok(()) => {}
            // A former mover released it, so all is deleted; how many it deleted is not known any more.
            Err(MoveError::Backend(BackendError::Released { .. })) => {
                self.wait_for_signatures(of, &[&side], progress).await;
                return Ok(Deleted::default());
            }
            Err(error) => return Err(error),
        }
        self.wait_for_signatures(of, &[&side], progress).await;
        let deleted = self.delete_tables(of, &side, claim, progress).await?;
        self.release(of, &side, claim, progress).await?;
        Ok(deleted)
    }

    async fn delete_tables(
        &self,
        of: &Move,
        side: &Side,
        claim: Epoch,
        progress: &ProgressSink,
    ) -> Result<Deleted, MoveError> {
        let meter = Meter::new(&of.id, progress, Phase::Deleting, of.order.rows, self.clock.monotonic());
        let mut deleted = Deleted::default();
        for table in self.schema.tables().filter(|table| table.is_sharded()) {
            let before = deleted.rows;
            let mut shown = before;
            let counted = |rows| {
                shown = before + rows;
                meter.show(shown, self.clock.monotonic());
            };
            let done = delete_rows(table, side, self.claim_of(claim), counted).await;
            deleted.rows = shown;
            match done {
                Ok(_) => {}
                // No later try would do better, and the mapping would stay frozen for ever.
                Err(MoveError::Backend(error)) if is_for_ever(&error) => {
                    let note =
                        format!("rows of table `{}` are left on `{}`: {error}", table.name(), side.shard);
                    deleted.note = Some(note.chars().take(REASON_CHARS_MAX).collect());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// Ends the claims of the copy on a shard, whose rows stay: no late write of it passes any more.
    pub(super) async fn end_claim(
        &self,
        of: &Move,
        shard: &Name,
        claim: Epoch,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<(), MoveError> {
        if watch.catalog.shard(shard.as_str()).is_none() {
            return Ok(());
        }
        let side = match self.side(shard, of, watch) {
            // The map has it no more, the shard's claims have.
            Err(MoveError::Refused(Refusal::NoMapping { .. })) => match self.gone_side(shard, of, watch)? {
                Some(side) => side,
                None => return Ok(()),
            },
            side => side?,
        };
        match self.claim(&side, claim).await {
            Ok(()) => self.release(of, &side, claim, progress).await,
            // Others claimed it since, or a former mover was here.
            Err(MoveError::Backend(BackendError::Released { .. } | BackendError::Claimed { .. })) => {
                self.wait_for_signatures(of, &[&side], progress).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The side of a mapping that the map has no more; none if its id is none of the map's any more.
    fn gone_side(&self, shard: &Name, of: &Move, watch: &Watch) -> Result<Option<Side>, MoveError> {
        let found = mapping_of(&watch.catalog, &of.order);
        let Some((map, mapping)) = found.and_then(|(map, id)| Some((watch.catalog.map(map)?.clone(), id)))
        else {
            return Ok(None);
        };
        let (shard, backend, bounds) = (shard.clone(), self.backend(shard)?, self.settings.batch);
        Ok(Some(Side { shard, backend, shardlet: Shardlet::without_bounds(map, mapping), bounds }))
    }

    async fn release(
        &self,
        of: &Move,
        side: &Side,
        claim: Epoch,
        progress: &ProgressSink,
    ) -> Result<(), MoveError> {
        // The mapping's keys may soon be those of another mapping here, after a split or a pin, whose rows a
        // late delete of this claim would hit.
        let is_kept = self.settings.planted.is(PlantedFault::OneClaim);
        if !is_kept && !self.settings.planted.is(PlantedFault::NoRelease) {
            side.backend.release(&side.shardlet, self.claim_of(claim)).await?;
            self.wait_for_signatures(of, &[side], progress).await;
        }
        Ok(())
    }

    /// A side of the move, with the mapping as the map has it.
    pub(super) fn side(&self, shard: &Name, of: &Move, watch: &Watch) -> Result<Side, MoveError> {
        let shardlet = shardlet_of(&watch.catalog, &of.order).ok_or_else(|| {
            let (map, mapping) = (of.order.map.clone(), of.order.mapping.clone());
            Refusal::NoMapping { map, mapping }
        })?;
        let (shard, backend) = (shard.clone(), self.backend(shard)?);
        Ok(Side { shard, backend, shardlet, bounds: self.settings.batch })
    }
}
