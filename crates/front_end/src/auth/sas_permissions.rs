//! The letters of permissions that signatures may hold, in the order in which the reference writes them, and
//! what each allows. What is verified does not come from here: each operation's need is in its service's
//! `need.rs`.

/// A permission of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SasPermission {
    /// As it stands in `sp`.
    pub letter: char,
    /// What it allows, in words.
    pub meaning: &'static str,
    /// Whether an operation that is served needs it. Azure knows the others, so they may be given.
    pub is_served: bool,
}

const fn served(letter: char, meaning: &'static str) -> SasPermission {
    SasPermission { letter, meaning, is_served: true }
}

const fn unserved(letter: char, meaning: &'static str) -> SasPermission {
    SasPermission { letter, meaning, is_served: false }
}

/// Those of account signatures, each with the letters of the services that have it.
pub(crate) const ACCOUNT_PERMISSIONS: [(SasPermission, &str); 13] = [
    (served('r', "read"), "bqt"),
    (served('w', "write"), "bqt"),
    (served('d', "delete"), "bqt"),
    (served('x', "delete versions of blobs"), "b"),
    (unserved('y', "delete blobs for good"), "b"),
    (served('l', "list"), "bqt"),
    (served('a', "add entities and messages, append to blobs"), "bqt"),
    (served('c', "create"), "bqt"),
    (served('u', "update entities and messages"), "qt"),
    (served('p', "get and delete messages"), "q"),
    (served('t', "read and set tags of blobs"), "b"),
    (served('f', "find blobs by tags"), "b"),
    (unserved('i', "set immutability policies"), "b"),
];

/// Those of a container's blobs.
pub(crate) const CONTAINER_PERMISSIONS: [SasPermission; 13] = [
    served('r', "read"),
    served('a', "append"),
    served('c', "create"),
    served('w', "write"),
    served('d', "delete"),
    served('x', "delete versions"),
    unserved('y', "delete for good"),
    served('l', "list"),
    served('t', "read and set tags"),
    served('f', "find by tags"),
    unserved('m', "move"),
    unserved('e', "execute"),
    unserved('i', "set immutability policies"),
];

/// Those of a container that one blob does not have.
pub(crate) const NOT_OF_A_BLOB: [char; 2] = ['l', 'f'];

/// Those of a queue.
pub(crate) const QUEUE_PERMISSIONS: [SasPermission; 4] = [
    served('r', "peek at messages, read the queue's metadata"),
    served('a', "add messages"),
    served('u', "update messages"),
    served('p', "get and delete messages"),
];

/// Those of a table.
pub(crate) const TABLE_PERMISSIONS: [SasPermission; 4] = [
    served('r', "get and query entities"),
    served('a', "add entities"),
    served('u', "update entities (with a: insert or update)"),
    served('d', "delete entities"),
];
