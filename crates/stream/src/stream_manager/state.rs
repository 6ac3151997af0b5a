//! What the stream manager knows, as a pure state machine: which streams there are, which extents each one
//! lists, which extents are sealed and which are waiting to be deleted. It knows no blocks.
//!
//! What always holds: an extent is listed by at least one stream or waits for deletion; only a stream's last
//! extent may be unsealed; ids are never used twice.
//!
//! ```text
//! command = u8 tag, fields:
//!   1 create  text stream
//!   2 add     text stream, u64 extent, u64 epoch
//!   3 seal    u64 extent, u64 length                    (no digest is known)
//!   4 delete  text stream
//!   5 rename  text from, text to
//!   6 share   text from, text to, varint n, n × u64 extent
//!   7 trim    text stream, u64 first extent kept
//!   8 forget  u64 extent
//!   9 own     text stream, u64 epoch
//!  10 unlist  text stream, varint n, n × u64 extent
//!  11 seal    u64 extent, u64 length, u64 digest         (from format 2 on)
//!
//! state   = u64 next extent, varint n, n × extent, varint n, n × stream
//!   extent  u64 id, varint length + 1 if sealed or 0; if sealed, from format 2 on: u8 0, or 1 and u64 digest
//!   stream  text name, u64 epoch, varint n, n × u64 extent
//! ```

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch, STREAM_NAME_SIZE_MAX, StreamName};
use crate::sealed::{ExtentDigest, Sealed};
use base::codec::{DecodeError, Decoder, Encode};
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
        sealed: Sealed,
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
    pub(crate) sealed: Option<Sealed>,
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

/// What a list of commands touches, as it was before: a refused list is undone without a copy of the whole
/// state.
#[derive(Default)]
struct Before {
    streams: BTreeMap<StreamName, Option<StreamInfo>>,
    extents: BTreeMap<ExtentId, Option<ExtentInfo>>,
    next_extent: u64,
}

impl Before {
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
        let mut before = Before { next_extent: self.next_extent, ..Before::default() };
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

    /// Appends the encoded state to `out`.
    pub(crate) fn encode<E: Encode>(&self, out: &mut E) {
        out.put_u64_field(self.next_extent);
        out.put_varint(self.extents.len() as u64);
        for (id, info) in &self.extents {
            out.put_u64_field(id.0);
            out.put_varint(info.sealed.map_or(0, |sealed| sealed.length + 1));
            match info.sealed.map(|sealed| sealed.digest) {
                Some(Some(digest)) => {
                    out.put_u8_field(1);
                    out.put_u64_field(digest.0);
                }
                Some(None) => out.put_u8_field(0),
                None => {}
            }
        }
        out.put_varint(self.streams.len() as u64);
        for (name, info) in &self.streams {
            out.put_bytes_field(name.as_str().as_bytes());
            out.put_u64_field(info.epoch.0);
            out.put_varint(info.extents.len() as u64);
            info.extents.iter().for_each(|extent| out.put_u64_field(extent.0));
        }
    }

    /// Reads an encoded state, which has `digests` since format 2; reference counts are counted again.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, digests: bool) -> Result<Self, DecodeError> {
        let mut state = State { next_extent: decoder.u64("next extent")?, ..State::default() };
        for _ in 0..decoder.varint("extent count")? {
            let id = ExtentId(decoder.u64("extent id")?);
            let length = decoder.varint("sealed length")?.checked_sub(1);
            let digest = match length {
                Some(_) if digests => match decoder.u8("whether there is a digest")? {
                    0 => None,
                    1 => Some(ExtentDigest(decoder.u64("sealed digest")?)),
                    _ => return Err(DecodeError("whether there is a digest")),
                },
                _ => None,
            };
            let sealed = length.map(|length| Sealed { length, digest });
            state.extents.insert(id, ExtentInfo { sealed, references: 0 });
        }
        for _ in 0..decoder.varint("stream count")? {
            let name = decode_name(decoder)?;
            let epoch = OwnerEpoch(decoder.u64("stream epoch")?);
            let mut extents = Vec::new();
            for _ in 0..decoder.varint("stream's extent count")? {
                let id = ExtentId(decoder.u64("extent id")?);
                state.extents.get_mut(&id).ok_or(DecodeError("stream's extent"))?.references += 1;
                extents.push(id);
            }
            state.streams.insert(name, StreamInfo { epoch, extents });
        }
        Ok(state)
    }
}

fn decode_name(decoder: &mut Decoder<'_>) -> Result<StreamName, DecodeError> {
    let name = decoder.text("stream name")?;
    if name.is_empty() || name.len() > STREAM_NAME_SIZE_MAX {
        return Err(DecodeError("stream name"));
    }
    Ok(StreamName::new(name))
}

impl Command {
    /// Appends the encoded command to `out`.
    pub(crate) fn encode<E: Encode>(&self, out: &mut E) {
        let text = |out: &mut E, name: &StreamName| out.put_bytes_field(name.as_str().as_bytes());
        match self {
            Command::Create(stream) => {
                out.put_u8_field(1);
                text(out, stream);
            }
            Command::Add { stream, extent, epoch } => {
                out.put_u8_field(2);
                text(out, stream);
                out.put_u64_field(extent.0);
                out.put_u64_field(epoch.0);
            }
            Command::Seal { extent, sealed: Sealed { length, digest } } => {
                out.put_u8_field(if digest.is_some() { 11 } else { 3 });
                out.put_u64_field(extent.0);
                out.put_u64_field(*length);
                digest.iter().for_each(|digest| out.put_u64_field(digest.0));
            }
            Command::Delete(stream) => {
                out.put_u8_field(4);
                text(out, stream);
            }
            Command::Rename { from, to } => {
                out.put_u8_field(5);
                text(out, from);
                text(out, to);
            }
            Command::Share { from, to, extents } => {
                out.put_u8_field(6);
                text(out, from);
                text(out, to);
                out.put_varint(extents.len() as u64);
                extents.iter().for_each(|extent| out.put_u64_field(extent.0));
            }
            Command::Trim { stream, first_kept } => {
                out.put_u8_field(7);
                text(out, stream);
                out.put_u64_field(first_kept.0);
            }
            Command::Unlist { stream, extents } => {
                out.put_u8_field(10);
                text(out, stream);
                out.put_varint(extents.len() as u64);
                extents.iter().for_each(|extent| out.put_u64_field(extent.0));
            }
            Command::Forget(extent) => {
                out.put_u8_field(8);
                out.put_u64_field(extent.0);
            }
            Command::Own { stream, epoch } => {
                out.put_u8_field(9);
                text(out, stream);
                out.put_u64_field(epoch.0);
            }
        }
    }

    /// Reads the next command.
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let tag = decoder.u8("command tag")?;
        Ok(match tag {
            1 => Command::Create(decode_name(decoder)?),
            2 => Command::Add {
                stream: decode_name(decoder)?,
                extent: ExtentId(decoder.u64("extent")?),
                epoch: OwnerEpoch(decoder.u64("epoch")?),
            },
            3 | 11 => {
                let (extent, length) = (ExtentId(decoder.u64("extent")?), decoder.u64("length")?);
                let digest = if tag == 11 { Some(ExtentDigest(decoder.u64("digest")?)) } else { None };
                Command::Seal { extent, sealed: Sealed { length, digest } }
            }
            4 => Command::Delete(decode_name(decoder)?),
            5 => Command::Rename { from: decode_name(decoder)?, to: decode_name(decoder)? },
            6 => {
                let (from, to) = (decode_name(decoder)?, decode_name(decoder)?);
                let mut extents = Vec::new();
                for _ in 0..decoder.varint("shared extents")? {
                    extents.push(ExtentId(decoder.u64("extent")?));
                }
                Command::Share { from, to, extents }
            }
            7 => {
                Command::Trim { stream: decode_name(decoder)?, first_kept: ExtentId(decoder.u64("extent")?) }
            }
            8 => Command::Forget(ExtentId(decoder.u64("extent")?)),
            9 => Command::Own { stream: decode_name(decoder)?, epoch: OwnerEpoch(decoder.u64("epoch")?) },
            10 => {
                let stream = decode_name(decoder)?;
                let mut extents = Vec::new();
                for _ in 0..decoder.varint("unlisted extents")? {
                    extents.push(ExtentId(decoder.u64("extent")?));
                }
                Command::Unlist { stream, extents }
            }
            _ => return Err(DecodeError("command tag")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> StreamName {
        StreamName::new(text)
    }

    fn sealed(length: u64, digest: Option<u64>) -> Sealed {
        Sealed { length, digest: digest.map(ExtentDigest) }
    }

    fn two_streams() -> State {
        let mut state = State::default();
        let (a, b) = (name("a"), name("b"));
        state
            .apply_all(&[
                Command::Create(a.clone()),
                Command::Add { stream: a.clone(), extent: ExtentId(1), epoch: OwnerEpoch(1) },
                Command::Seal { extent: ExtentId(1), sealed: sealed(10, Some(77)) },
                Command::Add { stream: a.clone(), extent: ExtentId(2), epoch: OwnerEpoch(1) },
                Command::Create(b.clone()),
                Command::Share { from: a, to: b, extents: vec![ExtentId(1)] },
            ])
            .unwrap();
        state
    }

    #[test]
    fn unlisted_extents_go_wherever_they_stand_and_open_ones_stay() {
        let mut state = two_streams();
        let unlist = |extents: &[u64]| Command::Unlist {
            stream: name("a"),
            extents: extents.iter().copied().map(ExtentId).collect(),
        };
        let before = state.clone();
        assert!(state.apply_all(&[unlist(&[1, 2])]).is_err(), "the last one is open");
        assert!(state.apply_all(&[unlist(&[7])]).is_err(), "not listed");
        assert_eq!(state, before);
        state.apply_all(&[unlist(&[1])]).unwrap();
        assert_eq!(state.tail(&name("a")), Ok(Some(ExtentId(2))));
        assert_eq!(state.unreferenced(), [], "the other stream lists it");
    }

    #[test]
    fn an_extent_that_comes_back_from_two_heirs_is_listed_once() {
        let mut state = two_streams();
        let share =
            |from: &str| Command::Share { from: name(from), to: name("c"), extents: vec![ExtentId(1)] };
        state.apply_all(&[Command::Create(name("c")), share("a"), share("b")]).unwrap();
        assert_eq!(state.streams[&name("c")].extents, [ExtentId(1)]);
        assert_eq!(state.extents[&ExtentId(1)].references, 3);
    }

    #[test]
    fn a_shared_extent_lives_until_its_last_stream_drops_it() {
        let mut state = two_streams();
        state.apply_all(&[Command::Trim { stream: name("a"), first_kept: ExtentId(2) }]).unwrap();
        assert_eq!(state.unreferenced(), []);
        assert!(state.clone().apply_all(&[Command::Forget(ExtentId(1))]).is_err());
        state.apply_all(&[Command::Delete(name("b"))]).unwrap();
        assert_eq!(state.unreferenced(), [ExtentId(1)]);
        state.apply_all(&[Command::Forget(ExtentId(1))]).unwrap();
        assert!(
            state
                .apply_all(&[Command::Add { stream: name("a"), extent: ExtentId(1), epoch: OwnerEpoch(1) }])
                .is_err(),
            "ids are not reused"
        );
    }

    #[test]
    fn a_list_of_commands_is_all_or_nothing() {
        let mut state = two_streams();
        let before = state.clone();
        let refused = state.apply_all(&[
            Command::Delete(name("b")),
            Command::Share { from: name("a"), to: name("c"), extents: vec![ExtentId(1)] },
        ]);
        assert_eq!(refused, Err(StreamError::NoStream(name("c"))));
        assert_eq!(state, before);
        assert!(
            state
                .apply_all(&[Command::Share { from: name("a"), to: name("b"), extents: vec![ExtentId(2)] }])
                .is_err(),
            "open extents can't be shared"
        );
        assert!(
            state
                .apply_all(&[Command::Add { stream: name("a"), extent: ExtentId(9), epoch: OwnerEpoch(1) }])
                .is_err(),
            "the last is open"
        );
    }

    #[test]
    fn each_command_is_undone_when_a_later_one_is_refused() {
        let (mut before, extent) = (two_streams(), ExtentId(9));
        before.apply_all(&[Command::Create(name("d"))]).unwrap();
        let open = ExtentId(2);
        let changes = [
            Command::Create(name("c")),
            Command::Add { stream: name("b"), extent, epoch: OwnerEpoch(5) },
            Command::Seal { extent: open, sealed: sealed(7, None) },
            Command::Delete(name("a")),
            Command::Rename { from: name("a"), to: name("c") },
            Command::Share { from: name("a"), to: name("d"), extents: vec![ExtentId(1)] },
            Command::Trim { stream: name("a"), first_kept: open },
            Command::Unlist { stream: name("a"), extents: vec![ExtentId(1)] },
            Command::Own { stream: name("a"), epoch: OwnerEpoch(8) },
        ];
        for change in changes {
            let mut state = before.clone();
            assert_eq!(state.apply_all(std::slice::from_ref(&change)), Ok(()), "{change:?}");
            assert_ne!(state, before, "{change:?}");
            let mut state = before.clone();
            let refused = [change.clone(), Command::Forget(ExtentId(77))];
            assert!(state.apply_all(&refused).is_err());
            assert_eq!(state, before, "{change:?}");
        }
    }

    #[test]
    fn an_extent_is_sealed_once() {
        let mut state = two_streams();
        let before = state.clone();
        let seal = |sealed| [Command::Seal { extent: ExtentId(1), sealed }];
        assert_eq!(state.apply_all(&seal(sealed(10, Some(77)))), Ok(()), "again");
        for other in [sealed(11, Some(77)), sealed(10, Some(78)), sealed(10, None)] {
            assert!(matches!(state.apply_all(&seal(other)), Err(StreamError::Corrupt(_))), "{other}");
            assert_eq!(state, before);
        }
    }

    #[test]
    fn a_state_that_contradicts_itself_is_noticed() {
        let healthy = two_streams();
        assert_eq!(healthy.inconsistencies(), Vec::<String>::new());
        let mut counts = healthy.clone();
        counts.extents.get_mut(&ExtentId(1)).unwrap().references = 5;
        let mut unknown = healthy.clone();
        unknown.extents.remove(&ExtentId(1));
        let mut open = healthy.clone();
        open.extents.get_mut(&ExtentId(1)).unwrap().sealed = None;
        let next = State { next_extent: 1, ..healthy };
        for broken in [counts, unknown, open, next] {
            assert!(!broken.inconsistencies().is_empty(), "{broken:?}");
        }
    }

    #[test]
    fn a_former_owner_adds_no_extents() {
        let mut state = two_streams();
        let stream = name("b");
        state.apply_all(&[Command::Own { stream: stream.clone(), epoch: OwnerEpoch(3) }]).unwrap();
        let zombie = Command::Add { stream: stream.clone(), extent: ExtentId(9), epoch: OwnerEpoch(2) };
        assert!(matches!(state.apply_all(&[zombie]), Err(StreamError::NotOwner { .. })));
        state.apply_all(&[Command::Add { stream, extent: ExtentId(9), epoch: OwnerEpoch(3) }]).unwrap();
    }

    #[test]
    fn state_and_commands_come_back() {
        let state = two_streams();
        let mut out = Vec::new();
        state.encode(&mut out);
        assert_eq!(State::decode(&mut Decoder::new(&out), true), Ok(state.clone()));
        let mut without = state.clone();
        without.apply_all(&[Command::Seal { extent: ExtentId(2), sealed: sealed(9, None) }]).unwrap();
        let mut out = Vec::new();
        without.encode(&mut out);
        assert_eq!(State::decode(&mut Decoder::new(&out), true), Ok(without));
        let commands = [
            Command::Create(name("x")),
            Command::Add { stream: name("x"), extent: ExtentId(7), epoch: OwnerEpoch(1) },
            Command::Seal { extent: ExtentId(7), sealed: sealed(1 << 40, None) },
            Command::Seal { extent: ExtentId(7), sealed: sealed(1 << 40, Some(u64::MAX)) },
            Command::Delete(name("x")),
            Command::Rename { from: name("x"), to: name("y") },
            Command::Share { from: name("x"), to: name("y"), extents: vec![ExtentId(1), ExtentId(2)] },
            Command::Trim { stream: name("x"), first_kept: ExtentId(3) },
            Command::Unlist { stream: name("x"), extents: vec![ExtentId(3), ExtentId(9)] },
            Command::Forget(ExtentId(3)),
            Command::Own { stream: name("x"), epoch: OwnerEpoch(4) },
        ];
        let mut out = Vec::new();
        commands.iter().for_each(|command| command.encode(&mut out));
        let mut decoder = Decoder::new(&out);
        for command in commands {
            assert_eq!(Command::decode(&mut decoder), Ok(command));
        }
    }
}
