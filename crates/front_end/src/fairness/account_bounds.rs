//! What one account may hold of the front end's bounds: three quarters of each, so that the rest is there for
//! others, or all if there are no others.
//!
//! What always holds: an account that waits for its share holds up no other; one that holds nothing gets any
//! amount.

use crate::bounds::in_flight::{InFlight, Permit};
use crate::bounds::limits::Limits;
use crate::bounds::peer_shares::share_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The bounds of each account, by its number.
pub(crate) struct AccountBounds {
    accounts: Vec<OfAccount>,
    connections_max: usize,
    body_permits_max: usize,
    answers_size_bytes_max: usize,
}

struct OfAccount {
    requests: InFlight,
    /// Permits are KiB.
    large_bodies: Semaphore,
    answers_size_bytes: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

/// What an account holds of a bound, until dropped.
#[derive(Debug)]
pub(crate) struct AccountShare {
    held: Arc<AtomicUsize>,
    amount: usize,
}

impl AccountShare {
    /// The share, and how much the account held before.
    fn take(held: &Arc<AtomicUsize>, amount: usize) -> (Self, usize) {
        let before = held.fetch_add(amount, Ordering::Relaxed);
        (AccountShare { held: held.clone(), amount }, before)
    }
}

impl Drop for AccountShare {
    fn drop(&mut self) {
        self.held.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

impl AccountBounds {
    /// For accounts that are numbered from 0.
    pub(crate) fn new(account_count: usize, limits: &Limits) -> Self {
        let share_of = |bound| if account_count > 1 { share_of(bound) } else { bound };
        let body_permits_max = share_of(limits.all_bodies_size_bytes_max().div_ceil(1024)).max(1);
        let of_account = || OfAccount {
            requests: InFlight::new(share_of(limits.requests_in_flight_max)),
            large_bodies: Semaphore::new(body_permits_max),
            answers_size_bytes: Arc::default(),
            connections: Arc::default(),
        };
        AccountBounds {
            accounts: (0..account_count).map(|_| of_account()).collect(),
            connections_max: share_of(limits.connections_max),
            body_permits_max,
            answers_size_bytes_max: share_of(limits.answers_size_bytes_max),
        }
    }

    fn of(&self, account: u32) -> Option<&OfAccount> {
        self.accounts.get(account as usize)
    }

    /// A place for a request, if the account has one left.
    pub(crate) fn admit(&self, account: u32) -> Option<Permit<'_>> {
        self.of(account)?.requests.admit()
    }

    /// Waits until the account holds less than its share of the memory for large bodies.
    pub(crate) async fn admit_body(&self, account: u32, permits: u32) -> Option<SemaphorePermit<'_>> {
        let permits = permits.min(u32::try_from(self.body_permits_max).unwrap_or(u32::MAX));
        self.of(account)?.large_bodies.acquire_many(permits).await.ok()
    }

    /// Memory for an answer, if that is within the account's share.
    pub(crate) fn admit_answer(&self, account: u32, size_bytes: usize) -> Option<AccountShare> {
        let (share, before) = AccountShare::take(&self.of(account)?.answers_size_bytes, size_bytes);
        (before == 0 || before.saturating_add(size_bytes) <= self.answers_size_bytes_max).then_some(share)
    }

    /// A connection on which the account has sent its first request.
    pub(crate) fn add_connection(&self, account: u32) -> Option<AccountShare> {
        Some(AccountShare::take(&self.of(account)?.connections, 1).0)
    }

    /// Whether the account has more connections than its share.
    pub(crate) fn has_too_many_connections(&self, account: u32) -> bool {
        self.of(account).is_some_and(|held| held.connections.load(Ordering::Relaxed) > self.connections_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn bounds() -> AccountBounds {
        let limits = Limits {
            requests_in_flight_max: 4,
            connections_max: 4,
            body_size_bytes_max: 1024,
            bodies_size_bytes_max: 4096,
            answers_size_bytes_max: 100,
            ..Limits::default()
        };
        AccountBounds::new(2, &limits)
    }

    #[test]
    fn an_account_has_its_share_and_others_have_theirs() {
        let bounds = bounds();
        let requests: Vec<_> = (0..4).map(|_| bounds.admit(0)).collect();
        assert_eq!(requests.iter().filter(|permit| permit.is_some()).count(), 3);
        assert!(bounds.admit(1).is_some());
        drop(requests);
        assert!(bounds.admit(0).is_some());

        let answer = bounds.admit_answer(0, 200);
        assert!(answer.is_some(), "alone, any is let through");
        assert!(bounds.admit_answer(0, 1).is_none() && bounds.admit_answer(1, 75).is_some());
        drop(answer);
        assert!(bounds.admit_answer(0, 75).is_some());

        let connections: Vec<_> = (0..3).map(|_| bounds.add_connection(0)).collect();
        assert!(!bounds.has_too_many_connections(0));
        let one_more = bounds.add_connection(0);
        assert!(bounds.has_too_many_connections(0) && !bounds.has_too_many_connections(1));
        drop((connections, one_more));
        assert!(!bounds.has_too_many_connections(0));
    }

    #[test]
    fn the_only_account_may_have_all() {
        let bounds = AccountBounds::new(1, &Limits { requests_in_flight_max: 4, ..Limits::default() });
        let requests: Vec<_> = (0..5).map(|_| bounds.admit(0)).collect();
        assert_eq!(requests.iter().filter(|permit| permit.is_some()).count(), 4);
    }

    #[test]
    fn an_account_that_waits_for_memory_holds_up_no_other() {
        let bounds = bounds();
        let first = bounds.admit_body(0, 3).now_or_never().flatten();
        assert!(first.is_some());
        let mut second = std::pin::pin!(bounds.admit_body(0, 1));
        assert!(second.as_mut().now_or_never().is_none(), "it waits");
        assert!(bounds.admit_body(1, 400).now_or_never().flatten().is_some(), "more than there is is all");
        drop(first);
        assert!(second.now_or_never().flatten().is_some());
    }
}
