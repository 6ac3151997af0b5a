//! Which pinned snapshot a scan reads: the life of the process that pinned it, and a number in it.
//!
//! What always holds: an id that was given once never means another snapshot, also after a restart.

use std::fmt;
use std::str::FromStr;

/// A pinned snapshot. As text it is `LIFE-NUMBER`, both hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// The life of the process that has it.
    pub(crate) life: u128,
    /// In that life.
    pub(crate) number: u64,
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:x}", self.life, self.number)
    }
}

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSnapshotId;

impl FromStr for SnapshotId {
    type Err = NoSnapshotId;

    fn from_str(text: &str) -> Result<Self, NoSnapshotId> {
        let (life, number) = text.split_once('-').ok_or(NoSnapshotId)?;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if life.len() != 32 || !is_plain(life) || !is_plain(number) {
            return Err(NoSnapshotId);
        }
        let life = u128::from_str_radix(life, 16).map_err(|_| NoSnapshotId)?;
        let number = u64::from_str_radix(number, 16).map_err(|_| NoSnapshotId)?;
        Ok(SnapshotId { life, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_come_back(life: u128, number: u64) {
            let id = SnapshotId { life, number };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<SnapshotId>();
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "-", "1-1", "+0000000000000000000000000000001-1", "00000000000000000000000000000001-"]
        {
            assert_eq!(text.parse::<SnapshotId>(), Err(NoSnapshotId), "{text}");
        }
    }
}
