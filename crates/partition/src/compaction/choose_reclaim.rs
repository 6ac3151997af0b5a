//! Which checkpoint is rewritten when the disk is full and no merge has room: a pure choice over what each
//! holds.
//!
//! A merge writes all that it keeps before anything comes back, which a full disk may have no room for. But
//! one checkpoint can lose the rows that newer ones hide without those being written anew, and in parts: the
//! rows of a part move to a checkpoint of their own, and the extents that held them go. A deletion can be
//! dropped once every older checkpoint has lost what it hides. What always holds: what was done is not chosen
//! again, so that rewriting comes to an end.

/// A checkpoint is rewritten if one byte in so many goes, at least.
const GAIN_SHARE_DIVISOR: u64 = 16;

/// What a checkpoint holds for its range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) size_bytes: u64,
    /// Rows, deletions included.
    pub(crate) row_count: u64,
    pub(crate) deleted_count: u64,
    /// Bytes of rows of deleted containers.
    pub(crate) dead_bytes: u64,
    /// Bytes of its extents that are none of its rows: compactions left overflows beside them.
    pub(crate) beside_bytes: u64,
    /// A part of it has moved already.
    pub(crate) is_begun: bool,
    /// For each newer checkpoint, newest first: what its deletions are to this one.
    pub(crate) deletions: Vec<Deletions>,
}

/// What the deletions of a newer checkpoint are to the rows of an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletions {
    /// They hide none of them: the keys of the two lie apart.
    Apart,
    /// What they hide has gone.
    Applied,
    /// They may hide some.
    Pending,
}

/// The choice: a checkpoint, and whether its own deletions can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    pub(crate) index: usize,
    pub(crate) drops_deletions: bool,
    /// Roughly.
    pub(crate) kept_bytes: u64,
}

fn part(of: u64, numerator: u64, denominator: u64) -> u64 {
    let part = u128::from(of) * u128::from(numerator.min(denominator)) / u128::from(denominator.max(1));
    u64::try_from(part).unwrap_or(of)
}

/// Chooses among checkpoints, newest first, those that are worth it: the one that gives the most back first.
pub(crate) fn choose_reclaim(checkpoints: &[Holding], gain_min_bytes: u64) -> Vec<Reclaimed> {
    let puts = |holding: &Holding| holding.row_count.saturating_sub(holding.deleted_count);
    let mut worth_it: Vec<((bool, u64), Reclaimed)> = Vec::new();
    for (index, holding) in checkpoints.iter().enumerate() {
        let mut hidden_count = 0u64;
        for (newer, deletions) in holding.deletions.iter().enumerate().take(index) {
            if *deletions == Deletions::Pending {
                // Spread over all that is older and may have some of their keys.
                let is_near = |older: &&Holding| older.deletions.get(newer) != Some(&Deletions::Apart);
                let older_count: u64 = checkpoints[newer + 1..].iter().filter(is_near).map(puts).sum();
                hidden_count += part(checkpoints[newer].deleted_count, puts(holding), older_count);
            }
        }
        let is_pending = |older: &Holding| {
            !matches!(older.deletions.get(index), Some(Deletions::Apart | Deletions::Applied))
        };
        let drops_deletions = !checkpoints[index + 1..].iter().any(is_pending);
        let mut gone_count = hidden_count.min(puts(holding));
        if drops_deletions {
            gone_count += holding.deleted_count;
        }
        let gained_bytes = part(holding.size_bytes, gone_count, holding.row_count) + holding.dead_bytes;
        let gained_bytes = gained_bytes.min(holding.size_bytes) + holding.beside_bytes;
        // One that is begun is ended first: what is half empty keeps up to an extent that is mostly dead, and
        // a part of each would keep more than there is.
        let least_bytes = match holding.is_begun {
            true => 1,
            false => gain_min_bytes.max(holding.size_bytes / GAIN_SHARE_DIVISOR).max(1),
        };
        let rank = (holding.is_begun, gained_bytes);
        if gained_bytes >= least_bytes {
            let kept_bytes = holding.size_bytes + holding.beside_bytes - gained_bytes;
            worth_it.push((rank, Reclaimed { index, drops_deletions, kept_bytes }));
        }
    }
    worth_it.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    worth_it.into_iter().map(|(_, reclaimed)| reclaimed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(size_bytes: u64, row_count: u64, deleted_count: u64, applied: &[bool]) -> Holding {
        let deletions = |applied: &bool| if *applied { Deletions::Applied } else { Deletions::Pending };
        let deletions = applied.iter().map(deletions).collect();
        Holding { size_bytes, row_count, deleted_count, deletions, ..Holding::default() }
    }

    #[test]
    fn the_one_that_gives_the_most_back_is_rewritten_and_only_once() {
        let chosen = |checkpoints: &[Holding]| {
            choose_reclaim(checkpoints, 10)
                .first()
                .map(|chosen| (chosen.index, chosen.drops_deletions, chosen.kept_bytes))
        };
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[holding(1000, 100, 0, &[])]), None, "nothing is deleted");
        let deletions = || holding(50, 50, 50, &[]);
        let (small, large) = (holding(500, 50, 0, &[false]), holding(1000, 100, 0, &[false, false]));
        assert_eq!(chosen(&[deletions(), small.clone(), large.clone()]), Some((2, true, 670)));
        let (small_done, large_done) = (holding(500, 50, 0, &[true]), holding(670, 67, 0, &[true, false]));
        assert_eq!(chosen(&[deletions(), small.clone(), large_done.clone()]), Some((1, false, 290)));
        // Then the deletions hide nothing any more.
        assert_eq!(chosen(&[deletions(), small_done.clone(), large_done.clone()]), Some((0, true, 0)));
        assert_eq!(chosen(&[small_done, holding(670, 67, 0, &[false])]), None);
        // One that is begun comes first, however little is left of it.
        let begun = Holding { is_begun: true, ..holding(20, 2, 0, &[false, false]) };
        let chosen_begun = chosen(&[deletions(), large_done.clone(), begun]);
        assert_eq!(chosen_begun.map(|(index, ..)| index), Some(2));
        // A few are not worth it.
        assert_eq!(chosen(&[holding(5, 5, 5, &[]), large]), None);
    }

    /// Rows that lie apart from all deletions were written anew for nothing, as many of them as there were
    /// deletions, and what that took meanwhile was what the deletions needed.
    #[test]
    fn deletions_hide_nothing_of_a_checkpoint_with_other_keys() {
        let deletions = || holding(50, 50, 50, &[]);
        let near = holding(500, 50, 0, &[false]);
        let apart =
            Holding { deletions: vec![Deletions::Apart, Deletions::Apart], ..holding(1000, 100, 0, &[]) };
        let chosen = choose_reclaim(&[deletions(), near.clone(), apart.clone()], 10);
        assert_eq!(chosen, [Reclaimed { index: 1, drops_deletions: true, kept_bytes: 0 }]);
        // Nothing older has what they hide.
        let chosen = choose_reclaim(&[deletions(), apart.clone(), apart], 10);
        assert_eq!(chosen, [Reclaimed { index: 0, drops_deletions: true, kept_bytes: 0 }]);
    }

    #[test]
    fn rows_of_deleted_containers_and_what_is_none_of_its_rows_count() {
        let dead = Holding { dead_bytes: 600, ..holding(1000, 100, 0, &[]) };
        assert_eq!(choose_reclaim(&[dead], 10)[0].kept_bytes, 400);
        let beside = Holding { beside_bytes: 300, ..holding(1000, 100, 0, &[]) };
        assert_eq!(choose_reclaim(&[beside], 10)[0].kept_bytes, 1000);
    }
}
