//! What a connection keeps from one request to the next: its timer, its worker's turns, its account's share.
//!
//! What always holds: a connection counts once, for the account that sent its first request, until it ends.

use super::request_timer::RequestTimer;
use crate::fairness::account_bounds::{AccountBounds, AccountShare};
use crate::fairness::worker_turns::WorkerTurns;
use std::sync::{Arc, OnceLock};

/// Of one connection over HTTP/1, or of one request of another.
pub(crate) struct ConnectionState {
    /// The time limit of its requests.
    pub(crate) timer: RequestTimer,
    /// The turns of the worker that it is served by.
    pub(crate) turns: Arc<WorkerTurns>,
    /// The account that has sent its first request, and that one's share of the connections.
    account: OnceLock<(u32, Option<AccountShare>)>,
}

impl ConnectionState {
    /// Of a new connection.
    pub(crate) fn new(turns: Arc<WorkerTurns>) -> Self {
        ConnectionState { timer: RequestTimer::default(), turns, account: OnceLock::new() }
    }

    /// An account has sent a request.
    pub(crate) fn note_account(&self, bounds: &AccountBounds, account: u32) {
        self.account.get_or_init(|| (account, bounds.add_connection(account)));
    }

    /// Whether its account has so many that this one is closed behind its answer.
    pub(crate) fn is_too_many(&self, bounds: &AccountBounds) -> bool {
        self.account.get().is_some_and(|(account, _)| bounds.has_too_many_connections(*account))
    }
}
