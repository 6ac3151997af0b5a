//! Ranges are released on purpose.

use crate::actions::sending::next_mark;
use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::setting::Event;
use crate::world::World;
use crate::world::message::Effect;
use crate::world::process::{Role, Serving, Tail};
use stamp::{RangeId, Release};

/// An owner begins to release a range.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let state = steps.world.processes[process].clone();
    for range in state.ranges.keys().copied().filter(|_| state.has_lease) {
        steps.process(
            process,
            || "begins to release its range".to_owned(),
            |world| {
                spend(world, Event::Release)?;
                begin(world, process, range)
            },
        );
    }
}

fn begin(world: &mut World, process: usize, range: RangeId) -> Possible {
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Err(Stopped::Impossible) };
    if serving.release != Release::Serving {
        return Err(Stopped::Impossible);
    }
    serving.release = serving.release.begin();
    advance(world, process, range);
    Ok(())
}

fn is_drained(serving: &Serving) -> bool {
    let is_quiet = match &serving.tail {
        Tail::None => true,
        Tail::Open(window) => window.is_drained(),
        Tail::Closing(_) => false,
    };
    is_quiet && serving.is_free() && !serving.must_reload
}

/// Once what was admitted is durable, reads stop and the release is sent.
pub(crate) fn advance(world: &mut World, process: usize, range: RangeId) {
    let Some(Role::Serving(serving)) = world.role(process, range) else { return };
    let drained = is_drained(serving);
    serving.release = serving.release.drained(drained);
    if serving.release != Release::Quiet || !world.processes[process].has_lease {
        return;
    }
    let mark = next_mark(world, process, range);
    let Some(Role::Serving(serving)) = world.role(process, range) else { return };
    let Ok(sent) = serving.held.begin_release(mark) else { return };
    let transaction = sent.transaction.clone();
    serving.release = serving.release.sent();
    world.send_transaction(process, range, transaction, Effect::None);
}
