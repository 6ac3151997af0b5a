//! Backups, the loss of the metadata store, and its restore.

use crate::actions::sending::{begin, seal_now};
use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::metadata_store::MetadataStore;
use crate::setting::{Breach, Breaches, Event};
use crate::world::World;
use crate::world::environment::{Restorer, Sweeper};
use crate::world::message::Effect;
use crate::world::names::{RESTORER, life, sealer};
use crate::world::process::Role;
use stamp::{
    Backup, BackupScope, Change, ExtentPlace, Generation, Incarnation, Key, PartHeader, PartKind,
    RangeDocument, RangeId, SealWalk, Value, WalkStep, apply_changes, choose_backup, choose_restore,
};
use std::sync::Arc;

/// Steps of a process: a backup on demand, for what only a document says.
pub(crate) fn add_of_process(steps: &mut Steps<'_>, process: usize) {
    let state = steps.world.processes[process].clone();
    for (range, role) in state.ranges.iter().filter(|_| state.has_lease) {
        let (range, Role::Serving(serving)) = (*range, role) else { continue };
        if serving.is_free() && serving.held.document().needs_backup {
            steps.process(
                process,
                || "backs its document up".to_owned(),
                |world| back_up_for(world, process, range),
            );
        }
    }
}

/// Steps of the rest.
pub(crate) fn add(steps: &mut Steps<'_>) {
    let (breaches, state) = (steps.setting.breaches, steps.world);
    let mut add = |what: &str, step: &dyn Fn(&mut World) -> Possible| {
        steps.other(|| what.to_owned(), step);
    };
    if !state.metadata.is_lost() {
        add("a complete backup is made", &|world| {
            spend(world, Event::Backup)?;
            store_complete_backup(world);
            Ok(())
        });
        add("the metadata store is lost", &|world| {
            spend(world, Event::Loss)?;
            world.metadata().lose();
            // Those that have done nothing can do nothing any more.
            for process in 0..world.processes.len() {
                if world.processes[process].is_fresh() {
                    world.process(process).has_lease = false;
                }
            }
            // A sweep that has not chosen yet reads no documents of this generation any more.
            if matches!(world.environment.sweeper, Sweeper::Listed(_) | Sweeper::DocumentsRead(_)) {
                world.environment().sweeper = Sweeper::Idle;
            }
            Ok(())
        });
        return;
    }
    let all_stopped = state.processes.iter().all(|process| !process.has_lease);
    match &state.environment.restorer {
        Restorer::Idle if all_stopped || breaches.has(Breach::RestoreWhileLive) => {
            add("the restorer lists the store", &|world| {
                world.environment().restorer = Restorer::Listed(world.store.first_objects());
                Ok(())
            });
        }
        Restorer::Idle => {}
        Restorer::Listed(listed) => add("the restorer writes the documents", &|world| {
            world.environment().restorer = Restorer::Idle;
            let mut listed = listed.clone();
            if breaches.has(Breach::NoRollForward) {
                listed.clear();
            }
            if breaches.has(Breach::GapIsDamage) {
                listed.iter_mut().for_each(|header| header.kind = PartKind::Part);
            }
            restore(world, &listed, breaches)
        }),
    }
}

pub(crate) fn store_complete_backup(world: &mut World) {
    let backup = Backup {
        life: life(world.metadata.generation()),
        restores: world.metadata.restores(),
        revision: world.metadata.revision(),
        scope: BackupScope::Complete,
        documents: world.metadata.documents().cloned().collect(),
    };
    let changed_at: Vec<_> = backup
        .documents
        .iter()
        .map(|document| (document.range, world.metadata.changed_at(Key::Document(document.range))))
        .collect();
    world.metadata().tick();
    let backups = world.backups();
    backups.store(backup);
    for (range, revision) in changed_at {
        backups.note_changed_at(range, revision);
    }
}

fn back_up_for(world: &mut World, process: usize, range: RangeId) -> Possible {
    if world.metadata.is_lost() {
        return Err(Stopped::Impossible);
    }
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Err(Stopped::Impossible) };
    match serving.backup_of_split.take() {
        Some(backup) => world.backups().store(*backup),
        None => store_complete_backup(world),
    }
    begin(world, process, range, &[Change::BackedUp], Effect::None)
}

fn restore(world: &mut World, listed: &[PartHeader], breaches: Breaches) -> Possible {
    let Some(backup) = choose_backup(world.backups.all()) else { return Err(Stopped::Impossible) };
    let keeps_numbers = breaches.has(Breach::RestoreSameGeneration);
    let former = world.metadata.generation();
    let generation = if keeps_numbers { former } else { Generation(former.0 + 1) };
    let restorer = Incarnation(RESTORER + former.0);
    let restored = choose_restore(&backup, listed, generation, restorer)
        .map_err(|error| Stopped::Violation(error.to_string()))?;
    let restores = if breaches.has(Breach::BackupsWithoutCount) { 0 } else { restored.restores };
    let mut metadata = MetadataStore::new(generation, restores);
    let mut documents = Vec::new();
    for document in restored.documents {
        let mut document = sealed(world, &document, generation, restorer);
        document.needs_backup = false;
        let kept = backup.documents.get(&document.range).filter(|_| keeps_numbers);
        match kept {
            Some(kept) => {
                document.own = kept.own;
                let revision = world.backups.changed_at(kept.range);
                metadata.put_as_of(Key::Own(document.range), Value::Own(document.own), revision);
                let value = Value::Document(Arc::new(document.clone()));
                metadata.put_as_of(Key::Document(document.range), value, revision);
            }
            None => {
                metadata.put(Key::Own(document.range), Value::Own(document.own));
                metadata.put(Key::Document(document.range), Value::Document(Arc::new(document.clone())));
            }
        }
        documents.push(document);
    }
    *world.metadata() = metadata;
    store_complete_backup(world);
    Ok(())
}

/// Seals every extent of a restored document that has no length, and records the lengths.
fn sealed(
    world: &mut World,
    document: &RangeDocument,
    generation: Generation,
    restorer: Incarnation,
) -> RangeDocument {
    let mut changes = Vec::new();
    for (stream, entry) in document.unsealed() {
        let (extent, ordinal) = (entry.name, entry.ordinal);
        let place = ExtentPlace { extent, range: document.range, stream, ordinal };
        let walk = SealWalk::new(life(generation), place, sealer(restorer));
        if let WalkStep::Sealed { length } = seal_now(world, walk) {
            changes.push(Change::RecordLength { stream, extent, length });
        }
    }
    apply_changes(document, &changes).map_or_else(|_| document.clone(), |changed| changed.document)
}
