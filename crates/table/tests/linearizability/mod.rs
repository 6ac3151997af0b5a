//! A checker of recorded histories: is there an order of the operations, each somewhere between its call and
//! its return, in which a plain model gives the replies that were recorded?
//!
//! The search is Wing and Gong's with Lowe's cache: take any operation that no other had returned before, let
//! the model step, continue; a set of taken operations that led to the same model state before is not
//! searched again. It is exponential in how many operations overlap, so histories keep few clients.
#![allow(dead_code)] // Each test file uses its part.

use std::collections::BTreeSet;
use std::fmt::Debug;

/// Operations of one history at most, so that a set of them is one number.
pub(crate) const OPERATIONS_MAX: usize = 128;

/// The specification that a history is checked against.
pub(crate) trait Model: Clone + Ord + Debug {
    /// A request with its reply.
    type Event: Debug;

    /// The state after `event`, or `None` if the model would have replied otherwise.
    fn after(&self, event: &Self::Event) -> Option<Self>;
}

/// One operation of a history. Instants are any increasing numbers.
#[derive(Clone, Debug)]
pub(crate) struct HistoryEntry<E> {
    pub(crate) called_at: u64,
    pub(crate) returned_at: u64,
    pub(crate) event: E,
}

/// Returns an error that names the prefix of the history without a valid order, if the history has none.
pub(crate) fn check<M: Model>(start: M, history: &[HistoryEntry<M::Event>]) -> Result<(), String> {
    assert!(history.len() <= OPERATIONS_MAX, "the history is too long to check");
    let everything = if history.len() == OPERATIONS_MAX { u128::MAX } else { (1 << history.len()) - 1 };
    let mut visited = BTreeSet::new();
    let mut open = vec![(0_u128, start)];
    let mut furthest = 0_u128;
    while let Some((taken, state)) = open.pop() {
        if taken == everything {
            return Ok(());
        }
        if !visited.insert((taken, state.clone())) {
            continue;
        }
        if taken.count_ones() > furthest.count_ones() {
            furthest = taken;
        }
        let left = || history.iter().enumerate().filter(move |(index, _)| taken & (1 << index) == 0);
        let first_return = left().map(|(_, operation)| operation.returned_at).min().unwrap_or(u64::MAX);
        for (index, operation) in left().filter(|(_, operation)| operation.called_at < first_return) {
            if let Some(next) = state.after(&operation.event) {
                open.push((taken | (1 << index), next));
            }
        }
    }
    let stuck: Vec<_> = history
        .iter()
        .enumerate()
        .filter(|(index, _)| furthest & (1 << index) == 0)
        .map(|(_, o)| o)
        .collect();
    Err(format!(
        "no order explains the history; {} of {} operations can be explained, but not, after them:\n{stuck:#?}",
        furthest.count_ones(),
        history.len()
    ))
}
