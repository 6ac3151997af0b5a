//! One state of the modelled stamp: stores, messages under way, processes, and what must be remembered to
//! judge it.
//!
//! | file | content |
//! |---|---|
//! | `names.rs` | the names in the modelled stamp |
//! | `process.rs` | a process and what it does with each range |
//! | `joining.rs` | processes that join again |
//! | `message.rs` | what is under way to a store |
//! | `history.rs` | what clients and readers have seen |
//! | `environment.rs` | sweeper, restore, and how much may still happen |
//! | `replay.rs` | what a document says that the log has |
//! | `check.rs` | what must hold in each state |
//!
//! Time is abstract: a deadline passes as an event, before any wait of another process for a whole lease time
//! ends. What always holds: a state is plain data, and equal states behave alike.

pub(crate) mod check;
pub(crate) mod environment;
pub(crate) mod history;
mod joining;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod process;
pub(crate) mod replay;

use crate::backup_store::BackupStore;
use crate::metadata_store::MetadataStore;
use crate::object_store::ObjectStore;
use crate::setting::{Breach, Event, Setting};
use environment::{Environment, Sweeper};
use history::History;
use message::{Awaited, Effect, Message};
use process::{Process, Role};
use stamp::{Compare, DocumentRead, Key, RangeId, Transaction};
use std::rc::Rc;

/// A state. Its parts are shared between states that differ elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) store: Rc<ObjectStore>,
    pub(crate) backups: Rc<BackupStore>,
    pub(crate) metadata: Rc<MetadataStore>,
    /// Messages that nobody waits for and that may still arrive, sorted.
    pub(crate) orphans: Rc<Vec<Message>>,
    pub(crate) history: Rc<History>,
    pub(crate) environment: Rc<Environment>,
    pub(crate) processes: Vec<Rc<Process>>,
}

impl World {
    pub(crate) fn process(&mut self, index: usize) -> &mut Process {
        Rc::make_mut(&mut self.processes[index])
    }

    pub(crate) fn store(&mut self) -> &mut ObjectStore {
        Rc::make_mut(&mut self.store)
    }

    pub(crate) fn backups(&mut self) -> &mut BackupStore {
        Rc::make_mut(&mut self.backups)
    }

    pub(crate) fn metadata(&mut self) -> &mut MetadataStore {
        Rc::make_mut(&mut self.metadata)
    }

    pub(crate) fn history(&mut self) -> &mut History {
        Rc::make_mut(&mut self.history)
    }

    pub(crate) fn environment(&mut self) -> &mut Environment {
        Rc::make_mut(&mut self.environment)
    }

    /// The process sends a message and waits for its answer.
    pub(crate) fn send(&mut self, process: usize, range: RangeId, message: Message) {
        let awaited = &mut self.process(process).awaited;
        let at = awaited.partition_point(|other| (other.range, &other.message) < (range, &message));
        awaited.insert(at, Awaited { range, message, answer: None });
    }

    pub(crate) fn send_transaction(
        &mut self,
        process: usize,
        range: RangeId,
        transaction: Transaction,
        effect: Effect,
    ) {
        self.send(process, range, Message::Transaction { transaction: Box::new(transaction), effect });
    }

    /// Nobody waits for the message any more. It may arrive at any later time.
    pub(crate) fn orphan(&mut self, message: Message) {
        let orphans = Rc::make_mut(&mut self.orphans);
        let at = orphans.partition_point(|other| *other < message);
        orphans.insert(at, message);
    }

    /// The process does nothing more with the range; what is under way for it may still arrive.
    pub(crate) fn drop_range(&mut self, process: usize, range: RangeId) {
        self.process(process).ranges.remove(&range);
        self.stop_waiting(process, |awaited| awaited.range == range);
    }

    /// The process waits for none of these answers any more.
    pub(crate) fn stop_waiting(&mut self, process: usize, ends: impl Fn(&Awaited) -> bool) {
        let awaited = std::mem::take(&mut self.process(process).awaited);
        let (ended, kept): (Vec<Awaited>, Vec<Awaited>) = awaited.into_iter().partition(ends);
        self.process(process).awaited = kept;
        for awaited in ended.into_iter().filter(|awaited| awaited.answer.is_none()) {
            self.orphan(awaited.message);
        }
    }

    /// Leaves messages out that can't change anything any more, so that fewer states differ.
    pub(crate) fn forget_lost_messages(&mut self, setting: &Setting) {
        if self.orphans.iter().any(|message| !self.may_matter(message, setting)) {
            let kept = self.orphans.iter().filter(|message| self.may_matter(message, setting));
            self.orphans = Rc::new(kept.cloned().collect());
        }
    }

    fn may_matter(&self, message: &Message, setting: &Setting) -> bool {
        let breaches = setting.breaches;
        match message {
            // Refused for ever, unless the object is deleted.
            Message::Put { path, .. } => {
                let environment = &self.environment;
                let sweeps =
                    environment.bounds.left(Event::Sweep) > 0 || environment.sweeper != Sweeper::Idle;
                !self.store.has(*path) || sweeps || breaches.has(Breach::DeleteAtStart)
            }
            // Revisions only rise, and a lost store comes back in another life.
            Message::Transaction { transaction, .. } => {
                let lenient = [Breach::EqualEpochs, Breach::NoRevisionCompare, Breach::RestoreSameGeneration];
                let is_same = |compare: &Compare| match compare {
                    Compare::ChangedAt(key @ Key::Document(_), revision) => {
                        self.metadata.changed_at(*key) == *revision
                    }
                    _ => true,
                };
                let is_alive =
                    transaction.generation == self.metadata.generation() && !self.metadata.is_lost();
                lenient.iter().any(|breach| breaches.has(*breach))
                    || (is_alive && transaction.compares.iter().all(is_same))
            }
        }
    }

    /// What the process does with the range, to change it.
    pub(crate) fn role(&mut self, process: usize, range: RangeId) -> Option<&mut Role> {
        self.process(process).ranges.get_mut(&range)
    }

    /// What a linearizable read of the range's document finds.
    pub(crate) fn read_document(&self, range: RangeId) -> DocumentRead {
        match self.metadata.document(range) {
            None if self.metadata.is_lost() => DocumentRead::Unknown,
            None => DocumentRead::Gone,
            Some(document) => {
                let revision = self.metadata.changed_at(Key::Document(range));
                DocumentRead::There { mark: document.mark, revision }
            }
        }
    }
}
