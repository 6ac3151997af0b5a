//! Ranges are split by their owner, which then serves both halves.

use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::actions::tail::open_next;
use crate::setting::{Event, Setting};
use crate::world::World;
use crate::world::check::check_log;
use crate::world::message::{Effect, Message};
use crate::world::names::{MIDDLE, is_within};
use crate::world::process::{Role, Serving, Tail};
use stamp::{
    AfterTransaction, Backup, BackupScope, FIRST_EPOCH, HeirNames, HeldRange, Mark, Owner, RangeDocument,
    RangeId, Release, Revision, StreamId, TransactionAnswer, choose_after_transaction, choose_split,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An owner splits a range.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let state = steps.world.processes[process].clone();
    for range in state.ranges.keys().copied().filter(|_| state.has_lease) {
        steps.process(
            process,
            || "splits its range".to_owned(),
            |world| {
                spend(world, Event::Split)?;
                begin(world, process, range)
            },
        );
    }
}

fn begin(world: &mut World, process: usize, range: RangeId) -> Possible {
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Err(Stopped::Impossible) };
    let is_quiet = matches!(serving.tail, Tail::None) && serving.release == Release::Serving;
    if !is_quiet || !serving.is_free() || serving.sealed.is_some() {
        return Err(Stopped::Impossible);
    }
    let Some(log) = serving.log() else { return Err(Stopped::Impossible) };
    let names = [names(world, process, range, log), names(world, process, range, log)];
    let streams = BTreeMap::from([(log, [names[0].streams[&log], names[1].streams[&log]])]);
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Err(Stopped::Impossible) };
    let split = choose_split(&serving.held, MIDDLE, names).map_err(|_| Stopped::Impossible)?;
    serving.heirs = Some(split.heirs);
    world.send_transaction(process, range, split.transaction, Effect::Inherit(streams));
    Ok(())
}

fn names(world: &mut World, process: usize, parent: RangeId, log: StreamId) -> HeirNames {
    let process = world.process(process);
    let by = process.incarnation;
    let range = RangeId::new(by, process.next_counter(parent));
    let streams = BTreeMap::from([(log, StreamId::new(by, process.next_counter(parent)))]);
    HeirNames { range, streams, mark: Mark::new(by, process.next_counter(parent)) }
}

/// The split was answered, or not in time.
pub(crate) fn receive(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    message: Message,
    answer: TransactionAnswer,
) -> Possible {
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Ok(()) };
    let Some(heirs) = serving.heirs.clone() else { return Ok(()) };
    let compared = serving.held.revision();
    // The parent is gone once the split is committed: an heir shows whose split it was.
    let read = (answer == TransactionAnswer::CompareFailed).then(|| world.read_document(heirs[0].range));
    match choose_after_transaction(answer, read, heirs[0].mark, compared) {
        AfterTransaction::Committed(revision) => split(world, setting, process, range, &heirs, revision),
        AfterTransaction::SendAgain => {
            world.send(process, range, message);
            Ok(())
        }
        AfterTransaction::Superseded => {
            world.drop_range(process, range);
            Ok(())
        }
        AfterTransaction::Read => Err(Stopped::Impossible),
    }
}

fn split(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    heirs: &[Arc<RangeDocument>; 2],
    revision: Revision,
) -> Possible {
    let Some(Role::Serving(parent)) = world.process(process).ranges.remove(&range) else { return Ok(()) };
    let owner = Owner { epoch: FIRST_EPOCH, ..parent.held.owner() };
    let life = parent.held.life();
    let backup = Backup {
        life,
        restores: world.metadata.restores(),
        revision,
        scope: BackupScope::Change { removed: vec![range] },
        documents: heirs.to_vec(),
    };
    for heir in heirs {
        let visible: Vec<_> =
            parent.visible.iter().copied().filter(|write| is_within(*write, &heir.keys)).collect();
        check_log(&world.history, &heir.keys, &visible)?;
        let held = HeldRange::new(life, owner, heir.clone(), revision);
        let mut serving = Serving::new(held, visible);
        serving.backup_of_split = Some(Box::new(backup.clone()));
        world.process(process).ranges.insert(heir.range, Role::Serving(Box::new(serving)));
        open_next(world, setting, process, heir.range);
    }
    Ok(())
}
