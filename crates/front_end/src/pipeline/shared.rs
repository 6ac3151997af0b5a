//! What the services of one front end share: accounts, bounds, clock and chance.
//!
//! What always holds: the bounds are those of all services together, so that none of them can starve the
//! machine.

use super::connection_state::ConnectionState;
use super::dates::Dates;
use crate::accounts::Accounts;
use crate::auth::bearer::BearerAuthority;
use crate::bounds::answer_memory::AnswerMemory;
use crate::bounds::in_flight::InFlight;
use crate::bounds::limits::Limits;
use crate::fairness::account_bounds::AccountBounds;
use crate::fairness::worker_turns::AllTurns;
use crate::request::protocol_version::VersionLog;
use base::{Clock, Random};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a pipeline shares with those of the other services.
pub(crate) struct Shared {
    pub(super) accounts: Accounts,
    pub(super) bearer: Option<Arc<dyn BearerAuthority>>,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) requests: InFlight,
    /// What each account may hold of these bounds.
    pub(super) account_bounds: AccountBounds,
    /// Where accounts take turns.
    pub(super) turns: AllTurns,
    /// Permits are KiB.
    pub(super) large_bodies: Semaphore,
    pub(super) large_answers: Arc<AnswerMemory>,
    pub(super) versions: VersionLog,
    pub(super) dates: Dates,
}

impl Shared {
    /// For a connection that is served by this worker.
    pub(super) fn connection_state(&self, worker: usize) -> ConnectionState {
        ConnectionState::new(self.turns.of_worker(worker, &self.clock))
    }

    /// With nothing under way.
    pub(crate) fn new(
        accounts: Accounts,
        bearer: Option<Arc<dyn BearerAuthority>>,
        limits: Limits,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        Shared {
            requests: InFlight::new(limits.requests_in_flight_max),
            account_bounds: AccountBounds::new(accounts.count(), &limits),
            turns: AllTurns::default(),
            large_bodies: Semaphore::new(limits.all_bodies_size_bytes_max().div_ceil(1024)),
            large_answers: AnswerMemory::new(limits.answers_size_bytes_max),
            accounts,
            bearer,
            limits,
            clock,
            random,
            versions: VersionLog::default(),
            dates: Dates::default(),
        }
    }
}
