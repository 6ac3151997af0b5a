//! Applies lists of commands to the state: all of a list, or nothing. A list that breaks one of the state's
//! rules is refused as a whole.

use super::{Command, ExtentInfo, OwnerGroup, State, StreamInfo};
use crate::error::StreamError;
use crate::ids::{ExtentId, StreamName};
use crate::owner::{OwnedStream, Owner};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether owners are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerCheck {
    /// A former owner is refused.
    Compare,
    /// The commands are from a log of a former format: they were accepted when they were written, and most
    /// name no owner.
    Logged,
}

/// What a list of commands touches, as it was before: a refused list is undone without a copy of the whole
/// state.
#[derive(Default)]
struct UndoLog {
    streams: BTreeMap<StreamName, Option<StreamInfo>>,
    groups: BTreeMap<Arc<str>, Option<OwnerGroup>>,
    extents: BTreeMap<ExtentId, Option<ExtentInfo>>,
    next_extent: u64,
}

impl UndoLog {
    fn new(state: &State) -> Self {
        UndoLog { next_extent: state.next_extent, ..UndoLog::default() }
    }

    /// Notes what `command` is about to touch; what was noted earlier stays.
    fn note(&mut self, state: &State, command: &Command) {
        let (streams, extents): (Vec<&OwnedStream>, &[ExtentId]) = match command {
            Command::Create(stream) | Command::Own(stream) => (vec![stream], &[]),
            Command::Add { stream, extent } => (vec![stream], std::slice::from_ref(extent)),
            Command::Seal { stream, extent, .. } => (stream.iter().collect(), std::slice::from_ref(extent)),
            Command::Forget(extent) => (vec![], std::slice::from_ref(extent)),
            Command::Delete(stream) | Command::Trim { stream, .. } => {
                (vec![stream], state.streams.get(&stream.name).map_or(&[], |info| &info.extents))
            }
            Command::Rename { from, to } => (vec![from, to], &[]),
            Command::Share { from, to, extents } => (vec![from, to], extents),
            Command::Unlist { stream, extents } => (vec![stream], extents),
        };
        for OwnedStream { name, .. } in streams {
            let now = || state.streams.get(name).cloned();
            self.streams.entry(name.clone()).or_insert_with(now);
            if !self.groups.contains_key(name.group()) {
                self.groups.insert(name.group().into(), state.groups.get(name.group()).copied());
            }
        }
        for extent in extents {
            self.extents.entry(*extent).or_insert_with(|| state.extents.get(extent).copied());
        }
    }

    fn restore(self, state: &mut State) {
        put_back(self.streams, &mut state.streams);
        put_back(self.groups, &mut state.groups);
        put_back(self.extents, &mut state.extents);
        state.next_extent = self.next_extent;
    }
}

fn put_back<K: Ord, V>(before: BTreeMap<K, Option<V>>, now: &mut BTreeMap<K, V>) {
    for (key, value) in before {
        match value {
            Some(value) => now.insert(key, value),
            None => now.remove(&key),
        };
    }
}

impl State {
    /// Applies all commands, or refuses and changes nothing.
    pub(crate) fn apply_all(&mut self, commands: &[Command]) -> Result<(), StreamError> {
        self.apply_checked(commands, OwnerCheck::Compare)
    }

    /// The same, with or without a comparison of owners.
    pub(crate) fn apply_checked(
        &mut self,
        commands: &[Command],
        check: OwnerCheck,
    ) -> Result<(), StreamError> {
        let mut before = UndoLog::new(self);
        let outcome = commands.iter().try_for_each(|command| {
            before.note(self, command);
            self.claim_all(command, check)?;
            self.apply(command)
        });
        if outcome.is_err() {
            before.restore(self);
        }
        outcome
    }

    /// Raises the owners of the groups that the command changes to those that it names.
    fn claim_all(&mut self, command: &Command, check: OwnerCheck) -> Result<(), StreamError> {
        match command {
            Command::Create(stream)
            | Command::Own(stream)
            | Command::Delete(stream)
            | Command::Add { stream, .. }
            | Command::Trim { stream, .. }
            | Command::Unlist { stream, .. }
            | Command::Seal { stream: Some(stream), .. } => self.claim(stream, check),
            Command::Rename { from, to } | Command::Share { from, to, .. } => {
                self.claim(from, check)?;
                self.claim(to, check)
            }
            Command::Seal { stream: None, .. } | Command::Forget(_) => Ok(()),
        }
    }

    fn claim(&mut self, stream: &OwnedStream, check: OwnerCheck) -> Result<(), StreamError> {
        if check == OwnerCheck::Compare {
            self.check_owner(&stream.name, stream.owner)?;
        }
        // A group that is not there yet gets its owner from its first stream.
        if let Some(group) = self.groups.get_mut(stream.name.group())
            && stream.owner.epoch > group.owner.epoch
        {
            group.owner = stream.owner;
        }
        Ok(())
    }

    /// Applies one command; on an error the state may be half changed.
    fn apply(&mut self, command: &Command) -> Result<(), StreamError> {
        match command {
            Command::Create(stream) => self.insert_stream(stream, StreamInfo::default()),
            Command::Add { stream: OwnedStream { name, .. }, extent } => {
                if self.tail(name)?.is_some_and(|tail| self.is_open(tail)) {
                    return Err(StreamError::Corrupt(format!(
                        "stream {name} gets an extent while its last is open"
                    )));
                }
                if extent.0 < self.next_extent {
                    return Err(StreamError::Corrupt(format!("extent {extent} is added twice")));
                }
                self.next_extent = extent.0 + 1;
                self.extents.insert(*extent, ExtentInfo { sealed: None, references: 1 });
                self.list_mut(name)?.push(*extent);
                Ok(())
            }
            Command::Own(stream) => self.owner(&stream.name).map(|_| ()),
            Command::Seal { extent, sealed, .. } => {
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
                let info = self.remove_stream(&stream.name)?;
                info.extents.into_iter().try_for_each(|extent| self.release(extent))
            }
            Command::Rename { from, to } => {
                let info = self.remove_stream(&from.name)?;
                self.insert_stream(to, info)
            }
            Command::Share { from, to, extents } => self.share(&from.name, &to.name, extents),
            Command::Trim { stream, first_kept } => {
                let list = self.list_mut(&stream.name)?;
                let at = list.iter().position(|extent| extent == first_kept);
                let at = at.ok_or(StreamError::NoExtent(*first_kept))?;
                let dropped: Vec<_> = list.drain(..at).collect();
                dropped.into_iter().try_for_each(|extent| self.release(extent))
            }
            Command::Unlist { stream, extents } => self.unlist(&stream.name, extents),
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

    /// Adds a stream to its group.
    pub(super) fn count_stream(&mut self, name: &StreamName, owner: Owner) {
        let group = self.groups.entry(name.group().into());
        group.or_insert(OwnerGroup { owner, stream_count: 0 }).stream_count += 1;
    }

    fn insert_stream(&mut self, stream: &OwnedStream, info: StreamInfo) -> Result<(), StreamError> {
        if self.streams.contains_key(&stream.name) {
            return Err(StreamError::StreamExists(stream.name.clone()));
        }
        self.streams.insert(stream.name.clone(), info);
        self.count_stream(&stream.name, stream.owner);
        Ok(())
    }

    fn remove_stream(&mut self, name: &StreamName) -> Result<StreamInfo, StreamError> {
        let info = self.streams.remove(name).ok_or_else(|| StreamError::NoStream(name.clone()))?;
        if let Some(group) = self.groups.get_mut(name.group()) {
            group.stream_count -= 1;
            if group.stream_count == 0 {
                self.groups.remove(name.group());
            }
        }
        Ok(info)
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
