//! Owners append, lose patience, and meet seals that nobody meant.

use crate::actions::part_answers::give_up;
use crate::actions::sending::{seal_now, send_part};
use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::setting::Event;
use crate::world::World;
use crate::world::names::{STRAY, is_within, sealer};
use crate::world::process::{Role, Tail};
use stamp::{PartPath, RangeId, SealWalk};

/// Steps of the writer of each range.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let setting = steps.setting;
    let state = steps.world.processes[process].clone();
    let has_lease = state.has_lease;
    for range in state.ranges.keys().copied().filter(|_| has_lease) {
        let write = steps.world.history.decided_over.len() as u64 + 1;
        steps.process(process, || format!("sends write {write}"), |world| append(world, process, range));
        steps.process(
            process,
            || "gives up on its parts".to_owned(),
            |world| {
                spend(world, Event::GiveUp)?;
                give_up(world, setting, process, range)
            },
        );
    }
}

fn append(world: &mut World, process: usize, range: RangeId) -> Possible {
    let write = world.history.decided_over.len() as u64 + 1;
    // There is always another write: one that finds its name taken is not counted, and never in a log.
    if !is_sealed_unknown(world, process, range) {
        spend(world, Event::Write)?;
    }
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Err(Stopped::Impossible) };
    let admits = serving.release.admits_writes() && serving.heirs.is_none();
    let Tail::Open(window) = &mut serving.tail else { return Err(Stopped::Impossible) };
    if !admits || !is_within(write, &serving.held.document().keys) {
        return Err(Stopped::Impossible);
    }
    let header = window.push(1, write).map_err(|_| Stopped::Impossible)?;
    let decided_over = [serving.visible.as_slice(), serving.pending.as_slice()].concat();
    serving.pending.push(write);
    world.history().decided_over.push(decided_over);
    send_part(world, process, range, header);
    Ok(())
}

/// Whether the owner has nothing under way, and the name of its next part is taken.
fn is_sealed_unknown(world: &World, process: usize, range: RangeId) -> bool {
    let Some(serving) = world.processes[process].serving(range) else { return false };
    match &serving.tail {
        Tail::Open(window) if window.is_drained() => {
            let next = PartPath { extent: window.place().extent, offset: window.next_offset() };
            world.store.has(next)
        }
        _ => false,
    }
}

/// A seal of a take that was given up arrives at the end of an open tail.
pub(crate) fn add_stray_seals(steps: &mut Steps<'_>) {
    for process in 0..steps.world.processes.len() {
        let ranges: Vec<RangeId> = steps.world.processes[process].ranges.keys().copied().collect();
        for range in ranges {
            steps.process(
                process,
                || "meets a stray seal".to_owned(),
                |world| {
                    spend(world, Event::StraySeal)?;
                    let Some(Role::Serving(serving)) = world.role(process, range) else {
                        return Err(Stopped::Impossible);
                    };
                    let Tail::Open(window) = &serving.tail else { return Err(Stopped::Impossible) };
                    let walk = SealWalk::new(serving.held.life(), window.place(), sealer(STRAY));
                    seal_now(world, walk);
                    Ok(())
                },
            );
        }
    }
}
