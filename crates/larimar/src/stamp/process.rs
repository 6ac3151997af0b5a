//! What a process of a stamp has from its start to its end.

use crate::admin::{AdminSide, Handles, Readiness};
use crate::configuration::Configuration;
use crate::serve_error::ServeError;
use access_log::AccessLogs;
use base::Environment;
use front_end::Limits;
use std::sync::Arc;
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

impl Process<'_> {
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
