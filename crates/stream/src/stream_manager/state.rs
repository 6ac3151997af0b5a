//! What the stream manager knows, as a pure state machine: which streams there are, which extents each one
//! lists, which extents are sealed and which are waiting to be deleted. It knows no blocks. `codec.rs` has the bytes.
//!
//! What always holds: an extent is listed by at least one stream or waits for deletion; only a stream's last
//! extent may be unsealed; ids are never used twice.

mod codec;
#[cfg(test)]
mod tests;
mod undo;

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch, StreamName};
use crate::sealed::Seal;
use std::collections::BTreeMap;
use undo::UndoLog;

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
        /// Who lists them now.
        from: StreamName,
        /// Who lists them too.
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
    /// The extent's file is deleted: nothing remembers it.
    Forget(ExtentId),
}

/// One extent as the manager knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtentInfo {
    /// Final length and digest, once sealed.
    pub(crate) sealed: Option<Seal>,
    /// How many streams list it.
    pub(crate) references: u32,
}

/// One stream as the manager knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamInfo {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) extents: Vec<ExtentId>,
}

/// The manager's whole knowledge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) streams: BTreeMap<StreamName, StreamInfo>,
    pub(crate) extents: BTreeMap<ExtentId, ExtentInfo>,
    /// The next extent gets this id or a higher one.
    pub(crate) next_extent: u64,
}

impl State {
    /// Applies all commands, or refuses and changes nothing.
    pub(crate) fn apply_all(&mut self, commands: &[Command]) -> Result<(), StreamError> {
        let mut before = UndoLog::new(self);
        let outcome = commands.iter().try_for_each(|command| {
            before.note(self, command);
            self.apply(command)
        });
        if outcome.is_err() {
            before.restore(self);
        }
        outcome
    }

    /// Applies one command; on an error the state may be half changed.
    fn apply(&mut self, command: &Command) -> Result<(), StreamError> {
        match command {
            Command::Create(stream) => self.insert_stream(stream, StreamInfo::default()),
            Command::Add { stream, extent, epoch } => {
                self.own(stream, *epoch)?;
                if self.tail(stream)?.is_some_and(|tail| self.is_open(tail)) {
                    return Err(StreamError::Corrupt(format!(
                        "stream {stream} gets an extent while its last is open"
                    )));
                }
                if extent.0 < self.next_extent {
                    return Err(StreamError::Corrupt(format!("extent {extent} is added twice")));
                }
                self.next_extent = extent.0 + 1;
                self.extents.insert(*extent, ExtentInfo { sealed: None, references: 1 });
                self.list_mut(stream)?.push(*extent);
                Ok(())
            }
            Command::Own { stream, epoch } => self.own(stream, *epoch),
            Command::Seal { extent, sealed } => {
                let info = self.extents.get_mut(extent).ok_or(StreamError::NoExtent(*extent))?;
                if let Some(before) = info.sealed.filter(|before| before != sealed) {
                    return Err(StreamError::Corrupt(format!(
                        "extent {extent} is sealed twice: at {before} and at {sealed}"
                    )));
                }
                info.sealed = Some(*sealed);
                Ok(())
            }
            Command::Delete(stream) => {
                let info =
                    self.streams.remove(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
                info.extents.into_iter().try_for_each(|extent| self.release(extent))
            }
            Command::Rename { from, to } => {
                let info = self.streams.remove(from).ok_or_else(|| StreamError::NoStream(from.clone()))?;
                self.insert_stream(to, info)
            }
            Command::Share { from, to, extents } => self.share(from, to, extents),
            Command::Trim { stream, first_kept } => {
                let list = self.list_mut(stream)?;
                let at = list.iter().position(|extent| extent == first_kept);
                let at = at.ok_or(StreamError::NoExtent(*first_kept))?;
                let dropped: Vec<_> = list.drain(..at).collect();
                dropped.into_iter().try_for_each(|extent| self.release(extent))
            }
            Command::Unlist { stream, extents } => self.unlist(stream, extents),
            Command::Forget(extent) => match self.extents.get(extent) {
                Some(info) if info.references == 0 => {
                    self.extents.remove(extent);
                    Ok(())
                }
                _ => Err(StreamError::Corrupt(format!("extent {extent} is forgotten while in use"))),
            },
        }
    }

    fn share(&mut self, from: &StreamName, to: &StreamName, extents: &[ExtentId]) -> Result<(), StreamError> {
        let source = self.streams.get(from).ok_or_else(|| StreamError::NoStream(from.clone()))?;
        for extent in extents {
            if !source.extents.contains(extent) {
                return Err(StreamError::NoExtent(*extent));
            }
        }
        if self.tail(to)?.is_some_and(|tail| self.is_open(tail)) {
            return Err(StreamError::Corrupt(format!("stream {to} gets an extent while its last is open")));
        }
        // Ranges that were one and become one again list the same extents.
        let listed = self.list_mut(to)?.clone();
        let added: Vec<ExtentId> =
            extents.iter().filter(|extent| !listed.contains(extent)).copied().collect();
        for extent in &added {
            let info = self.extents.get_mut(extent).ok_or(StreamError::NoExtent(*extent))?;
            if info.sealed.is_none() {
                return Err(StreamError::Corrupt(format!("extent {extent} is shared before it is sealed")));
            }
            info.references += 1;
        }
        self.list_mut(to)?.extend_from_slice(&added);
        Ok(())
    }

    fn unlist(&mut self, stream: &StreamName, extents: &[ExtentId]) -> Result<(), StreamError> {
        for extent in extents {
            if self.is_open(*extent) {
                return Err(StreamError::Corrupt(format!("extent {extent} is unlisted while it is open")));
            }
            let list = self.list_mut(stream)?;
            let at = list.iter().position(|listed| listed == extent);
            list.remove(at.ok_or(StreamError::NoExtent(*extent))?);
            self.release(*extent)?;
        }
        Ok(())
    }

    fn own(&mut self, stream: &StreamName, epoch: OwnerEpoch) -> Result<(), StreamError> {
        let info = self.streams.get_mut(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        if epoch < info.epoch {
            return Err(StreamError::NotOwner { stream: stream.clone(), seen: info.epoch, given: epoch });
        }
        info.epoch = epoch;
        Ok(())
    }

    fn insert_stream(&mut self, stream: &StreamName, info: StreamInfo) -> Result<(), StreamError> {
        if self.streams.contains_key(stream) {
            return Err(StreamError::StreamExists(stream.clone()));
        }
        self.streams.insert(stream.clone(), info);
        Ok(())
    }

    fn list_mut(&mut self, stream: &StreamName) -> Result<&mut Vec<ExtentId>, StreamError> {
        let info = self.streams.get_mut(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        Ok(&mut info.extents)
    }

    fn release(&mut self, extent: ExtentId) -> Result<(), StreamError> {
        let info = self.extents.get_mut(&extent).ok_or(StreamError::NoExtent(extent))?;
        info.references -= 1;
        Ok(())
    }

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
