//! Which checkpoint is rewritten without the rows of deleted containers: a pure choice over what each one
//! holds.
//!
//! Rewriting costs the rows that are alive, so a checkpoint must hold many dead ones, but fewer when idle;
//! small checkpoints cost nothing worth a thought, and where very many marks of containers have stayed for
//! long they must go, too.

use crate::compaction::choose_tombstone_compaction::Occasion;

/// A checkpoint is rewritten once one byte in this many is dead.
const DEAD_SHARE_DIVISOR: u64 = 5;
/// The same when idle, which delays no other work.
const IDLE_DEAD_SHARE_DIVISOR: u64 = 16;
/// Checkpoints up to this size are rewritten for any dead row.
const SMALL_SIZE_BYTES: u64 = 4 << 20;
/// From this many marks on that have stayed for long any dead row is reason enough.
const STAYED_COUNT_MANY: u64 = 1_000;

/// What a checkpoint holds for its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) size_bytes: u64,
    /// Of these, roughly, rows of deleted containers; not 0 if there is any.
    pub(crate) dead_bytes: u64,
}

/// Chooses the checkpoint with the most dead bytes among those that are worth it.
pub(crate) fn choose_rewrite(checkpoints: &[Held], stayed_count: u64, occasion: Occasion) -> Option<usize> {
    let divisor = match occasion {
        Occasion::Idle => IDLE_DEAD_SHARE_DIVISOR,
        Occasion::Busy | Occasion::SlowScans => DEAD_SHARE_DIVISOR,
    };
    let worth_it = |held: &Held| {
        held.dead_bytes > 0
            && (held.dead_bytes.saturating_mul(divisor) >= held.size_bytes
                || held.size_bytes <= SMALL_SIZE_BYTES
                || stayed_count >= STAYED_COUNT_MANY)
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

    fn chosen(checkpoints: &[Held], stayed_count: u64) -> Option<usize> {
        choose_rewrite(checkpoints, stayed_count, Occasion::Busy)
    }

    #[test]
    fn many_dead_rows_are_worth_a_rewrite() {
        assert_eq!(chosen(&[], 9), None);
        assert_eq!(chosen(&[held(100, 0), held(100, 19)], 9), None);
        assert_eq!(chosen(&[held(100, 20), held(1000, 500), held(10, 10)], 9), Some(1));
    }

    #[test]
    fn fewer_are_when_idle() {
        for (dead_mib, expected) in [(0, None), (6, None), (7, Some(0)), (20, Some(0))] {
            assert_eq!(choose_rewrite(&[held(100, dead_mib)], 9, Occasion::Idle), expected, "{dead_mib}");
        }
    }

    #[test]
    fn so_are_few_in_a_small_checkpoint_or_when_marks_stay() {
        assert_eq!(chosen(&[Held { size_bytes: 1 << 20, dead_bytes: 1 }, held(1, 0)], 1), Some(0));
        let hardly = [held(4000, 0), Held { size_bytes: 4 << 30, dead_bytes: 1 }];
        assert_eq!(chosen(&hardly, 10), None);
        assert_eq!(chosen(&hardly, STAYED_COUNT_MANY), Some(1));
    }
}
