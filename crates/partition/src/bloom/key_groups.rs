//! Groups of neighbouring checkpoints whose keys are in one more filter, in memory: a look-up for a missing
//! row probes a group with one look instead of each of its checkpoints with one.
//!
//! A checkpoint joins when it is written, if the next older one is of similar size and its group has room;
//! where some of similar size stand beside each other without a group, it founds one. What is merged away
//! leaves its keys behind until the last checkpoint of the group has gone. What always holds: a group's
//! filter has all keys of its checkpoints, and may have others.

use crate::bloom::key_filter::KeyFilter;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys of one checkpoint in a group at most: their hashes wait in memory while it is written.
pub(crate) const MEMBER_KEY_COUNT_MAX: usize = 1 << 20;
/// Keys of one group at most: 6 MiB.
const GROUP_KEY_COUNT_MAX: u64 = 4 << 20;
/// Of a thousand missing keys some six pass, for which the checkpoints' own filters are asked.
const BITS_PER_KEY: u64 = 12;
/// So many checkpoints of similar size are there, the newest included, when a group is founded. With fewer it
/// would save nothing, and most ranges have fewer.
const FOUNDED_FROM_COUNT: usize = 3;
/// Checkpoints are of similar size if one has at most so many times the rows of the other.
const SIMILAR_SIZE_FACTOR: u64 = 2;

/// The keys of several checkpoints.
pub(crate) struct KeyGroup {
    keys: KeyFilter,
    /// Keys that it has room for.
    room_left: AtomicU64,
}

impl KeyGroup {
    /// An empty group with room for so many keys.
    pub(crate) fn new(room: u64) -> Self {
        let size_bytes = (room * BITS_PER_KEY).div_ceil(8) as usize;
        KeyGroup { keys: KeyFilter::new(size_bytes), room_left: AtomicU64::new(room) }
    }

    /// Adds the keys of a checkpoint, by their hashes.
    pub(crate) fn add(&self, hashes: &[u64]) {
        let less = |left: u64| Some(left.saturating_sub(hashes.len() as u64));
        let _ = self.room_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        hashes.iter().for_each(|hash| self.keys.add(*hash));
    }

    /// The filter of all of them.
    pub(crate) fn keys(&self) -> &KeyFilter {
        &self.keys
    }

    /// Keys that it still has room for.
    pub(crate) fn room_left(&self) -> u64 {
        self.room_left.load(Ordering::Relaxed)
    }
}

/// What is known of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) row_count: u64,
    /// Keys that its group has room for, if it is in one.
    pub(crate) room_left: Option<u64>,
}

/// What becomes of a new checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is asked by itself.
    Alone,
    /// It joins the group of the next older one.
    Join,
    /// It founds a group with room for so many keys.
    Found { room: u64 },
}

/// Chooses the place of a checkpoint with so many rows before those `older`, newest first; `merge_count` of
/// similar size are merged at once.
pub(crate) fn choose_place(row_count: u64, older: &[Member], merge_count: usize) -> Place {
    if row_count > MEMBER_KEY_COUNT_MAX as u64 {
        return Place::Alone;
    }
    let is_similar = |member: &&Member| {
        let (less, more) = (row_count.min(member.row_count), row_count.max(member.row_count));
        more <= less.saturating_mul(SIMILAR_SIZE_FACTOR)
    };
    let joins = |member: &Member| member.room_left.is_some_and(|left| left >= row_count);
    if older.first().filter(is_similar).is_some_and(joins) {
        return Place::Join;
    }
    if 1 + older.iter().take_while(is_similar).count() < FOUNDED_FROM_COUNT {
        return Place::Alone;
    }
    let room = row_count.saturating_mul(merge_count as u64).min(GROUP_KEY_COUNT_MAX);
    Place::Found { room: room.max(row_count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Place::{Alone, Found, Join};

    #[test]
    fn checkpoints_of_similar_size_share_a_group_while_it_has_room() {
        let alone = |row_count| Member { row_count, room_left: None };
        let grouped = |row_count, room_left| Member { row_count, room_left: Some(room_left) };
        let most = MEMBER_KEY_COUNT_MAX as u64;
        for (row_count, older, expected) in [
            (100, vec![], Alone),
            (100, vec![alone(100)], Alone),
            (100, vec![alone(100), alone(1000)], Alone),
            (100, vec![alone(1000), alone(100), alone(100)], Alone),
            (100, vec![alone(100), alone(100)], Found { room: 1000 }),
            (100, vec![alone(200), alone(50)], Found { room: 1000 }),
            (100, vec![alone(201), alone(50)], Alone),
            (100, vec![alone(200), alone(49)], Alone),
            (100, vec![grouped(100, 100)], Join),
            (100, vec![grouped(100, 99)], Alone),
            (100, vec![grouped(100, 99), grouped(100, 99)], Found { room: 1000 }),
            (100, vec![grouped(1000, 500)], Alone),
            (100, vec![alone(100), grouped(100, 500)], Found { room: 1000 }),
            (0, vec![alone(0), alone(0)], Found { room: 0 }),
            (most, vec![alone(most), alone(most)], Found { room: GROUP_KEY_COUNT_MAX }),
            (most + 1, vec![alone(most), alone(most)], Alone),
            (most + 1, vec![grouped(most, u64::MAX)], Alone),
            (1, vec![alone(u64::MAX), alone(u64::MAX)], Alone),
        ] {
            assert_eq!(choose_place(row_count, &older, 10), expected, "{row_count} before {older:?}");
        }
    }

    #[test]
    fn a_group_has_what_was_added_and_knows_its_room() {
        let group = KeyGroup::new(10);
        let hashes: Vec<u64> = (0..6).map(|key: u8| crate::checkpoint::key_hash(&[key])).collect();
        group.add(&hashes[..4]);
        assert_eq!(group.room_left(), 6);
        group.add(&hashes);
        assert_eq!(group.room_left(), 0);
        group.add(&hashes[..1]);
        assert_eq!(group.room_left(), 0);
        assert!(hashes.iter().all(|hash| group.keys().may_contain(*hash)));
    }
}
