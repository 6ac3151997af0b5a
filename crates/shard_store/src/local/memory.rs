//! A copy in memory: the model that the real places are compared with, and the place of simulations.

use super::copy::LocalCopy;
use super::local_store::{LocalStore, Replaced, Revision, StoredCopy};
use crate::error::StoreError;
use crate::records::memory::MemoryFaults;
use base::{BoxFuture, Random};
use parking_lot::Mutex;
use std::sync::Arc;

/// A copy in memory.
pub struct MemoryLocal {
    place: String,
    state: Mutex<State>,
    random: Arc<dyn Random>,
}

#[derive(Default)]
struct State {
    copy: Option<LocalCopy>,
    revision: u64,
    faults: MemoryFaults,
    is_down: bool,
}

impl MemoryLocal {
    /// None yet. Chance decides which operations fail, once faults are set.
    pub fn new(place: &str, random: Arc<dyn Random>) -> Self {
        MemoryLocal { place: place.to_owned(), state: Mutex::default(), random }
    }

    /// From now on operations fail so often.
    pub fn set_faults(&self, faults: MemoryFaults) {
        self.state.lock().faults = faults;
    }

    /// From now on no operation reaches it, or all do again.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().is_down = is_down;
    }

    /// The copy as it is now, faults or not.
    pub fn contents(&self) -> Option<LocalCopy> {
        self.state.lock().copy.clone()
    }

    /// Does something with the copy, faults or not, which nothing replaces meanwhile: a writer that checks
    /// the fence and writes.
    pub fn hold<T>(&self, with: impl FnOnce(Option<&LocalCopy>) -> T) -> T {
        with(self.state.lock().copy.as_ref())
    }

    fn run<T>(&self, operation: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        let mut state = self.state.lock();
        if state.is_down {
            return Err(StoreError::refused(&self.place, "it can't be reached, on purpose"));
        }
        let MemoryFaults { not_done_one_in, done_one_in } = state.faults;
        let is_one_in = |one_in: u64| one_in != 0 && self.random.next_u64().is_multiple_of(one_in);
        if is_one_in(not_done_one_in) {
            return Err(StoreError::uncertain(&self.place, "it failed on purpose, before it was done"));
        }
        let done = operation(&mut state);
        if is_one_in(done_one_in) {
            return Err(StoreError::uncertain(&self.place, "it failed on purpose, after it was done"));
        }
        Ok(done)
    }
}

impl LocalStore for MemoryLocal {
    fn place(&self) -> &str {
        &self.place
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        Box::pin(async move {
            self.run(|state| {
                let revision = Revision(state.revision.to_string());
                state.copy.clone().map(|copy| StoredCopy { copy, revision })
            })
        })
    }

    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            self.run(|state| {
                let there = state.copy.is_some().then(|| Revision(state.revision.to_string()));
                if there.as_ref() != expected {
                    return Replaced::Conflict;
                }
                state.copy = copy.cloned();
                state.revision += 1;
                Replaced::Done(copy.map(|_| Revision(state.revision.to_string())))
            })
        })
    }
}
