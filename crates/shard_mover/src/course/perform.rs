//! Does what was chosen. Each action can be done twice, and by two movers at once.
//!
//! What always holds: a claim comes before what it is to keep out. The source is claimed before its clients
//! are refused, so that no late write of a copy that once brought the rows there lands while they are read;
//! the target is claimed by the mark's epoch before the first row, and by the placement's before it is open.
//! Clients read a read-only mapping on the source; those signatures end before it is open, too.

use super::choose_action::Action;
use super::delete::Deleted;
use super::map_changes::own_changes;
use super::mover::Mover;
use super::observe::{OwnChange, Watch};
use crate::certificate::Certificate;
use crate::error::MoveError;
use crate::log::state::{Move, MoveState};
use crate::plan::refusal::Refusal;
use crate::progress::{Phase, Progress, ProgressSink};
use crate::rows::side::Side;
use crate::settings::PlantedFault;
use shard_backend::Fence;
use shard_map::{Catalog, Epoch, Name};

impl Mover {
    /// Does an action; the state that it led to, if it is to be put. Changes of the map are seen in its
    /// history.
    pub(super) async fn perform(
        &self,
        of: &Move,
        action: Action,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<Option<MoveState>, MoveError> {
        let order = &of.order;
        Ok(match action {
            Action::Mark => return self.mark(of, watch).await,
            Action::Drain(mark) => {
                let source = self.side(&order.from, of, watch)?;
                self.claim(&source, mark).await?;
                self.publish(of, watch, mark, &[&order.from]).await?;
                self.wait_for_signatures(of, &[&source], progress).await;
                Some(MoveState::Drained)
            }
            Action::Claim(mark) => {
                let target = self.side(&order.to, of, watch)?;
                self.claim(&target, mark).await?;
                self.wait_for_signatures(of, &[&target], progress).await;
                Some(MoveState::Claimed)
            }
            Action::Copy(mark) => Some(self.copy_all(of, mark, watch, progress).await?),
            Action::Verify => Some(self.verify_all(of, watch, progress).await?),
            Action::Place => {
                let mark = of.marked_epoch().unwrap_or_default();
                self.change_map(of, watch, OwnChange::Place, mark).await?;
                None
            }
            Action::Open(placed) => {
                self.settle(of, placed, watch, progress).await?;
                let opened = self.change_map(of, watch, OwnChange::Open, placed).await?;
                opened.map(|epoch| MoveState::Switched { epoch })
            }
            Action::Settle { claim, since } => {
                self.settle(of, claim, watch, progress).await?;
                self.thaw(of, watch, of.marked_epoch().unwrap_or_default()).await?;
                Some(MoveState::Switched { epoch: since })
            }
            Action::Finish(epoch) => return self.certify(of, epoch, watch).await.map(Some),
            Action::Freeze(switched) => {
                self.freeze(of, watch, switched).await?;
                None
            }
            Action::DeleteSource(claim) => {
                self.thaw_early(of, watch, claim).await?;
                let Deleted { rows, note } = self.delete_all(of, &order.from, claim, watch, progress).await?;
                Some(MoveState::SourceCleared { rows, note })
            }
            Action::Reopen(marked) => {
                self.change_map(of, watch, OwnChange::Reopen, marked).await?;
                None
            }
            Action::ClearTarget(claim) => {
                self.publish(of, watch, claim, &[&order.from]).await?;
                self.thaw_early(of, watch, of.marked_epoch().unwrap_or_default()).await?;
                let Deleted { note, .. } = self.delete_all(of, &order.to, claim, watch, progress).await?;
                Some(MoveState::TargetCleared { note })
            }
            Action::EndClaim { claim, note } => {
                self.publish(of, watch, claim, &[&order.from]).await?;
                self.end_claim(of, &order.to, claim, watch, progress).await?;
                Some(MoveState::TargetCleared { note: Some(note) })
            }
            Action::PublishOnly => {
                self.publish(of, watch, watch.catalog.epoch(), &[&order.from]).await?;
                Some(MoveState::TargetCleared { note: None })
            }
            Action::Thaw(since) => {
                self.thaw(of, watch, since).await?;
                None
            }
            Action::Record(state) => Some(state),
            Action::Stop | Action::Refuse(_) => None,
        })
    }

    /// Takes the mapping and marks it. Of two moves of one mapping the second one ends here.
    async fn mark(&self, of: &Move, watch: &Watch) -> Result<Option<MoveState>, MoveError> {
        let has_it = self.log.take_mapping(of).await?;
        if has_it != of.id.as_str() {
            let note = format!("move {has_it} has the mapping");
            return Ok(Some(MoveState::Undone { note: Some(note) }));
        }
        self.change_map(of, watch, OwnChange::Mark, of.order.since).await?;
        Ok(None)
    }

    /// Makes a change of the map; its epoch, if the mapping was as the change finds it.
    async fn change_map(
        &self,
        of: &Move,
        watch: &Watch,
        change: OwnChange,
        known: Epoch,
    ) -> Result<Option<Epoch>, MoveError> {
        let decide =
            |catalog: &_| Ok::<_, MoveError>(own_changes(catalog, (&of.id, &of.order), change, known));
        let changed = self.home.change(&watch.catalog, &change.note(&of.id), decide).await?;
        Ok((!changed.diff.is_empty()).then_some(changed.diff.to))
    }

    /// Freezes the mapping for the deletion of the source's rows, if that has not been done. Another mover
    /// may have done all of it since the state was read: it put so before the mapping was thawed, and so
    /// before the epoch that is followed here.
    async fn freeze(&self, of: &Move, watch: &Watch, switched: Epoch) -> Result<(), MoveError> {
        if *self.log.read(&of.id).await?.state() != MoveState::SourceDeleting {
            return Ok(());
        }
        let epoch = watch.catalog.epoch();
        let decide = |catalog: &Catalog| {
            let is_seen = catalog.epoch() == epoch;
            let changes = || own_changes(catalog, (&of.id, &of.order), OwnChange::Freeze, switched);
            Ok::<_, MoveError>(if is_seen { changes() } else { Vec::new() })
        };
        self.home.change(&watch.catalog, &OwnChange::Freeze.note(&of.id), decide).await?;
        Ok(())
    }

    async fn thaw(&self, of: &Move, watch: &Watch, since: Epoch) -> Result<(), MoveError> {
        self.change_map(of, watch, OwnChange::Thaw, since).await.map(drop)
    }

    async fn thaw_early(&self, of: &Move, watch: &Watch, since: Epoch) -> Result<(), MoveError> {
        let is_early = self.settings.planted.is(PlantedFault::ThawEarly);
        if is_early { self.thaw(of, watch, since).await } else { Ok(()) }
    }

    pub(super) async fn claim(&self, side: &Side, claim: Epoch) -> Result<(), MoveError> {
        Ok(side.backend.claim(&side.shardlet, self.claim_of(claim)).await?)
    }

    /// The claim of an epoch: itself.
    pub(super) fn claim_of(&self, epoch: Epoch) -> Epoch {
        if self.settings.planted.is(PlantedFault::OneClaim) { Epoch(1) } else { epoch }
    }

    /// Waits until signatures have ended that were made before, if that is how one of the sides is fenced. A
    /// mover that goes on after a kill waits anew: it does not know when the former one began.
    pub(super) async fn wait_for_signatures(&self, of: &Move, sides: &[&Side], progress: &ProgressSink) {
        let is_needed = sides.iter().any(|side| side.backend.capabilities().fence == Fence::Expires);
        if is_needed && !self.settings.planted.is(PlantedFault::NoWait) {
            let wait = self.settings.expires_after.saturating_add(self.settings.clock_bound);
            let (id, phase) = (of.id.clone(), Phase::Waiting);
            progress(Progress { id, phase, rows: 0, of: 0, rows_per_second: 0.0, rest: Some(wait) });
            self.clock.sleep(wait).await;
        }
    }

    /// Brings all shards up to the map; these must be.
    async fn publish(
        &self,
        of: &Move,
        watch: &Watch,
        epoch: Epoch,
        needed: &[&Name],
    ) -> Result<(), MoveError> {
        let published = self.home.publish(&watch.catalog, &self.shards.locals).await?;
        for shard in needed {
            let held = || {
                let is_it = |held: &&shard_store::Held| held.shard == **shard && held.map == of.order.map;
                let held = published.held.iter().find(is_it)?;
                let names: Vec<&str> = held.waits_for.iter().map(Name::as_str).collect();
                Some(format!("it waits for {}, which may still have the keys", names.join(", ")))
            };
            if let Some(why) = published.failed.get(*shard).cloned().or_else(held) {
                return Err(MoveError::NotPublished { shard: Name::clone(shard), epoch, why });
            }
        }
        Ok(())
    }

    /// Before the target is open: no late write of the copy passes any more, readers find it there, and no
    /// signature is left by which the source is read: its rows grow old from the first write on.
    async fn settle(
        &self,
        of: &Move,
        claim: Epoch,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<(), MoveError> {
        // A mapping that others removed has no rows that could be claimed. A side that can't be reached from
        // here is another thing: the target stays closed until a mover that reaches both goes on.
        let [target, source] = match [&of.order.to, &of.order.from].map(|shard| self.side(shard, of, watch)) {
            [Err(MoveError::Refused(Refusal::NoMapping { .. })), _] => return Ok(()),
            [target, source] => [target?, source?],
        };
        self.claim(&target, claim).await?;
        self.publish(of, watch, claim, &[]).await?;
        self.wait_for_signatures(of, &[&source, &target], progress).await;
        Ok(())
    }

    async fn certify(&self, of: &Move, epoch: Epoch, watch: &Watch) -> Result<MoveState, MoveError> {
        self.publish(of, watch, epoch, &[&of.order.from, &of.order.to]).await?;
        let Some(certificate) = Certificate::of(of) else {
            let (place, key) = (self.home.place().to_owned(), of.id.to_string());
            return Err(MoveError::Damaged { place, key, what: "a state is missing".to_owned() });
        };
        // What is left of them costs room only.
        drop(self.log.remove_positions(&of.id).await);
        Ok(MoveState::Done { certificate: Box::new(certificate) })
    }
}
