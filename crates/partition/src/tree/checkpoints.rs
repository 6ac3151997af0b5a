//! The checkpoints of a tree, and the order in which look-ups ask them.

use crate::bloom::key_groups::{Member, Place, choose_place};
use crate::bloom::key_set::KeySet;
use crate::checkpoint::{HashedKey, Probe};
use crate::tree::tree_checkpoint::{HeldGroup, TreeCheckpoint};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// So many checkpoints or groups are probed at a time for a row.
const PROBES_AT_ONCE: usize = 16;

/// Checkpoints, newest first.
#[derive(Clone, Default)]
pub(crate) struct Checkpoints {
    list: Vec<Arc<TreeCheckpoint>>,
    /// The units of a look-up for a row: each checkpoint once, alone or with its group.
    units: Vec<LookupUnit>,
}

/// Checkpoints that one look at a filter covers.
#[derive(Clone)]
struct LookupUnit {
    members: Range<usize>,
    /// With more than one member.
    group: Option<HeldGroup>,
}

impl From<Vec<Arc<TreeCheckpoint>>> for Checkpoints {
    fn from(list: Vec<Arc<TreeCheckpoint>>) -> Self {
        let is_same =
            |first: &Arc<TreeCheckpoint>, second: &Arc<TreeCheckpoint>| match (&first.group, &second.group) {
                (Some(first), Some(second)) => Arc::ptr_eq(first, second),
                _ => false,
            };
        let mut units = Vec::new();
        let mut start = 0;
        for run in list.chunk_by(is_same) {
            let members = start..start + run.len();
            let group = if run.len() > 1 { run[0].group.clone() } else { None };
            start = members.end;
            units.push(LookupUnit { members, group });
        }
        Checkpoints { list, units }
    }
}

impl Deref for Checkpoints {
    type Target = [Arc<TreeCheckpoint>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl Checkpoints {
    /// These, with the ones of `range` replaced.
    pub(crate) fn with_replaced(
        &self,
        range: Range<usize>,
        by: impl IntoIterator<Item = Arc<TreeCheckpoint>>,
    ) -> Self {
        let mut list = self.list.clone();
        list.splice(range, by);
        list.into()
    }

    /// Filters that a look-up of a missing row reads: one for each unit, if none is in vain.
    pub(crate) fn filter_count(&self) -> usize {
        self.units.len()
    }

    /// The first from `from` on that may have the key.
    ///
    /// Filters are far larger than the processor's caches, and each answers from one line. So the lines of
    /// several are fetched before the first is looked at: they come at the same time instead of one after the
    /// other.
    pub(crate) fn next_that_may_have(&self, key: HashedKey<'_>, from: usize) -> Option<usize> {
        let mut at = self.units.partition_point(|unit| unit.members.end <= from);
        while at < self.units.len() {
            let batch = &self.units[at..self.units.len().min(at + PROBES_AT_ONCE)];
            let found = first_that_may_have(key, batch, |unit| match &unit.group {
                Some(group) => Probe::Group(group.keys().line(key.hash)),
                None => self.list[unit.members.start].probe(key),
            });
            let Some(found) = found else {
                at += batch.len();
                continue;
            };
            let LookupUnit { members, group } = &batch[found];
            if group.is_none() {
                return Some(members.start);
            }
            if let Some(member) = self.member_that_may_have(key, members.start.max(from)..members.end) {
                return Some(member);
            }
            at += found + 1;
        }
        None
    }

    /// The first of `members` that may have the key, by their own filters.
    fn member_that_may_have(&self, key: HashedKey<'_>, members: Range<usize>) -> Option<usize> {
        let batches = self.list[members.clone()].chunks(PROBES_AT_ONCE).zip(members.step_by(PROBES_AT_ONCE));
        let mut found = batches.filter_map(|(batch, start)| {
            Some(start + first_that_may_have(key, batch, |checkpoint| checkpoint.probe(key))?)
        });
        found.next()
    }

    /// Those of the keys `among` that the checkpoints of the unit numbered `unit` may have, as far as one
    /// look says.
    pub(crate) fn keys_in_unit(&self, unit: usize, keys: &[HashedKey<'_>], among: KeySet) -> KeySet {
        match &self.units[unit].group {
            Some(group) => keys_in_group(group, keys, among),
            None => among,
        }
    }

    /// The checkpoints of the unit numbered `unit`, newest first. Units are newest first, too.
    pub(crate) fn members_of_unit(&self, unit: usize) -> &[Arc<TreeCheckpoint>] {
        &self.list[self.units[unit].members.clone()]
    }

    /// The place of a checkpoint with so many rows as a newer neighbour of the one at `older`.
    pub(crate) fn place_before(&self, older: usize, row_count: u64, merge_count: usize) -> Place {
        let member = |checkpoint: &Arc<TreeCheckpoint>| Member {
            row_count: checkpoint.checkpoint.root.row_count,
            room_left: checkpoint.group.as_ref().map(|group| group.room_left()),
        };
        let older: Vec<Member> = self.list[older..].iter().map(member).collect();
        choose_place(row_count, &older, merge_count)
    }
}

/// Those of the keys `among` that a checkpoint of the group may have.
fn keys_in_group(group: &HeldGroup, keys: &[HashedKey<'_>], among: KeySet) -> KeySet {
    let line = |at: usize| group.keys().line(keys[at].hash);
    // As below.
    std::hint::black_box(among.iter().fold(0, |touched, at| touched ^ line(at).touch()));
    among.filtered(|at| line(at).may_contain(keys[at].hash))
}

/// The first of at most [`PROBES_AT_ONCE`] that may have the key.
fn first_that_may_have<'a, T>(
    key: HashedKey<'_>,
    units: &'a [T],
    probe: impl Fn(&'a T) -> Probe<'a>,
) -> Option<usize> {
    let mut probes = [Probe::Absent; PROBES_AT_ONCE];
    for (slot, unit) in probes.iter_mut().zip(units) {
        *slot = probe(unit);
    }
    // In a loop of its own: with the search for the next line between them, few would be on their way at
    // once.
    std::hint::black_box(probes.iter().fold(0, |touched, probe| touched ^ probe.touch()));
    probes.iter().position(|probe| probe.may_have(key.hash))
}
