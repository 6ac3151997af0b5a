//! What is neither a process nor a store: the sweeper, the restorer, and how much may still happen.

use crate::setting::Bounds;
use stamp::{Listing, NamedExtents, PartHeader, SweepAction};

/// The rest of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Environment {
    pub(crate) bounds: Bounds,
    /// The incarnation that the next process to join gets.
    pub(crate) next_incarnation: u128,
    pub(crate) sweeper: Sweeper,
    pub(crate) restorer: Restorer,
}

/// How far the sweep is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sweeper {
    Idle,
    /// The store was listed.
    Listed(Listing),
    /// A planted fault: the documents were read, and the store is listed next.
    DocumentsRead(NamedExtents),
    /// What to do was chosen, from back to front.
    Acting(Vec<SweepAction>),
}

/// How far the restore is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Restorer {
    Idle,
    /// The store was listed.
    Listed(Vec<PartHeader>),
}
