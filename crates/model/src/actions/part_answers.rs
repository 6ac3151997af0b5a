//! What a process does with an answer about a part or a seal that it sent.

use crate::actions::sending::{send_part, serving, stop_sending_parts};
use crate::actions::step::{Possible, Stopped};
use crate::actions::tail::{advance_closing, close, sealed_out};
use crate::actions::{release, take};
use crate::setting::{Breach, Setting};
use crate::world::World;
use crate::world::names::Write;
use crate::world::process::{Role, Tail};
use stamp::{
    AfterAppend, AfterStop, AppendStop, AppendWindow, PartHeader, PartKind, PutAnswer, RangeId, SealWalk,
    choose_after_stop,
};

/// An answer has come, or none in time.
pub(crate) fn receive(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    header: &PartHeader,
    answer: PutAnswer,
) -> Possible {
    match header.kind {
        PartKind::Part => receive_part(world, setting, process, range, header, answer),
        PartKind::Seal => receive_seal(world, setting, process, range, header, answer),
    }
}

/// The window of the extent, if it still takes appends.
fn window<'a>(
    world: &'a mut World,
    process: usize,
    range: RangeId,
    header: &PartHeader,
) -> Option<&'a mut AppendWindow> {
    match &mut serving(world, process, range).ok()?.tail {
        Tail::Open(window) if window.place() == header.place => Some(window),
        _ => None,
    }
}

fn receive_part(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    header: &PartHeader,
    answer: PutAnswer,
) -> Possible {
    let breaches = setting.breaches;
    let has_lease = world.processes[process].has_lease || breaches.has(Breach::AcknowledgeWithoutLease);
    let is_failure = answer == PutAnswer::Unknown && breaches.has(Breach::UnknownIsFailure);
    let answer = if is_failure { PutAnswer::Failed { status: 0 } } else { answer };
    let found = world.store.read(header.place.extent, header.offset);
    let Some(window) = window(world, process, range, header) else { return Ok(()) };
    let mut choice = window.answered(header.offset, answer, None, has_lease);
    if choice == Some(AfterAppend::ReadHeader) {
        choice = window.answered(header.offset, answer, Some(&found), has_lease);
    }
    let mut acknowledged: Vec<Write> = Vec::new();
    if breaches.has(Breach::AcknowledgeOutOfOrder) && choice == Some(AfterAppend::Acknowledge) {
        acknowledged.push(header.body_checksum);
    } else {
        acknowledged.extend(window.acknowledge(has_lease).iter().map(|part| part.body_checksum));
    }
    for write in acknowledged {
        acknowledge(world, process, range, write);
    }
    match choice {
        Some(AfterAppend::SendAgain) => send_part(world, process, range, *header),
        Some(AfterAppend::Stop(_)) => return stopped(world, setting, process, range),
        _ => {}
    }
    release::advance(world, process, range);
    Ok(())
}

fn acknowledge(world: &mut World, process: usize, range: RangeId, write: Write) {
    if let Ok(serving) = serving(world, process, range) {
        serving.pending.retain(|pending| *pending != write);
        serving.visible.push(write);
        world.history().seen.push(write);
    }
}

/// The window of the range's log has stopped: what is pending fails, and the choice of the owner follows.
pub(crate) fn stopped(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let has_lease =
        world.processes[process].has_lease || setting.breaches.has(Breach::AcknowledgeWithoutLease);
    let Ok(serving) = serving(world, process, range) else { return Ok(()) };
    let Tail::Open(window) = &serving.tail else { return Ok(()) };
    let Some(stop) = window.stopped().cloned() else { return Ok(()) };
    let place = window.place();
    let certain = window.pending().filter(|(_, may_be_there)| !may_be_there);
    let refused: Vec<Write> = certain.map(|(header, _)| header.body_checksum).collect();
    serving.pending.clear();
    serving.tail = Tail::None;
    let (life, owner) = (serving.held.life(), serving.held.owner());
    world.history().refused.extend(refused);
    stop_sending_parts(world, process, range);
    match choose_after_stop(&stop, has_lease) {
        AfterStop::SealAndReload => {
            let walk = SealWalk::new(life, place, owner);
            close(world, setting, process, range, walk, true)
        }
        AfterStop::ReadOwnEntry => {
            sealed_out(world, setting, process, range);
            Ok(())
        }
        AfterStop::DropAll => {
            world.drop_range(process, range);
            Ok(())
        }
    }
}

fn receive_seal(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    header: &PartHeader,
    answer: PutAnswer,
) -> Possible {
    let extent = header.place.extent;
    match world.role(process, range) {
        Some(Role::Sealing(taking)) => {
            let Some(index) = taking.walks().position(|walk| walk.place().extent == extent) else {
                return Ok(());
            };
            if let Some(walk) = taking.walk_mut(index) {
                walk.answered(answer);
            }
            take::advance(world, setting, process, range)
        }
        Some(Role::Serving(serving)) => {
            let Tail::Closing(walk) = &mut serving.tail else { return Ok(()) };
            walk.answered(answer);
            advance_closing(world, setting, process, range)
        }
        _ => Ok(()),
    }
}

/// An owner stops waiting for a part.
pub(crate) fn give_up(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let Tail::Open(window) = &mut serving.tail else { return Err(Stopped::Impossible) };
    if window.is_drained() {
        return Err(Stopped::Impossible);
    }
    window.stop(AppendStop::GivenUp);
    stopped(world, setting, process, range)
}
