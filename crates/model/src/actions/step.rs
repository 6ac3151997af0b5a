//! A step: what happens, the state after it, and whether it is possible at all.

use crate::setting::{Event, Setting};
use crate::world::World;
use crate::world::check::Violation;
use std::fmt;

/// What happens in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// The process that acts, if it is one.
    pub(crate) process: Option<usize>,
    /// What it does, in words.
    what: String,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "p{process} {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// A step and the state after it.
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) world: World,
    /// What the step itself has broken.
    pub(crate) violation: Option<Violation>,
}

/// Collects the steps from a state.
pub(crate) struct Steps<'a> {
    pub(crate) world: &'a World,
    pub(crate) setting: &'a Setting,
    pub(crate) steps: Vec<Step>,
    /// Whether actions have their words: only traces need them.
    pub(crate) has_words: bool,
}

impl Steps<'_> {
    /// Adds a step, if it is possible.
    fn push(&mut self, action: Action, step: impl FnOnce(&mut World) -> Possible) {
        let mut world = self.world.clone();
        let violation = match step(&mut world) {
            Ok(()) => None,
            Err(Stopped::Impossible) => return,
            Err(Stopped::Violation(violation)) => Some(violation),
        };
        world.join_idle(self.setting);
        world.forget_lost_messages(self.setting);
        self.steps.push(Step { action, world, violation });
    }

    /// Adds a step of a process.
    pub(crate) fn process(
        &mut self,
        process: usize,
        words: impl FnOnce() -> String,
        step: impl FnOnce(&mut World) -> Possible,
    ) {
        let what = if self.has_words { words() } else { String::new() };
        self.push(Action { process: Some(process), what }, step);
    }

    /// Adds a step of anything else.
    pub(crate) fn other(
        &mut self,
        words: impl FnOnce() -> String,
        step: impl FnOnce(&mut World) -> Possible,
    ) {
        let what = if self.has_words { words() } else { String::new() };
        self.push(Action { process: None, what }, step);
    }
}

/// Why a step ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It can't happen in this state.
    Impossible,
    /// It breaks what must hold.
    Violation(Violation),
}

/// The outcome of trying a step.
pub(crate) type Possible = Result<(), Stopped>;

impl From<Violation> for Stopped {
    fn from(violation: Violation) -> Self {
        Stopped::Violation(violation)
    }
}

/// The event may happen, and is spent.
pub(crate) fn spend(world: &mut World, event: Event) -> Possible {
    // Looked at first: most events are spent soon, and a part that changes is copied.
    let bounds = world.environment.bounds.spend(event).ok_or(Stopped::Impossible)?;
    world.environment().bounds = bounds;
    Ok(())
}
