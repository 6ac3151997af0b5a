//! Beats: a transaction each third of the lease time, which proves that the process's key is there.
//!
//! A beat that fails ends the life at once; one without an answer in some time is tried again until the
//! deadline. The deadline counts from before a beat was sent. No beat is sent while a loop of a range hangs:
//! then the lease ends, and another process serves.

use crate::error::StampError;
use crate::membership::cut_off::tell_others;
use crate::membership::life::Life;
use crate::settings::Breach;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use futures_util::future::{Either, join, select};
use stamp::{TransactionAnswer, beat};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Tries of a beat in the time between two.
const TRIES_PER_INTERVAL: u32 = 2;
/// How often in a lease time a life that nobody asks looks whether it has ended.
const LOOKS_PER_TTL: u32 = 20;

/// Makes the first beat, and starts what makes the others.
async fn start(life: &Arc<Life>) -> Result<(), StampError> {
    let started = life.surroundings.clock.monotonic();
    let mut back_off = life.surroundings.back_off();
    loop {
        if beat_once(life).await == TransactionAnswer::CompareFailed || has_taken_long(life, started) {
            let error = StoreError::UnknownOutcome("no beat was committed".to_owned());
            return Err(StampError::store("joining", error));
        }
        if life.holds_once_beaten() {
            break;
        }
        back_off.wait().await;
    }
    let spawner = life.surroundings.spawner.clone();
    spawner.spawn("beats", Box::pin(keep_beating(life.clone())));
    spawner.spawn("lease", Box::pin(look_at_lease(life.clone())));
    spawner.spawn("cut-off", Box::pin(tell_others(life.clone())));
    Ok(())
}

fn has_taken_long(life: &Life, since: Duration) -> bool {
    let ttl = life.surroundings.settings.ttl;
    life.surroundings.clock.monotonic().saturating_sub(since) >= ttl
}

impl Life {
    /// Joins the stamp under a new incarnation, and keeps the lease alive until it ends. Ranges are taken
    /// with the outcome, and everything is dropped once it has ended.
    ///
    /// # Errors
    ///
    /// If a store can't be reached, or there is no stamp.
    pub async fn join(surroundings: &Surroundings) -> Result<Arc<Self>, StampError> {
        let joined = Life::begin(surroundings).await?;
        start(&joined).await?;
        Ok(joined)
    }

    /// As [`Life::holds`], and no end of a lease that has not begun.
    fn holds_once_beaten(&self) -> bool {
        self.with_lease(|lease| lease.clone().holds(self.surroundings.instants()))
    }
}

/// The outcome of a request, if it comes in time. A store that changes its leader may leave one without an
/// answer: several tries fit into a lease.
async fn in_time<T>(life: &Life, request: impl Future<Output = T>) -> Option<T> {
    let patience = life.with_lease(|lease| lease.beat_interval()) / TRIES_PER_INTERVAL;
    match select(pin!(request), life.surroundings.clock.sleep(patience)).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

async fn beat_once(life: &Life) -> TransactionAnswer {
    let sent_at = life.surroundings.instants();
    let transaction = beat(life.life().generation, life.incarnation());
    let answer = in_time(life, life.metadata.commit(&transaction)).await;
    let answer = answer.unwrap_or(TransactionAnswer::Unknown);
    match answer {
        TransactionAnswer::Committed(_) => {
            let now = life.surroundings.instants();
            life.with_lease(|lease| lease.beat_committed(sent_at, now));
        }
        TransactionAnswer::CompareFailed => life.end(),
        TransactionAnswer::Unknown => {}
    }
    answer
}

/// A loop that has not gone round since the last beat.
fn hung_loop(life: &Life) -> Option<String> {
    let hung = life.loops.ask().err()?;
    (!life.surroundings.settings.planted.has(Breach::BeatWithoutLoops)).then_some(hung)
}

async fn keep_beating(life: Arc<Life>) {
    let interval = life.with_lease(|lease| lease.beat_interval());
    let clock = life.surroundings.clock.clone();
    let (mut rest, mut says_it) = (interval, false);
    loop {
        clock.sleep(rest).await;
        if !life.holds() {
            return;
        }
        if let Some(hung) = hung_loop(&life) {
            if !std::mem::replace(&mut says_it, true) {
                tracing::error!("{hung} does not go round: this process makes no beat until it does");
            }
            rest = interval / 4;
            continue;
        }
        says_it = false;
        let sent_at = clock.monotonic();
        let kept = life.surroundings.keys.keep_alive(life.store_lease);
        let (answer, kept) = join(beat_once(&life), in_time(&life, kept)).await;
        if kept == Some(Err(StoreError::NotThere)) {
            life.end();
        }
        let interval = if answer == TransactionAnswer::Unknown { interval / 4 } else { interval };
        rest = interval.saturating_sub(clock.monotonic().saturating_sub(sent_at));
    }
}

async fn look_at_lease(life: Arc<Life>) {
    let interval = life.surroundings.settings.ttl / LOOKS_PER_TTL;
    while life.holds() {
        life.surroundings.clock.sleep(interval).await;
    }
}
