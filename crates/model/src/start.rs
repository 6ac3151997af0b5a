//! The first state of a search: a range with a log that the first process serves, a backup of its document,
//! and processes that have joined.
//!
//! The first process gets there by the steps of the model itself, without any event that is counted.

use crate::actions::restore::store_complete_backup;
use crate::actions::step::Step;
use crate::actions::steps;
use crate::backup_store::BackupStore;
use crate::metadata_store::MetadataStore;
use crate::object_store::ObjectStore;
use crate::setting::{Bounds, Setting};
use crate::world::World;
use crate::world::check::goes_on;
use crate::world::environment::{Environment, Restorer, Sweeper};
use crate::world::history::History;
use crate::world::names::{FIRST_INCARNATION, first_log, first_mark, first_range};
use crate::world::process::Process;
use stamp::{
    Change, Generation, Incarnation, Key, KeyLimits, OwnEntry, OwnerEpoch, RangeDocument, Value,
    apply_changes,
};
use std::rc::Rc;
use std::sync::Arc;

/// The state in which a search of this setting begins.
pub(crate) fn start(setting: &Setting) -> World {
    let mut world = before_joining();
    store_complete_backup(&mut world);
    let joined = FIRST_INCARNATION..FIRST_INCARNATION + setting.processes as u128;
    for incarnation in joined.clone().map(Incarnation) {
        world.metadata().join(incarnation);
        world.processes.push(Rc::new(Process::new(incarnation)));
    }
    world.environment().next_incarnation = joined.end;
    let quiet = Setting { bounds: Bounds::default(), ..setting.clone() };
    // Only the first process acts: it takes the range, names an extent and opens it.
    while !goes_on(&world) {
        let of_first = |step: &Step| step.action.process == Some(0);
        match steps(&world, &quiet, false).into_iter().find(of_first) {
            Some(step) => world = step.world,
            None => break,
        }
    }
    world.environment().bounds = setting.bounds;
    world
}

fn before_joining() -> World {
    let own = OwnEntry::released(OwnerEpoch(0));
    let empty = RangeDocument::new(first_range(), own, KeyLimits::default(), first_mark());
    let log = Change::CreateStream { stream: first_log(), purpose: "log".to_owned() };
    let document = apply_changes(&empty, &[log, Change::BackedUp]).map_or(empty, |changed| changed.document);
    let mut metadata = MetadataStore::new(Generation(1), 0);
    metadata.put(Key::Own(first_range()), Value::Own(own));
    metadata.put(Key::Document(first_range()), Value::Document(Arc::new(document)));
    let environment = Environment {
        bounds: Bounds::default(),
        next_incarnation: FIRST_INCARNATION,
        sweeper: Sweeper::Idle,
        restorer: Restorer::Idle,
    };
    World {
        store: Rc::new(ObjectStore::default()),
        backups: Rc::new(BackupStore::default()),
        metadata: Rc::new(metadata),
        orphans: Rc::new(Vec::new()),
        history: Rc::new(History::default()),
        environment: Rc::new(environment),
        processes: Vec::new(),
    }
}
