//! What follows after a range has stopped.
//!
//! What always holds: a log that stopped is sealed before it is read again; a range that another sealed is
//! taken again if its own entry still names this process.

use crate::error::StampError;
use crate::range::open::{broken, open, own_entry, unsealed_again};
use crate::range::owned_range::OwnedRange;
use crate::range::range_stop::RangeStop;
use crate::settings::Breach;
use futures_util::future::{Either, select};
use stamp::{AfterSealedOut, AppendStop, Change, choose_after_sealed_out};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// What the caller does with a range that has stopped.
pub enum Next {
    /// It is this process's still, under a new handle: read it and serve it.
    Serve(Arc<OwnedRange>),
    /// It is this process's still: take it again.
    TakeAgain,
    /// It is not this process's any more.
    Forget,
    /// It is this process's, and must not be touched: a planted fault.
    LeaveAlone,
}

impl OwnedRange {
    /// Finds out what to do with a range that has stopped.
    ///
    /// # Errors
    ///
    /// [`StampError::Stored`] if the range is damaged.
    pub async fn go_on(self: &Arc<Self>) -> Result<Next, StampError> {
        match self.stopped() {
            Some(RangeStop::Reload) => self.reload().await,
            Some(RangeStop::SealedOut) => {
                let own = own_entry(&self.life, self.range()).await?;
                let planted = &self.life.surroundings.settings.planted;
                Ok(match choose_after_sealed_out(own, self.owner()) {
                    AfterSealedOut::TakeAgain if planted.has(Breach::NoTakeAgain) => Next::LeaveAlone,
                    AfterSealedOut::TakeAgain => Next::TakeAgain,
                    AfterSealedOut::Forget => Next::Forget,
                })
            }
            Some(RangeStop::Broken(why)) => Err(broken(&self.life, self.range(), self.owner(), why).await),
            _ => Ok(Next::Forget),
        }
    }

    /// The same, for so long at most; `None`: it took longer, and nothing of it goes on.
    ///
    /// # Errors
    ///
    /// As of [`Self::go_on`].
    pub async fn go_on_within(self: &Arc<Self>, patience: Duration) -> Result<Option<Next>, StampError> {
        let clock = &self.life.surroundings.clock;
        // What is broken off holds the range until it is dropped, which is when this returns.
        match select(pin!(self.go_on()), clock.sleep(patience)).await {
            Either::Left((next, _)) => next.map(Some),
            Either::Right(_) => Ok(None),
        }
    }

    async fn reload(self: &Arc<Self>) -> Result<Next, StampError> {
        let mut held = self.held.lock().await;
        self.settle(&mut held).await?;
        let held = held.clone();
        if let Some(extent) = unsealed_again(&self.life, &held).await {
            return Ok(Next::Serve(Arc::new(OwnedRange::new(&self.life, held, Some(extent)))));
        }
        let opened = match self.open_or_close(&held).await? {
            Ok(opened) => opened,
            Err(changes) => {
                let alone = Arc::new(OwnedRange::new(&self.life, held, None));
                alone.change(&changes).await?;
                alone
            }
        };
        Ok(Next::Serve(opened))
    }

    /// The range, or, if the store does not answer for the name at the end of a tail, which nobody can seal
    /// then, the changes that close the tails instead. What is broken off is dropped when this returns.
    async fn open_or_close(
        self: &Arc<Self>,
        held: &stamp::HeldRange,
    ) -> Result<Result<Arc<OwnedRange>, Vec<Change>>, StampError> {
        let surroundings = &self.life.surroundings;
        // A try that was given more time has it here, too.
        let patience = surroundings.settings.give_up_after.max(surroundings.settings.object_try_for);
        let patience = surroundings.clock.sleep(patience);
        match select(pin!(open(&self.life, held.clone())), patience).await {
            Either::Left((opened, _)) => opened.map(Ok),
            Either::Right((_, opening)) => match self.close_alone(held) {
                Some(changes) => Ok(Err(changes)),
                None => opening.await.map(Ok),
            },
        }
    }

    /// The changes that close this owner's own tails where it has acknowledged; none if anything else is
    /// open, which only a seal can close.
    fn close_alone(self: &Arc<Self>, held: &stamp::HeldRange) -> Option<Vec<Change>> {
        let logs = self.all_logs();
        let close = |(stream, entry): (stamp::StreamId, &stamp::ExtentEntry)| {
            let log = logs.iter().find(|log| log.stream == stream)?;
            let mut state = log.core.state.lock();
            let window = state.window.as_mut().filter(|window| window.place().extent == entry.name)?;
            // What is answered from now on lies behind the end, and is not acknowledged.
            window.stop(AppendStop::GivenUp);
            let length = window.end();
            Some(Change::CloseAlone { stream, extent: entry.name, length })
        };
        held.document().unsealed().map(close).collect()
    }

    /// An error of a reader of this range, once it is known whose the range is: only its owner calls damage
    /// what it reads.
    pub async fn broken(&self, error: StampError) -> StampError {
        match error {
            StampError::Stored(stored) => {
                match broken(&self.life, self.range(), self.owner(), stored.to_string()).await {
                    StampError::Stored(_) => StampError::Stored(stored),
                    other => other,
                }
            }
            other => other,
        }
    }
}
