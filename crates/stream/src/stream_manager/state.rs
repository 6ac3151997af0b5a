//! The stream manager's state, as a pure state machine: which streams there are, which extents each one
//! lists, which extents are sealed and which are waiting to be deleted. It has no notion of blocks.
//! `codec.rs` has the bytes.
//!
//! What always holds: an extent is listed by at least one stream or waits for deletion; only a stream's last
//! extent may be unsealed; ids are never used twice.

mod apply;
mod codec;
#[cfg(test)]
mod tests;

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch, StreamName};
use crate::sealed::Seal;
use std::collections::BTreeMap;

/// One change. Several in one list are applied all or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A new stream without extents.
    Create(StreamName),
    /// `extent` becomes the stream's last.
    Add {
        /// Which stream.
        stream: StreamName,
        /// An extent that exists on its node.
        extent: ExtentId,
        /// The owner that adds it; refused if a newer one has the stream.
        epoch: OwnerEpoch,
    },
    /// The stream has this owner; older ones can't add extents any more.
    Own {
        /// Which stream.
        stream: StreamName,
        /// Not older than the owner before.
        epoch: OwnerEpoch,
    },
    /// The extent has its final length and digest.
    Seal {
        /// Which extent.
        extent: ExtentId,
        /// What it is for ever.
        sealed: Seal,
    },
    /// The stream is gone; extents that no stream lists any more wait for deletion.
    Delete(StreamName),
    /// The stream has another name.
    Rename {
        /// Its name.
        from: StreamName,
        /// Its new name, which must be free.
        to: StreamName,
    },
    /// Sealed extents of one stream are also listed, in this order, at the end of another, unless it lists
    /// them.
    Share {
        /// The stream that lists them now.
        from: StreamName,
        /// The stream that lists them too.
        to: StreamName,
        /// Which.
        extents: Vec<ExtentId>,
    },
    /// The stream drops all extents before this one.
    Trim {
        /// Which stream.
        stream: StreamName,
        /// The first extent that stays.
        first_kept: ExtentId,
    },
    /// The stream lists these sealed extents no longer, wherever they stand in it.
    Unlist {
        /// Which stream.
        stream: StreamName,
        /// Which.
        extents: Vec<ExtentId>,
    },
    /// The extent's file is deleted: it leaves the state.
    Forget(ExtentId),
}

impl Command {
    /// Whether it takes no space and may be on the way to free some.
    pub(crate) fn frees_space(&self) -> bool {
        match self {
            Command::Create(_) | Command::Add { .. } | Command::Own { .. } | Command::Share { .. } => false,
            Command::Seal { .. }
            | Command::Delete(_)
            | Command::Rename { .. }
            | Command::Trim { .. }
            | Command::Unlist { .. }
            | Command::Forget(_) => true,
        }
    }
}

/// The manager's record of an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtentInfo {
    /// Final length and digest, once sealed.
    pub(crate) sealed: Option<Seal>,
    /// How many streams list it.
    pub(crate) references: u32,
}

/// The manager's record of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamInfo {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) extents: Vec<ExtentId>,
}

/// All streams and extents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) streams: BTreeMap<StreamName, StreamInfo>,
    pub(crate) extents: BTreeMap<ExtentId, ExtentInfo>,
    /// The next extent gets this id or a higher one.
    pub(crate) next_extent: u64,
}

impl State {
    fn is_open(&self, extent: ExtentId) -> bool {
        self.extents.get(&extent).is_some_and(|info| info.sealed.is_none())
    }

    /// The stream's last extent.
    pub(crate) fn tail(&self, stream: &StreamName) -> Result<Option<ExtentId>, StreamError> {
        let info = self.streams.get(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        Ok(info.extents.last().copied())
    }

    /// The stream's last extent, if it takes appends.
    pub(crate) fn open_tail(&self, stream: &StreamName) -> Result<Option<ExtentId>, StreamError> {
        Ok(self.tail(stream)?.filter(|tail| self.is_open(*tail)))
    }

    /// Extents that no stream lists.
    pub(crate) fn unreferenced(&self) -> Vec<ExtentId> {
        self.extents.iter().filter(|(_, info)| info.references == 0).map(|(id, _)| *id).collect()
    }

    /// What contradicts itself: reference counts, lists of extents, seals.
    pub(crate) fn inconsistencies(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut counted: BTreeMap<ExtentId, u32> = BTreeMap::new();
        for (name, info) in &self.streams {
            for (index, extent) in info.extents.iter().enumerate() {
                *counted.entry(*extent).or_default() += 1;
                if index + 1 < info.extents.len() && self.is_open(*extent) {
                    found.push(format!("stream {name} lists the open extent {extent} before its last"));
                }
                if !self.extents.contains_key(extent) {
                    found.push(format!("stream {name} lists extent {extent}, which is not known"));
                }
            }
        }
        for (extent, info) in &self.extents {
            let references = counted.get(extent).copied().unwrap_or(0);
            if references != info.references {
                found.push(format!(
                    "extent {extent} has a reference count of {}, {references} streams list it",
                    info.references
                ));
            }
            if extent.0 >= self.next_extent {
                found.push(format!("extent {extent} is known, the next is said to be {}", self.next_extent));
            }
        }
        found
    }
}
