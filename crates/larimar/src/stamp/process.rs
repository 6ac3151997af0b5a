//! What a process of a stamp has from its start to its end.

use crate::admin::{AdminSide, Handles, Readiness};
use crate::configuration::Configuration;
use crate::over_ranges::{front_end_settings, stopped};
use crate::serve_error::ServeError;
use access_log::AccessLogs;
use base::{BoxFuture, Environment};
use front_end::{Limits, StandByFrontEnd};
use futures_util::future::join;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What a process has before it reaches for its stamp.
pub(crate) struct Process<'a> {
    pub(crate) configuration: &'a Configuration,
    pub(crate) handles: &'a Handles,
    pub(crate) env: &'a Environment,
    pub(crate) limits: Limits,
    /// Of blob, table and queue.
    pub(crate) listeners: [TcpListener; 3],
    pub(crate) readiness: &'a Arc<Readiness>,
    pub(crate) admin: Option<&'a AdminSide>,
    pub(crate) logs: &'a AccessLogs,
    pub(crate) stop: watch::Receiver<bool>,
}

/// How long requests that get such an answer have once something else is done.
const STAND_BY_DRAIN_FOR: Duration = Duration::from_millis(100);

impl Process<'_> {
    /// Answers requests on all listeners that nothing is served, for `reason`, until `work` is done.
    pub(super) async fn answer_while<T>(
        &self,
        reason: Arc<dyn Fn() -> String + Send + Sync>,
        work: impl Future<Output = T>,
    ) -> Result<T, ServeError> {
        // Whoever drips a request must not hold up those that could be served.
        let limits = Limits { drain_for_max: STAND_BY_DRAIN_FOR, ..self.limits.clone() };
        let front_end = StandByFrontEnd::new(
            front_end_settings(self.configuration, self.env, limits, self.logs),
            reason,
            self.env.clock.clone(),
            self.env.random.clone(),
            self.env.spawner.clone(),
        );
        let (ended, ends) = watch::channel(false);
        let shutdown = || -> BoxFuture<'static, ()> { Box::pin(stopped(ends.clone())) };
        let answering = front_end.serve(self.listeners_again()?, shutdown);
        let working = async {
            let outcome = work.await;
            ended.send_replace(true);
            outcome
        };
        let ((), outcome) = join(answering, working).await;
        Ok(outcome)
    }

    /// The listeners once more: they are listened on as long as the process has its own.
    pub(super) fn listeners_again(&self) -> Result<[TcpListener; 3], ServeError> {
        let again = |listener: &TcpListener| {
            let owned = std::os::fd::AsFd::as_fd(listener).try_clone_to_owned()?;
            TcpListener::from_std(std::net::TcpListener::from(owned))
        };
        let [blob, table, queue] = &self.listeners;
        let all = || Ok([again(blob)?, again(table)?, again(queue)?]);
        all().map_err(ServeError::Runtime)
    }
}
