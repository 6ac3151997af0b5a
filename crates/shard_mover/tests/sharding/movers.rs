//! Movers: several at once, killed and followed by others, of moves that are finished, undone, and whose
//! sources are deleted.

use crate::gate::{Gate, Kind, Late};
use crate::setting::{SHARDS, Setting, name};
use shard_backend::MoveMode;
use shard_map::Catalog;
use shard_mover::{Move, MoveError, MoveId, MoveState, Mover, PlannedMove};
use std::sync::Arc;
use std::time::Duration;

/// Moves that one mover begins or goes on with.
const ROUNDS: u64 = 3;
/// Movers of one move, one after the other.
const TRIES: u64 = 3;
/// Operations of movers take up to so many microseconds.
const SLOW_US: u64 = 2000;

/// A move of any mapping to any shard.
fn planned(setting: &Setting, catalog: &Catalog) -> PlannedMove {
    let mappings: Vec<_> = Setting::map(catalog).mappings().collect();
    let (mapping, placement) = &mappings[setting.below(mappings.len() as u64) as usize];
    PlannedMove {
        map: name("m"),
        mapping: mapping.clone(),
        from: placement.shard.clone(),
        to: name(SHARDS[setting.below(3) as usize]),
        mode: if setting.is_one_in(5) { MoveMode::Offline } else { MoveMode::ReadOnly },
        rows: 10,
        bytes: 0,
        pause: Duration::ZERO,
    }
}

/// Drives some moves; operations that are still on their way are put to the others.
pub(crate) async fn movers(setting: Arc<Setting>, left_behind: &mut Vec<Late>) {
    let outside = || (setting.clock.clone(), setting.random.clone());
    for _ in 0..ROUNDS {
        setting.clock.sleep(Duration::from_millis(setting.below(10_000))).await;
        let mover = setting.mover(&Gate::new(outside(), None, SLOW_US));
        let Ok(catalog) = setting.home().load().await else { continue };
        let begun = mover.begin(&planned(&setting, &catalog)).await.ok();
        let Ok(all) = mover.moves().await else { continue };
        let active: Vec<_> = all.iter().filter(|of| of.state().is_active()).map(|of| of.id.clone()).collect();
        let other = (!active.is_empty()).then(|| active[setting.below(active.len() as u64) as usize].clone());
        let Some(id) = begun.or(other) else { continue };
        for _ in 0..TRIES {
            let kind = [Kind::KillBefore, Kind::KillAfter, Kind::Late][setting.below(3) as usize];
            let gate = Gate::new(outside(), Some((setting.below(150), kind)), SLOW_US);
            if let Some(late) = left_behind.pop() {
                gate.arrive_after(setting.below(100), late);
            }
            let mover = setting.mover(&gate);
            tokio::select! { biased; () = run(&setting, &mover, &id) => {}, () = gate.killed() => {} }
            left_behind.extend(gate.left_behind());
            setting.clock.sleep(Duration::from_millis(setting.below(2000))).await;
        }
    }
}

async fn run(setting: &Setting, mover: &Mover, id: &MoveId) {
    if setting.is_one_in(8) {
        drop(mover.undo(id, &|_| {}).await);
        return;
    }
    let ended = mover.finish(id, &|_| {}).await;
    match ended.as_ref().map(Move::state) {
        Ok(MoveState::Failed { .. }) => drop(mover.undo(id, &|_| {}).await),
        Ok(MoveState::Done { .. }) if !setting.is_one_in(3) => drop(mover.delete_source(id, &|_| {}).await),
        _ => {}
    }
}

/// Drives all moves to their ends, deletes the sources' rows where nothing is in the way; all moves.
pub(crate) async fn end_all(setting: &Arc<Setting>) -> Result<Vec<Move>, String> {
    let mover = setting.mover(&Gate::new((setting.clock.clone(), setting.random.clone()), None, 0));
    let text = |error: MoveError| error.to_string();
    let mut ended = Vec::new();
    for of in mover.moves().await.map_err(text)? {
        let mut of = mover.finish(&of.id, &|_| {}).await.map_err(text)?;
        if let MoveState::Failed { .. } = of.state() {
            of = mover.undo(&of.id, &|_| {}).await.map_err(text)?;
        }
        if let MoveState::Done { .. } = of.state() {
            match mover.delete_source(&of.id, &|_| {}).await {
                Ok(deleted) => of = deleted,
                // The mapping was moved again, or another has its keys.
                Err(MoveError::WrongState { .. } | MoveError::Refused(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        ended.push(of);
    }
    Ok(ended)
}
