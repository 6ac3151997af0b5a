//! A log of a range: appends side by side, acknowledged in order, over one extent after the other.
//!
//! Pushing a part fixes its place; it is sent by a task of its own. An extent that has its size is drained
//! and sealed, and only then does the next one take a part. An append that ends otherwise than in order
//! stops the log and its range: the caller goes on with what `OwnedRange::go_on` gives it.
//!
//! What always holds: at most a window of parts is under way; pushes wait while it is full; the order of
//! pushes is that of the log; an extent is opened at most once by an owner.

use crate::error::AppendError;
use crate::extents::log_core::{LogCore, TailFailure};
use crate::extents::log_handle::Log;
use crate::extents::part_gather::PartGather;
use crate::extents::part_task;
use crate::extents::seal::{SealFor, seal};
use crate::range::owned_range::OwnedRange;
use crate::range::range_stop::RangeStop;
use crate::settings::Breach;
use base::checksum::crc64;
use bytes::Bytes;
use stamp::{
    AppendWindow, Change, ExtentName, ExtentPlace, FirstPart, PART_BODY_SIZE_MAX, PartHeader, PushRefused,
    SealWalk, StreamId, WalkStep, WalkStop, choose_first_part, extent_parts_max,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// Steps to the opening of an extent: naming it, and a backup before it.
const OPENING_STEPS_MAX: usize = 8;

/// A part that has its place in the log, and is being made durable.
pub struct Appended {
    header: PartHeader,
    outcome: oneshot::Receiver<Result<(), AppendError>>,
}

impl Appended {
    /// Where it is.
    pub fn header(&self) -> &PartHeader {
        &self.header
    }

    /// Waits until it is durable, behind all before it, and acknowledged under the lease.
    ///
    /// # Errors
    ///
    /// [`AppendError`] says whether it may be there.
    pub async fn durable(self) -> Result<(), AppendError> {
        self.outcome.await.unwrap_or_else(|_| Err(AppendError::unknown("the process was stopped")))
    }
}

enum Pushed {
    Done(Box<Appended>, Bytes),
    /// The next extent must be opened.
    NotOpen,
    /// Wait until something has changed.
    Wait,
    Refused(AppendError),
}

impl OwnedRange {
    /// A log of the range, to append to.
    pub fn log(self: &Arc<Self>, stream: StreamId) -> Log {
        let core = self.logs.lock().entry(stream).or_default().clone();
        Log { range: self.clone(), core, stream }
    }

    pub(crate) fn all_logs(self: &Arc<Self>) -> Vec<Log> {
        let logs = self.logs.lock();
        let log = |(stream, core): (&StreamId, &Arc<LogCore>)| Log {
            range: self.clone(),
            core: core.clone(),
            stream: *stream,
        };
        logs.iter().map(log).collect()
    }
}

impl Log {
    /// Appends a part of 1 to [`PART_BODY_SIZE_MAX`] bytes: waits until it has its place.
    ///
    /// # Errors
    ///
    /// Nothing was sent: the range does not take writes, or not any more.
    pub async fn append(&self, body: Bytes) -> Result<Appended, AppendError> {
        self.append_made(body.len() as u64, |_, _| body.clone()).await
    }

    /// The same of a body of this size that says where it lies: `make` has the extent and the offset in it.
    ///
    /// # Errors
    ///
    /// Nothing was sent: the range does not take writes, or not any more.
    pub async fn append_made(
        &self,
        size: u64,
        make: impl Fn(ExtentName, u64) -> Bytes,
    ) -> Result<Appended, AppendError> {
        if !(1..=PART_BODY_SIZE_MAX).contains(&size) {
            return Err(AppendError::not_sent(format_args!("a part of {size} bytes")));
        }
        loop {
            let changed = self.core.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if !self.range.admits_writes() {
                return Err(AppendError::not_sent("the range does not take writes"));
            }
            match self.try_push(size, &make) {
                Pushed::Done(appended, body) => {
                    let task = part_task::send(self.clone(), appended.header, body);
                    self.range.life.surroundings.spawner.spawn("part", Box::pin(task));
                    return Ok(*appended);
                }
                Pushed::Refused(error) => return Err(error),
                Pushed::NotOpen => self.start_tending(),
                Pushed::Wait => {}
            }
            changed.await;
        }
    }

    fn try_push(&self, size: u64, make: &impl Fn(ExtentName, u64) -> Bytes) -> Pushed {
        let mut state = self.core.state.lock();
        if let Some(failure) = state.failure.take() {
            let TailFailure { why, is_full } = failure;
            return Pushed::Refused(AppendError { is_full, ..AppendError::not_sent(why) });
        }
        if state.is_closing {
            return Pushed::Wait;
        }
        let Some(window) = state.window.as_mut().filter(|window| !self.is_full(window)) else {
            return Pushed::NotOpen;
        };
        if window.stopped().is_none() && !window.has_room(size) {
            return Pushed::Wait;
        }
        // Under the lock, because its place is in it.
        let body = make(window.place().extent, window.next_offset());
        match window.push(body.len() as u64, crc64(&[&body])) {
            Ok(header) => {
                let (sender, outcome) = oneshot::channel();
                state.waiting.insert((header.place.extent, header.offset), sender);
                if let Some(gather) = &mut state.gather {
                    gather.pushed(&header, &body);
                }
                Pushed::Done(Box::new(Appended { header, outcome }), body)
            }
            Err(PushRefused::Full) => Pushed::Wait,
            Err(PushRefused::Stopped(stop)) => Pushed::Refused(AppendError::not_sent(stop)),
        }
    }

    /// Whether the next part goes to another extent.
    fn is_full(&self, window: &AppendWindow) -> bool {
        let extent_size = self.range.life.surroundings.settings.extent_size_bytes;
        let parts_max = self.core.parts_max.load(Ordering::Relaxed);
        window.next_offset() >= extent_size || window.part_count() >= parts_max
    }

    /// Starts the task that closes a full extent and opens the next one, unless it runs.
    fn start_tending(&self) {
        if std::mem::replace(&mut self.core.state.lock().is_tended, true) {
            return;
        }
        let log = self.clone();
        let task = async move {
            let outcome = log.tend().await;
            let mut state = log.core.state.lock();
            state.is_tended = false;
            state.failure = outcome.err();
            drop(state);
            log.core.changed.notify_waiters();
        };
        self.range.life.surroundings.spawner.spawn("tail", Box::pin(task));
    }

    async fn tend(&self) -> Result<(), TailFailure> {
        let _tail = self.core.tail.lock().await;
        let window = self.core.state.lock().window.clone();
        if window.is_none() {
            // A roll-over that was cut off.
            self.record().await?;
        }
        match window {
            Some(window) if self.is_full(&window) => self.roll(&window).await,
            Some(_) => Ok(()),
            None => self.open_next().await,
        }
    }

    async fn roll(&self, window: &AppendWindow) -> Result<(), TailFailure> {
        let settings = &self.range.life.surroundings.settings;
        if settings.names_early {
            self.name_next().await?;
            if settings.planted.has(Breach::RollBeforeSeal) {
                return Ok(self.roll_before_seal()?);
            }
        }
        self.core.state.lock().is_closing = true;
        let closed = self.close_tail(window.place()).await;
        self.core.state.lock().is_closing = false;
        closed?;
        if settings.names_early {
            self.open_next().await?;
            self.core.changed.notify_waiters();
        }
        self.record().await?;
        match settings.names_early {
            true => Ok(()),
            false => self.open_next().await,
        }
    }

    /// Records the lengths of extents that were sealed.
    async fn record(&self) -> Result<(), String> {
        let changes = self.core.state.lock().unrecorded.clone();
        if !changes.is_empty() {
            self.change(&changes).await.map_err(|failure| failure.why)?;
            self.core.state.lock().unrecorded.retain(|change| !changes.contains(change));
        }
        Ok(())
    }

    /// Drains and seals the open extent.
    async fn close_tail(&self, place: ExtentPlace) -> Result<(), String> {
        let (life, extent) = (&self.range.life, place.extent);
        self.drained().await?;
        let window = self.core.state.lock().window.clone();
        let walk = match window.filter(|window| window.place() == place) {
            Some(window) => SealWalk::of_own(life.life(), &window),
            None => SealWalk::new(life.life(), place, self.range.owner()),
        };
        let walk = seal(&life.surroundings, walk, SealFor::Other, || self.range.is_held()).await;
        let stop = match walk.step() {
            WalkStep::Sealed { length } => {
                let mut state = self.core.state.lock();
                (state.window, state.gather) = (None, None);
                // None, unless a push came between: nobody else would tell it.
                let waiting = state.waiting.split_off(&(extent, 0));
                for (_, waiting) in waiting {
                    drop(waiting.send(Err(AppendError::unknown("the extent was sealed"))));
                }
                state.progress.sealed = Some(extent);
                state.unrecorded.push(Change::RecordLength { stream: self.stream, extent, length });
                return Ok(());
            }
            WalkStep::Stopped(WalkStop::Broken(why)) => RangeStop::Broken(why),
            WalkStep::Stopped(_) => RangeStop::SealedOut,
            WalkStep::Read { .. } | WalkStep::Create(_) => RangeStop::LeaseEnded,
        };
        self.range.stop(stop.clone());
        Err(stop.to_string())
    }

    /// Waits until nothing is under way.
    pub(crate) async fn drained(&self) -> Result<(), String> {
        loop {
            let changed = self.core.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if let Some(stop) = self.range.stopped() {
                return Err(stop.to_string());
            }
            if self.is_drained() {
                return Ok(());
            }
            changed.await;
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.core.state.lock().window.as_ref().is_none_or(AppendWindow::is_drained)
    }

    async fn name_next(&self) -> Result<(), TailFailure> {
        let extent = self.range.new_extent();
        self.change(&[Change::AddExtent { stream: self.stream, extent }]).await
    }

    async fn change(&self, changes: &[Change]) -> Result<(), TailFailure> {
        Ok(self.range.change(changes).await.map(drop)?)
    }

    /// Opens the stream's last extent, or one that it names for it.
    async fn open_next(&self) -> Result<(), TailFailure> {
        let planted = &self.range.life.surroundings.settings.planted;
        for _ in 0..OPENING_STEPS_MAX {
            let document = self.range.document();
            let last = document.streams.get(&self.stream).and_then(|entry| entry.extents.last()).cloned();
            let Some(last) = last else {
                self.name_next().await?;
                continue;
            };
            let progress = self.core.state.lock().progress;
            let may = choose_first_part(&document, self.stream, last.name, progress);
            let is_reopened = self.range.reopened == Some(last.name) && progress.opened.is_none();
            match may {
                FirstPart::AfterBackup if !planted.has(Breach::PartsBeforeBackup) => {
                    self.range.back_up_while_held().await?;
                }
                FirstPart::AfterSealOf(extent) if !is_reopened => {
                    return Err(format!("extent {extent} is not sealed").into());
                }
                FirstPart::Never if !is_reopened => self.name_next().await?,
                _ => {
                    self.open(last.name, last.ordinal);
                    return Ok(());
                }
            }
        }
        Err("the next extent could not be opened".to_owned().into())
    }

    fn open(&self, extent: ExtentName, ordinal: u64) {
        let (life, range) = (&self.range.life, self.range.range());
        let place = ExtentPlace { extent, range, stream: self.stream, ordinal };
        let window =
            AppendWindow::new(life.life(), place, self.range.owner(), life.surroundings.settings.window);
        let document = self.range.document();
        let extents = document.streams.values().map(|entry| entry.extents.len()).sum();
        self.core.parts_max.store(extent_parts_max(extents), Ordering::Relaxed);
        let bundles = &life.surroundings.settings.bundles;
        let is_bundled = document.streams.get(&self.stream).is_some_and(|entry| (bundles.of)(&entry.purpose));
        let mut state = self.core.state.lock();
        state.progress.opened = Some(extent);
        state.window = Some(window);
        state.gather = is_bundled.then(|| PartGather::new(bundles.bounds, &life.parts.waiting_size));
    }

    /// A planted fault: the next extent is opened while parts of the one before it are under way, which are
    /// not waited for.
    fn roll_before_seal(&self) -> Result<(), String> {
        let document = self.range.document();
        let last = document.streams.get(&self.stream).and_then(|entry| entry.extents.last());
        let (name, ordinal) = last.map(|last| (last.name, last.ordinal)).ok_or("no extent")?;
        for (_, waiting) in std::mem::take(&mut self.core.state.lock().waiting) {
            drop(waiting.send(Err(AppendError::unknown("the log has rolled"))));
        }
        self.open(name, ordinal);
        Ok(())
    }

    /// Closes the tail for good: drained, sealed, its length recorded. Pushes wait until [`Self::reopen`].
    ///
    /// # Errors
    ///
    /// If the range has stopped meanwhile.
    pub(crate) async fn close(&self) -> Result<(), String> {
        let _tail = self.core.tail.lock().await;
        self.close_open_tail().await?;
        self.record().await
    }

    /// The same, but for the record of its length.
    pub(crate) async fn close_unrecorded(&self) -> Result<(), String> {
        let _tail = self.core.tail.lock().await;
        self.close_open_tail().await
    }

    async fn close_open_tail(&self) -> Result<(), String> {
        self.core.state.lock().is_closing = true;
        let place = self.core.state.lock().window.as_ref().map(AppendWindow::place);
        match place {
            Some(place) => self.close_tail(place).await,
            None => Ok(()),
        }
    }

    /// Pushes are taken again.
    pub(crate) fn reopen(&self) {
        self.core.state.lock().is_closing = false;
        self.core.changed.notify_waiters();
    }
}
