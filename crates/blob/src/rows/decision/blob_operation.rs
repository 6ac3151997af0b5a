//! A [`BlobChange`] as an operation of the partition layer: reads the requested rows, decides, writes the
//! changes.

use crate::rows::blob_address::BlobAddress;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::row_request::RowRequest;
use crate::rows::decision::stop::Stop;
use crate::rows::decision::visible_rows::VisibleRows;
use crate::rows::head_row::HEAD;
use crate::rows::region_row::garbage_owner;
use base::Ticks;
use base::codec::DecodeError;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change that was made.
pub(crate) struct ChangeOutcome<R> {
    pub(crate) reply: R,
    /// Owners of pages that are to be removed now.
    pub(crate) garbage: Vec<u64>,
}

/// A change at its address, as the partition layer runs it.
pub(crate) struct BlobOperation<C> {
    pub(crate) address: BlobAddress,
    pub(crate) change: Arc<C>,
    pub(crate) request: RowRequest,
}

impl<C: BlobChange> BlobOperation<C> {
    fn open_rows(&self, rows: &Rows) -> Result<BlobRows, Stop> {
        let head = rows.point(0).map(|row| row.value.clone());
        let mut found = BTreeMap::new();
        let mut index = 1;
        for name in &self.request.points {
            if let Some(row) = rows.point(index) {
                found.insert(name.clone(), row.value.clone());
            }
            index += 1;
        }
        let mut visible = VisibleRows { points: self.request.points.clone(), prefixes: BTreeMap::new() };
        for prefix in &self.request.prefixes {
            let in_order = rows.range(index);
            let mut last = None;
            for row in in_order {
                let name = row.key.parts().ok_or(DecodeError("blob key"))?.object_name;
                last = Some(name.clone());
                found.insert(name, row.value.clone());
            }
            let is_cut_off = in_order.len() >= self.request.rows_max;
            visible.prefixes.insert(prefix.clone(), last.filter(|_| is_cut_off));
            index += 1;
        }
        Ok(BlobRows::open(head, found, visible)?)
    }
}

impl<C: BlobChange> Operation for BlobOperation<C> {
    type Reply = Result<ChangeOutcome<C::Reply>, Stop>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        let points = self.request.points.iter().map(|row| Read::Point(self.address.key(row)));
        let ranges = self.request.prefixes.iter().map(|prefix| Read::Range {
            range: self.address.rows_with_prefix(prefix),
            limit: self.request.rows_max,
        });
        let head = self.address.key(HEAD);
        let head = if self.request.content { Read::Point(head) } else { Read::Head(head) };
        std::iter::once(head).chain(points).chain(ranges).collect()
    }

    fn gives_back(&self) -> bool {
        self.change.gives_back()
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let mut rows = match self.open_rows(rows) {
            Ok(rows) => rows,
            Err(stop) => return Decision::unchanged(Err(stop)),
        };
        let decided = self.change.decide(&mut rows, Ticks(version.0)).and_then(|reply| {
            let garbage = rows.changed.keys().filter_map(|name| garbage_owner(name)).collect();
            Ok((ChangeOutcome { reply, garbage }, rows.into_changes(&self.address)?))
        });
        match decided {
            Ok((done, changes)) => Decision { changes, reply: Ok(done) },
            Err(stop) => Decision::unchanged(Err(stop)),
        }
    }
}
