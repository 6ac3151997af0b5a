//! What a process does with an answer to a transaction that it sent.

use crate::actions::load::load;
use crate::actions::step::{Possible, Stopped};
use crate::actions::{extents, split, take};
use crate::setting::{Breach, Setting};
use crate::world::World;
use crate::world::message::Message;
use crate::world::process::Role;
use stamp::{
    AfterTransaction, ChangeKind, HeldRange, OwnEntry, RangeId, Release, Take, Taking, TransactionAnswer,
    choose_after_transaction,
};

/// An answer has come, or none in time.
pub(crate) fn receive(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    message: Message,
    answer: TransactionAnswer,
) -> Possible {
    match world.role(process, range) {
        Some(Role::Taking(take)) => {
            let take = take.clone();
            receive_take(world, setting, process, range, message, &take, answer)
        }
        Some(Role::Serving(serving)) if serving.heirs.is_some() => {
            split::receive(world, setting, process, range, message, answer)
        }
        Some(Role::Serving(_) | Role::Sealing(_)) => {
            receive_change(world, setting, process, range, message, answer)
        }
        _ => Ok(()),
    }
}

fn receive_take(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    message: Message,
    take: &Take,
    answer: TransactionAnswer,
) -> Possible {
    let read = (answer == TransactionAnswer::CompareFailed).then(|| world.read_document(range));
    match choose_after_transaction(answer, read, take.document.mark, take.compared) {
        AfterTransaction::Committed(revision) => {
            let life = crate::world::names::life(take.transaction.generation);
            let held = HeldRange::new(life, take.owner, take.document.clone(), revision);
            let taking = Box::new(Taking::new(held));
            world.process(process).ranges.insert(range, Role::Sealing(taking));
            take::begin_sealing(world, setting, process, range)
        }
        AfterTransaction::SendAgain if answer == TransactionAnswer::Unknown => {
            world.send(process, range, message);
            Ok(())
        }
        // What the choice relied on has changed: it is observed and chosen anew.
        AfterTransaction::SendAgain | AfterTransaction::Superseded | AfterTransaction::Read => {
            world.drop_range(process, range);
            Ok(())
        }
    }
}

fn held(world: &mut World, process: usize, range: RangeId) -> Option<&mut HeldRange> {
    match world.role(process, range)? {
        Role::Serving(serving) => Some(&mut serving.held),
        Role::Sealing(taking) => Some(taking.held_mut()),
        Role::Taking(_) | Role::Stuck => None,
    }
}

fn receive_change(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
    message: Message,
    answer: TransactionAnswer,
) -> Possible {
    let read = (answer == TransactionAnswer::CompareFailed).then(|| world.read_document(range));
    let Some(held) = held(world, process, range) else { return Ok(()) };
    let Some(kind) = held.sent().map(|sent| sent.kind) else { return Ok(()) };
    let Some(after) = held.answered(answer, read) else { return Ok(()) };
    let believes_read = setting.breaches.has(Breach::BelieveReadAfterRelease);
    if kind == ChangeKind::Release && answer == TransactionAnswer::Unknown && believes_read {
        return believe_read(world, process, range);
    }
    match (after, kind) {
        (AfterTransaction::Committed(_), ChangeKind::Release) | (AfterTransaction::Superseded, _) => {
            world.drop_range(process, range);
            Ok(())
        }
        (AfterTransaction::Committed(_), ChangeKind::Streams) => {
            if matches!(world.role(process, range), Some(Role::Sealing(_))) {
                load(world, setting, process, range)
            } else {
                extents::committed(world, setting, process, range)
            }
        }
        (AfterTransaction::SendAgain, _) => {
            world.send(process, range, message);
            Ok(())
        }
        // The store of documents is lost: nothing can be known.
        (AfterTransaction::Read, _) => Err(Stopped::Impossible),
    }
}

/// A planted fault: the own entry still names this owner, so the range is served on.
fn believe_read(world: &mut World, process: usize, range: RangeId) -> Possible {
    let own = world.metadata.own(range);
    let Some(Role::Serving(serving)) = world.role(process, range) else { return Ok(()) };
    if own == Some(OwnEntry::of(serving.held.owner())) {
        let held = &serving.held;
        serving.held = HeldRange::new(held.life(), held.owner(), held.document().clone(), held.revision());
        serving.release = Release::Serving;
    } else {
        world.drop_range(process, range);
    }
    Ok(())
}
