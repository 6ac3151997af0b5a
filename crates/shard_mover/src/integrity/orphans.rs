//! Rows that refer to no row of another table, on whatever shard that would be.
//!
//! Keys of parents are hashed to 16 bytes and kept in memory, so many at a time as `PARENT_KEYS_MAX` says;
//! with more parents both tables are read several times, each time for another part of the hashes. Children
//! without a parent are looked for once more at the end, because both may have been written meanwhile.
//!
//! What always holds: only rows on the shards that the map names for them count. A row of a reference table
//! is the parent of its own shard's rows.

use super::finding::{Finding, FindingKind, IntegrityReport};
use super::judged::{Judged, SHOWN_EVERY_ROWS};
use super::rules::OrphanRule;
use crate::error::MoveError;
use crate::limits::{FINDINGS_MAX, ORPHAN_PASSES_MAX};
use crate::rows::reader::{Found, Reader};
use crate::rows::side::Side;
use sha2::{Digest, Sha256};
use shard_backend::{Row, Schema, TableSchema};
use shard_map::{KeyType, KeyValue};
use std::collections::{BTreeMap, BTreeSet};

/// A rule with its tables.
struct Reference<'a> {
    rule: &'a OrphanRule,
    child: &'a TableSchema,
    parent: &'a TableSchema,
    /// The type of the parent's primary key, in its declared order.
    key: KeyType,
}

/// Part `number` of `count` of all hashes.
#[derive(Clone, Copy)]
struct Pass {
    number: u128,
    count: u128,
}

/// Children that seem to have no parent: the first ones under the hashes of their parents' keys.
#[derive(Default)]
struct Candidates {
    kept: Vec<(u128, Finding)>,
    more: u64,
}

/// Checks a rule. Of a rule with more parents than `keys_max` the tables are read several times.
pub(crate) async fn check_orphans(
    rule: &OrphanRule,
    schema: &Schema,
    judged: &Judged<'_>,
    keys_max: usize,
    report: &mut IntegrityReport,
    mut shown: impl FnMut(u64),
) -> Result<(), MoveError> {
    let (Some(child), Some(parent)) = (schema.table(&rule.child), schema.table(&rule.parent)) else {
        return Ok(());
    };
    let kinds = parent.primary_key().iter().filter_map(|place| parent.columns()[*place].kind.key_kind());
    // The schema made a type of the same kinds.
    let Ok(key) = KeyType::new(kinds) else { return Ok(()) };
    let reference = Reference { rule, child, parent, key };
    let mut candidates = Candidates::default();
    let mut passes = reference.passes(judged, keys_max).await?;
    let mut number = 0;
    while number < passes {
        let pass = Pass { number, count: passes };
        let Some(parents) = reference.parents(judged, pass, keys_max).await? else {
            // There are more parents by now, or hashes are uneven.
            (passes, number, candidates) = (passes * 2, 0, Candidates::default());
            if passes > ORPHAN_PASSES_MAX {
                return Err(MoveError::TooManyParents { rule: rule.name.clone(), passes: ORPHAN_PASSES_MAX });
            }
            continue;
        };
        reference.children(judged, pass, &parents, &mut candidates, report, &mut shown).await?;
        number += 1;
    }
    let found = reference.found_later(judged, &candidates).await?;
    for (hash, finding) in candidates.kept {
        if !found.contains(&hash) {
            let name = finding.kind.name();
            report.add(|| finding, name);
        }
    }
    if candidates.more > 0 {
        *report.counts.entry("orphan").or_default() += candidates.more;
    }
    Ok(())
}

impl Reference<'_> {
    /// How often both tables are to be read.
    async fn passes(&self, judged: &Judged<'_>, keys_max: usize) -> Result<u128, MoveError> {
        let mut parents: u64 = 0;
        for side in &judged.sides {
            parents = parents.saturating_add(side.backend.count(self.parent, &side.shardlet).await?);
        }
        // A quarter more, because hashes are not even.
        let wanted = u128::from(parents) * 5 / 4;
        Ok(wanted.div_ceil(keys_max.max(1) as u128).max(1))
    }

    /// The hashes of the pass's parents; none if there are too many.
    async fn parents(
        &self,
        judged: &Judged<'_>,
        pass: Pass,
        keys_max: usize,
    ) -> Result<Option<BTreeSet<u128>>, MoveError> {
        let mut parents = BTreeSet::new();
        for (index, side) in judged.sides.iter().enumerate() {
            let mut reader = Reader::new(side, self.parent);
            while let Some(found) = reader.next().await? {
                if let Some((hash, _)) = self.parent_hash(judged, index, &found)
                    && pass.has(hash)
                {
                    parents.insert(hash);
                }
                if parents.len() > keys_max {
                    return Ok(None);
                }
            }
        }
        Ok(Some(parents))
    }

    async fn children(
        &self,
        judged: &Judged<'_>,
        pass: Pass,
        parents: &BTreeSet<u128>,
        candidates: &mut Candidates,
        report: &mut IntegrityReport,
        shown: &mut impl FnMut(u64),
    ) -> Result<(), MoveError> {
        for (index, side) in judged.sides.iter().enumerate() {
            let mut reader = Reader::new(side, self.child);
            while let Some(found) = reader.next().await? {
                report.rows += u64::from(pass.number == 0);
                if report.rows.is_multiple_of(SHOWN_EVERY_ROWS) {
                    shown(report.rows);
                }
                if !judged.is_at_home(self.child, side, &found.key) {
                    continue;
                }
                let Some((hash, key)) = self.hash(index, &found.row, &self.rule.columns) else { continue };
                if pass.has(hash) && !parents.contains(&hash) {
                    candidates.add(hash, || self.finding(side, &found, &key));
                }
            }
        }
        Ok(())
    }

    /// Which candidates have a parent by now.
    async fn found_later(
        &self,
        judged: &Judged<'_>,
        candidates: &Candidates,
    ) -> Result<BTreeSet<u128>, MoveError> {
        let mut found_later = BTreeSet::new();
        if candidates.kept.is_empty() {
            return Ok(found_later);
        }
        let wanted: BTreeMap<u128, ()> = candidates.kept.iter().map(|(hash, _)| (*hash, ())).collect();
        for (index, side) in judged.sides.iter().enumerate() {
            let mut reader = Reader::new(side, self.parent);
            while let Some(found) = reader.next().await? {
                if let Some((hash, _)) = self.parent_hash(judged, index, &found)
                    && wanted.contains_key(&hash)
                {
                    found_later.insert(hash);
                }
            }
        }
        Ok(found_later)
    }

    fn parent_hash(&self, judged: &Judged<'_>, index: usize, found: &Found) -> Option<(u128, Vec<KeyValue>)> {
        let is_there =
            !self.parent.is_sharded() || judged.is_at_home(self.parent, &judged.sides[index], &found.key);
        if is_there { self.hash(index, &found.row, self.parent.primary_key()) } else { None }
    }

    /// The hash of the columns' values; none if one is NULL. Of a reference table each shard has its own.
    fn hash(&self, index: usize, row: &Row, columns: &[usize]) -> Option<(u128, Vec<KeyValue>)> {
        let values = columns.iter().map(|place| row.values.get(*place)?.key_value());
        let values: Vec<KeyValue> = values.collect::<Option<_>>()?;
        let encoded = self.key.encode(&values).ok()?;
        let shard = if self.parent.is_sharded() { u64::MAX } else { index as u64 };
        let mut hasher = Sha256::new();
        hasher.update(shard.to_be_bytes());
        hasher.update(encoded.as_bytes());
        let bytes = hasher.finalize();
        let hash = bytes.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        Some((hash, values))
    }

    fn finding(&self, side: &Side, found: &Found, parent_key: &[KeyValue]) -> Finding {
        let parent_key = shard_backend::RowKey { values: parent_key.to_vec() };
        let parent_key = format!("{parent_key} of `{}`", self.parent.name());
        let kind = FindingKind::Orphan { rule: self.rule.name.clone(), parent_key };
        let (shard, table) = (side.shard.clone(), self.child.name().to_owned());
        Finding { shard, table, key: found.key.to_string(), kind }
    }
}

impl Pass {
    fn has(self, hash: u128) -> bool {
        hash % self.count == self.number
    }
}

impl Candidates {
    fn add(&mut self, hash: u128, find: impl FnOnce() -> Finding) {
        match self.kept.len() < FINDINGS_MAX {
            true => self.kept.push((hash, find())),
            false => self.more += 1,
        }
    }
}
