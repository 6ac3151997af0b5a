//! Which checkpoints have lost the rows that newer ones hide: what was done is not done again.
//!
//! What always holds: it may forget what a checkpoint has lost, which costs a rewrite; it never claims more
//! than was lost, or a row would come back once the deletion that hides it goes.

use std::collections::{BTreeMap, BTreeSet};

/// By the number of a checkpoint, the numbers of the newer ones whose hidden rows it has lost. It outlives
/// merges: what was done is not done again, or merges, which join what was written in parts, and reclaims
/// would go on for ever.
#[derive(Default)]
pub(crate) struct Applied {
    newer: BTreeMap<u64, BTreeSet<u64>>,
    /// Of the part that is being written.
    of_part: BTreeSet<u64>,
}

/// A checkpoint that is merged: its number, and whether it has deletions.
pub(crate) type Merged = (u64, bool);

impl Applied {
    pub(crate) fn keep(&mut self, numbers: &BTreeSet<u64>) {
        self.newer.retain(|number, _| numbers.contains(number));
        self.newer.values_mut().for_each(|newer| newer.retain(|number| numbers.contains(number)));
    }

    pub(crate) fn has(&self, number: u64, newer: u64) -> bool {
        self.newer.get(&number).is_some_and(|applied| applied.contains(&newer))
    }

    /// These became the checkpoint `result`. It deletes no more than they did, so who has lost what each of
    /// them hides has lost what it does; and it holds no more, so it has lost what all of them had.
    pub(crate) fn note_compacted(&mut self, merged: &[Merged], result: u64) {
        for newer in self.newer.values_mut().chain([&mut self.of_part]) {
            if merged.iter().all(|(number, deletes)| !deletes || newer.contains(number)) {
                newer.insert(result);
            }
        }
        let lost = merged.iter().map(|(number, _)| self.newer.get(number).cloned().unwrap_or_default());
        let lost = lost.reduce(|lost, other| &lost & &other).unwrap_or_default();
        self.newer.insert(result, lost);
    }

    /// A part of `former` is going to be written that loses what `newer` hide.
    pub(crate) fn begin_part(&mut self, newer: &[u64], former: u64) {
        self.of_part = newer.iter().chain(self.newer.get(&former).into_iter().flatten()).copied().collect();
    }

    /// It became the checkpoint `output`, if any of its rows are left.
    pub(crate) fn end_part(&mut self, former: Merged, output: Option<u64>) {
        let lost = std::mem::take(&mut self.of_part);
        if let Some(output) = output {
            self.note_compacted(&[former], output);
            self.newer.insert(output, lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(of: &[(u64, &[u64])]) -> Applied {
        let newer = of.iter().map(|(number, newer)| (*number, newer.iter().copied().collect()));
        Applied { newer: newer.collect(), of_part: BTreeSet::new() }
    }

    /// What one is thought to have lost and has not would come back once the deletion goes.
    #[test]
    fn what_was_lost_outlives_a_merge_and_no_more_than_that() {
        let before = || applied(&[(1, &[3, 4, 5]), (2, &[4, 5])]);
        // Of newer ones: 4 and 5 became 6.
        let mut of_newer = before();
        of_newer.note_compacted(&[(5, true), (4, true)], 6);
        assert!(of_newer.has(1, 6) && of_newer.has(2, 6));
        // 2 has not lost what 3 hides.
        let mut of_other = before();
        of_other.note_compacted(&[(4, true), (3, true)], 6);
        assert!(of_other.has(1, 6) && !of_other.has(2, 6));
        // Unless that hides nothing.
        let mut without_deletions = before();
        without_deletions.note_compacted(&[(4, true), (3, false)], 6);
        assert!(without_deletions.has(1, 6) && without_deletions.has(2, 6));
        // Of older ones: what one of them has not lost is there.
        let mut of_older = before();
        of_older.note_compacted(&[(2, true), (1, true)], 6);
        assert!(of_older.has(6, 4) && of_older.has(6, 5) && !of_older.has(6, 3));
        let mut with_unknown = before();
        with_unknown.note_compacted(&[(1, true), (9, false)], 6);
        assert!(![3, 4, 5].iter().any(|newer| with_unknown.has(6, *newer)));
    }

    #[test]
    fn a_part_has_lost_what_its_checkpoint_had_and_what_is_hidden_now_and_the_rest_has_not() {
        let mut part = applied(&[(2, &[7]), (1, &[2])]);
        part.begin_part(&[9, 8], 2);
        // While it is written newer ones are merged.
        part.note_compacted(&[(9, true), (8, true)], 10);
        part.end_part((2, true), Some(11));
        assert!([7, 8, 9, 10].iter().all(|newer| part.has(11, *newer)));
        assert!(part.has(2, 7) && ![8, 9, 10].iter().any(|newer| part.has(2, *newer)));
        assert!(part.has(1, 2) && part.has(1, 11), "it hides no more than it did");
        let mut nothing = applied(&[(2, &[7])]);
        nothing.begin_part(&[9], 2);
        nothing.end_part((2, true), None);
        assert!(nothing.of_part.is_empty() && nothing.newer.len() == 1);
    }
}
