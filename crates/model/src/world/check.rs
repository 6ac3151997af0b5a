//! What must hold in each state, and what makes a state one in which the stamp goes on.
//!
//! | must hold | because |
//! |---|---|
//! | a log is read as what was seen, and more behind it | no acknowledged write is lost or doubled |
//! | each write stands behind what it was decided over | no hole, no late write of a former owner |
//! | no write in a log was reported as failed | |
//! | whoever may answer a read has all that was seen | no stale read |
//! | extents of recorded length are whole in the store | no named extent is deleted |

use crate::setting::Breach;
use crate::setting::Breaches;
use crate::world::World;
use crate::world::history::History;
use crate::world::names::{Write, is_within};
use crate::world::process::{Process, Role, Serving, Tail};
use crate::world::replay::extent_writes;
use stamp::{KeyLimits, OwnEntry, PartPath, Release};
use std::rc::Rc;

/// What is wrong with a state, in words.
pub(crate) type Violation = String;

fn within(writes: &[Write], keys: &KeyLimits) -> Vec<Write> {
    writes.iter().copied().filter(|write| is_within(*write, keys)).collect()
}

/// A log within these keys was read as `writes`: by a successor, or again by its owner.
pub(crate) fn check_log(history: &History, keys: &KeyLimits, writes: &[Write]) -> Result<(), Violation> {
    for (place, write) in writes.iter().enumerate() {
        if history.refused.contains(write) {
            return Err(format!("write {write} was reported as failed and is in the log {writes:?}"));
        }
        let decided_over = history.decided_over.get(*write as usize - 1).map_or(&[][..], Vec::as_slice);
        if within(decided_over, keys) != writes[..place] {
            return Err(format!("write {write} was decided over {decided_over:?}, the log is {writes:?}"));
        }
    }
    let seen = within(&history.seen, keys);
    match writes.starts_with(&seen) {
        true => Ok(()),
        false => Err(format!("clients have seen {seen:?}, the log is {writes:?}")),
    }
}

/// Readers of a log within these keys see `writes` from now on.
pub(crate) fn see(history: &mut History, keys: &KeyLimits, writes: &[Write]) {
    let known = within(&history.seen, keys).len();
    history.seen.extend(writes.iter().skip(known));
}

/// Whether the process may answer a read of the range.
pub(crate) fn may_read(process: &Process, serving: &Serving, breaches: Breaches) -> bool {
    let has_lease = process.has_lease || breaches.has(Breach::ReadWithoutLease);
    let is_released = breaches.has(Breach::ReadUntilReleased) && serving.release == Release::Sent;
    has_lease && (serving.release.admits_reads() || is_released)
}

/// What is wrong with a state, apart from what its last step has noticed. Nothing is wrong with `before`,
/// which may share parts with it.
pub(crate) fn check_state(
    world: &World,
    before: Option<&World>,
    breaches: Breaches,
) -> Result<(), Violation> {
    check_reads(world, breaches)?;
    let is_same = |before: &World| {
        Rc::ptr_eq(&world.store, &before.store) && Rc::ptr_eq(&world.metadata, &before.metadata)
    };
    if before.is_some_and(is_same) { Ok(()) } else { check_extents(world, breaches) }
}

fn check_reads(world: &World, breaches: Breaches) -> Result<(), Violation> {
    if breaches.has(Breach::WritesOnly) {
        return Ok(());
    }
    for (index, process) in world.processes.iter().enumerate() {
        for role in process.ranges.values() {
            let Role::Serving(serving) = role else { continue };
            let seen = within(&world.history.seen, &serving.held.document().keys);
            if may_read(process, serving, breaches) && serving.visible != seen {
                let visible = &serving.visible;
                return Err(format!(
                    "process {index} answers reads with {visible:?}, clients have seen {seen:?}"
                ));
            }
        }
    }
    Ok(())
}

fn check_extents(world: &World, breaches: Breaches) -> Result<(), Violation> {
    if breaches.has(Breach::CountBehindHole) {
        return Ok(());
    }
    for document in world.metadata.documents() {
        for entry in document.streams.values().flat_map(|stream| &stream.extents) {
            let Some(length) = entry.length else { continue };
            extent_writes(entry.name, length, &world.store)
                .map_err(|error| format!("a document names an extent of {length} bytes: {error}"))?;
        }
    }
    Ok(())
}

/// Whether the object is one of an extent that a document names.
pub(crate) fn is_named(world: &World, path: PartPath) -> bool {
    world.metadata.documents().any(|document| document.names(path.extent))
}

/// Whether every range has a live owner whose next append would be created: the stamp goes on.
pub(crate) fn goes_on(world: &World) -> bool {
    !world.metadata.is_lost()
        && world.metadata.documents().all(|document| {
            world.processes.iter().any(|process| {
                let serving = process.serving(document.range);
                serving.is_some_and(|serving| can_append(world, process, serving, document.own))
            })
        })
}

fn can_append(world: &World, process: &Process, serving: &Serving, own: OwnEntry) -> bool {
    let Tail::Open(window) = &serving.tail else { return false };
    let next = PartPath { extent: window.place().extent, offset: window.next_offset() };
    let is_owner = process.has_lease && own == OwnEntry::of(serving.held.owner());
    let is_quiet = serving.is_free() && window.is_drained() && window.stopped().is_none();
    is_owner && is_quiet && serving.release.admits_writes() && !world.store.has(next)
}
