//! The stream manager's state, as a pure state machine: which streams there are, which extents each one
//! lists, which extents are sealed and which are waiting to be deleted. It has no notion of blocks.
//! `codec.rs` has the bytes.
//!
//! What always holds: an extent is listed by at least one stream or waits for deletion; only a stream's last
//! extent may be unsealed; ids are never used twice; a command of a former owner of a stream's group, or of
//! another one in the owner's epoch, is refused.

pub(crate) mod apply;
pub(crate) mod codec;
#[cfg(test)]
mod tests;

use crate::error::StreamError;
use crate::ids::{ExtentId, StreamName};
use crate::owner::{OwnedStream, Owner};
use crate::sealed::Seal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One change. Several in one list are applied all or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A new stream without extents.
    Create(OwnedStream),
    /// `extent` becomes the stream's last.
    Add {
        /// Which stream.
        stream: OwnedStream,
        /// An extent that exists on its node.
        extent: ExtentId,
    },
    /// The stream's group has this owner; former ones can't change any of its streams any more.
    Own(OwnedStream),
    /// The extent has its final length and digest.
    Seal {
        /// A stream that lists it; `None` in logs of former formats only.
        stream: Option<OwnedStream>,
        /// Which extent.
        extent: ExtentId,
        /// What it is for ever.
        sealed: Seal,
    },
    /// The stream is gone; extents that no stream lists any more wait for deletion.
    Delete(OwnedStream),
    /// The stream has another name.
    Rename {
        /// Its name.
        from: OwnedStream,
        /// Its new name, which must be free.
        to: OwnedStream,
    },
    /// Sealed extents of one stream are also listed, in this order, at the end of another, unless it lists
    /// them.
    Share {
        /// The stream that lists them now.
        from: OwnedStream,
        /// The stream that lists them too.
        to: OwnedStream,
        /// Which.
        extents: Vec<ExtentId>,
    },
    /// The stream drops all extents before this one.
    Trim {
        /// Which stream.
        stream: OwnedStream,
        /// The first extent that stays.
        first_kept: ExtentId,
    },
    /// The stream lists these sealed extents no longer, wherever they stand in it.
    Unlist {
        /// Which stream.
        stream: OwnedStream,
        /// Which.
        extents: Vec<ExtentId>,
    },
    /// The extent's file is deleted: it leaves the state. It names no owner: no stream lists it, and none can
    /// come to list it again.
    Forget(ExtentId),
}

impl Command {
    /// Whether it takes no space and may be on the way to free some.
    pub(crate) fn frees_space(&self) -> bool {
        match self {
            Command::Create(_) | Command::Add { .. } | Command::Own(_) | Command::Share { .. } => false,
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
    pub(crate) extents: Vec<ExtentId>,
}

/// The manager's record of streams with one owner ([`StreamName::group`]). It goes with the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerGroup {
    pub(crate) owner: Owner,
    pub(crate) stream_count: u32,
}

/// All streams and extents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) streams: BTreeMap<StreamName, StreamInfo>,
    pub(crate) groups: BTreeMap<Arc<str>, OwnerGroup>,
    pub(crate) extents: BTreeMap<ExtentId, ExtentInfo>,
    /// The next extent gets this id or a higher one.
    pub(crate) next_extent: u64,
}

impl State {
    /// The state of these streams, all of whose extents are sealed.
    pub(crate) fn of_sealed(
        streams: &BTreeMap<StreamName, Vec<ExtentId>>,
        sealed: &BTreeMap<ExtentId, Seal>,
        owner: Owner,
    ) -> Self {
        let mut state = State::default();
        for (extent, seal) in sealed {
            state.extents.insert(*extent, ExtentInfo { sealed: Some(*seal), references: 0 });
            state.next_extent = extent.0.saturating_add(1);
        }
        for (name, extents) in streams {
            state.count_stream(name, owner);
            for extent in extents {
                if let Some(info) = state.extents.get_mut(extent) {
                    info.references += 1;
                }
            }
            state.streams.insert(name.clone(), StreamInfo { extents: extents.clone() });
        }
        state
    }

    fn is_open(&self, extent: ExtentId) -> bool {
        self.extents.get(&extent).is_some_and(|info| info.sealed.is_none())
    }

    /// The newest owner of the stream.
    pub(crate) fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        if !self.streams.contains_key(stream) {
            return Err(StreamError::NoStream(stream.clone()));
        }
        self.groups.get(stream.group()).map(|group| group.owner).ok_or(StreamError::NoStream(stream.clone()))
    }

    /// An error if the stream's group has another owner, which this one does not follow.
    pub(crate) fn check_owner(&self, stream: &StreamName, owner: Owner) -> Result<(), StreamError> {
        match self.groups.get(stream.group()) {
            Some(group) if !owner.may_act_after(&group.owner) => {
                Err(StreamError::not_owner(stream, group.owner, owner))
            }
            _ => Ok(()),
        }
    }

    /// The stream's last extent.
    pub(crate) fn tail(&self, stream: &StreamName) -> Result<Option<ExtentId>, StreamError> {
        let info = self.streams.get(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        Ok(info.extents.last().copied())
    }

    /// The stream's last extent, if it takes appends; an error if `owner` is a former owner.
    pub(crate) fn tail_for(
        &self,
        stream: &StreamName,
        owner: Owner,
    ) -> Result<Option<ExtentId>, StreamError> {
        self.check_owner(stream, owner)?;
        self.open_tail(stream)
    }

    /// The stream's last extent, if it takes appends.
    pub(crate) fn open_tail(&self, stream: &StreamName) -> Result<Option<ExtentId>, StreamError> {
        Ok(self.tail(stream)?.filter(|tail| self.is_open(*tail)))
    }

    /// A stream that lists the extent, as its owner names it.
    pub(crate) fn listed_by(&self, extent: ExtentId) -> Option<OwnedStream> {
        let (name, _) = self.streams.iter().find(|(_, info)| info.extents.contains(&extent))?;
        self.owner(name).ok().map(|owner| name.owned_by(owner))
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
        for (name, group) in &self.groups {
            let count = self.streams.keys().filter(|stream| stream.group() == &**name).count();
            if count != group.stream_count as usize {
                found.push(format!(
                    "group {name} is said to have {} streams, it has {count}",
                    group.stream_count
                ));
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
