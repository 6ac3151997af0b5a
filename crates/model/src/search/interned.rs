//! States as short lists of numbers: each part of a state is kept once, and a state names its parts.
//!
//! Two states that differ in one process share the numbers of all else, so a state costs 36 bytes and its
//! parts cost next to nothing. What always holds: two states have the same list if and only if they are
//! equal; no hash stands for a state.

use crate::world::World;
use base::FixedHasher;
use std::hash::Hash;
use std::rc::Rc;

/// A hash map whose order is never looked at, with the same hasher in each run.
#[allow(clippy::disallowed_types)]
pub(crate) type Numbers<K, V> = std::collections::HashMap<K, V, FixedHasher>;

/// Processes that a state may have.
pub(crate) const PROCESSES_MAX: usize = 3;
/// Numbers that stand for a state.
const PARTS: usize = PROCESSES_AT + PROCESSES_MAX;
/// Where those of the processes begin.
const PROCESSES_AT: usize = 6;

/// A state by the numbers of its parts.
pub(crate) type Packed = [u32; PARTS];

/// All values of one part that were met.
#[derive(Debug)]
struct Values<T> {
    numbers: Numbers<Rc<T>, u32>,
    values: Vec<Rc<T>>,
}

impl<T: Hash + Eq> Values<T> {
    fn new() -> Self {
        Values { numbers: Numbers::default(), values: Vec::new() }
    }

    fn number(&mut self, value: &Rc<T>) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }

    fn value(&self, number: u32) -> Rc<T> {
        self.values[number as usize].clone()
    }
}

/// The parts of all states that were met.
#[derive(Debug)]
pub(crate) struct Interned {
    stores: Values<crate::object_store::ObjectStore>,
    backups: Values<crate::backup_store::BackupStore>,
    metadata: Values<crate::metadata_store::MetadataStore>,
    orphans: Values<Vec<crate::world::message::Message>>,
    histories: Values<crate::world::history::History>,
    environments: Values<crate::world::environment::Environment>,
    processes: Values<crate::world::process::Process>,
}

impl Interned {
    pub(crate) fn new() -> Self {
        Interned {
            stores: Values::new(),
            backups: Values::new(),
            metadata: Values::new(),
            orphans: Values::new(),
            histories: Values::new(),
            environments: Values::new(),
            processes: Values::new(),
        }
    }

    /// The numbers of a state. `from` is a state that it may share parts with, and that one's numbers.
    pub(crate) fn pack(&mut self, world: &World, from: Option<(&World, &Packed)>) -> Packed {
        let mut packed = [0; PARTS];
        let same = |place: usize, is_same: bool| from.filter(|_| is_same).map(|(_, numbers)| numbers[place]);
        let is_same = |of: fn(&World, &World) -> bool| from.is_some_and(|(other, _)| of(world, other));
        packed[0] = same(0, is_same(|one, other| Rc::ptr_eq(&one.store, &other.store)))
            .unwrap_or_else(|| self.stores.number(&world.store));
        packed[1] = same(1, is_same(|one, other| Rc::ptr_eq(&one.metadata, &other.metadata)))
            .unwrap_or_else(|| self.metadata.number(&world.metadata));
        packed[2] = same(2, is_same(|one, other| Rc::ptr_eq(&one.orphans, &other.orphans)))
            .unwrap_or_else(|| self.orphans.number(&world.orphans));
        packed[3] = same(3, is_same(|one, other| Rc::ptr_eq(&one.history, &other.history)))
            .unwrap_or_else(|| self.histories.number(&world.history));
        packed[4] = same(4, is_same(|one, other| Rc::ptr_eq(&one.environment, &other.environment)))
            .unwrap_or_else(|| self.environments.number(&world.environment));
        packed[5] = same(5, is_same(|one, other| Rc::ptr_eq(&one.backups, &other.backups)))
            .unwrap_or_else(|| self.backups.number(&world.backups));
        for (index, process) in world.processes.iter().enumerate() {
            let is_same = from.is_some_and(|(other, _)| Rc::ptr_eq(process, &other.processes[index]));
            let place = PROCESSES_AT + index;
            packed[place] = same(place, is_same).unwrap_or_else(|| self.processes.number(process));
        }
        packed
    }

    /// The state of these numbers, with so many processes.
    pub(crate) fn unpack(&self, packed: &Packed, processes: usize) -> World {
        World {
            store: self.stores.value(packed[0]),
            metadata: self.metadata.value(packed[1]),
            orphans: self.orphans.value(packed[2]),
            history: self.histories.value(packed[3]),
            environment: self.environments.value(packed[4]),
            backups: self.backups.value(packed[5]),
            processes: packed[PROCESSES_AT..PROCESSES_AT + processes]
                .iter()
                .map(|number| self.processes.value(*number))
                .collect(),
        }
    }
}
