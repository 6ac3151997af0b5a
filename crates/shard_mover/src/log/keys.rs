//! The keys of moves' records, apart from those of the catalog's home.
//!
//! ```text
//! move-<id>-00003                the state number 3 of a move, counted from 0
//! movepart-<text id>-00001       a part of a state that is too long for one record
//! moveprogress-<id>-00000007     how far a copy was
//! moving-<hash>                  which move has a mapping of one `since`: its text is the move's id
//! unreached-<shard>              why a publish could not bring the shard up to the map
//! ```
//!
//! What always holds: a state's number is in its key, so of two movers that go on from one state one wins; a
//! mapping of one `since` has at most one move.

use super::id::MoveId;
use sha2::{Digest, Sha256};
use shard_map::{Epoch, Name};

pub(crate) const MOVE: &str = "move-";

pub(crate) const UNREACHED: &str = "unreached-";

pub(crate) fn unreached(shard: &Name) -> String {
    format!("{UNREACHED}{shard}")
}

/// The first key behind all that begin with a prefix, which ends with a `-`.
pub(crate) fn behind(prefix: &str) -> String {
    // `.` comes right behind `-`.
    format!("{}.", prefix.trim_end_matches('-'))
}

pub(crate) fn states(id: &MoveId) -> String {
    format!("{MOVE}{id}-")
}

pub(crate) fn state(id: &MoveId, number: usize) -> String {
    format!("{MOVE}{id}-{number:05}")
}

/// The move and the number that a state's key names.
pub(crate) fn read_state(key: &str) -> Option<(MoveId, usize)> {
    let (id, number) = key.strip_prefix(MOVE)?.split_once('-')?;
    Some((MoveId::parse(id)?, number.parse().ok()?))
}

pub(crate) fn part(text_id: &str, index: usize) -> String {
    format!("movepart-{text_id}-{index:05}")
}

pub(crate) fn positions(id: &MoveId) -> String {
    format!("moveprogress-{id}-")
}

pub(crate) fn position(id: &MoveId, number: u64) -> String {
    format!("moveprogress-{id}-{number:08}")
}

/// The number at the end of a key.
pub(crate) fn number_of(key: &str) -> Option<u64> {
    key.rsplit_once('-')?.1.parse().ok()
}

/// The key of a mapping of one `since`. Ids of mappings may be longer than a key; so it is a hash.
pub(crate) fn moving(map: &Name, mapping: &str, since: Epoch) -> String {
    let digest = Sha256::digest(format!("{map}\n{mapping}\n{since}").as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("moving-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use shard_store::KEY_BYTES_MAX;

    #[test]
    fn keys_are_in_order_are_read_again_and_are_none_of_the_catalog() {
        let id = MoveId::new(Ticks(77), 5);
        assert_eq!(MoveId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(read_state(&state(&id, 12)), Some((id.clone(), 12)));
        assert!(state(&id, 9) < state(&id, 10) && state(&id, 10) < behind(&states(&id)));
        assert!(position(&id, 9) < position(&id, 10));
        assert_eq!(number_of(&position(&id, 10)), Some(10));
        let map = Name::parse("m").expect("a name");
        let moving = moving(&map, "virtual-3", Epoch(4));
        let unreached = unreached(&map);
        for key in [unreached, state(&id, 1), position(&id, 2), part(id.as_str(), 3), moving] {
            assert!(key.len() <= KEY_BYTES_MAX, "{key}");
            for others in ["catalog", "entry-", "snapshot-", "part-", "published-"] {
                assert!(!key.starts_with(others), "{key}");
            }
        }
        // No list of one kind has keys of another.
        assert!(part("x", 0) > behind(MOVE) && position(&id, 0) > behind(MOVE));
    }
}
