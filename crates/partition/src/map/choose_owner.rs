//! Which owner takes what another one had, and which streams nobody owns any more. Pure.
//!
//! What always holds: an owner that is chosen follows every owner that was seen; a range of a process that
//! may still act is no orphan, whatever the partition map says.

use stream::{Incarnation, Owner, OwnerEpoch};

/// The owner that takes for `incarnation` what `seen` had last: the same one if it is its own already.
pub(crate) fn choose_owner(seen: Owner, incarnation: Incarnation) -> Owner {
    match seen.incarnation == incarnation {
        true => seen,
        false => Owner { incarnation, epoch: OwnerEpoch(seen.epoch.0 + 1) },
    }
}

/// Of two owners that were seen the newer one.
pub(crate) fn newer(a: Owner, b: Owner) -> Owner {
    if b.epoch > a.epoch { b } else { a }
}

/// Who adds to what `former` had, after a take-over by `wanted` that found no space: `now` is whom its
/// streams name. A third one that has come between is nobody to act for: `former` is refused then.
pub(crate) fn owner_without_space(former: Owner, wanted: Option<Owner>, now: Owner) -> Owner {
    // Its extents may know it, though there was no space to note it.
    if wanted == Some(now) { now } else { former }
}

/// Whether the streams of a range may go at a start. `is_named`: the partition map names it. `may_act`: its
/// owner is another process that has not gone, and may be about to name it.
pub(crate) fn is_orphan(is_named: bool, may_act: bool) -> bool {
    !is_named && !may_act
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(incarnation: u128, epoch: u64) -> Owner {
        Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(epoch) }
    }

    #[test]
    fn the_next_owner_follows_all_that_were_seen() {
        for (a, b, expected) in [
            (owner(0, 0), owner(0, 0), owner(7, 1)),
            (owner(1, 4), owner(2, 3), owner(7, 5)),
            (owner(1, 3), owner(2, 4), owner(7, 5)),
            (owner(7, 4), owner(2, 4), owner(7, 4)),
            (owner(7, 4), owner(2, 5), owner(7, 6)),
        ] {
            let chosen = choose_owner(newer(a, b), Incarnation(7));
            assert_eq!(chosen, expected, "{a}, {b}");
            assert!(chosen.may_act_after(&a), "{a}");
        }
    }

    #[test]
    fn without_space_nobody_acts_for_an_owner_that_came_between() {
        let (former, wanted, third) = (owner(1, 4), owner(7, 5), owner(9, 6));
        for (wanted, now, expected) in [
            (Some(wanted), former, former),
            (Some(wanted), wanted, wanted),
            (Some(wanted), third, former),
            (None, former, former),
            (None, third, former),
        ] {
            let chosen = owner_without_space(former, wanted, now);
            assert_eq!(chosen, expected, "{wanted:?}, {now}");
            assert_eq!(chosen.may_act_after(&now), now != third);
        }
    }

    #[test]
    fn only_what_nobody_names_or_is_about_to_name_goes() {
        for (is_named, may_act, expected) in
            [(true, true, false), (true, false, false), (false, true, false), (false, false, true)]
        {
            assert_eq!(is_orphan(is_named, may_act), expected);
        }
    }
}
