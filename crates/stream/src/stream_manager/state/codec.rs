//! How commands and the state are written in the log.
//!
//! ```text
//! owner   = 16 bytes incarnation, u64 epoch (see `owner.rs`)
//! command = u8 tag, fields:
//!   8 forget  u64 extent
//!  12 create  text stream, owner
//!  13 add     text stream, owner, u64 extent
//!  14 seal    text stream, owner, u64 extent, u64 length, u8 0, or 1 and u64 digest
//!  15 delete  text stream, owner
//!  16 rename  text from, owner, text to, owner
//!  17 share   text from, owner, text to, owner, varint n, n × u64 extent
//!  18 trim    text stream, owner, u64 first extent kept
//!  19 own     text stream, owner
//!  20 unlist  text stream, owner, varint n, n × u64 extent
//!
//! up to format 6, only read (behind snapshots of those formats):
//!   1 create  text stream
//!   2 add     text stream, u64 extent, u64 epoch
//!   3 seal    u64 extent, u64 length                    (no digest is known)
//!   4 delete  text stream
//!   5 rename  text from, text to
//!   6 share   text from, text to, varint n, n × u64 extent
//!   7 trim    text stream, u64 first extent kept
//!   9 own     text stream, u64 epoch
//!  10 unlist  text stream, varint n, n × u64 extent
//!  11 seal    u64 extent, u64 length, u64 digest         (from format 2 on)
//!
//! state   = u64 next extent, varint n, n × extent, varint n, n × stream, varint n, n × group
//!   extent  u64 id, varint length + 1 if sealed or 0; if sealed, from format 2 on: u8 0, or 1 and u64 digest
//!   stream  text name, varint n, n × u64 extent           (up to format 6 a u64 epoch behind the name)
//!   group   text name, owner                              (from format 7 on)
//! ```

use super::{Command, ExtentInfo, State, StreamInfo};
use crate::ids::{ExtentId, OwnerEpoch, STREAM_NAME_SIZE_MAX, StreamName};
use crate::owner::{OwnedStream, Owner};
use crate::sealed::{ExtentDigest, Seal};
use base::codec::{DecodeError, Decoder, Encode};

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateFormat {
    /// Of format 1: no digests.
    WithoutDigests,
    /// Of formats 2 to 6: each stream has an epoch.
    WithEpochs,
    /// From format 7 on: groups have owners.
    WithOwners,
}

impl State {
    /// Appends the encoded state to `out`.
    pub(crate) fn encode<E: Encode>(&self, out: &mut E) {
        out.put_u64_field(self.next_extent);
        out.put_varint(self.extents.len() as u64);
        for (id, info) in &self.extents {
            out.put_u64_field(id.0);
            out.put_varint(info.sealed.map_or(0, |sealed| sealed.length + 1));
            if let Some(sealed) = info.sealed {
                put_digest(out, sealed.digest);
            }
        }
        out.put_varint(self.streams.len() as u64);
        for (name, info) in &self.streams {
            out.put_bytes_field(name.as_str().as_bytes());
            put_extents(out, &info.extents);
        }
        out.put_varint(self.groups.len() as u64);
        for (name, group) in &self.groups {
            out.put_bytes_field(name.as_bytes());
            group.owner.encode(out);
        }
    }

    /// Reads an encoded state; reference counts are counted again.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, format: StateFormat) -> Result<Self, DecodeError> {
        let mut state = State { next_extent: decoder.u64("next extent")?, ..State::default() };
        for _ in 0..decoder.varint("extent count")? {
            let id = ExtentId(decoder.u64("extent id")?);
            let length = decoder.varint("sealed length")?.checked_sub(1);
            let digest = match length {
                Some(_) if format != StateFormat::WithoutDigests => decode_digest(decoder)?,
                _ => None,
            };
            let sealed = length.map(|length| Seal { length, digest });
            state.extents.insert(id, ExtentInfo { sealed, references: 0 });
        }
        for _ in 0..decoder.varint("stream count")? {
            let name = decode_name(decoder)?;
            let owner = match format {
                StateFormat::WithOwners => Owner::default(),
                _ => Owner::of_epoch(OwnerEpoch(decoder.u64("stream epoch")?)),
            };
            let extents = decode_extents(decoder)?;
            for extent in &extents {
                state.extents.get_mut(extent).ok_or(DecodeError("stream's extent"))?.references += 1;
            }
            state.count_stream(&name, owner);
            if let Some(group) = state.groups.get_mut(name.group()) {
                group.owner = group.owner.max_epoch(owner);
            }
            state.streams.insert(name, StreamInfo { extents });
        }
        if format == StateFormat::WithOwners {
            state.decode_groups(decoder)?;
        }
        Ok(state)
    }

    /// Reads the owner of each group.
    fn decode_groups(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if decoder.varint("group count")? != self.groups.len() as u64 {
            return Err(DecodeError("group count"));
        }
        for (name, group) in &mut self.groups {
            if decoder.text("group name")? != &**name {
                return Err(DecodeError("group name"));
            }
            group.owner = Owner::decode(decoder, "group owner")?;
        }
        Ok(())
    }
}

fn put_digest<E: Encode>(out: &mut E, digest: Option<ExtentDigest>) {
    out.put_u8_field(u8::from(digest.is_some()));
    digest.iter().for_each(|digest| out.put_u64_field(digest.0));
}

fn decode_digest(decoder: &mut Decoder<'_>) -> Result<Option<ExtentDigest>, DecodeError> {
    match decoder.u8("whether there is a digest")? {
        0 => Ok(None),
        1 => Ok(Some(ExtentDigest(decoder.u64("sealed digest")?))),
        _ => Err(DecodeError("whether there is a digest")),
    }
}

fn put_extents<E: Encode>(out: &mut E, extents: &[ExtentId]) {
    out.put_varint(extents.len() as u64);
    extents.iter().for_each(|extent| out.put_u64_field(extent.0));
}

fn decode_extents(decoder: &mut Decoder<'_>) -> Result<Vec<ExtentId>, DecodeError> {
    let mut extents = Vec::new();
    for _ in 0..decoder.varint("extent count of a list")? {
        extents.push(decode_extent(decoder)?);
    }
    Ok(extents)
}

fn decode_extent(decoder: &mut Decoder<'_>) -> Result<ExtentId, DecodeError> {
    Ok(ExtentId(decoder.u64("extent")?))
}

fn decode_name(decoder: &mut Decoder<'_>) -> Result<StreamName, DecodeError> {
    let name = decoder.text("stream name")?;
    if name.is_empty() || name.len() > STREAM_NAME_SIZE_MAX {
        return Err(DecodeError("stream name"));
    }
    Ok(StreamName::new(name))
}

fn put_stream<E: Encode>(out: &mut E, stream: &OwnedStream) {
    out.put_bytes_field(stream.name.as_str().as_bytes());
    stream.owner.encode(out);
}

fn decode_stream(decoder: &mut Decoder<'_>) -> Result<OwnedStream, DecodeError> {
    let name = decode_name(decoder)?;
    Ok(OwnedStream { name, owner: Owner::decode(decoder, "owner")? })
}

/// The owner in a command of a former format.
fn decode_epoch(decoder: &mut Decoder<'_>) -> Result<Owner, DecodeError> {
    Ok(Owner::of_epoch(OwnerEpoch(decoder.u64("epoch")?)))
}

/// A stream in a command of a former format.
fn decode_unowned(decoder: &mut Decoder<'_>) -> Result<OwnedStream, DecodeError> {
    Ok(decode_name(decoder)?.owned_by(Owner::default()))
}

impl Command {
    /// Appends the encoded command to `out`.
    pub(crate) fn encode<E: Encode>(&self, out: &mut E) {
        out.put_u8_field(self.tag());
        match self {
            Command::Create(stream) | Command::Delete(stream) | Command::Own(stream) => {
                put_stream(out, stream)
            }
            Command::Add { stream, extent } | Command::Trim { stream, first_kept: extent } => {
                put_stream(out, stream);
                out.put_u64_field(extent.0);
            }
            Command::Seal { stream: Some(stream), extent, sealed } => {
                put_stream(out, stream);
                out.put_u64_field(extent.0);
                out.put_u64_field(sealed.length);
                put_digest(out, sealed.digest);
            }
            Command::Seal { stream: None, extent, sealed: Seal { length, digest } } => {
                out.put_u64_field(extent.0);
                out.put_u64_field(*length);
                digest.iter().for_each(|digest| out.put_u64_field(digest.0));
            }
            Command::Rename { from, to } => {
                put_stream(out, from);
                put_stream(out, to);
            }
            Command::Share { from, to, extents } => {
                put_stream(out, from);
                put_stream(out, to);
                put_extents(out, extents);
            }
            Command::Unlist { stream, extents } => {
                put_stream(out, stream);
                put_extents(out, extents);
            }
            Command::Forget(extent) => out.put_u64_field(extent.0),
        }
    }

    fn tag(&self) -> u8 {
        match self {
            Command::Seal { stream: None, sealed: Seal { digest: None, .. }, .. } => 3,
            Command::Seal { stream: None, .. } => 11,
            Command::Forget(_) => 8,
            Command::Create(_) => 12,
            Command::Add { .. } => 13,
            Command::Seal { .. } => 14,
            Command::Delete(_) => 15,
            Command::Rename { .. } => 16,
            Command::Share { .. } => 17,
            Command::Trim { .. } => 18,
            Command::Own(_) => 19,
            Command::Unlist { .. } => 20,
        }
    }

    /// Reads the next command.
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.u8("command tag")? {
            8 => Command::Forget(decode_extent(decoder)?),
            12 => Command::Create(decode_stream(decoder)?),
            13 => Command::Add { stream: decode_stream(decoder)?, extent: decode_extent(decoder)? },
            14 => {
                let stream = Some(decode_stream(decoder)?);
                let (extent, length) = (decode_extent(decoder)?, decoder.u64("length")?);
                Command::Seal { stream, extent, sealed: Seal { length, digest: decode_digest(decoder)? } }
            }
            15 => Command::Delete(decode_stream(decoder)?),
            16 => Command::Rename { from: decode_stream(decoder)?, to: decode_stream(decoder)? },
            17 => {
                let (from, to) = (decode_stream(decoder)?, decode_stream(decoder)?);
                Command::Share { from, to, extents: decode_extents(decoder)? }
            }
            18 => Command::Trim { stream: decode_stream(decoder)?, first_kept: decode_extent(decoder)? },
            19 => Command::Own(decode_stream(decoder)?),
            20 => Command::Unlist { stream: decode_stream(decoder)?, extents: decode_extents(decoder)? },
            former => return Command::decode_former(former, decoder),
        })
    }

    /// Reads a command of formats up to 6 behind its tag.
    fn decode_former(tag: u8, decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match tag {
            1 => Command::Create(decode_unowned(decoder)?),
            2 => {
                let (name, extent) = (decode_name(decoder)?, decode_extent(decoder)?);
                Command::Add { stream: name.owned_by(decode_epoch(decoder)?), extent }
            }
            3 | 11 => {
                let (extent, length) = (decode_extent(decoder)?, decoder.u64("length")?);
                let digest = if tag == 11 { Some(ExtentDigest(decoder.u64("digest")?)) } else { None };
                Command::Seal { stream: None, extent, sealed: Seal { length, digest } }
            }
            4 => Command::Delete(decode_unowned(decoder)?),
            5 => Command::Rename { from: decode_unowned(decoder)?, to: decode_unowned(decoder)? },
            6 => {
                let (from, to) = (decode_unowned(decoder)?, decode_unowned(decoder)?);
                Command::Share { from, to, extents: decode_extents(decoder)? }
            }
            7 => Command::Trim { stream: decode_unowned(decoder)?, first_kept: decode_extent(decoder)? },
            9 => {
                let name = decode_name(decoder)?;
                Command::Own(name.owned_by(decode_epoch(decoder)?))
            }
            10 => Command::Unlist { stream: decode_unowned(decoder)?, extents: decode_extents(decoder)? },
            _ => return Err(DecodeError("command tag")),
        })
    }
}
