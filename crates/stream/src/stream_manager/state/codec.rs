//! How commands and the state are written in the log.
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

use super::{Command, ExtentInfo, State, StreamInfo};
use crate::ids::{ExtentId, OwnerEpoch, STREAM_NAME_SIZE_MAX, StreamName};
use crate::sealed::{ExtentDigest, Seal};
use base::codec::{DecodeError, Decoder, Encode};

impl State {
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
            let sealed = length.map(|length| Seal { length, digest });
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
            Command::Seal { extent, sealed: Seal { length, digest } } => {
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
                Command::Seal { extent, sealed: Seal { length, digest } }
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
