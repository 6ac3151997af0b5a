//! What can happen next in a state: every step of every actor, by the functions of the crate `stamp`.
//!
//! | file | steps |
//! |---|---|
//! | `step.rs` | what a step is |
//! | `sending.rs` | what a process sends, and stops waiting for |
//! | `coarse.rs` | what comes before all else in a setting of coarse steps |
//! | `delivery.rs` | messages arrive, are answered, get lost |
//! | `part_answers.rs` | what a process does with an answer about a part or a seal |
//! | `transaction_answers.rs` | the same about a transaction |
//! | `lease.rs` | deadlines pass, keys expire, processes join again |
//! | `take.rs`, `load.rs` | ranges are taken and read |
//! | `write.rs` | appends, and logs that stop |
//! | `tail.rs` | the end of a log is opened, closed, found sealed |
//! | `extents.rs` | extents are named, recorded, dropped |
//! | `release.rs` | ranges are released |
//! | `split.rs` | ranges are split |
//! | `sweep.rs` | extents are deleted |
//! | `restore.rs` | backups, the loss of the metadata store, its restore |
//!
//! A read of a store and its use are one step; a write is two or three: it is sent, it arrives, its answer is
//! received. Anything may happen in between. So an actor that is paused is one whose steps do not come.

mod coarse;
mod delivery;
mod extents;
mod lease;
mod load;
mod part_answers;
mod release;
pub(crate) mod restore;
mod sending;
mod split;
pub(crate) mod step;
mod sweep;
mod tail;
mod take;
mod transaction_answers;
mod write;

use crate::setting::Setting;
use crate::world::World;
use step::{Step, Steps};

/// All steps from a state, with words for a trace if they are wanted.
pub(crate) fn steps(world: &World, setting: &Setting, has_words: bool) -> Vec<Step> {
    let mut steps = Steps { world, setting, steps: Vec::new(), has_words };
    if let Some((process, index)) = coarse::unsettled(world, setting) {
        delivery::add_next(&mut steps, process, index);
        if world.processes[process].awaited[index].answer.is_none() {
            lease::add(&mut steps, process);
        }
        return steps.steps;
    }
    let first_fresh = world.processes.iter().position(|process| process.is_fresh());
    for (process, state) in world.processes.iter().enumerate() {
        if state.is_fresh() {
            // All fresh ones are alike, and nothing but a take tells them from one that joins later.
            if first_fresh == Some(process) {
                take::add(&mut steps, process);
            }
            continue;
        }
        delivery::add_of_process(&mut steps, process);
        lease::add(&mut steps, process);
        take::add(&mut steps, process);
        write::add(&mut steps, process);
        extents::add(&mut steps, process);
        release::add(&mut steps, process);
        split::add(&mut steps, process);
        restore::add_of_process(&mut steps, process);
    }
    delivery::add_of_orphans(&mut steps);
    write::add_stray_seals(&mut steps);
    sweep::add(&mut steps);
    restore::add(&mut steps);
    steps.steps
}
