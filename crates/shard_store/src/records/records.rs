//! Texts under keys, each put once: all that a home needs of a place.
//!
//! A record is never changed. What is decided between several writers is decided by which of them puts a
//! record first; that is the compare-and-swap of this crate. So a place needs nothing but an insert that
//! fails if the key is taken, which every database, the Table service and a locked file have.
//!
//! What an implementation must hold: a put that returned [`Put::Done`] is durable and seen by all later
//! reads; of several puts of one key one at most is done; an error says whether the put may be done.

use crate::error::StoreError;
use base::BoxFuture;

/// Bytes of a record's text, at most: a text property of the Table service has 32,768 UTF-16 units.
pub const VALUE_BYTES_MAX: usize = 32_000;

/// Bytes of a record's key, at most. It has lower-case letters, digits and `-`.
pub const KEY_BYTES_MAX: usize = 200;

/// Whether a record was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was.
    Done,
    /// There is a record of that key.
    Taken,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: String,
    /// Its text.
    pub value: String,
}

/// A place for records.
pub trait Records: Send + Sync + 'static {
    /// Where it is, for messages: without secrets.
    fn place(&self) -> &str;
    /// Puts a record, if there is none of that key.
    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>>;
    /// A record's text.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>>;
    /// The first `count_max` records of `from <= key < to`, in the order of their keys' bytes.
    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;
    /// Removes a record; fine if there is none.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}
