//! How many requests are under way: a bound without a queue, for the path that every request takes.
//!
//! What always holds: no more than the bound are admitted, and a permit that is dropped gives its place back.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bound and the count.
#[derive(Debug)]
pub(crate) struct InFlight {
    count: AtomicUsize,
    count_max: usize,
}

/// A request under way, until dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a>(&'a InFlight);

impl InFlight {
    /// Nothing under way, at most `count_max` at once.
    pub(crate) fn new(count_max: usize) -> Self {
        InFlight { count: AtomicUsize::new(0), count_max }
    }

    /// A place, if there is one.
    pub(crate) fn admit(&self) -> Option<Permit<'_>> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        // Dropping the permit at once frees the excess.
        let permit = Permit(self);
        (before < self.count_max).then_some(permit)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_places_come_back() {
        let in_flight = InFlight::new(2);
        let first = in_flight.admit();
        let second = in_flight.admit();
        assert!(first.is_some() && second.is_some());
        assert!(in_flight.admit().is_none());
        assert!(in_flight.admit().is_none(), "a refusal takes no place");
        drop(first);
        assert!(in_flight.admit().is_some());
    }
}
