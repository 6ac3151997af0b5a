//! A queue that gives each owner its turn: whoever queues many waits behind its own, not others behind it.
//!
//! What always holds: what one owner queued comes out in its order; of owners that have something queued each
//! is asked once in a round.

use std::collections::{BTreeMap, VecDeque};

/// Items by owner. An owner has no entry while nothing of it is queued.
pub(super) struct RoundRobin<O, T> {
    queued: BTreeMap<O, VecDeque<T>>,
    /// Owners in the order of their turns.
    turns: VecDeque<O>,
}

impl<O: Ord + Clone, T> RoundRobin<O, T> {
    pub(super) fn new() -> Self {
        RoundRobin { queued: BTreeMap::new(), turns: VecDeque::new() }
    }

    pub(super) fn push(&mut self, owner: O, item: T) {
        let of_owner = self.queued.entry(owner.clone()).or_default();
        if of_owner.is_empty() {
            self.turns.push_back(owner);
        }
        of_owner.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let owner = self.turns.pop_front()?;
        let of_owner = self.queued.get_mut(&owner)?;
        let item = of_owner.pop_front();
        if of_owner.is_empty() {
            self.queued.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_its_turn() {
        let mut queue = RoundRobin::new();
        for number in 0..4 {
            queue.push('a', ('a', number));
        }
        queue.push('b', ('b', 0));
        assert_eq!(queue.pop(), Some(('a', 0)));
        queue.push('c', ('c', 0));
        queue.push('b', ('b', 1));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [('b', 0), ('a', 1), ('c', 0), ('b', 1), ('a', 2), ('a', 3)]);
        assert!(queue.queued.is_empty() && queue.turns.is_empty());
    }
}
