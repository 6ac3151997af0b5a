//! The stored row of a message.
//!
//! ```text
//! message = u8 format (2) random u64 of the id, u64 expires at (ticks), u64 number of the last receipt,
//!           varint dequeue count, text in UTF-8 to the end
//! ```
//!
//! The position is in the row's key. A message of format 1 has no receipt number, the row's version is used
//! instead; a get or an update rewrites it in format 2.

use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use partition::Row;

const FORMAT: u8 = 2;
const FORMAT_WITHOUT_NUMBER: u8 = 1;
const FIXED_SIZE: usize = 1 + 8 + 8;

/// The expiry of a message that never expires.
pub(crate) const NEVER: Ticks = Ticks(u64::MAX);

/// A message's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageRow {
    /// The random half of the id, which is not in the key.
    pub(crate) chance: u64,
    /// From then on the message is treated as deleted.
    pub(crate) expires_at: Ticks,
    /// The random number in the last receipt.
    pub(crate) receipt_number: u64,
    /// How often a get has returned it.
    pub(crate) dequeue_count: u64,
    /// UTF-8.
    pub(crate) text: Bytes,
}

impl MessageRow {
    /// Reads a stored row; the text is not copied.
    pub(crate) fn open(row: &Row) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(&row.value);
        let (format, chance, expires_at) = take_fixed(&mut decoder)?;
        let receipt_number = match format {
            FORMAT => decoder.u64("receipt number")?,
            FORMAT_WITHOUT_NUMBER => row.version.0,
            _ => return Err(DecodeError("message format")),
        };
        let dequeue_count = decoder.varint("dequeue count")?;
        let text = row.value.slice(row.value.len() - decoder.rest().len()..);
        Ok(MessageRow { chance, expires_at, receipt_number, dequeue_count, text })
    }

    /// When the message in a stored row expires.
    pub(crate) fn expiry_of(value: &[u8]) -> Result<Ticks, DecodeError> {
        match take_fixed(&mut Decoder::new(value))? {
            (FORMAT | FORMAT_WITHOUT_NUMBER, _, expires_at) => Ok(expires_at),
            _ => Err(DecodeError("message format")),
        }
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(FIXED_SIZE + 8 + 3 + self.text.len());
        put_fixed(&mut out, self);
        out.put_u64_field(self.receipt_number);
        out.put_varint(self.dequeue_count);
        out.extend_from_slice(&self.text);
        out.into()
    }
}

fn put_fixed(out: &mut Vec<u8>, row: &MessageRow) {
    out.put_u8_field(FORMAT);
    out.put_u64_field(row.chance);
    out.put_u64_field(row.expires_at.0);
}

fn take_fixed(decoder: &mut Decoder<'_>) -> Result<(u8, u64, Ticks), DecodeError> {
    let format = decoder.u8("message format")?;
    Ok((format, decoder.u64("message id")?, Ticks(decoder.u64("message expiry")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::{RowKey, RowVersion};
    use proptest::prelude::*;

    fn stored(value: Bytes) -> Row {
        Row { key: RowKey::new("acct", 5, "", "m"), version: RowVersion(77), value }
    }

    #[test]
    fn the_bytes_are_as_drawn() {
        let row = MessageRow {
            chance: 2,
            expires_at: Ticks(3),
            receipt_number: 4,
            dequeue_count: 200,
            text: Bytes::from_static(b"hello"),
        };
        let fixed = b"\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
        let number = b"\x04\0\0\0\0\0\0\0";
        let rest = b"\xc8\x01hello";
        let encoded = [b"\x02", &fixed[..], number, rest].concat();
        assert_eq!(row.encode(), encoded);
        let former = Bytes::from([b"\x01", &fixed[..], rest].concat());
        assert_eq!(MessageRow::expiry_of(&former), Ok(Ticks(3)));
        let former = MessageRow::open(&stored(former));
        assert_eq!(former, Ok(MessageRow { receipt_number: 77, ..row }), "one without a number");
    }

    proptest! {
        #[test]
        fn rows_come_back(chance: u64, expires_at: u64, receipt_number: u64, dequeue_count: u64, text: String) {
            let (expires_at, text) = (Ticks(expires_at), text.into());
            let row = MessageRow { chance, expires_at, receipt_number, dequeue_count, text };
            prop_assert_eq!(MessageRow::expiry_of(&row.encode()), Ok(row.expires_at));
            prop_assert_eq!(MessageRow::open(&stored(row.encode())), Ok(row));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>(), format in 0..4_u8) {
            bytes.insert(0, format);
            let _ = MessageRow::open(&stored(bytes.into()));
        }
    }
}
