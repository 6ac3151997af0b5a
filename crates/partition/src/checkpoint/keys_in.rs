//! Which of several keys a checkpoint may have, where they lie close together: the part that they are in, and
//! its filter, are the same for all. What always holds: a key that is here is among those that are named.

use super::open_checkpoint::Checkpoint;
use crate::bloom::block_filter::{Filter, HashedKey};
use crate::bloom::key_set::KeySet;
use crate::error::PartitionError;

impl Checkpoint {
    /// Those of the keys `among` that may be here; at least one is asked for. Keys whose parts differ are
    /// asked for one by one, and may be here if their filter is not at hand.
    pub(crate) async fn keys_in(
        &self,
        keys: &[HashedKey<'_>],
        among: KeySet,
    ) -> Result<KeySet, PartitionError> {
        let all = among.iter().map(|at| keys[at].bytes);
        let (Some(least), Some(greatest)) = (all.clone().min(), all.max()) else { return Ok(among) };
        let part = self.part_of(least);
        if part == self.root.parts.len() {
            return Ok(KeySet::default());
        }
        // Most keys of one partition name lie in one part.
        if greatest > &*self.root.parts[part].last_key {
            return Ok(among.filtered(|at| self.probe(keys[at]).may_have(keys[at].hash)));
        }
        let filter = self.held_filter(part).await?;
        Ok(keys_in_filter(&filter, keys, among))
    }
}

/// Those of the keys `among` that the filter does not exclude.
fn keys_in_filter(filter: &Filter, keys: &[HashedKey<'_>], among: KeySet) -> KeySet {
    // Each line is another place in memory that is far larger than the processor's caches: they come at the
    // same time, if all are asked for before the first is looked at.
    let touch = |touched, at: usize| touched ^ filter.line(keys[at].hash).touch();
    std::hint::black_box(among.iter().fold(0, touch));
    among.filtered(|at| filter.may_contain(keys[at].hash))
}
