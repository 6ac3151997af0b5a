//! A process of a stamp, from its start to its end: turns of standing by and serving over the same ports.

use crate::access_log::AccessLogs;
use crate::admin::{AdminSide, Handles, Readiness};
use crate::configuration::Configuration;
use crate::configuration::stamp::StampConfiguration;
use crate::serve::{ServeError, front_end_settings, stopped};
use crate::service_manager;
use crate::stamp::served_accounts::ServedAccounts;
use crate::stamp::serving::{Ended, Served, serve_range};
use crate::stamp::stand_by::{Held, StandBy, Waiting};
use crate::stamp::stores::Stores;
use base::{BoxFuture, Environment};
use front_end::{Limits, StandByFrontEnd};
use stamp_streams::{Next, OwnedRange};
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

/// Joins the stamp and serves it whenever nobody else does, until the process is asked to stop.
pub(crate) async fn run(
    process: &Process<'_>,
    stamp: &StampConfiguration,
    say_started: impl FnOnce() -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let stores = Stores::open(stamp, process.env).await?;
    let accounts = ServedAccounts::of(&process.configuration.accounts, &stores.surroundings);
    let waiting = Arc::new(Waiting::default());
    waiting.note("it joins the stamp".to_owned());
    let stand_by = StandBy { stores: &stores, accounts: &accounts, waiting: &waiting };
    say_started()?;
    service_manager::note_ready();
    let mut before: Option<Held> = None;
    while !*process.stop.borrow() {
        let served = match take_and_open(process, &stand_by, &waiting, before.take()).await? {
            Some(served) => served,
            None => continue,
        };
        before = match serve_range(process, served, &accounts, &stores.surroundings).await? {
            Ended::Stopped => break,
            Ended::Lost(held) => Some(held),
        };
    }
    Ok(())
}

/// Answers that this process stands by, until it has the range and its layers are open. None: it was asked to
/// stop, or what it had has ended meanwhile.
async fn take_and_open(
    process: &Process<'_>,
    stand_by: &StandBy<'_>,
    waiting: &Arc<Waiting>,
    before: Option<Held>,
) -> Result<Option<Served>, ServeError> {
    process.readiness.note_standing_by(waiting.clone());
    let (ended, ends) = watch::channel(false);
    let reason = waiting.clone();
    let front_end = StandByFrontEnd::new(
        front_end_settings(process.configuration, process.env, process.limits.clone(), process.logs),
        Arc::new(move || reason.reason()),
        process.env.clock.clone(),
        process.env.random.clone(),
        process.env.spawner.clone(),
    );
    let shutdown = || -> BoxFuture<'static, ()> { Box::pin(stopped(ends.clone())) };
    let answering = front_end.serve(process.listeners_again()?, shutdown);
    let opening = async {
        let opened = tokio::select! {
            () = stopped(process.stop.clone()) => Ok(None),
            opened = open(process, stand_by, waiting, before) => opened,
        };
        ended.send_replace(true);
        opened
    };
    let ((), opened) = futures_util::future::join(answering, opening).await;
    opened
}

async fn open(
    process: &Process<'_>,
    stand_by: &StandBy<'_>,
    waiting: &Waiting,
    before: Option<Held>,
) -> Result<Option<Served>, ServeError> {
    let mut life = None;
    let mut held = None;
    if let Some(before) = before {
        life = Some(before.life.clone());
        held = match go_on(&before.range).await {
            Ok(Some(range)) => Some(Held { range, ..before }),
            Ok(None) => None,
            Err(why) => {
                waiting.note(why);
                None
            }
        };
    }
    let held = match held {
        Some(held) => held,
        None => stand_by.take(life).await?,
    };
    waiting.note("the stamp was taken, and its log is being read".to_owned());
    match Served::open(process.configuration, process.env, held).await {
        Ok(served) => Ok(Some(served)),
        Err((held, why)) => {
            tracing::error!("the stamp was taken and can't be served: {why}");
            waiting.note(format!("the stamp can't be served here: {why}"));
            // Another process may be able to.
            let _ = held.range.release().await;
            held.life.leave().await;
            process.env.clock.sleep(stand_by.stores.surroundings.settings.ttl).await;
            Ok(None)
        }
    }
}

/// The range again, if it is still this process's.
async fn go_on(range: &Arc<OwnedRange>) -> Result<Option<Arc<OwnedRange>>, String> {
    match range.go_on().await.map_err(|error| error.to_string())? {
        Next::Serve(range) => Ok(Some(range)),
        Next::TakeAgain | Next::Forget | Next::LeaveAlone => Ok(None),
    }
}
