//! Which checkpoint is rewritten without the rows of deleted containers: a pure choice over what each one
//! holds.
//!
//! Rewriting costs the rows that are alive, so a checkpoint must hold many dead ones; small checkpoints cost
//! nothing worth a thought, and when very many containers are marked the marks must go, too.

/// A checkpoint is rewritten once one byte in this many is dead.
const DEAD_SHARE_DIVISOR: u64 = 5;
/// Checkpoints up to this size are rewritten for any dead row.
const SMALL_SIZE_BYTES: u64 = 4 << 20;
/// From this many marks on any dead row is reason enough.
const MARK_COUNT_MANY: usize = 1_000;

/// What a checkpoint holds for its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) size_bytes: u64,
    /// Of these, roughly, rows of deleted containers; not 0 if there is any.
    pub(crate) dead_bytes: u64,
}

/// Chooses the checkpoint with the most dead bytes among those that are worth it.
pub(crate) fn choose_rewrite(checkpoints: &[Held], mark_count: usize) -> Option<usize> {
    let worth_it = |held: &Held| {
        held.dead_bytes > 0
            && (held.dead_bytes.saturating_mul(DEAD_SHARE_DIVISOR) >= held.size_bytes
                || held.size_bytes <= SMALL_SIZE_BYTES
                || mark_count >= MARK_COUNT_MANY)
    };
    let candidates = checkpoints.iter().enumerate().filter(|(_, held)| worth_it(held));
    candidates.max_by_key(|(_, held)| held.dead_bytes).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(size_mib: u64, dead_mib: u64) -> Held {
        Held { size_bytes: size_mib << 20, dead_bytes: dead_mib << 20 }
    }

    #[test]
    fn many_dead_rows_are_worth_a_rewrite() {
        assert_eq!(choose_rewrite(&[], 9), None);
        assert_eq!(choose_rewrite(&[held(100, 0), held(100, 19)], 9), None);
        assert_eq!(choose_rewrite(&[held(100, 20), held(1000, 500), held(10, 10)], 9), Some(1));
    }

    #[test]
    fn so_are_few_in_a_small_checkpoint_or_when_marks_pile_up() {
        assert_eq!(choose_rewrite(&[Held { size_bytes: 1 << 20, dead_bytes: 1 }, held(1, 0)], 1), Some(0));
        let hardly = [held(4000, 0), Held { size_bytes: 4 << 30, dead_bytes: 1 }];
        assert_eq!(choose_rewrite(&hardly, 10), None);
        assert_eq!(choose_rewrite(&hardly, MARK_COUNT_MANY), Some(1));
    }
}
