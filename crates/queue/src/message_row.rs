//! The stored row of a message, and the mark of one that has been moved.
//!
//! ```text
//! message = u8 format (1) u64 chance of the id, u64 expires at (ticks), varint dequeue count, text in UTF-8 to the end
//! mark    = u8 format (1) u64 chance of the id, u64 expires at (ticks)
//! ```
//!
//! The position is in the row's key, the version that belongs to the last receipt is the row's version.

use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;

const FORMAT: u8 = 1;
const FIXED_SIZE: usize = 1 + 8 + 8;

/// A message that never expires does so at this instant.
pub(crate) const NEVER: Ticks = Ticks(u64::MAX);

/// A message's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageRow {
    /// The half of the id that is not in the key.
    pub(crate) chance: u64,
    /// From then on it is as if it were deleted.
    pub(crate) expires_at: Ticks,
    /// How often it was taken.
    pub(crate) dequeue_count: u64,
    /// UTF-8.
    pub(crate) text: Bytes,
}

impl MessageRow {
    /// Reads a stored row; the text stays where it is.
    pub(crate) fn open(value: &Bytes) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        let (chance, expires_at) = take_fixed(&mut decoder)?;
        let dequeue_count = decoder.varint("dequeue count")?;
        let text = value.slice(value.len() - decoder.rest().len()..);
        Ok(MessageRow { chance, expires_at, dequeue_count, text })
    }

    /// When the message in a stored row expires.
    pub(crate) fn expiry_of(value: &[u8]) -> Result<Ticks, DecodeError> {
        Ok(take_fixed(&mut Decoder::new(value))?.1)
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(FIXED_SIZE + 3 + self.text.len());
        put_fixed(&mut out, self);
        out.put_varint(self.dequeue_count);
        out.extend_from_slice(&self.text);
        out.into()
    }

    /// The stored form of its mark.
    pub(crate) fn encode_away(&self) -> Bytes {
        let mut out = Vec::with_capacity(FIXED_SIZE);
        put_fixed(&mut out, self);
        out.into()
    }
}

/// The chance and the expiry in a mark.
pub(crate) fn open_away(value: &[u8]) -> Result<(u64, Ticks), DecodeError> {
    let mut decoder = Decoder::new(value);
    let fixed = take_fixed(&mut decoder)?;
    decoder.finish("message mark")?;
    Ok(fixed)
}

fn put_fixed(out: &mut Vec<u8>, row: &MessageRow) {
    out.put_u8_field(FORMAT);
    out.put_u64_field(row.chance);
    out.put_u64_field(row.expires_at.0);
}

fn take_fixed(decoder: &mut Decoder<'_>) -> Result<(u64, Ticks), DecodeError> {
    if decoder.u8("message format")? != FORMAT {
        return Err(DecodeError("message format"));
    }
    Ok((decoder.u64("message id")?, Ticks(decoder.u64("message expiry")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_drawn() {
        let row = MessageRow {
            chance: 2,
            expires_at: Ticks(3),
            dequeue_count: 200,
            text: Bytes::from_static(b"hello"),
        };
        let fixed = b"\x01\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
        assert_eq!(row.encode(), [&fixed[..], b"\xc8\x01hello"].concat());
        assert_eq!(row.encode_away(), &fixed[..]);
    }

    proptest! {
        #[test]
        fn rows_come_back(chance: u64, expires_at: u64, dequeue_count: u64, text: String) {
            let row = MessageRow { chance, expires_at: Ticks(expires_at), dequeue_count, text: text.into() };
            prop_assert_eq!(MessageRow::open(&row.encode()), Ok(row.clone()));
            prop_assert_eq!(open_away(&row.encode_away()), Ok((chance, row.expires_at)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
            bytes.insert(0, FORMAT);
            let _ = open_away(&bytes);
            let _ = MessageRow::open(&bytes.into());
        }
    }
}
