//! Which pinned snapshot a scan reads.
//!
//! What always holds: an id is random, so that nobody guesses another's, and it never means another snapshot,
//! also after a restart. It alone gives no right: whoever names it names the rows that it must be of, too.

use crate::key::KeyRange;
use crate::operation::ObjectTable;
use base::Random;
use std::fmt;
use std::str::FromStr;

/// Digits of its text.
const TEXT_LEN: usize = 32;

/// A pinned snapshot. As text it is 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId(u128);

impl SnapshotId {
    /// A new one.
    pub(crate) fn draw(random: &dyn Random) -> Self {
        SnapshotId(u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()))
    }
}

/// A pinned snapshot as a request names it. One that is not of just these rows is as if there were none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOf {
    /// Which one.
    pub id: SnapshotId,
    /// Of this table.
    pub table: ObjectTable,
    /// Of these keys, all of which were pinned.
    pub keys: KeyRange,
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0TEXT_LEN$x}", self.0)
    }
}

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSnapshotId;

impl FromStr for SnapshotId {
    type Err = NoSnapshotId;

    fn from_str(text: &str) -> Result<Self, NoSnapshotId> {
        if text.len() != TEXT_LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NoSnapshotId);
        }
        u128::from_str_radix(text, 16).map(SnapshotId).map_err(|_| NoSnapshotId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_come_back(bits: u128) {
            let id = SnapshotId(bits);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<SnapshotId>();
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "-", "1", "+0000000000000000000000000000001", "000000000000000000000000000000001"] {
            assert_eq!(text.parse::<SnapshotId>(), Err(NoSnapshotId), "{text}");
        }
    }
}
