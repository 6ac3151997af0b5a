//! A range whose lengths are recorded is read and served.

use crate::actions::step::{Possible, Stopped};
use crate::actions::tail;
use crate::setting::Setting;
use crate::world::World;
use crate::world::check::{check_log, see};
use crate::world::process::{Role, Serving};
use crate::world::replay::replay;
use stamp::{AfterBroken, RangeId, choose_after_broken};

/// A chain is broken: only a confirmed owner may call it damage, and in the model there is none.
pub(crate) fn broken(world: &mut World, process: usize, range: RangeId, why: String) -> Possible {
    let owner = match world.role(process, range) {
        Some(Role::Sealing(taking)) => taking.held().owner(),
        Some(Role::Serving(serving)) => serving.held.owner(),
        _ => return Ok(()),
    };
    match choose_after_broken(world.metadata.own(range), owner) {
        AfterBroken::Damage => Err(Stopped::Violation(format!("process {process} finds damage: {why}"))),
        AfterBroken::Forget => {
            world.drop_range(process, range);
            Ok(())
        }
    }
}

/// The lengths are recorded: the log is read and served, unless the lease has ended.
pub(crate) fn load(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let held = match world.role(process, range) {
        Some(Role::Sealing(taking)) => taking.held().clone(),
        Some(Role::Serving(serving)) => serving.held.clone(),
        _ => return Ok(()),
    };
    if !world.processes[process].has_lease {
        world.drop_range(process, range);
        return Ok(());
    }
    let document = held.document().clone();
    let writes = match replay(&document, &world.store, &world.history, setting.breaches) {
        Ok(writes) => writes,
        Err(error) => return broken(world, process, range, error.to_string()),
    };
    check_log(&world.history, &document.keys, &writes)?;
    see(world.history(), &document.keys, &writes);
    let serving = Box::new(Serving::new(held, writes));
    world.process(process).ranges.insert(range, Role::Serving(serving));
    tail::open_next(world, setting, process, range);
    Ok(())
}
