//! Frozen mappings: their keys stay what they are, and no change places them elsewhere.
//!
//! Whoever writes or deletes rows of a mapping in a shard beside its clients, as moves and repairs do, names
//! rows by the mapping's id. That is right only as long as the mapping has the same keys. So it freezes the
//! mapping first, and thaws it once none of its writes can arrive any more. Clients do not notice: what a
//! mapping allows, and the epoch by which the fence knows it, are not changed by it.
//!
//! What always holds: a frozen mapping is one of its map; what is frozen is thawed under the text that froze
//! it, or not at all.

use super::placement::Epoch;
use crate::limits::FROZEN_BY_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// Who froze a mapping, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// What froze it, in words that name it: `move 00f3…`. At most [`FROZEN_BY_BYTES_MAX`] bytes.
    pub by: String,
    /// The epoch of the change that did.
    pub since: Epoch,
}

impl Frozen {
    /// By a text; the change gives it its epoch.
    pub(crate) fn by(by: &str) -> Self {
        Frozen { by: by.to_owned(), since: Epoch(0) }
    }

    /// Whether its text is one.
    pub(crate) fn is_right(&self) -> bool {
        !self.by.is_empty() && self.by.len() <= FROZEN_BY_BYTES_MAX
    }
}
