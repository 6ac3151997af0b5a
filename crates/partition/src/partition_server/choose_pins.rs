//! Which account gets a place for a pinned snapshot, and which snapshots end when they keep too much memory.
//!
//! What always holds: what one account pins or writes costs itself first. An account that has no snapshot
//! gets a place as long as another has several; of memory, the account that keeps most gives way first, and
//! no snapshot ends whose end frees none.

use super::pinned_snapshots::{PINNED_SNAPSHOTS_MAX, PINNED_SNAPSHOTS_OF_ACCOUNT_MAX};
use std::collections::BTreeSet;

/// Where a new pin goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// There is one.
    Free,
    /// There is one if this pin ends.
    InsteadOf(usize),
    /// There is none.
    None,
}

/// The place for a pin of `account`, beside those that are `pinned`, the oldest first, and those that are
/// being made, each the account of one.
pub(super) fn choose_place(pinned: &[&[u8]], making: &[&[u8]], account: &[u8]) -> Place {
    let count_of = |of: &[&[u8]], account: &[u8]| of.iter().filter(|other| **other == account).count();
    let own_count = count_of(pinned, account) + count_of(making, account);
    if own_count >= PINNED_SNAPSHOTS_OF_ACCOUNT_MAX {
        return Place::None;
    }
    if pinned.len() + making.len() < PINNED_SNAPSHOTS_MAX {
        return Place::Free;
    }
    if own_count > 0 {
        return Place::None;
    }
    let counts = pinned.iter().map(|other| count_of(pinned, other));
    // The first of those that have most is its account's oldest.
    match counts.enumerate().max_by_key(|(index, count)| (*count, usize::MAX - index)) {
        Some((index, 2..)) => Place::InsteadOf(index),
        _ => Place::None,
    }
}

/// What a pin holds.
#[derive(Clone, Debug)]
pub(super) struct Held<'a> {
    pub(super) account: &'a [u8],
    /// Memory tables, by address, and bytes of each.
    pub(super) tables: Vec<(usize, u64)>,
}

/// Which pins must end, of these with the oldest first, so that the rest of them holds no more than
/// `size_bytes_max`. What several hold counts once.
pub(super) fn choose_ended(pins: &[Held<'_>], size_bytes_max: u64) -> BTreeSet<usize> {
    let mut left: BTreeSet<usize> = (0..pins.len()).collect();
    let mut ended = Vec::new();
    while held_bytes(pins, left.iter()) > size_bytes_max {
        let Some(next) = choose_next(pins, &left) else { break };
        left.remove(&next);
        ended.push(next);
    }
    // Of what several hold, the first that end free nothing: in the end it may stay with one of them.
    for index in ended.into_iter().rev() {
        if held_bytes(pins, left.iter().chain([&index])) <= size_bytes_max {
            left.insert(index);
        }
    }
    (0..pins.len()).filter(|index| !left.contains(index)).collect()
}

fn held_bytes<'a>(pins: &[Held<'_>], of: impl Iterator<Item = &'a usize>) -> u64 {
    let distinct: BTreeSet<(usize, u64)> = of.flat_map(|index| &pins[*index].tables).copied().collect();
    distinct.iter().map(|(_, size_bytes)| size_bytes).sum()
}

/// Of the account that holds most the oldest that frees something, or holds something with others.
fn choose_next(pins: &[Held<'_>], left: &BTreeSet<usize>) -> Option<usize> {
    let of_account = |account: &[u8]| -> Vec<usize> {
        left.iter().copied().filter(|index| pins[*index].account == account).collect()
    };
    let all = held_bytes(pins, left.iter());
    let most = left.iter().copied().max_by_key(|index| {
        let held = held_bytes(pins, of_account(pins[*index].account).iter());
        (held, usize::MAX - index)
    })?;
    let own = of_account(pins[most].account);
    let frees = |index: &&usize| held_bytes(pins, left.iter().filter(|other| other != index)) < all;
    let holds = |index: &&usize| held_bytes(pins, [*index].into_iter()) > 0;
    own.iter().find(frees).or_else(|| own.iter().find(holds)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_a_snapshot_gets_a_place() {
        let four = |names: &[&'static str]| -> Vec<&'static [u8]> {
            names.iter().flat_map(|name| [name.as_bytes(); PINNED_SNAPSHOTS_OF_ACCOUNT_MAX]).collect()
        };
        let full = four(&["a", "b", "c", "d"]);
        let mut uneven = full.clone();
        uneven[0] = b"b2";
        let singles: Vec<Vec<u8>> = (0..PINNED_SNAPSHOTS_MAX as u8).map(|name| vec![name]).collect();
        let singles: Vec<&[u8]> = singles.iter().map(Vec::as_slice).collect();
        for (what, pinned, making, account, expected) in [
            ("none yet", &[][..], &[][..], "a", Place::Free),
            ("four of its own", &full[..4], &[][..], "a", Place::None),
            ("three and one in the making", &full[..3], &full[..1], "a", Place::None),
            ("one is left", &full[1..], &[][..], "a", Place::Free),
            ("one is left, in the making of another", &full[1..], &full[4..5], "a", Place::None),
            ("all are taken, by those that have four", &full[..], &[][..], "e", Place::InsteadOf(0)),
            ("the first has three only", &uneven[..], &[][..], "e", Place::InsteadOf(4)),
            ("all are taken, and it has some", &uneven[..], &[][..], "b2", Place::None),
            ("each has one", &singles[..], &[][..], "e", Place::None),
        ] {
            assert_eq!(choose_place(pinned, making, account.as_bytes()), expected, "{what}");
        }
    }

    #[test]
    fn who_keeps_most_memory_gives_way_first() {
        // Memory tables by letters.
        let tables = |names: &str| -> Vec<(usize, u64)> {
            let size_bytes = |name| match name {
                't' => 10,
                'u' => 20,
                _ => 5,
            };
            names.chars().map(|name| (name as usize, size_bytes(name))).collect()
        };
        for (what, pins, size_bytes_max, expected) in [
            ("none", "", 0, vec![]),
            ("it holds nothing", "a:", 0, vec![]),
            ("there is room", "a:t", 10, vec![]),
            ("there is none", "a:t", 9, vec![0]),
            ("what two hold counts once", "a:t a:t", 10, vec![]),
            ("two that hold the same", "a:t a:t", 9, vec![0, 1]),
            ("older, but it frees nothing", "a: a:t b:", 0, vec![1]),
            ("older, but another holds more", "a:v b:t b:u", 30, vec![1]),
            ("one holds the same with others", "a:t b:tu", 10, vec![1]),
            ("older, and held by another, too", "a:t a:tu", 10, vec![1]),
            ("all of one before any of another", "a:v b:t b:u", 5, vec![1, 2]),
            ("the oldest of three", "a:v a:t a:u", 30, vec![0]),
            ("shared, and of two accounts", "a:t b:t c:v", 9, vec![0, 1]),
        ] {
            let pins: Vec<Held<'_>> = pins
                .split_whitespace()
                .filter_map(|pin| pin.split_once(':'))
                .map(|(account, names)| Held { account: account.as_bytes(), tables: tables(names) })
                .collect();
            let ended: Vec<usize> = choose_ended(&pins, size_bytes_max).into_iter().collect();
            assert_eq!(ended, expected, "{what}");
        }
    }
}
