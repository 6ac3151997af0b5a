//! Deadlines pass, keys of processes expire, processes join again under a new incarnation.
//!
//! The end of a lease stands for a pause, a cut network, a crash: the process sends nothing more and learns
//! it when it joins again; what it sent before may still arrive, and answers may still reach it.

use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::setting::{Breach, Event, Setting};
use crate::world::World;
use crate::world::check::is_named;
use crate::world::process::Process;
use stamp::{Incarnation, RangeId};

/// Steps of the lease of a process.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let setting = steps.setting;
    let state = steps.world.processes[process].clone();
    let has_key = steps.world.metadata.has_process(state.incarnation);
    if state.has_lease {
        steps.process(
            process,
            || "passes its deadline".to_owned(),
            |world| {
                // Without its key, or without the store, no beat of it is committed any more.
                if has_key && !world.metadata.is_lost() {
                    spend(world, Event::LeaseEnd)?;
                }
                end_lease(world, setting, process);
                Ok(())
            },
        );
    } else {
        steps.process(process, || "joins again".to_owned(), |world| join_again(world, setting, process));
    }
    if has_key && state.has_lease {
        steps.process(
            process,
            || "has its key expire while it lives".to_owned(),
            |world| {
                spend(world, Event::KeyEnd)?;
                world.metadata().expire(state.incarnation);
                Ok(())
            },
        );
    }
}

/// The deadline has passed, and the key goes with it: until it does, others only wait.
///
/// What the process sent may still arrive; it does nothing more but receive answers to parts, of which
/// nothing must come.
fn end_lease(world: &mut World, setting: &Setting, process: usize) {
    let incarnation = world.processes[process].incarnation;
    world.metadata().expire(incarnation);
    world.process(process).has_lease = false;
    if setting.breaches.has(Breach::ReadWithoutLease) || setting.breaches.has(Breach::AcknowledgeWithoutLease)
    {
        return;
    }
    world.stop_waiting(process, |awaited| !awaited.message.is_part());
    let zombie = world.process(process);
    let waits = |range: &RangeId| zombie.awaited.iter().any(|awaited| awaited.range == *range);
    let kept = zombie.ranges.keys().copied().filter(waits).collect::<Vec<_>>();
    zombie.ranges.retain(|range, _| kept.contains(range));
}

/// The process drops everything, revokes its lease, and joins under a new incarnation.
fn join_again(world: &mut World, setting: &Setting, process: usize) -> Possible {
    if world.metadata.is_lost() {
        return Err(Stopped::Impossible);
    }
    world.join_again(process);
    if setting.breaches.has(Breach::DeleteAtStart) {
        delete_all(world)?;
    }
    Ok(())
}

/// A planted fault: what this process does not own, so all there is, looks like an orphan to it.
fn delete_all(world: &mut World) -> Possible {
    for path in world.store.list() {
        if is_named(world, path) {
            let extent = path.extent.0;
            let name = format!("{}-{}", extent.incarnation.0, extent.counter);
            return Err(Stopped::Violation(format!("extent {name} is deleted, and a document names it")));
        }
        world.store().delete(path);
    }
    Ok(())
}

/// Whether the deadline of an incarnation has passed for certain.
pub(crate) fn is_over(world: &World, incarnation: Incarnation) -> bool {
    let of_it = world.processes.iter().find(|process| process.incarnation == incarnation);
    of_it.is_none_or(|process| !process.has_lease)
}

/// Whether the process may begin something with the range.
pub(crate) fn is_idle(process: &Process, range: RangeId) -> bool {
    process.has_lease && !process.ranges.contains_key(&range)
}
