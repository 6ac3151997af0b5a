//! The layers over a range that was taken, until it stops or the process does.
//!
//! What always holds: an answer leaves only while the range is held; a process that is asked to stop gives
//! the range up before it ends, so that another takes it at once.

use crate::configuration::Configuration;
use crate::over_ranges::{front_end, memory_guard, services, stopped};
use crate::serve_error::ServeError;
use crate::stamp::former_revisions::FormerRevisions;
use crate::stamp::load_progress::{STUCK_AFTER, while_telling};
use crate::stamp::process::Process;
use crate::stamp::stand_by::{Held, Waiting};
use crate::stamp::upkeep::{keep_backing_up, keep_compacting, keep_sweeping};
use base::{BoxFuture, Environment, LoopSign};
use futures_util::future::{Either, join3, select};
use partition::{Lease, ObjectTable, Partitions};
use stamp_streams::{OwnedRange, RangeStop, StampLayer};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::Streams;
use tokio::sync::oneshot;

/// How long requests under way have, once the range has stopped: they can only fail.
const DRAIN_FOR: Duration = Duration::from_millis(500);
/// How long the layers have to close, once the range has stopped.
const CLOSE_FOR: Duration = Duration::from_secs(5);
/// How long checkpoints are written before a range is given up on purpose, so that whoever takes it has
/// little to replay.
const FLUSH_FOR: Duration = Duration::from_secs(10);

/// Why a stamp is not loaded of which nothing more is read.
const TOO_LONG: &str = "nothing more of it was read for two minutes";

/// The answer to clients that come while requests under way are finished.
const STOPPING: &str = "This process is being stopped: another one of the stamp serves soon.";

/// The lease of a range: it may answer while it is held.
struct RangeLease(Arc<OwnedRange>);

impl Lease for RangeLease {
    fn holds(&self) -> bool {
        self.0.admits_reads()
    }

    fn watch_loop(&self, name: &str) -> Option<Box<dyn LoopSign>> {
        Some(Box::new(self.0.watch_loop(name)))
    }
}

/// The layers over a range that was taken.
pub(super) struct Served {
    streams: Arc<Streams>,
    partitions: Arc<Partitions>,
    held: Held,
}

impl Served {
    /// Opens the layers: checkpoints and logs are read, and `waiting` says how far that is. An error is the
    /// reason why not.
    pub(super) async fn open(
        configuration: &Configuration,
        env: &Environment,
        held: Held,
        waiting: &Waiting,
    ) -> Result<Self, String> {
        let began_at = env.clock.monotonic();
        let opened = async {
            let layer = StampLayer::open(held.range.clone());
            let layer = match select(pin!(layer), env.clock.sleep(STUCK_AFTER)).await {
                Either::Left((layer, _)) => layer.map_err(|error| error.to_string())?,
                Either::Right(_) => return Err(TOO_LONG.to_owned()),
            };
            let replays = layer.replay_progress();
            let streams = Streams::of_stamp(layer);
            let lease = Arc::new(RangeLease(held.range.clone()));
            let settings = configuration.partitions.clone();
            let opening = Partitions::open_while(env, streams.clone(), settings, lease);
            let last_change = || held.range.document().mark;
            let partitions = while_telling(waiting, env, &replays, last_change, opening).await;
            let partitions = partitions.ok_or_else(|| TOO_LONG.to_owned())?;
            let partitions = Arc::new(partitions.map_err(|error| error.to_string())?);
            let guard = env.spawner.start_thread("memory").map_err(|error| error.to_string())?;
            guard.spawn("memory", Box::pin(memory_guard(configuration, env, &partitions).run()));
            Ok((streams, partitions))
        };
        match opened.await {
            Ok((streams, partitions)) => {
                let took_for = env.clock.monotonic().saturating_sub(began_at);
                tracing::info!(took_ms = took_for.as_millis() as u64, "the stamp's ranges are loaded");
                Ok(Served { streams, partitions, held })
            }
            Err(why) => Err(why),
        }
    }
}

/// How serving has ended.
pub(super) enum Ended {
    /// The process was asked to stop, and has given the range up.
    Stopped,
    /// The range has stopped.
    Lost(Lost),
}

/// A range that has stopped, and the layers over it.
pub(super) struct Lost {
    pub(super) held: Held,
    pub(super) partitions: Arc<Partitions>,
    /// Tells whether the object store answers this process, where the range stopped because it might not.
    pub(super) reaches_store: oneshot::Receiver<bool>,
}

/// Ends what the layers of a lost range still do: nothing of it reaches a store.
pub(super) async fn close(partitions: &Partitions, clock: &dyn base::Clock) {
    let _ = select(pin!(partitions.close()), clock.sleep(CLOSE_FOR)).await;
}

/// Serves the range until it stops, or the process is asked to.
pub(super) async fn serve_range(
    process: &Process<'_>,
    served: Served,
    revisions: &Arc<FormerRevisions>,
) -> Result<Ended, ServeError> {
    let Served { streams, partitions, held } = served;
    let (configuration, env) = (process.configuration, process.env);
    let services = services(configuration, env, &partitions);
    let front_end = front_end(configuration, services, env, process.limits.clone(), process.logs);
    process.readiness.note_serving(crate::admin::Layers {
        streams: streams.clone(),
        partitions: partitions.clone(),
        disk: env.disk.clone(),
    });
    if let Some(stamp) = process.readiness.stamp() {
        stamp.note_held(Some((held.range.clone(), held.life.clone())));
    }
    if let Some(admin) = process.admin {
        admin.note_serving(process.handles.clone(), env);
    }
    let (range, clock) = (held.range.clone(), env.clock.clone());
    let upkeep = [
        Box::pin(keep_backing_up(held.life.clone(), range.clone(), clock.clone())) as BoxFuture<'static, ()>,
        Box::pin(keep_sweeping(held.life.clone(), range.clone(), clock.clone())),
        Box::pin(keep_compacting(held.life.clone(), range.clone(), clock.clone(), revisions.clone())),
    ];
    for task in upkeep {
        env.spawner.spawn("stamp-upkeep", task);
    }
    tracing::info!(owner = %range.owner(), "this process serves the stamp");
    let [blob, table, queue] = process.listeners_again()?;
    let (ended, ends) = tokio::sync::watch::channel(false);
    let shutdown = || -> BoxFuture<'static, ()> { Box::pin(stopped(ends.clone())) };
    let serving = pin!(join3(
        front_end.serve_blob(blob, shutdown()),
        front_end.serve_table(table, shutdown()),
        front_end.serve_queue(queue, shutdown()),
    ));
    let until = async {
        tokio::select! {
            () = stopped(process.stop.clone()) => None,
            stop = range.until_stopped() => Some(stop),
        }
    };
    let until = pin!(async {
        let stop = until.await;
        if stop.is_none() {
            process.readiness.note_draining();
            crate::service_manager::note_stopping();
            flush(&partitions, &*env.clock).await;
        }
        ended.send_replace(true);
        stop
    });
    let (stop, serving) = match select(serving, until).await {
        // No listener was taken away: this does not happen.
        Either::Left((_, until)) => (until.await, None),
        Either::Right((stop, serving)) => (stop, Some(serving)),
    };
    match stop {
        None => {
            let stopping = async {
                if let Some(serving) = serving {
                    serving.await;
                }
                // A store that does not answer must not keep the stamp here: whoever takes it seals what is
                // open.
                let _ = select(pin!(partitions.close()), env.clock.sleep(CLOSE_FOR)).await;
                give_up(&held).await;
            };
            let mut stopping = pin!(stopping);
            // The ports are listened on to the end: whoever connects now must not wait for nothing. Where
            // that fails, for want of file descriptors, the stamp is given up all the same.
            let answering = process.answer_while(Arc::new(|| STOPPING.to_owned()), stopping.as_mut()).await;
            if let Err(error) = answering {
                tracing::warn!(%error, "who connects while the process stops gets no answer");
                stopping.await;
            }
            Ok(Ended::Stopped)
        }
        Some(stop) => {
            lost(&stop);
            if let Some(stamp) = process.readiness.stamp() {
                stamp.note_held(None);
            }
            let reaches_store = probe_store(&held.range, stop, env);
            if let Some(serving) = serving {
                let _ = select(serving, env.clock.sleep(DRAIN_FOR)).await;
            }
            Ok(Ended::Lost(Lost { held, partitions: partitions.clone(), reaches_store }))
        }
    }
}

/// Begins to look whether the object store answers this process's reads and creates for it, if that may be
/// why the range stopped.
fn probe_store(range: &Arc<OwnedRange>, stop: RangeStop, env: &Environment) -> oneshot::Receiver<bool> {
    let (reply, reaches_store) = oneshot::channel();
    let range = range.clone();
    let probe = async move {
        let reaches =
            stop != RangeStop::Reload || range.reaches_store().await && range.creates_in_store().await;
        // The process may have ended meanwhile.
        let _ = reply.send(reaches);
    };
    env.spawner.spawn("store-probe", Box::pin(probe));
    reaches_store
}

fn lost(stop: &RangeStop) {
    match stop {
        RangeStop::Broken(_) => tracing::error!(%stop, "this process does not serve the stamp any more"),
        _ => tracing::warn!(%stop, "this process does not serve the stamp any more"),
    }
}

/// Writes what is in memory to checkpoints, for some time at most.
async fn flush(partitions: &Partitions, clock: &dyn base::Clock) {
    let flushing = async {
        for table in [ObjectTable::Container, ObjectTable::Entity, ObjectTable::Message, ObjectTable::Blob] {
            if let Err(error) = partitions.flush_now(table, None).await {
                tracing::info!(%error, "not all was flushed before the stamp is given up");
            }
        }
    };
    let _ = select(pin!(flushing), clock.sleep(FLUSH_FOR)).await;
}

/// Gives the range up, and leaves the stamp.
pub(super) async fn give_up(held: &Held) {
    let released = match held.range.release().await {
        Ok(()) => Ok(()),
        Err(_) => held.range.give_up().await,
    };
    match released {
        Ok(()) => tracing::info!("the stamp is given up: another process may serve it"),
        Err(error) => {
            tracing::warn!(%error, "the stamp could not be given up: another waits for the lease's end")
        }
    }
    held.life.leave().await;
}
