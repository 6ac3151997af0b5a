//! A blob's rows in memory, for table tests of changes. Built for tests only.

use crate::error::BlobError;
use crate::rows::blob_address::BlobAddress;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_operation::BlobOperation;
use crate::rows::decision::row_request::{ROUND_COUNT_MAX, RowRequest};
use crate::rows::decision::stop::Stop;
use crate::rows::head_row::{HEAD, Head};
use crate::rows::region_row::RemovePages;
use base::codec::Decoder;
use bytes::Bytes;
use partition::{Operation, Read, Row, RowChange, RowStart, RowVersion, Rows};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

thread_local! {
    /// Rows that decisions of this thread have visited by prefix.
    pub(crate) static VISITED_COUNT: Cell<usize> = const { Cell::new(0) };
}

#[derive(Default)]
pub(crate) struct MemoryBlob {
    pub(crate) rows: BTreeMap<String, Bytes>,
    /// Rows that all operations so far have read.
    pub(crate) rows_read: usize,
}

impl MemoryBlob {
    fn address() -> BlobAddress {
        BlobAddress { account: "acct".into(), container_id: 1, name: "blob".into() }
    }

    /// Runs a change as the service does: with few rows first, then with those that it needs.
    pub(crate) fn run<C: BlobChange>(&mut self, change: C, now: u64) -> Result<C::Reply, BlobError> {
        let change = Arc::new(change);
        let mut request = RowRequest::by(&*change);
        for _ in 0..ROUND_COUNT_MAX {
            VISITED_COUNT.set(0);
            let (address, change) = (Self::address(), change.clone());
            match self.execute(&BlobOperation { address, change, request: request.clone() }, now) {
                Ok(done) => return Ok(done.reply),
                Err(Stop::Refused(error)) => return Err(error),
                Err(Stop::Need(prefix)) => request.add(prefix),
                Err(Stop::NeedContent) => request.content = true,
            }
        }
        panic!("it needs more and more rows: {request:?}")
    }

    fn execute<O: Operation>(&mut self, operation: &O, now: u64) -> O::Reply {
        let found: Vec<Vec<Row>> = operation.reads().iter().map(|read| self.read(read)).collect();
        self.rows_read += found.iter().map(Vec::len).sum::<usize>();
        let decision = operation.decide(&Rows::new(found), RowVersion(now));
        for row in decision.changes {
            let name = row.key().parts().unwrap().object_name;
            match row {
                RowChange::Put { value, .. } => {
                    let start = RowStart::take(&mut Decoder::new(&value));
                    assert!(start.is_ok(), "the layer below refuses a row without pieces: {name}");
                    self.rows.insert(name, value);
                }
                RowChange::Delete { .. } => {
                    self.rows.remove(&name);
                }
            }
        }
        decision.reply
    }

    /// Removes pages that are garbage; says how many operations it took.
    pub(crate) fn remove_pages(&mut self, owner: u64, now: u64) -> usize {
        let operation = RemovePages { address: Self::address(), owner };
        (1..).find(|_| self.execute(&operation, now)).unwrap()
    }

    fn read(&self, read: &Read) -> Vec<Row> {
        let row = |(name, value): (&String, &Bytes)| Row {
            key: Self::address().key(name),
            version: RowVersion(1),
            value: value.clone(),
        };
        let all = self.rows.iter().map(row);
        match read {
            Read::Point(key) => all.filter(|row| row.key == *key).collect(),
            Read::Head(key) => all.filter(|row| row.key == *key).map(Self::without_overflow).collect(),
            Read::Range { range, limit } => {
                all.filter(|row| range.contains(row.key.as_bytes())).take(*limit).collect()
            }
        }
    }

    /// As most rows come from checkpoints.
    fn without_overflow(row: Row) -> Row {
        let start = RowStart::take(&mut Decoder::new(&row.value)).unwrap();
        let head_len = row.value.len() - start.overflow_size_bytes;
        Row { value: row.value.slice(..head_len), ..row }
    }

    pub(crate) fn head(&self) -> Head {
        self.rows.get(HEAD).map(|value| Head::decode(value).unwrap()).unwrap_or_default()
    }

    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.rows.keys().filter(|name| name.starts_with(prefix)).count()
    }
}
