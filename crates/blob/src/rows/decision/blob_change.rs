//! What each change of a blob implements: the rows that it needs, and a pure decision.

use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use base::Ticks;

/// A change to what is stored under one name, as plain data with a pure decision.
pub(crate) trait BlobChange: Send + Sync + 'static {
    type Reply: Send + 'static;

    /// Rows besides the head that the decision looks at.
    fn more_rows(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts of the names of further rows that it always looks at. It may need more, and then says so.
    fn more_prefixes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it is likely to keep a content of the base blob that lies in the head's row. What does not is
    /// shown the row without it; if it must see it after all, it is run again.
    fn keeps_content(&self) -> bool {
        true
    }

    /// See [`partition::Operation::gives_back`].
    fn gives_back(&self) -> bool {
        false
    }

    /// Decides; what it has changed in `rows` is stored unless it stops.
    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop>;
}
