//! Credentials that are held and renewed before they end.
//!
//! What always holds: at most one search is under way; while what is held is good nobody waits for a search;
//! after one that failed the next begins no sooner than [`FAILURE_FOR`] later.

use crate::credentials::chain::search;
use crate::credentials::search::Search;
use crate::credentials::{Credentials, Found};
use crate::surroundings::StoreSurroundings;
use base::Ticks;
use http_client::Dialer;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long before their end credentials are renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(300);
/// How long before their end they are not used any more: a request takes some time.
const UNUSED_BEFORE: Duration = Duration::from_secs(10);
/// Credentials that the store does not know are searched for anew if they were found so long ago.
const DOUBTED_AFTER: Duration = Duration::from_secs(5);
/// How long a failed search counts.
const FAILURE_FOR: Duration = Duration::from_secs(2);

/// Where credentials are taken from, each time they are needed.
pub(crate) struct CredentialSource {
    search: Search,
    state: Mutex<State>,
    /// Held by the one search.
    turn: tokio::sync::Mutex<()>,
    is_renewing: AtomicBool,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    /// When the last search failed, by the monotonic clock, and why.
    failed: Option<(Duration, String)>,
}

#[derive(Clone)]
struct Held {
    credentials: Arc<Credentials>,
    ends_at: Option<Ticks>,
    /// By the monotonic clock.
    found_at: Duration,
}

/// What to do about held credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Use,
    UseAndRenew,
    Search,
}

fn choose(ends_at: Option<Ticks>, now: Ticks) -> Choice {
    match ends_at {
        None => Choice::Use,
        Some(ends_at) if ends_at > now.plus(RENEW_BEFORE) => Choice::Use,
        Some(ends_at) if ends_at > now.plus(UNUSED_BEFORE) => Choice::UseAndRenew,
        Some(_) => Choice::Search,
    }
}

/// Whether credentials that were found then are searched for anew if the store does not know them.
fn is_doubtful(found_at: Duration, now: Duration) -> bool {
    now >= found_at + DOUBTED_AFTER
}

impl CredentialSource {
    pub(crate) fn new(surroundings: &StoreSurroundings, region: &str, dialer: Arc<Dialer>) -> Arc<Self> {
        let search = Search { surroundings: surroundings.clone(), region: region.to_owned(), dialer };
        let (state, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(CredentialSource { search, state, turn, is_renewing: AtomicBool::new(false) })
    }

    /// Credentials that are good now; an error says why there are none, without any secret.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Arc<Credentials>, String> {
        if let Some(credentials) = self.usable() {
            return Ok(credentials);
        }
        let _turn = self.turn.lock().await;
        // The one before may have found them, or found out that there are none.
        if let Some(credentials) = self.usable() {
            return Ok(credentials);
        }
        if let Some(why) = self.recent_failure() {
            return Err(why);
        }
        self.renew().await
    }

    /// What is held is not to be used again: the store says that it has ended.
    pub(crate) fn forget(&self) {
        self.state.lock().held = None;
    }

    /// The store does not know what is held: somebody may have replaced it. It is searched for anew beside
    /// its use, unless it was found just now: then it is wrong where it comes from.
    pub(crate) fn doubt(self: &Arc<Self>) {
        let now = self.search.surroundings.http.clock.monotonic();
        let found_at = self.state.lock().held.as_ref().map(|held| held.found_at);
        if found_at.is_some_and(|found_at| is_doubtful(found_at, now)) {
            self.renew_beside();
        }
    }

    fn usable(self: &Arc<Self>) -> Option<Arc<Credentials>> {
        let held = self.state.lock().held.clone()?;
        match choose(held.ends_at, self.search.surroundings.http.clock.now()) {
            Choice::Use => {}
            Choice::UseAndRenew => self.renew_beside(),
            Choice::Search => return None,
        }
        Some(held.credentials)
    }

    fn recent_failure(&self) -> Option<String> {
        let state = self.state.lock();
        let (at, why) = state.failed.as_ref()?;
        let is_recent = self.search.surroundings.http.clock.monotonic() < *at + FAILURE_FOR;
        is_recent.then(|| why.clone())
    }

    fn renew_beside(self: &Arc<Self>) {
        if self.recent_failure().is_some() || self.is_renewing.swap(true, Ordering::Relaxed) {
            return;
        }
        let source = self.clone();
        let renewal = async move {
            let turn = source.turn.lock().await;
            // The error is logged, and comes again once nothing is held that is good.
            drop(source.renew().await);
            source.is_renewing.store(false, Ordering::Relaxed);
            drop(turn);
        };
        self.search.surroundings.http.spawner.spawn("renewal of credentials", Box::pin(renewal));
    }

    /// Searches. The caller has the turn.
    async fn renew(&self) -> Result<Arc<Credentials>, String> {
        let found = search(&self.search).await;
        let found_at = self.search.surroundings.http.clock.monotonic();
        let mut state = self.state.lock();
        match found {
            Ok(Found { credentials, ends_at }) => {
                let credentials = Arc::new(credentials);
                let held = Held { credentials: credentials.clone(), ends_at, found_at };
                *state = State { held: Some(held), failed: None };
                Ok(credentials)
            }
            Err(why) => {
                tracing::warn!(why, "there are no new credentials of the object store");
                let now = self.search.surroundings.http.clock.monotonic();
                state.failed = Some((now, why.clone()));
                Err(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_just_now_is_not_searched_for_again() {
        let second = Duration::from_secs;
        for (now, expected) in [(100, false), (104, false), (105, true), (900, true)] {
            assert_eq!(is_doubtful(second(100), second(now)), expected, "{now}");
        }
    }

    #[test]
    fn credentials_are_renewed_before_they_end() {
        let now = Ticks(1_000_000_000_000);
        let in_s = |seconds| Some(now.plus(Duration::from_secs(seconds)));
        for (ends_at, expected) in [
            (None, Choice::Use),
            (in_s(301), Choice::Use),
            (in_s(300), Choice::UseAndRenew),
            (in_s(11), Choice::UseAndRenew),
            (in_s(10), Choice::Search),
            (Some(Ticks(0)), Choice::Search),
        ] {
            assert_eq!(choose(ends_at, now), expected, "{ends_at:?}");
        }
    }
}
