//! What was read from rows of the Container object table, kept for as long as their range does not change.
//!
//! Every request asks for its container; containers hardly ever change. What always holds: an answer is the
//! one that a read at the same time would give, because the range is asked whether it still is in the moment
//! of the read.

use arc_swap::ArcSwapOption;
use base::FixedHasher;
use partition::{ObjectTable, PartitionError, Partitions, RangeMoment, Row, RowKey};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Names that are remembered at once, at most; two that meet in one slot push each other out.
const SLOT_COUNT: usize = 512;

/// Remembers one value for an account and name, such as a container's id.
pub struct RowMemo<T> {
    slots: Box<[ArcSwapOption<Known<T>>]>,
    hasher: FixedHasher,
}

struct Known<T> {
    account: String,
    name: String,
    key: RowKey,
    moment: RangeMoment,
    value: T,
}

impl<T> Default for RowMemo<T> {
    fn default() -> Self {
        let slots = (0..SLOT_COUNT).map(|_| ArcSwapOption::empty()).collect();
        RowMemo { slots, hasher: FixedHasher::default() }
    }
}

impl<T: Clone> RowMemo<T> {
    /// What `read` makes of the row at `key`, which depends on nothing but `account` and `name`. Errors are
    /// not remembered; that there is no row may be.
    pub async fn find<E: From<PartitionError>>(
        &self,
        partitions: &Partitions,
        (account, name): (&str, &str),
        key: impl FnOnce() -> Result<RowKey, E>,
        read: impl FnOnce(Option<&Row>) -> Result<T, E>,
    ) -> Result<T, E> {
        let slot = &self.slots[self.hasher.hash_one((account, name)) as usize % SLOT_COUNT];
        {
            let known = slot.load();
            if let Some(known) = &*known
                && known.name == name
                && known.account == account
                && partitions.moment(ObjectTable::Container, &known.key)? == known.moment
            {
                return Ok(known.value.clone());
            }
        }
        let key = key()?;
        // Before the read: what changes meanwhile ends the moment.
        let moment = partitions.moment(ObjectTable::Container, &key)?;
        // In a box: hardly any request comes here, and each would have room for it.
        let row = Box::pin(partitions.get(ObjectTable::Container, &key)).await?;
        let value = read(row.as_ref())?;
        let known =
            Known { account: account.to_owned(), name: name.to_owned(), key, moment, value: value.clone() };
        slot.store(Some(Arc::new(known)));
        Ok(value)
    }
}
