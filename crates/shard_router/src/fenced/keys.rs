//! Which keys an operation is for. All of them are of one map, and must be on one shard.

use shard_map::KeyValue;

/// Keys of one operation, at most: each is a row of the fence to hold.
pub const OPERATION_KEYS_MAX: usize = 64;

/// The keys of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    pub(crate) map: &'a str,
    pub(crate) keys: &'a [&'a [KeyValue]],
}

impl<'a> Keys<'a> {
    /// Keys of a map, at least one and at most [`OPERATION_KEYS_MAX`].
    pub fn new(map: &'a str, keys: &'a [&'a [KeyValue]]) -> Self {
        Keys { map, keys }
    }
}
