//! Records in memory: the model that the real places are compared with, and the place of simulations.
//!
//! What always holds: the same as of every place; with faults, an operation may fail before it is done, or be
//! done and fail.

use super::records::{Put, Record, Records};
use crate::error::StoreError;
use base::{BoxFuture, Random};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often operations fail, on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryFaults {
    /// One in so many fails and is not done; 0: none.
    pub not_done_one_in: u64,
    /// One in so many is done and fails; 0: none.
    pub done_one_in: u64,
}

/// Records in memory.
pub struct MemoryRecords {
    place: String,
    records: Mutex<BTreeMap<String, String>>,
    faults: Mutex<MemoryFaults>,
    random: Arc<dyn Random>,
}

impl MemoryRecords {
    /// None yet. Chance decides which operations fail, once faults are set.
    pub fn new(place: &str, random: Arc<dyn Random>) -> Self {
        MemoryRecords { place: place.to_owned(), records: Mutex::default(), faults: Mutex::default(), random }
    }

    /// From now on operations fail so often.
    pub fn set_faults(&self, faults: MemoryFaults) {
        *self.faults.lock() = faults;
    }

    /// All records, as they are now.
    pub fn contents(&self) -> BTreeMap<String, String> {
        self.records.lock().clone()
    }

    /// Replaces all records: a backup that is restored, or a loss.
    pub fn restore(&self, contents: BTreeMap<String, String>) {
        *self.records.lock() = contents;
    }

    /// Does an operation, or fails, or both.
    fn run<T>(&self, operation: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> Result<T, StoreError> {
        let MemoryFaults { not_done_one_in, done_one_in } = *self.faults.lock();
        let is_one_in = |one_in: u64| one_in != 0 && self.random.next_u64().is_multiple_of(one_in);
        if is_one_in(not_done_one_in) {
            return Err(StoreError::uncertain(&self.place, "it failed on purpose, before it was done"));
        }
        let done = operation(&mut self.records.lock());
        if is_one_in(done_one_in) {
            return Err(StoreError::uncertain(&self.place, "it failed on purpose, after it was done"));
        }
        Ok(done)
    }
}

impl Records for MemoryRecords {
    fn place(&self) -> &str {
        &self.place
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            self.run(|records| match records.contains_key(key) {
                true => Put::Taken,
                false => {
                    records.insert(key.to_owned(), value.to_owned());
                    Put::Done
                }
            })
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { self.run(|records| records.get(key).cloned()) })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            self.run(|records| {
                if from >= to {
                    return Vec::new();
                }
                let found = records.range(from.to_owned()..to.to_owned()).take(count_max);
                found.map(|(key, value)| Record { key: key.clone(), value: value.clone() }).collect()
            })
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.run(|records| drop(records.remove(key))) })
    }
}
