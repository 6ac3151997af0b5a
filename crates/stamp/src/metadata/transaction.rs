//! A transaction of the metadata store as data: all of its compares hold and all of it happens, or nothing.
//!
//! ```text
//! <generation>/own/<range>              owner and epoch
//! <generation>/document/<range>         all metadata of the range
//! <generation>/process/<incarnation>    goes with the process's lease
//! <generation>/beat/<incarnation>       written by each beat, while the process's key is there
//! <generation>/gc/<extent>              the extent was dropped, and has this length
//! <generation>/collection               whether extents may be deleted
//! ```
//!
//! What always holds: a transaction names the generation of its keys, so that nothing that was under way to a
//! lost metadata store matches in the restored one.

use crate::document::range_document::{OwnEntry, RangeDocument};
use crate::ids::{ExtentName, Generation, Incarnation, RangeId};
use std::fmt;
use std::sync::Arc;

/// Operations that the metadata store takes in one transaction: compares, puts and deletes, each for itself.
pub const TRANSACTION_OPERATIONS_MAX: usize = 128;

/// The number of a committed transaction; it rises with each. 0 stands for a key that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A key of the metadata store, without its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Owner and epoch of a range.
    Own(RangeId),
    /// Document of a range.
    Document(RangeId),
    /// A process that lives.
    Process(Incarnation),
    /// The newest beat of a process.
    Beat(Incarnation),
    /// The word of a process that the object store does not answer it.
    CutOff(Incarnation),
    /// An extent that was dropped.
    Dropped(ExtentName),
    /// Whether extents may be deleted.
    Collection,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Own(range) => write!(f, "own/{range}"),
            Key::Document(range) => write!(f, "document/{range}"),
            Key::Process(incarnation) => write!(f, "process/{incarnation}"),
            Key::Beat(incarnation) => write!(f, "beat/{incarnation}"),
            Key::CutOff(incarnation) => write!(f, "cut-off/{incarnation}"),
            Key::Dropped(extent) => write!(f, "gc/{extent}"),
            Key::Collection => f.write_str("collection"),
        }
    }
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Of [`Key::Own`].
    Own(OwnEntry),
    /// Of [`Key::Document`]. Shared, because it may be large.
    Document(Arc<RangeDocument>),
    /// Of [`Key::Dropped`]: the extent's length, at which its seal lies.
    Dropped {
        /// Bytes of the extent.
        length: u64,
    },
    /// Of [`Key::Process`], [`Key::Beat`] and [`Key::CutOff`]: that the key is there is all.
    Present,
    /// Of [`Key::Collection`].
    Collection {
        /// Whether extents may be deleted.
        is_on: bool,
    },
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compare {
    /// The key has this value.
    Is(Key, Value),
    /// The key was changed last at this revision; at 0 it is not there.
    ChangedAt(Key, Revision),
    /// The key is there.
    Exists(Key),
}

/// One atomic change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction {
    /// The prefix of all its keys.
    pub generation: Generation,
    /// What must hold.
    pub compares: Vec<Compare>,
    /// What is written then.
    pub puts: Vec<(Key, Value)>,
    /// What is removed then.
    pub deletes: Vec<Key>,
}

/// A transaction that the metadata store would not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transaction of {operations} operations; {TRANSACTION_OPERATIONS_MAX} are allowed")]
pub struct TransactionTooLarge {
    /// How many it has of the kind it has most of.
    pub operations: usize,
}

impl Transaction {
    /// A transaction without content.
    pub fn new(generation: Generation) -> Self {
        Transaction { generation, compares: Vec::new(), puts: Vec::new(), deletes: Vec::new() }
    }

    /// Whether the metadata store takes it.
    pub fn check_bounds(&self) -> Result<(), TransactionTooLarge> {
        let operations = self.compares.len().max(self.puts.len() + self.deletes.len());
        match operations <= TRANSACTION_OPERATIONS_MAX {
            true => Ok(()),
            false => Err(TransactionTooLarge { operations }),
        }
    }

    /// The document that it writes, and its range.
    pub fn document(&self, range: RangeId) -> Option<&Arc<RangeDocument>> {
        self.puts.iter().find_map(|(key, value)| match (key, value) {
            (Key::Document(of), Value::Document(document)) if *of == range => Some(document),
            _ => None,
        })
    }
}

/// The transaction of a beat: it fails once the process's key has gone with its lease.
pub fn beat(generation: Generation, incarnation: Incarnation) -> Transaction {
    Transaction {
        compares: vec![Compare::Exists(Key::Process(incarnation))],
        puts: vec![(Key::Beat(incarnation), Value::Present)],
        ..Transaction::new(generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_text() {
        let by = Incarnation(0xa);
        for (key, text) in [
            (Key::Own(RangeId::new(by, 1)), "own/0000000000000000000000000000000a-0000000000000001"),
            (Key::Beat(by), "beat/0000000000000000000000000000000a"),
            (Key::CutOff(by), "cut-off/0000000000000000000000000000000a"),
            (Key::Dropped(ExtentName::new(by, 2)), "gc/0000000000000000000000000000000a-0000000000000002"),
            (Key::Collection, "collection"),
        ] {
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn a_transaction_of_too_many_operations_is_refused() {
        let mut transaction = Transaction::new(Generation(1));
        let key = |counter| Key::Dropped(ExtentName::new(Incarnation(1), counter));
        transaction.deletes = (0..TRANSACTION_OPERATIONS_MAX as u64).map(key).collect();
        assert_eq!(transaction.check_bounds(), Ok(()));
        transaction.puts.push((Key::Collection, Value::Collection { is_on: true }));
        let error = transaction.check_bounds().unwrap_err();
        assert!(error.to_string().contains("129 operations; 128 are allowed"), "{error}");
    }
}
