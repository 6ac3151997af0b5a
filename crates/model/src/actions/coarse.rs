//! Settings of coarse steps: a take or a change of streams that is under way is settled before anything else
//! happens.
//!
//! Nothing is lost by this that the sender or the store could tell: what a process sends compares what it
//! relies on, so one that would arrive later may as well be sent later; and an answer that would be received
//! later is received now by a process that acts on it later. What only fine steps show is how answers are
//! read after an unknown outcome, and what a process appends while its transaction is under way.

use crate::setting::{Grain, Setting};
use crate::world::World;
use crate::world::message::Message;
use crate::world::process::{Process, Role};
use stamp::ChangeKind;

/// The transaction that is settled next, if there is one: the process and the place among what it awaits.
pub(crate) fn unsettled(world: &World, setting: &Setting) -> Option<(usize, usize)> {
    if setting.grain == Grain::Fine || world.metadata.is_lost() {
        return None;
    }
    let mut with_lease = world.processes.iter().enumerate().filter(|(_, process)| process.has_lease);
    with_lease.find_map(|(index, process)| Some((index, place(process)?)))
}

fn place(process: &Process) -> Option<usize> {
    process.awaited.iter().position(|awaited| {
        matches!(awaited.message, Message::Transaction { .. })
            && match process.ranges.get(&awaited.range) {
                Some(Role::Taking(_) | Role::Sealing(_)) => true,
                Some(Role::Serving(serving)) => {
                    serving.held.sent().is_some_and(|sent| sent.kind == ChangeKind::Streams)
                }
                Some(Role::Stuck) | None => false,
            }
    })
}
