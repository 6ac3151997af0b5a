//! What a process sends, and what it stops waiting for.

use crate::actions::step::{Possible, Stopped};
use crate::world::World;
use crate::world::message::{Effect, Message};
use crate::world::process::{Role, Serving};
use stamp::{Change, Mark, PartHeader, PartPath, RangeId, SealWalk, WalkStep};

/// What the process does with the range, if it serves it.
pub(crate) fn serving(world: &mut World, process: usize, range: RangeId) -> Result<&mut Serving, Stopped> {
    match world.role(process, range) {
        Some(Role::Serving(serving)) => Ok(serving),
        _ => Err(Stopped::Impossible),
    }
}

/// A name for a change that the process has not used before.
pub(crate) fn next_mark(world: &mut World, process: usize, range: RangeId) -> Mark {
    let process = world.process(process);
    Mark::new(process.incarnation, process.next_counter(range))
}

/// The process sends a part or seal.
pub(crate) fn send_part(world: &mut World, process: usize, range: RangeId, header: PartHeader) {
    let path = PartPath { extent: header.place.extent, offset: header.offset };
    world.send(process, range, Message::Put { path, header });
}

/// Parts and seals of the range that are under way are not waited for.
pub(crate) fn stop_sending_parts(world: &mut World, process: usize, range: RangeId) {
    world.stop_waiting(process, |awaited| {
        awaited.range == range && matches!(awaited.message, Message::Put { .. })
    });
}

/// Begins a change of the document and sends it.
pub(crate) fn begin(
    world: &mut World,
    process: usize,
    range: RangeId,
    changes: &[Change],
    effect: Effect,
) -> Possible {
    let mark = next_mark(world, process, range);
    let serving = serving(world, process, range)?;
    let sent = serving.held.begin(changes, mark).map_err(|_| Stopped::Impossible)?;
    let transaction = sent.transaction.clone();
    world.send_transaction(process, range, transaction, effect);
    Ok(())
}

/// Goes on with a walk: reads, up to where a seal is to be sent, or to the walk's end.
pub(crate) fn walk_on(world: &World, walk: &mut SealWalk) -> WalkStep {
    loop {
        match walk.step() {
            WalkStep::Read { offset } => walk.found(&world.store.read(walk.place().extent, offset)),
            step => return step,
        }
    }
}

/// Seals an extent in one step.
pub(crate) fn seal_now(world: &mut World, mut walk: SealWalk) -> WalkStep {
    loop {
        match walk_on(world, &mut walk) {
            WalkStep::Create(header) => {
                let path = PartPath { extent: header.place.extent, offset: header.offset };
                let answer = world.store().create(path, header);
                walk.answered(answer);
            }
            step => return step,
        }
    }
}
