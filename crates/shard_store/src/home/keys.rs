//! The keys of a home's records.
//!
//! ```text
//! catalog                               name and id of the catalog, and the format
//! entry-00000000000000000041            the change that follows epoch 41
//! snapshot-00000000000000000064         the catalog at epoch 64, in parts
//! part-<id>-00003                       a part of a text that is too long for one record
//! published-<shard>-00000000000000000041   the shard's copy is of epoch 41 or later
//! ```
//!
//! A change's key has the epoch before it, not the one that it leads to: of two writers that change the same
//! epoch only one can put it, wherever their changes lead to. Numbers have 20 digits, so their order is that
//! of the keys.

use shard_map::{Epoch, Name};
use std::fmt;

/// What every home has.
pub(crate) const CATALOG: &str = "catalog";
pub(crate) const ENTRY: &str = "entry-";
pub(crate) const SNAPSHOT: &str = "snapshot-";
pub(crate) const PART: &str = "part-";
pub(crate) const PUBLISHED: &str = "published-";

/// The first key behind all that begin with a prefix, whose last character is a `-`.
pub(crate) fn behind(prefix: &str) -> String {
    // `.` comes right behind `-`.
    format!("{}.", prefix.trim_end_matches('-'))
}

pub(crate) fn entry(after: Epoch) -> String {
    format!("{ENTRY}{:020}", after.0)
}

pub(crate) fn snapshot(of: Epoch) -> String {
    format!("{SNAPSHOT}{:020}", of.0)
}

pub(crate) fn part(id: &PartsId, index: usize) -> String {
    format!("{PART}{id}-{index:05}")
}

/// All parts of a text.
pub(crate) fn parts(id: &PartsId) -> (String, String) {
    let prefix = format!("{PART}{id}-");
    let end = behind(&prefix);
    (prefix, end)
}

pub(crate) fn published(shard: &Name, epoch: Epoch) -> String {
    format!("{PUBLISHED}{}-{:020}", shard_key(shard), epoch.0)
}

/// All that says of a shard how far it is.
pub(crate) fn published_of(shard: &Name) -> (String, String) {
    let prefix = format!("{PUBLISHED}{}-", shard_key(shard));
    let end = behind(&prefix);
    (prefix, end)
}

/// A shard's name in a key: in hexadecimal digits, because names differ in case and may have a `-`, and some
/// places compare keys without regard to case.
fn shard_key(shard: &Name) -> String {
    shard.as_str().bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The shard and the epoch that such a key names.
pub(crate) fn read_published(key: &str) -> Option<(Name, Epoch)> {
    let (shard, epoch) = key.strip_prefix(PUBLISHED)?.split_once('-')?;
    let (pairs, _) = shard.as_bytes().as_chunks::<2>();
    let digits = pairs.iter().map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    });
    let name = String::from_utf8(digits.collect::<Option<Vec<u8>>>()?).ok()?;
    Some((Name::parse(&name).ok()?, Epoch(epoch.parse().ok()?)))
}

/// The number at the end of a key.
pub(crate) fn epoch_of(key: &str) -> Option<Epoch> {
    key.rsplit_once('-')?.1.parse().ok().map(Epoch)
}

/// What tells the parts of a text from those of others: when it was written, and chance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartsId(String);

impl PartsId {
    /// Of an instant in 100 ns units since 1601, and 64 random bits.
    pub(crate) fn new(ticks: u64, chance: u64) -> Self {
        PartsId(format!("{ticks:016x}{chance:016x}"))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| PartsId(text.to_owned()))
    }

    /// Of the key of a part.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        Self::parse(key.strip_prefix(PART)?.rsplit_once('-')?.0)
    }

    /// When it was made.
    pub(crate) fn ticks(&self) -> u64 {
        u64::from_str_radix(&self.0[..16], 16).unwrap_or_default()
    }
}

impl fmt::Display for PartsId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers_and_are_read_again() {
        assert!(entry(Epoch(9)) < entry(Epoch(10)) && entry(Epoch(u64::MAX)) < behind(ENTRY));
        assert!(snapshot(Epoch(0)) > behind(PUBLISHED) && behind(PUBLISHED).as_str() > PUBLISHED);
        assert_eq!(epoch_of(&snapshot(Epoch(64))), Some(Epoch(64)));
        let id = PartsId::new(77, 5);
        let (from, to) = parts(&id);
        assert!(from < part(&id, 0) && part(&id, 99_999) < to);
        assert_eq!((PartsId::of_key(&part(&id, 3)), id.ticks()), (Some(id.clone()), 77));
        assert_eq!(PartsId::of_key("part-x-00000"), None);
        for name in ["one", "One", "a-b", "a-b-1"] {
            let name = Name::parse(name).expect("a name");
            let (from, to) = published_of(&name);
            let key = published(&name, Epoch(12));
            assert!(from < key && key < to);
            assert_eq!(read_published(&key), Some((name, Epoch(12))));
        }
        assert_eq!((read_published("published-6-1"), read_published("published-2f-1")), (None, None));
    }
}
