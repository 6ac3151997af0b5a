//! What clients sent and were answered, and whether that fits together: each key is a list of writes that
//! only grows.
//!
//! What always holds of a right stamp: each answer of a read, each state that an owner serves and the end
//! have all that was acknowledged or read before it began, in the same order, each write once, and no write
//! that was refused or not sent.

use crate::record::{WriteId, Writes};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Acknowledged,
    Refused,
    Unknown,
}

/// What happened to one key.
#[derive(Default)]
struct OfKey {
    /// The longest list that was seen.
    seen: Vec<WriteId>,
    sent: BTreeSet<WriteId>,
    acknowledged: BTreeSet<WriteId>,
    refused: BTreeSet<WriteId>,
}

/// All keys.
#[derive(Default)]
pub(crate) struct Ledger {
    keys: BTreeMap<u8, OfKey>,
    next: WriteId,
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    pub(crate) reads: u64,
}

/// What a read that begins now must show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floor {
    seen: usize,
    acknowledged: BTreeSet<WriteId>,
}

impl Ledger {
    pub(crate) fn begin(&mut self, key: u8) -> WriteId {
        self.next += 1;
        self.keys.entry(key).or_default().sent.insert(self.next);
        self.next
    }

    pub(crate) fn end(&mut self, key: u8, id: WriteId, ending: Ending) {
        let of = self.keys.entry(key).or_default();
        match ending {
            Ending::Acknowledged => {
                of.acknowledged.insert(id);
                self.acknowledged += 1;
            }
            Ending::Refused => {
                of.refused.insert(id);
                self.refused += 1;
            }
            Ending::Unknown => self.unknown += 1,
        }
    }

    pub(crate) fn floor(&self, key: u8) -> Floor {
        let floor = |of: &OfKey| Floor { seen: of.seen.len(), acknowledged: of.acknowledged.clone() };
        self.keys.get(&key).map(floor).unwrap_or_default()
    }

    /// What must be shown by whoever serves these keys from now on.
    pub(crate) fn floors(&self, keys: impl Fn(u8) -> bool) -> BTreeMap<u8, Floor> {
        self.keys.keys().filter(|key| keys(**key)).map(|key| (*key, self.floor(*key))).collect()
    }

    /// A key was read as `writes`, by a read that began when `floor` was so.
    pub(crate) fn check(&mut self, key: u8, writes: &[WriteId], floor: &Floor) -> Result<(), String> {
        let of = self.keys.entry(key).or_default();
        let once: BTreeSet<WriteId> = writes.iter().copied().collect();
        let wrong = |what: &str| Err(format!("key {key} is read as {writes:?}: {what}"));
        if once.len() != writes.len() {
            return wrong("a write is there twice");
        }
        if !once.is_subset(&of.sent) {
            return wrong("a write was never sent");
        }
        if let Some(refused) = once.intersection(&of.refused).next() {
            return wrong(&format!("write {refused} was reported as failed"));
        }
        if let Some(lost) = floor.acknowledged.difference(&once).next() {
            return wrong(&format!("write {lost} was acknowledged before"));
        }
        if writes.len() < floor.seen {
            return wrong(&format!("{} writes were read before", floor.seen));
        }
        let (short, long) =
            if writes.len() < of.seen.len() { (writes, &of.seen[..]) } else { (&of.seen[..], writes) };
        if !long.starts_with(short) {
            let seen = of.seen.clone();
            return wrong(&format!("it was read as {seen:?}"));
        }
        if writes.len() > of.seen.len() {
            of.seen = writes.to_vec();
        }
        Ok(())
    }

    /// Keys are served as these writes from now on.
    pub(crate) fn check_served(
        &mut self,
        writes: &Writes,
        floors: &BTreeMap<u8, Floor>,
    ) -> Result<(), String> {
        for (key, floor) in floors {
            self.check(*key, writes.get(key).map_or(&[], Vec::as_slice), floor)?;
        }
        Ok(())
    }
}
