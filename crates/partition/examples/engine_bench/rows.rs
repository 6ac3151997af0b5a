//! The entities: spread over partition names by chance, with values that don't compress.

use base::random::splitmix64;
use bytes::Bytes;
use partition::{
    Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowRef, RowVersion, Rows, Scan, Visit,
};

/// Bytes of a value; with its key a row has about 1 KiB.
pub(crate) const VALUE_SIZE_BYTES: usize = 1000;
/// Where they all are.
pub(crate) const TABLE: ObjectTable = ObjectTable::Entity;
const ACCOUNT: &str = "bench";
const CONTAINER_ID: u64 = 1;

/// A number that looks like chance, the same for the same `number`.
pub(crate) fn scattered(number: u64) -> u64 {
    let mut state = number;
    splitmix64(&mut state)
}

/// Name of a partition; names sort like their numbers.
pub(crate) fn partition_name(partition: u64) -> String {
    format!("p{partition:06}")
}

/// The first key of a partition.
pub(crate) fn partition_start(partition: u64) -> RowKey {
    RowKey::new(ACCOUNT, CONTAINER_ID, &partition_name(partition), "")
}

/// Key of the `number`th entity.
pub(crate) fn key(number: u64, partitions: u64) -> RowKey {
    let scattered = scattered(number);
    key_in(scattered % partitions, &format!("{scattered:016x}"))
}

/// A key that no entity has, between those that are there.
pub(crate) fn missing_key(number: u64, partitions: u64) -> RowKey {
    let scattered = scattered(number);
    key_in(scattered % partitions, &format!("{scattered:016x} is not there"))
}

/// A key by its names.
pub(crate) fn key_in(partition: u64, name: &str) -> RowKey {
    RowKey::new(ACCOUNT, CONTAINER_ID, &partition_name(partition), name)
}

/// The value of the `number`th entity.
pub(crate) fn value(number: u64) -> Bytes {
    let mut state = number;
    let mut out = Vec::with_capacity(VALUE_SIZE_BYTES + 8);
    while out.len() < VALUE_SIZE_BYTES {
        out.extend_from_slice(&splitmix64(&mut state).to_le_bytes());
    }
    out.truncate(VALUE_SIZE_BYTES);
    out.into()
}

/// Inserts an entity unless it is there: as the Table service does, it looks first.
pub(crate) struct Insert {
    pub(crate) key: RowKey,
    pub(crate) value: Bytes,
}

impl Operation for Insert {
    /// Whether it was not there.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<bool> {
        if rows.point(0).is_some() {
            return Decision::unchanged(false);
        }
        let change = RowChange::Put { key: self.key.clone(), value: self.value.clone() };
        Decision { changes: vec![change], reply: true }
    }
}

/// Counts rows and their bytes.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Scan for Count {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.rows += 1;
        self.bytes += (row.key.len() + row.value.len()) as u64;
        Visit::Continue
    }
}
