//! Turns of standing by and serving, over the same ports.

use crate::admin::StampSource;
use crate::configuration::stamp::StampConfiguration;
use crate::over_ranges::stopped;
use crate::serve_error::ServeError;
use crate::service_manager;
use crate::stamp::former_revisions::FormerRevisions;
use crate::stamp::local_block_cache::LocalBlockCache;
use crate::stamp::log_ahead::LogAhead;
use crate::stamp::process::Process;
use crate::stamp::served_settings::ServedSettings;
use crate::stamp::serving::{Ended, Lost, Served, close, serve_range};
use crate::stamp::stand_by::{Held, StandBy, TAKES_OF_LEASE, Waiting};
use crate::stamp::stores::{StampFailure, Stores};
use futures_util::future::{join, select};
use stamp_streams::{Next, OwnedRange};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a process that has stopped serving has to leave its stamp.
const LEAVE_FOR: Duration = Duration::from_secs(2);

/// Joins the stamp and serves it whenever nobody else does, until the process is asked to stop.
pub(crate) async fn run(
    process: &Process<'_>,
    stamp: &StampConfiguration,
    say_started: impl FnOnce() -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let mut stores = Stores::open(stamp, process.env).await?;
    let local = match &stamp.cache {
        Some(cache) => {
            let memory = process.configuration.partitions.memory_budget_size_bytes();
            Some(LocalBlockCache::open(cache, process.env, memory).await.map_err(StampFailure::from)?)
        }
        None => None,
    };
    let cache = local.as_ref().map(|local| local.cache.clone());
    stores.surroundings.cache = cache.clone();
    let settings = ServedSettings::of(&process.configuration.accounts, &stores.surroundings);
    let revisions = Arc::new(FormerRevisions::new(stores.surroundings.clock.clone()));
    process.readiness.note_stamp(StampSource::new(
        stores.objects.counts.clone(),
        stores.key_counts.clone(),
        cache.clone(),
    ));
    let waiting = Arc::new(Waiting::default());
    waiting.note("it joins the stamp".to_owned());
    let stand_by = StandBy {
        life: Default::default(),
        released_at: Default::default(),
        cut_off: Default::default(),
        stores: &stores,
        settings: &settings,
        revisions: &revisions,
        waiting: &waiting,
        log_ahead: LogAhead::new(&stores, process.configuration.partitions.memory_budget_size_bytes()),
    };
    say_started()?;
    service_manager::note_ready();
    let ended = take_turns(process, &stand_by, &waiting, &revisions).await;
    // Whatever it was at: another need not wait for the lease's end.
    let life = stand_by.life.lock().take();
    if let Some(life) = life.filter(|life| life.holds()) {
        let _ = select(pin!(life.leave()), process.env.clock.sleep(LEAVE_FOR)).await;
    }
    if let Some(cache) = cache {
        cache.close().await;
    }
    ended
}

async fn take_turns(
    process: &Process<'_>,
    stand_by: &StandBy<'_>,
    waiting: &Arc<Waiting>,
    revisions: &Arc<FormerRevisions>,
) -> Result<(), ServeError> {
    let mut before: Option<Lost> = None;
    while !*process.stop.borrow() {
        let served = match take_and_open(process, stand_by, waiting, before.take()).await? {
            Some(served) => served,
            None => continue,
        };
        before = match serve_range(process, served, revisions).await? {
            Ended::Stopped => break,
            Ended::Lost(lost) => Some(lost),
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
    before: Option<Lost>,
) -> Result<Option<Served>, ServeError> {
    process.readiness.note_standing_by(waiting.clone());
    let reason = waiting.clone();
    let opening = async {
        tokio::select! {
            () = stopped(process.stop.clone()) => Ok(None),
            opened = open(process, stand_by, waiting, before) => opened,
        }
    };
    process.answer_while(Arc::new(move || reason.reason()), opening).await?
}

async fn open(
    process: &Process<'_>,
    stand_by: &StandBy<'_>,
    waiting: &Waiting,
    before: Option<Lost>,
) -> Result<Option<Served>, ServeError> {
    let mut life = None;
    let mut held = None;
    if let Some(lost) = before {
        // Clients get the answer of a stand-by meanwhile. What the layers still do waits for a store that may
        // not answer; another process need not wait for that.
        let Lost { held: before, partitions, reaches_store } = lost;
        let closing = close(&partitions, &*process.env.clock);
        let (_, gone_on) = join(closing, go_on(&before.range, reaches_store, stand_by)).await;
        life = Some(before.life.clone());
        held = match gone_on {
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
    let opening = Served::open(process.configuration, process.env, held.clone(), waiting);
    let opened = opening.await;
    stand_by.log_ahead.end();
    match opened {
        Ok(served) => Ok(Some(served)),
        Err(why) => {
            tracing::error!("the stamp was taken and can't be served: {why}");
            waiting.note(format!("the stamp can't be served here: {why}"));
            // Another process may be able to.
            let _ = held.range.give_up().await;
            held.life.leave().await;
            process.env.clock.sleep(stand_by.stores.surroundings.settings.ttl).await;
            Ok(None)
        }
    }
}

/// The range again, if it is still this process's. One that can't create in the object store gives it up.
async fn go_on(
    range: &Arc<OwnedRange>,
    reaches_store: oneshot::Receiver<bool>,
    stand_by: &StandBy<'_>,
) -> Result<Option<Arc<OwnedRange>>, String> {
    if !reaches_store.await.unwrap_or(false) {
        stand_by.waiting.note("this process can't read or write in the object store".to_owned());
        range.give_up().await.map_err(|error| error.to_string())?;
        // Others look meanwhile.
        let surroundings = &stand_by.stores.surroundings;
        surroundings.clock.sleep(surroundings.settings.ttl).await;
        return Ok(None);
    }
    let surroundings = &stand_by.stores.surroundings;
    let patience = TAKES_OF_LEASE * surroundings.settings.ttl;
    match range.go_on_within(patience).await.map_err(|error| error.to_string())? {
        Some(Next::Serve(range)) => Ok(Some(range)),
        Some(Next::TakeAgain | Next::Forget | Next::LeaveAlone) => Ok(None),
        // Another process may be able to seal what is open.
        None => {
            stand_by.waiting.note("what is open of the stamp could not be sealed in time".to_owned());
            range.give_up().await.map_err(|error| error.to_string())?;
            surroundings.clock.sleep(surroundings.settings.ttl).await;
            Ok(None)
        }
    }
}
