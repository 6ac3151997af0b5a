//! Extents of a log are named, opened, closed, recorded, dropped by its owner.

use crate::actions::load::load;
use crate::actions::release;
use crate::actions::sending::{begin, serving, stop_sending_parts};
use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::actions::tail::{close, new_window, open_next};
use crate::setting::{Breach, Event, Setting};
use crate::world::World;
use crate::world::message::Effect;
use crate::world::process::{Role, Serving, Tail};
use crate::world::replay::extent_writes;
use stamp::{AppendStop, Change, ExtentName, ExtentPlace, RangeId, SealWalk, TrimPoint};

/// Steps of an owner with the extents of its ranges.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let setting = steps.setting;
    let state = steps.world.processes[process].clone();
    for (range, role) in state.ranges.iter().filter(|_| state.has_lease) {
        let (range, Role::Serving(serving)) = (*range, role) else { continue };
        let open = serving.held.document().unsealed().count();
        if serving.is_free() && serving.release.admits_writes() {
            match (&serving.tail, serving.sealed) {
                (Tail::None, None) if open == 0 => {
                    steps.process(
                        process,
                        || "names an extent".to_owned(),
                        |world| name_extent(world, process, range),
                    );
                }
                (Tail::Open(_), _) if open == 1 => steps.process(
                    process,
                    || "names the next extent".to_owned(),
                    |world| {
                        spend(world, Event::EarlyName)?;
                        name_extent(world, process, range)
                    },
                ),
                _ => {}
            }
            add_changes(steps, process, range, serving);
        }
        if serving.release.admits_writes() && serving.sealed.is_none() {
            steps.process(
                process,
                || "closes its tail".to_owned(),
                |world| {
                    spend(world, Event::Roll)?;
                    roll(world, setting, process, range)
                },
            );
        }
    }
}

fn add_changes(steps: &mut Steps<'_>, process: usize, range: RangeId, serving: &Serving) {
    if serving.sealed.is_some() {
        steps.process(process, || "records a length".to_owned(), |world| record(world, process, range));
    }
    steps.process(
        process,
        || "drops its oldest extent".to_owned(),
        |world| {
            spend(world, Event::Trim)?;
            trim(world, process, range)
        },
    );
    if matches!(&serving.tail, Tail::Open(window) if !window.is_drained()) {
        steps.process(
            process,
            || "closes its tail in the document alone".to_owned(),
            |world| {
                spend(world, Event::CloseAlone)?;
                close_alone(world, process, range)
            },
        );
    }
}

fn name_extent(world: &mut World, process: usize, range: RangeId) -> Possible {
    let namer = world.process(process);
    let extent = ExtentName::new(namer.incarnation, namer.next_counter(range));
    let stream = serving(world, process, range)?.log().ok_or(Stopped::Impossible)?;
    begin(world, process, range, &[Change::AddExtent { stream, extent }], Effect::None)
}

fn record(world: &mut World, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let (stream, sealed) = (serving.log(), serving.sealed);
    let (Some(stream), Some((extent, length))) = (stream, sealed) else { return Err(Stopped::Impossible) };
    begin(world, process, range, &[Change::RecordLength { stream, extent, length }], Effect::None)
}

fn trim(world: &mut World, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let stream = serving.log().ok_or(Stopped::Impossible)?;
    let oldest = serving.held.document().streams.get(&stream).and_then(|entry| entry.extents.first());
    let oldest = oldest.cloned().ok_or(Stopped::Impossible)?;
    let length = oldest.length.ok_or(Stopped::Impossible)?;
    let to = TrimPoint { ordinal: oldest.ordinal + 1, offset: 0 };
    let writes = extent_writes(oldest.name, length, &world.store).unwrap_or_default();
    let effect = Effect::Checkpoint { stream, ordinal: oldest.ordinal, writes };
    begin(world, process, range, &[Change::Trim { stream, to }], effect)
}

fn close_alone(world: &mut World, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let stream = serving.log().ok_or(Stopped::Impossible)?;
    let Tail::Open(window) = &mut serving.tail else { return Err(Stopped::Impossible) };
    window.stop(AppendStop::GivenUp);
    let (extent, length) = (window.place().extent, window.end());
    serving.tail = Tail::None;
    serving.pending.clear();
    stop_sending_parts(world, process, range);
    begin(world, process, range, &[Change::CloseAlone { stream, extent, length }], Effect::None)
}

fn roll(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let rolls_early = setting.breaches.has(Breach::RollBeforeSeal);
    let serving = serving(world, process, range)?;
    let Tail::Open(window) = &serving.tail else { return Err(Stopped::Impossible) };
    if rolls_early {
        return roll_early(world, process, range);
    }
    if !window.is_drained() || window.stopped().is_some() {
        return Err(Stopped::Impossible);
    }
    let walk = SealWalk::new(serving.held.life(), window.place(), serving.held.owner());
    close(world, setting, process, range, walk, false)
}

/// A planted fault: the next extent is opened while parts of the one before it are under way. These are
/// waited for no longer, as if they had been acknowledged or refused elsewhere.
fn roll_early(world: &mut World, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let stream = serving.log().ok_or(Stopped::Impossible)?;
    let document = serving.held.document().clone();
    let Tail::Open(window) = &serving.tail else { return Err(Stopped::Impossible) };
    let last = document.streams.get(&stream).and_then(|entry| entry.extents.last());
    let last = last.filter(|last| last.name != window.place().extent).ok_or(Stopped::Impossible)?;
    let place = ExtentPlace { extent: last.name, ordinal: last.ordinal, ..window.place() };
    serving.tail = Tail::Open(new_window(&serving.held, place, 2));
    Ok(())
}

/// A change of the document is committed.
pub(crate) fn committed(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let serving = serving(world, process, range)?;
    let document = serving.held.document().clone();
    let log = serving.log().and_then(|stream| document.streams.get(&stream));
    let recorded = |extent| log.and_then(|log| log.extent(extent)).is_none_or(|entry| entry.length.is_some());
    if serving.sealed.is_some_and(|(extent, _)| recorded(extent)) {
        serving.sealed = None;
        if serving.must_reload {
            let release = serving.release;
            load(world, setting, process, range)?;
            if let Ok(serving) = crate::actions::sending::serving(world, process, range) {
                serving.release = release;
            }
        }
    }
    open_next(world, setting, process, range);
    release::advance(world, process, range);
    Ok(())
}
