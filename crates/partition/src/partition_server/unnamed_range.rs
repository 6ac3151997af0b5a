//! A range that no map names: an heir of a hand-over that failed, or what a start had no space to remove.
//!
//! What always holds: its streams are removed in the name of an owner that was chosen when it was found. One
//! that is chosen later would follow a process that has given the same id meanwhile, and would take from it
//! what it has made.

use crate::background::retries::RangeName;
use stream::{Owner, StreamChange, StreamName};

/// A range that no map names, whose streams are still to be removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnnamedRange {
    pub(super) name: RangeName,
    /// In whose name.
    pub(super) owner: Owner,
}

impl UnnamedRange {
    /// The changes that remove these streams of it.
    pub(super) fn deletes(&self, streams: &[StreamName]) -> Vec<StreamChange> {
        streams.iter().map(|stream| StreamChange::Delete(stream.owned_by(self.owner))).collect()
    }
}
