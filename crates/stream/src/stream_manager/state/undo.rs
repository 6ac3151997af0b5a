//! Undoes a list of commands that was refused in its midst.

use super::{Command, ExtentInfo, State, StreamInfo};
use crate::ids::{ExtentId, StreamName};
use std::collections::BTreeMap;

/// What a list of commands touches, as it was before: a refused list is undone without a copy of the whole
/// state.
#[derive(Default)]
pub(super) struct UndoLog {
    streams: BTreeMap<StreamName, Option<StreamInfo>>,
    extents: BTreeMap<ExtentId, Option<ExtentInfo>>,
    next_extent: u64,
}

impl UndoLog {
    pub(super) fn new(state: &State) -> Self {
        UndoLog { next_extent: state.next_extent, ..UndoLog::default() }
    }

    /// Notes what `command` is about to touch; what was noted earlier stays.
    pub(super) fn note(&mut self, state: &State, command: &Command) {
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

    pub(super) fn restore(self, state: &mut State) {
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
