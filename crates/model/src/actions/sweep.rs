//! Sweeps: the store is listed, the documents are read, objects are deleted one by one.

use crate::actions::sending::seal_now;
use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::setting::{Breach, Breaches, Event};
use crate::world::World;
use crate::world::check::is_named;
use crate::world::environment::Sweeper;
use crate::world::names::{SWEEPER, life, sealer};
use stamp::{
    BackupScope, DroppedExtent, ExtentName, Key, Listing, NamedExtents, READERS_GRACE, Revision, SealWalk,
    SweepAction, SweepView, Value, WalkStep, choose_sweep,
};
use std::collections::BTreeSet;

/// Steps of the sweeper.
pub(crate) fn add(steps: &mut Steps<'_>) {
    let (breaches, state) = (steps.setting.breaches, steps.world);
    if state.metadata.is_lost() {
        return;
    }
    let mut add = |what: &str, step: &dyn Fn(&mut World) -> Possible| {
        steps.other(|| format!("the sweeper {what}"), step);
    };
    match &state.environment.sweeper {
        Sweeper::Idle if breaches.has(Breach::DocumentsFirst) => add("reads the documents", &|world| {
            spend(world, Event::Sweep)?;
            world.environment().sweeper = Sweeper::DocumentsRead(named(world));
            Ok(())
        }),
        Sweeper::Idle => add("lists the store", &|world| {
            spend(world, Event::Sweep)?;
            world.environment().sweeper = Sweeper::Listed(listing(world));
            Ok(())
        }),
        Sweeper::Listed(listing) => {
            add("reads the documents and chooses", &|world| choose(world, listing, &named(world), breaches));
        }
        Sweeper::DocumentsRead(named) => {
            // The fault: the documents pass for newer than they are.
            let named = NamedExtents { read_at: Revision(u64::MAX), ..named.clone() };
            add("lists the store and chooses", &|world| choose(world, &listing(world), &named, breaches));
        }
        Sweeper::Acting(actions) => {
            let Some(next) = actions.last() else { return };
            add(&describe(next), &|world| act(world, *next));
        }
    }
}

fn listing(world: &World) -> Listing {
    Listing { paths: world.store.list(), ended_at: world.metadata.revision(), ..Listing::default() }
}

fn named(world: &World) -> NamedExtents {
    let extents = world.metadata.documents().flat_map(|document| document.extents()).collect();
    NamedExtents { extents, read_at: world.metadata.revision() }
}

fn choose(world: &mut World, listing: &Listing, named: &NamedExtents, breaches: Breaches) -> Possible {
    // The readers' grace has always passed; a tombstone never grows old: what is sent does not take days.
    let dropped = world.metadata.dropped().map(|(extent, length, dropped_at)| {
        (extent, DroppedExtent { length, dropped_at, age: READERS_GRACE })
    });
    let view = SweepView {
        listing: listing.clone(),
        named: named.clone(),
        dropped: dropped.collect(),
        backup: newest_backup(world, breaches),
        is_collection_on: true,
    };
    // Refused after a restore: the revisions of the new life are smaller.
    let mut actions = choose_sweep(&view).unwrap_or_default();
    if breaches.has(Breach::DeleteAtOnce) {
        let unnamed = listing.paths.iter().filter(|path| !named.extents.contains(&path.extent));
        actions = unnamed.map(|path| SweepAction::Delete(*path)).collect();
    }
    if breaches.has(Breach::DeleteTombstones) {
        let touched: BTreeSet<ExtentName> = view.dropped.keys().copied().collect();
        let all = listing.paths.iter().filter(|path| touched.contains(&path.extent));
        actions.extend(all.map(|path| SweepAction::Delete(*path)));
    }
    actions.reverse();
    world.environment().sweeper = if actions.is_empty() { Sweeper::Idle } else { Sweeper::Acting(actions) };
    Ok(())
}

fn newest_backup(world: &World, breaches: Breaches) -> Option<Revision> {
    if breaches.has(Breach::DeleteWithoutBackup) {
        return Some(Revision(u64::MAX));
    }
    let life = life(world.metadata.generation());
    let complete = world.backups.all().iter().filter(|backup| backup.scope == BackupScope::Complete);
    complete.filter(|backup| backup.life == life).map(|backup| backup.revision).max()
}

fn act(world: &mut World, action: SweepAction) -> Possible {
    let environment = world.environment();
    if let Sweeper::Acting(actions) = &mut environment.sweeper {
        actions.pop();
        if actions.is_empty() {
            environment.sweeper = Sweeper::Idle;
        }
    }
    match action {
        SweepAction::Delete(path) => {
            if is_named(world, path) && world.store.has(path) {
                return Err(Stopped::Violation(format!(
                    "{} although a document names it",
                    describe(&action)
                )));
            }
            world.store().delete(path);
        }
        SweepAction::Seal(extent) => seal(world, extent),
        // There are none here: nothing depends on them.
        SweepAction::DeleteBundle(_) | SweepAction::Forget(_) => {}
    }
    Ok(())
}

fn seal(world: &mut World, extent: ExtentName) {
    let Some(place) = world.store.objects_of(extent).next().map(|header| header.place) else { return };
    let walk = SealWalk::new(life(world.metadata.generation()), place, sealer(SWEEPER));
    if let WalkStep::Sealed { length } = seal_now(world, walk)
        && world.metadata.changed_at(Key::Dropped(extent)) == Revision(0)
    {
        world.metadata().put(Key::Dropped(extent), Value::Dropped { length });
    }
}

fn describe(action: &SweepAction) -> String {
    let name = |extent: &ExtentName| format!("extent {}-{}", extent.0.incarnation.0, extent.0.counter);
    match action {
        SweepAction::Seal(extent) => format!("seals {}", name(extent)),
        SweepAction::Delete(path) => format!("deletes {} at {}", name(&path.extent), path.offset),
        SweepAction::DeleteBundle(bundle) => format!("deletes a bundle of {}", name(&bundle.extent)),
        SweepAction::Forget(extent) => format!("forgets {}", name(extent)),
    }
}
