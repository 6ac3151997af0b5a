//! `/api/v1`: what an operator looks at and changes, as JSON. `openapi.json` describes it, and `conformance`
//! holds each to the other.
//!
//! What always holds: a body is bounded and checked whole before anything changes; one change that takes long
//! is under way at a time, on a thread of its own, and goes on when its client has gone.

mod body;
mod changes;
#[cfg(test)]
mod conformance;
mod heat;
mod looks;

use super::readiness::Readiness;
use super::route::{Answer, Route};
use super::token_store::TokenStore;
use crate::configuration::simulation::SimulationControl;
use crate::output::log::LogControl;
use crate::settings::live::SettingsControl;
use access_log::SlowRequests;
use base::{Clock, Metrics, Spawner};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What is described to clients.
pub(super) const DESCRIPTION: &str = include_str!("openapi.json");

/// How long a client waits for a change at most.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What the API works on, besides the layers.
pub(crate) struct Api {
    log: LogControl,
    settings: SettingsControl,
    simulation: Option<SimulationControl>,
    slow: Arc<SlowRequests>,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
    /// Where the data is.
    storage: String,
    /// On the monotonic clock.
    began_at: Duration,
    /// Held by the change that is under way.
    changing: Arc<Semaphore>,
    /// A change that takes longer goes on, and its client learns that it does.
    wait_max: Duration,
}

/// What the API has of the process.
#[derive(Clone)]
pub(crate) struct Handles {
    pub(crate) log: LogControl,
    pub(crate) settings: SettingsControl,
    pub(crate) simulation: Option<SimulationControl>,
    pub(crate) slow: Arc<SlowRequests>,
    /// Where the data is.
    pub(crate) storage: String,
}

/// A request that was let in.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) body: &'a [u8],
    /// What stands behind `?` in its address.
    pub(super) query: &'a str,
    pub(super) readiness: &'a Readiness,
    pub(super) metrics: &'a Metrics,
    pub(super) tokens: &'a TokenStore,
    pub(super) version: &'a str,
}

/// What came of a change: its answer, and the words of the audit log.
struct Done {
    answer: Answer,
    words: String,
}

impl Api {
    /// Over these.
    pub(crate) fn new(handles: Handles, env: &base::Environment) -> Self {
        let Handles { log, settings, simulation, slow, storage } = handles;
        Api {
            log,
            settings,
            simulation,
            slow,
            clock: env.clock.clone(),
            spawner: env.spawner.clone(),
            storage,
            began_at: env.clock.monotonic(),
            changing: Arc::new(Semaphore::new(1)),
            wait_max: WAIT_MAX,
        }
    }

    /// Answers, and gives the words of the audit log: none of a look, and nothing of a body that makes no
    /// sense.
    pub(super) async fn answer(&self, route: Route, call: Call<'_>) -> (Answer, Option<String>) {
        let looked = match route {
            Route::OpenApi => Some(Ok(Answer::new(200, "application/json", DESCRIPTION))),
            Route::Status => Some(self.status(call).await),
            Route::Ranges => Some(looks::ranges(call).await),
            Route::Loads => Some(looks::loads(call).await),
            Route::Heat => Some(heat::heat(call).await),
            Route::Slow => Some(Ok(self.slow())),
            Route::LogLevel => Some(Ok(self.log_level())),
            Route::Simulate => Some(Ok(self.simulated())),
            Route::Settings => Some(Ok(self.settings())),
            _ => None,
        };
        if let Some(looked) = looked {
            return (looked.unwrap_or_else(|refused| refused), None);
        }
        let done = match route {
            Route::SetLogLevel => self.set_log_level(call),
            Route::Flush => self.flush(call).await,
            Route::Compact => self.compact(call).await,
            Route::Split => self.split(call).await,
            Route::SetDrain => self.set_drain(call),
            Route::SetSimulate => self.set_simulate(call),
            Route::ReloadSettings => self.reload_settings(call).await,
            _ => self.rotate_token(call),
        };
        match done {
            Ok(Done { answer, words }) => (answer, Some(words)),
            Err(refused) => (refused, None),
        }
    }
}
