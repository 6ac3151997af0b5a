//! What clients and readers have seen, and what is needed to judge a log: known to nobody in the stamp.

use crate::world::names::Write;
use stamp::StreamId;
use std::collections::BTreeMap;

/// The past of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// Writes that were acknowledged or could be read, in order.
    pub(crate) seen: Vec<Write>,
    /// For each write, in order of submission, the writes that its decision was made over.
    pub(crate) decided_over: Vec<Vec<Write>>,
    /// Writes that were reported as certainly not done.
    pub(crate) refused: Vec<Write>,
    /// For each dropped extent, by stream and ordinal, the writes that the checkpoint has in its place.
    pub(crate) checkpointed: BTreeMap<(StreamId, u64), Vec<Write>>,
}
