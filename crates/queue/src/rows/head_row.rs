//! The head of a queue's messages: counters that each put and delete updates, so that no request counts rows.
//!
//! ```text
//! head = u8 format (1) u64 message count, u64 low water (ticks),
//!        u64 swept expiry (ticks), u64 new expiry (ticks)
//! ```
//!
//! What always holds: the count is that of the messages that are stored, invisible and expired ones included;
//! no message is visible before the low water, nor ever will be; no stored message expires before the smaller
//! of the two expiries. The swept expiry covers the messages that the last sweep scanned, the new expiry
//! those put since it began.

use crate::rows::message_row::NEVER;
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use partition::{Row, RowChange, RowKey};

const FORMAT: u8 = 1;
const SIZE: usize = 1 + 4 * 8;

/// The counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadRow {
    /// Messages that are stored.
    pub(crate) message_count: u64,
    /// No message is visible before it.
    pub(crate) low_water: Ticks,
    /// No message that the last sweep scanned expires before it.
    pub(crate) swept_expiry: Ticks,
    /// No message that was put since then expires before it.
    pub(crate) new_expiry: Ticks,
}

impl HeadRow {
    /// The counters of a queue to which nothing was put yet.
    const EMPTY: HeadRow =
        HeadRow { message_count: 0, low_water: Ticks(0), swept_expiry: NEVER, new_expiry: NEVER };

    /// Counters that claim nothing but the count: any message may be visible, and may have expired.
    pub(crate) fn of_unknown(message_count: u64) -> Self {
        HeadRow { message_count, low_water: Ticks(0), swept_expiry: Ticks(0), new_expiry: Ticks(0) }
    }

    /// Reads the row; without one the queue is empty.
    pub(crate) fn open(row: Option<&Row>) -> Result<Self, DecodeError> {
        row.map_or(Ok(HeadRow::EMPTY), |row| HeadRow::decode(&row.value))
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.u8("queue head format")? != FORMAT {
            return Err(DecodeError("queue head format"));
        }
        let head = HeadRow {
            message_count: decoder.u64("message count")?,
            low_water: Ticks(decoder.u64("low water")?),
            swept_expiry: Ticks(decoder.u64("swept expiry")?),
            new_expiry: Ticks(decoder.u64("new expiry")?),
        };
        decoder.finish("queue head")?;
        Ok(head)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SIZE);
        out.put_u8_field(FORMAT);
        out.put_u64_field(self.message_count);
        out.put_u64_field(self.low_water.0);
        out.put_u64_field(self.swept_expiry.0);
        out.put_u64_field(self.new_expiry.0);
        out
    }

    /// The change that stores it.
    pub(crate) fn put(&self, key: RowKey) -> RowChange {
        RowChange::Put { key, value: self.encode().into() }
    }

    /// When the first message may expire.
    pub(crate) fn first_expiry(&self) -> Ticks {
        self.swept_expiry.min(self.new_expiry)
    }

    /// The counters with `count` messages less.
    pub(crate) fn without(self, count: u64) -> Self {
        HeadRow { message_count: self.message_count.saturating_sub(count), ..self }
    }

    /// The counters with a low water of at least `low_water`.
    pub(crate) fn with_low_water(self, low_water: Ticks) -> Self {
        HeadRow { low_water: self.low_water.max(low_water), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_drawn() {
        let head =
            HeadRow { message_count: 1, low_water: Ticks(2), swept_expiry: Ticks(3), new_expiry: Ticks(4) };
        let expected = b"\x01\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0";
        assert_eq!(head.encode(), expected);
        assert_eq!(HeadRow::decode(expected), Ok(head));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
            bytes.insert(0, FORMAT);
            if let Ok(head) = HeadRow::decode(&bytes) {
                prop_assert_eq!(head.encode(), bytes);
            }
        }
    }
}
