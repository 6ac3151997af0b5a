//! Which rows under a blob's name are read for a decision, and how many of them.
//!
//! A name may hold very many rows, and a decision needs few. What always holds: a change requests more rows a
//! bounded number of times.

use crate::limits::ROWS_OF_A_BLOB_MAX;
use crate::rows::decision::blob_change::BlobChange;
use std::collections::BTreeSet;

/// What starts the names of all rows of a kind: snapshots, chunks, …
const KIND_LEN: usize = 2;
/// Prefixes of one kind that are read one by one, such as the chunks of one content. A change that needs more
/// of them gets all of the kind, or it would be run again for each.
const PREFIXES_OF_A_KIND_MAX: usize = 2;
/// Most runs of one change because it needs more rows, or because the rows are too many bytes; each run reads
/// one prefix more, or all of a kind, or [`FEWER_DIVISOR`] times fewer rows.
pub(crate) const ROUND_COUNT_MAX: usize = 32;

/// The rows, besides the head, that are read for a decision.
#[derive(Clone, Debug)]
pub(crate) struct RowRequest {
    /// Read the head with the content of the base blob, if that lies in its row.
    pub(crate) content: bool,
    pub(crate) points: Vec<String>,
    /// No prefix starts another.
    pub(crate) prefixes: BTreeSet<String>,
    /// Most rows of each prefix.
    pub(crate) rows_max: usize,
}

/// Divides the most rows of a prefix if rows or changes are too many bytes for one operation.
const FEWER_DIVISOR: usize = 4;

impl RowRequest {
    /// The rows that a change needs in any case.
    pub(crate) fn by<C: BlobChange>(change: &C) -> Self {
        let (points, prefixes) = (change.more_rows(), BTreeSet::new());
        let content = change.keeps_content();
        let mut request = RowRequest { content, points, prefixes, rows_max: ROWS_OF_A_BLOB_MAX };
        change.more_prefixes().into_iter().for_each(|prefix| request.add(prefix));
        request
    }

    /// Lowers the most rows of each prefix: the decision takes the rest for cut off. False: no prefix is
    /// requested, or there are no fewer rows.
    pub(crate) fn request_fewer(&mut self) -> bool {
        self.rows_max /= FEWER_DIVISOR;
        self.rows_max > 0 && !self.prefixes.is_empty()
    }

    /// Adds the rows with this prefix.
    pub(crate) fn add(&mut self, prefix: String) {
        let kind = prefix.get(..KIND_LEN).unwrap_or_default().to_owned();
        let of_kind = self.prefixes.iter().filter(|other| other.starts_with(&kind)).count();
        let added = if of_kind < PREFIXES_OF_A_KIND_MAX { prefix } else { kind };
        if !self.prefixes.iter().any(|other| added.starts_with(other)) {
            self.prefixes.retain(|other| !other.starts_with(&added));
            self.prefixes.insert(added);
        }
    }
}
