//! The end of a log in the hands of its owner: opened, closed, found sealed by another.

use crate::actions::release;
use crate::actions::sending::{send_part, serving, walk_on};
use crate::actions::step::{Possible, Stopped};
use crate::setting::{Breach, Setting};
use crate::world::World;
use crate::world::process::{Role, Tail};
use stamp::{
    AfterBroken, AfterSealedOut, AppendWindow, ExtentPlace, FirstPart, HeldRange, LogProgress, RangeId,
    SealWalk, WalkStep, WalkStop, WindowBounds, choose_after_broken, choose_after_sealed_out,
    choose_first_part,
};

/// A window over an extent without parts.
pub(crate) fn new_window(held: &HeldRange, place: ExtentPlace, parts_max: usize) -> AppendWindow {
    AppendWindow::new(held.life(), place, held.owner(), WindowBounds { parts_max, size_bytes_max: u64::MAX })
}

/// The owner seals its tail.
pub(crate) fn close(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    walk: SealWalk,
    must_reload: bool,
) -> Possible {
    let reloads_unsealed = must_reload && setting.breaches.has(Breach::ReloadWithoutSeal);
    let serving = serving(world, process, range)?;
    if reloads_unsealed {
        // A planted fault, for a tail of which nothing is acknowledged: it is written from its start again.
        serving.tail = Tail::Open(new_window(&serving.held, walk.place(), setting.window));
        return Ok(());
    }
    serving.tail = Tail::Closing(walk);
    serving.must_reload |= must_reload;
    advance_closing(world, setting, process, range)
}

/// Goes on with the sealing of a tail as far as it goes without an answer.
pub(crate) fn advance_closing(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
) -> Possible {
    let Tail::Closing(walk) = &serving(world, process, range)?.tail else { return Ok(()) };
    let mut walk = walk.clone();
    let step = walk_on(world, &mut walk);
    let extent = walk.place().extent;
    let serving = serving(world, process, range)?;
    serving.tail = Tail::Closing(walk);
    match step {
        WalkStep::Create(seal) => send_part(world, process, range, seal),
        WalkStep::Sealed { length } => {
            serving.tail = Tail::None;
            serving.sealed = Some((extent, length));
            open_next(world, setting, process, range);
            release::advance(world, process, range);
        }
        WalkStep::Stopped(WalkStop::Broken(why)) => {
            let owner = serving.held.owner();
            if choose_after_broken(world.metadata.own(range), owner) == AfterBroken::Damage {
                return Err(Stopped::Violation(format!("process {process} finds damage: {why}")));
            }
            world.drop_range(process, range);
        }
        WalkStep::Stopped(_) => sealed_out(world, setting, process, range),
        WalkStep::Read { .. } => {}
    }
    Ok(())
}

/// Opens the last extent of the log, if its first part may be sent.
pub(crate) fn open_next(world: &mut World, setting: &Setting, process: usize, range: RangeId) {
    let ignores_backup = setting.breaches.has(Breach::PartsBeforeBackup);
    let Ok(serving) = serving(world, process, range) else { return };
    let document = serving.held.document().clone();
    let Some(stream) = serving.log().filter(|_| matches!(serving.tail, Tail::None)) else { return };
    let Some(last) = document.streams.get(&stream).and_then(|entry| entry.extents.last()) else { return };
    if serving.must_reload || !serving.release.admits_writes() {
        return;
    }
    let progress = LogProgress { opened: serving.opened, sealed: serving.sealed.map(|(extent, _)| extent) };
    let may = choose_first_part(&document, stream, last.name, progress);
    if may == FirstPart::May || (ignores_backup && may == FirstPart::AfterBackup) {
        let place = ExtentPlace { extent: last.name, range, stream, ordinal: last.ordinal };
        serving.opened = Some(last.name);
        serving.tail = Tail::Open(new_window(&serving.held, place, setting.window));
    }
}

/// Another has sealed the log: the own entry decides. The range is dropped either way; if it is still ours,
/// it can be taken again.
pub(crate) fn sealed_out(world: &mut World, setting: &Setting, process: usize, range: RangeId) {
    let Ok(owner) = serving(world, process, range).map(|serving| serving.held.owner()) else { return };
    let choice = choose_after_sealed_out(world.metadata.own(range), owner);
    world.drop_range(process, range);
    if choice == AfterSealedOut::TakeAgain && setting.breaches.has(Breach::NoTakeAgain) {
        world.process(process).ranges.insert(range, Role::Stuck);
    }
}
