//! Message ids and pop receipts, by which clients name a message.
//!
//! ```text
//! id       = u64-be insertion (row version), random u64-be, as a Guid's text
//! receipt  = u64-be visible at (ticks), random u64-be, as URL-safe Base64 without padding, 22 characters
//! ```
//!
//! The insertion names the message within its queue, because row versions strictly rise there; the random
//! half keeps ids of different queues apart. The receipt names the row that holds the message and the number
//! that its last change drew: a point read decides whether the receipt is the last one. Only the reply to
//! that change carries the number, so an id, which any peek shows, does not lead to a receipt. What always
//! holds: any text is an id or receipt, or is refused.

use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use service::guid::{guid_text, parse_guid};

/// A message's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// The version of its insertion.
    pub(crate) insertion: u64,
    /// Random.
    pub(crate) chance: u64,
}

impl MessageId {
    /// Reads a Guid.
    pub fn parse(text: &str) -> Option<Self> {
        let guid = parse_guid(text)?;
        let (insertion, chance) = halves(&guid);
        Some(MessageId { insertion, chance })
    }

    /// The Guid's text.
    pub fn text(&self) -> String {
        guid_text(&joined(self.insertion, self.chance))
    }
}

/// The right to update and delete a message, until another get or update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopReceipt {
    /// Where the message lies.
    pub(crate) visible_at: Ticks,
    /// The number that is stored in the row.
    pub(crate) number: u64,
}

impl PopReceipt {
    /// Reads a receipt.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 16] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (visible_at, number) = halves(&bytes);
        Some(PopReceipt { visible_at: Ticks(visible_at), number })
    }

    /// The receipt's text.
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(joined(self.visible_at.0, self.number))
    }
}

fn joined(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*bytes);
    ((both >> 64) as u64, both as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_as_drawn() {
        let id = MessageId { insertion: 0x0102_0304_0506_0708, chance: 0x090a_0b0c_0d0e_0f10 };
        assert_eq!(id.text(), "01020304-0506-0708-090a-0b0c0d0e0f10");
        let receipt = PopReceipt { visible_at: Ticks(1), number: 2 };
        assert_eq!(receipt.text(), "AAAAAAAAAAEAAAAAAAAAAg");
    }

    proptest! {
        #[test]
        fn ids_and_receipts_come_back(first: u64, second: u64) {
            let id = MessageId { insertion: first, chance: second };
            prop_assert_eq!(MessageId::parse(&id.text()), Some(id));
            let receipt = PopReceipt { visible_at: Ticks(first), number: second };
            prop_assert_eq!(PopReceipt::parse(&receipt.text()), Some(receipt));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = MessageId::parse(&text);
            let _ = PopReceipt::parse(&text);
        }
    }
}
