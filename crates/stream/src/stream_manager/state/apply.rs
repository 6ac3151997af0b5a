//! Applies lists of commands to the state: all of a list, or nothing. A list that breaks one of the state's
//! rules is refused as a whole.

use super::{Command, ExtentInfo, State, StreamInfo};
use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch, StreamName};
use std::collections::BTreeMap;

/// What a list of commands touches, as it was before: a refused list is undone without a copy of the whole
/// state.
#[derive(Default)]
struct UndoLog {
    streams: BTreeMap<StreamName, Option<StreamInfo>>,
    extents: BTreeMap<ExtentId, Option<ExtentInfo>>,
    next_extent: u64,
}

impl UndoLog {
    fn new(state: &State) -> Self {
        UndoLog { next_extent: state.next_extent, ..UndoLog::default() }
    }

    /// Notes what `command` is about to touch; what was noted earlier stays.
    fn note(&mut self, state: &State, command: &Command) {
        let (streams, extents): (Vec<&StreamName>, &[ExtentId]) = match command {
            Command::Create(stream) | Command::Own { stream, .. } => (vec![stream], &[]),
            Command::Add { stream, extent, .. } => (vec![stream], std::slice::from_ref(extent)),
            Command::Seal { extent, .. } | Command::Forget(extent) => (vec![], std::slice::from_ref(extent)),
            Command::Delete(stream) | Command::Trim { stream, .. } => {
                (vec![stream], state.streams.get(stream).map_or(&[], |info| &info.extents))
            }
            Command::Rename { from, to } => (vec![from, to], &[]),
            Command::Share { to: stream, extents, .. } | Command::Unlist { stream, extents } => {
                (vec![stream], extents)
            }
        };
        for stream in streams {
            let now = || state.streams.get(stream).cloned();
            self.streams.entry(stream.clone()).or_insert_with(now);
        }
        for extent in extents {
            self.extents.entry(*extent).or_insert_with(|| state.extents.get(extent).copied());
        }
    }

    fn restore(self, state: &mut State) {
        for (stream, info) in self.streams {
            match info {
                Some(info) => state.streams.insert(stream, info),
                None => state.streams.remove(&stream),
            };
        }
        for (extent, info) in self.extents {
            match info {
                Some(info) => state.extents.insert(extent, info),
                None => state.extents.remove(&extent),
            };
        }
        state.next_extent = self.next_extent;
    }
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
}
