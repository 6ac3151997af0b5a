//! Plans, moves and rules of integrity over a map's home and its shards.
//!
//! What always holds: a plan changes nothing, and is applied to the epoch that it was made for, or goes on
//! where its own application was cut off. All moves of a plan begin before the first one is driven, so that
//! after a kill `apply` without a plan goes on with all. What a publish could not reach is shown, and tried
//! again by each `apply`.

use super::document::PlanDocument;
use super::outcome::{MoveOutcome, Planned};
use super::request::PlanRequest;
use crate::run::OperationError;
use base::{Clock, Random};
use futures_util::future::LocalBoxFuture;
use shard_map::{Catalog, Change, Name};
use shard_mover::{
    CheckSink, Move, MoveError, MoveId, MoveState, Mover, Plan, PlanSettings, ProgressSink, Refusal,
    RefusedMove, Rules, moves_beside, plan_repair, unreached_beside,
};
use shard_store::Records;
use std::sync::Arc;

/// What is done.
#[derive(Clone, Debug)]
pub enum MoveOperation {
    /// Plans, and changes nothing.
    Plan(PlanRequest, PlanSettings),
    /// Makes a plan's changes and moves; without one goes on with all moves that are not at their end.
    Apply {
        /// The plan.
        plan: Option<Box<PlanDocument>>,
        /// Whether rows are deleted that sources of finished moves still have.
        delete_sources: bool,
    },
    /// Undoes these moves, or all that are not switched yet.
    Undo(Vec<MoveId>),
    /// Checks rules.
    Verify(Rules),
    /// Checks rules, and deletes copies of rows from wrong shards.
    Repair(Rules),
}

/// What it is done on.
pub struct MoveRun {
    /// The mover of the map.
    pub mover: Mover,
    /// The map that the schema is of.
    pub map: Name,
    /// The fingerprint of the schema.
    pub schema: String,
    /// Whether only to show what would be done.
    pub is_dry: bool,
}

/// Takes progress.
#[derive(Clone, Copy)]
pub struct Sinks<'a> {
    /// Of moves.
    pub moves: &'a ProgressSink,
    /// Of checks.
    pub checks: &'a CheckSink,
}

impl MoveOperation {
    /// Does it.
    pub fn run<'a>(
        &'a self,
        run: &'a MoveRun,
        sinks: Sinks<'a>,
    ) -> LocalBoxFuture<'a, Result<MoveOutcome, OperationError>> {
        Box::pin(async move {
            match self {
                MoveOperation::Plan(request, settings) => plan(run, request, *settings).await,
                MoveOperation::Apply { plan, delete_sources } => {
                    apply(run, plan.as_deref(), *delete_sources, sinks.moves).await
                }
                MoveOperation::Undo(ids) => undo(run, ids, sinks.moves).await,
                MoveOperation::Verify(rules) => {
                    Ok(MoveOutcome::Checked(run.mover.check_integrity(rules, sinks.checks).await?))
                }
                MoveOperation::Repair(rules) => {
                    let found = run.mover.check_integrity(rules, sinks.checks).await?;
                    let plan = plan_repair(&found);
                    let done = match run.is_dry || found.is_of_old_map {
                        true => None,
                        false => Some(run.mover.repair(&plan).await?),
                    };
                    Ok(MoveOutcome::Repaired { found, plan, done })
                }
            }
        })
    }
}

async fn plan(
    run: &MoveRun,
    request: &PlanRequest,
    settings: PlanSettings,
) -> Result<MoveOutcome, OperationError> {
    let catalog = run.mover.home().load().await?;
    let after = catalog.apply(&request.changes(&catalog)?)?.catalog;
    let mut facts = run.mover.facts(&after, settings).await?;
    facts.catalog = catalog.clone();
    let mut plan = request.plan(&facts, &after)?;
    leave_other_maps(&mut plan, &run.map);
    let (schema, offline) = (run.schema.clone(), settings.is_offline_allowed);
    let document = PlanDocument::new(&catalog, schema, offline, request.clone(), &plan.moves);
    Ok(MoveOutcome::Planned(Box::new(Planned { document, plan, after })))
}

/// Moves of other maps are made with the schemas of those.
fn leave_other_maps(plan: &mut Plan, map: &Name) {
    let (own, others) = plan.moves.drain(..).partition(|one| one.map == *map);
    plan.moves = own;
    let others: Vec<shard_mover::PlannedMove> = others;
    plan.refused.extend(others.into_iter().map(|one| {
        let why = Refusal::Schema(format!(
            "the schema is of the map `{map}`; plan with the schema of `{}`",
            one.map
        ));
        RefusedMove { map: one.map, mapping: one.mapping, why }
    }));
}

async fn apply(
    run: &MoveRun,
    plan: Option<&PlanDocument>,
    delete_sources: bool,
    sink: &ProgressSink,
) -> Result<MoveOutcome, OperationError> {
    let ids = match plan {
        Some(plan) if run.is_dry => {
            let catalog = run.mover.home().load().await?;
            check_plan(run, plan, &catalog)?;
            return Ok(MoveOutcome::WouldApply(plan.clone()));
        }
        Some(plan) => begin(run, plan).await?,
        None => active(run).await?.into_iter().map(|of| of.id).collect(),
    };
    if run.is_dry {
        let all = run.mover.moves().await?.into_iter();
        let is_to_delete = |of: &Move| {
            delete_sources && of.order.map == run.map && matches!(of.state(), MoveState::Done { .. })
        };
        return Ok(MoveOutcome::WouldDrive(
            all.filter(|of| ids.contains(&of.id) || is_to_delete(of)).collect(),
        ));
    }
    let mut ended = Vec::new();
    for id in &ids {
        ended.push(run.mover.finish(id, sink).await?);
    }
    if delete_sources {
        let done = run.mover.moves().await?.into_iter().filter(|of| of.order.map == run.map);
        for of in done.filter(|of| matches!(of.state(), MoveState::Done { .. })) {
            ended.retain(|there| there.id != of.id);
            match run.mover.delete_source(&of.id, sink).await {
                Ok(of) => ended.push(of),
                // The mapping was changed since: `repair` deals with what is left there.
                Err(MoveError::WrongState { .. }) => ended.push(of),
                Err(error) => return Err(error.into()),
            }
        }
    }
    // What a former publish could not reach, too.
    let unreached = run.mover.publish_map().await?;
    Ok(MoveOutcome::Moved { moves: ended, unreached })
}

fn check_plan(run: &MoveRun, plan: &PlanDocument, catalog: &Catalog) -> Result<Vec<Change>, OperationError> {
    if !plan.is_of(catalog) || plan.epoch != catalog.epoch() {
        let (planned, there) = (plan.epoch, catalog.epoch());
        return Err(OperationError::OldPlan { catalog: catalog.name().clone(), planned, there });
    }
    if plan.schema != run.schema {
        return Err(OperationError::OtherSchema);
    }
    plan.request.changes(catalog)
}

/// Whether this plan's changes were made last, and what applied it was cut off then.
async fn is_cut_off(run: &MoveRun, plan: &PlanDocument, catalog: &Catalog) -> Result<bool, OperationError> {
    if !plan.is_of(catalog) || plan.schema != run.schema || catalog.epoch() != plan.epoch.next() {
        return Ok(false);
    }
    let entries = run.mover.home().history(plan.epoch, 1).await?;
    Ok(entries.first().is_some_and(|entry| entry.diff.from == plan.epoch && entry.note == plan.note()))
}

/// Makes the changes, and begins all moves that have not begun.
async fn begin(run: &MoveRun, plan: &PlanDocument) -> Result<Vec<MoveId>, OperationError> {
    let home = run.mover.home();
    let known = home.load().await?;
    let mut catalog = known.clone();
    if !is_cut_off(run, plan, &known).await? && !check_plan(run, plan, &known)?.is_empty() {
        let decide = |catalog: &Catalog| check_plan(run, plan, catalog);
        catalog = home.change(&known, &plan.note(), decide).await?.catalog;
        run.mover.publish_map().await?;
    }
    let active = active(run).await?;
    let mut ids = Vec::new();
    for line in &plan.moves {
        if let Some(begun) =
            active.iter().find(|of| line.is_of(&of.order) && of.order.catalog_epoch >= plan.epoch)
        {
            ids.push(begun.id.clone());
            continue;
        }
        let missing = || {
            let (map, mapping) = (line.map.clone(), line.mapping.clone());
            MoveError::from(Refusal::NoMapping { map, mapping })
        };
        ids.push(run.mover.begin(&line.planned(&catalog).ok_or_else(missing)?).await?);
    }
    Ok(ids)
}

async fn active(run: &MoveRun) -> Result<Vec<Move>, OperationError> {
    let moves = run.mover.moves().await?.into_iter();
    Ok(moves.filter(|of| of.order.map == run.map && of.state().is_active()).collect())
}

async fn undo(run: &MoveRun, ids: &[MoveId], sink: &ProgressSink) -> Result<MoveOutcome, OperationError> {
    let is_before_switch = |of: &Move| {
        use MoveState::{Placed, SourceCleared, SourceDeleting, Switched};
        !matches!(of.state(), Placed { .. } | Switched { .. } | SourceDeleting | SourceCleared { .. })
    };
    let ids: Vec<MoveId> = match ids.is_empty() {
        true => active(run).await?.into_iter().filter(is_before_switch).map(|of| of.id).collect(),
        false => ids.to_vec(),
    };
    if run.is_dry {
        let mut moves = Vec::new();
        for id in &ids {
            moves.push(run.mover.read(id).await?);
        }
        return Ok(MoveOutcome::WouldDrive(moves));
    }
    let mut ended = Vec::new();
    for id in &ids {
        ended.push(run.mover.undo(id, sink).await?);
    }
    Ok(MoveOutcome::Undone(ended))
}

/// These moves as they are, or all; beside a home whose schema need not be known.
pub fn status<'a>(
    records: Arc<dyn Records>,
    outside: (Arc<dyn Clock>, Arc<dyn Random>),
    ids: &'a [MoveId],
) -> LocalBoxFuture<'a, Result<MoveOutcome, OperationError>> {
    Box::pin(async move {
        let mut moves = moves_beside(records.clone(), outside.clone()).await?;
        let unreached = unreached_beside(records, outside).await?;
        if let Some(id) = ids.iter().find(|id| moves.iter().all(|of| of.id != **id)) {
            return Err(OperationError::NoMove(id.to_string()));
        }
        moves.retain(|of| ids.is_empty() || ids.contains(&of.id));
        Ok(MoveOutcome::Status { moves, unreached })
    })
}

#[cfg(test)]
mod tests;
