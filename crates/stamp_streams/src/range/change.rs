//! Changes of a range's document by its owner: one transaction at a time, sent until its outcome is known.
//! What callers want to change meanwhile goes together with the next one.
//!
//! What always holds: a change that was begun is settled before the next one, also if its caller went away;
//! nothing is sent after the lease's end; a change that was overtaken stops the range.

use crate::backup::back_up::{back_up_all, store_backup};
use crate::error::StampError;
use crate::range::owned_range::OwnedRange;
use crate::range::range_stop::RangeStop;
use bytes::Bytes;
use futures_util::future::{Either, select};
use stamp::{
    AfterTransaction, BeginError, Change, DOCUMENT_RESERVE_BYTES, DOCUMENT_SIZE_BYTES_LARGE,
    DOCUMENT_SIZE_BYTES_MAX, Grouping, HeldRange, RangeDocument, TransactionAnswer, group_changes,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl OwnedRange {
    /// Changes the document: all of `changes` or none. The document then.
    ///
    /// # Errors
    ///
    /// [`StampError::Change`] if they do not fit the document, [`StampError::Full`] if it has no room for
    /// them: it is as it was. [`StampError::LeaseEnded`]
    /// and [`StampError::NotMine`] leave it open whether they were made.
    pub async fn change(&self, changes: &[Change]) -> Result<Arc<RangeDocument>, StampError> {
        let mine = self.waiting_changes.wait(changes);
        let mut held = self.held.lock().await;
        loop {
            // Another caller has sent them with its own, and settled them.
            if let Some(outcome) = mine.outcome() {
                return outcome;
            }
            // What is under way may be a group that has them, whose sender went away.
            self.settle(&mut held).await?;
            if mine.outcome().is_none() {
                self.begin_waiting(&mut held)?;
                // The outcome of a group is each caller's.
                drop(self.settle(&mut held).await);
            }
        }
    }

    /// Begins the changes that wait, or as many of them as one transaction takes. None may be under way.
    fn begin_waiting(&self, held: &mut HeldRange) -> Result<(), StampError> {
        if !self.is_held() {
            return Err(StampError::NotMine(self.range()));
        }
        let waiting = self.waiting_changes.waiting();
        let size_before = self.document_size.bytes.load(Ordering::Relaxed) as usize;
        let each = waiting.iter().map(|change| change.changes.as_slice());
        let (grouped, groupings) = group_changes(held.document(), self.life.life().stamp, size_before, each);
        let mut taken = Vec::new();
        for (change, grouping) in waiting.into_iter().zip(groupings) {
            match grouping {
                Grouping::Taken => taken.push(change),
                Grouping::Refused(why) => {
                    self.waiting_changes.refuse(&change, BeginError::from(why).into());
                }
                Grouping::Full(full) => {
                    self.waiting_changes.refuse(&change, StampError::Full(self.range(), full));
                }
                Grouping::Later => break,
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        self.say_if_large(grouped.size);
        match held.begin_grouped(grouped, self.life.next_mark()) {
            Ok(_) => self.waiting_changes.send(taken),
            Err(why) => taken.iter().for_each(|change| {
                self.waiting_changes.refuse(change, why.clone().into());
            }),
        }
        Ok(())
    }

    fn say_if_large(&self, size: usize) {
        if size > DOCUMENT_SIZE_BYTES_LARGE
            && !self.document_size.has_said_large.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                range = %self.range(),
                size,
                size_max = DOCUMENT_SIZE_BYTES_MAX,
                reserve = DOCUMENT_RESERVE_BYTES,
                "the document of a range is large: from its reserve on only what makes it smaller is taken, such as \
                 deletions; delete what is not needed"
            );
        }
    }

    /// Sends the change that is under way, if there is one, until its outcome is known.
    pub(crate) async fn settle(&self, held: &mut HeldRange) -> Result<(), StampError> {
        let settled = self.settle_sent(held).await;
        let outcome = settled.clone().map(|()| held.document().clone());
        self.waiting_changes.settled(&outcome);
        settled
    }

    async fn settle_sent(&self, held: &mut HeldRange) -> Result<(), StampError> {
        let mut back_off = self.life.surroundings.back_off();
        while let Some(sent) = held.sent() {
            let transaction = sent.transaction.clone();
            if !self.life.holds() {
                self.stop(RangeStop::LeaseEnded);
                return Err(StampError::LeaseEnded);
            }
            let answer = self.life.metadata.commit(&transaction).await;
            let mut after = held.answered(answer, None);
            while after == Some(AfterTransaction::Read) {
                if !self.life.holds() {
                    self.stop(RangeStop::LeaseEnded);
                    return Err(StampError::LeaseEnded);
                }
                let read = self.life.metadata.read_document(self.range()).await?;
                after = held.answered(answer, Some(read));
                if after == Some(AfterTransaction::Read) {
                    back_off.wait().await;
                }
            }
            match after {
                Some(AfterTransaction::Committed(_)) | None => self.committed(held.document()),
                Some(AfterTransaction::Superseded) => {
                    self.stop(RangeStop::Lost);
                    return Err(StampError::NotMine(self.range()));
                }
                Some(AfterTransaction::SendAgain | AfterTransaction::Read) => back_off.wait().await,
            }
        }
        Ok(())
    }

    /// Writes keys of others beside the range's, in one step that compares that the range is still this
    /// owner's: as often as it takes until that is known.
    ///
    /// # Errors
    ///
    /// [`StampError::NotMine`] if another has the range, [`StampError::LeaseEnded`] if it is not known.
    pub async fn put_beside(&self, puts: &[(String, Bytes)]) -> Result<(), StampError> {
        let mut back_off = self.surroundings().back_off();
        while self.is_held() {
            match self.life.metadata.commit_beside(self.range(), self.owner(), puts).await {
                TransactionAnswer::Committed(_) => return Ok(()),
                TransactionAnswer::CompareFailed => {
                    self.stop(RangeStop::Lost);
                    return Err(StampError::NotMine(self.range()));
                }
                TransactionAnswer::Unknown => back_off.wait().await,
            }
        }
        Err(StampError::LeaseEnded)
    }

    /// A backup is sent many times before it is given up; a range that has stopped does not wait for that.
    pub(crate) async fn back_up_while_held(&self) -> Result<(), StampError> {
        match select(pin!(self.back_up()), pin!(self.until_stopped())).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(StampError::NotMine(self.range())),
        }
    }

    /// Makes a backup have what only the document says, and records that: of the document as it is then.
    async fn back_up(&self) -> Result<(), StampError> {
        let _one = self.backups.turn.lock().await;
        loop {
            if !self.document().needs_backup {
                // Another caller has made it meanwhile.
                return Ok(());
            }
            let of_split = self.backups.of_split.lock().clone();
            let has_until = match of_split {
                Some(backup) => {
                    store_backup(&self.life.surroundings, &backup).await?;
                    backup.revision
                }
                None => back_up_all(&self.life).await?,
            };
            let mut held = self.held.lock().await;
            self.settle(&mut held).await?;
            *self.backups.of_split.lock() = None;
            if !held.document().needs_backup {
                return Ok(());
            }
            // Changed meanwhile, perhaps by what headers do not say.
            if held.revision() > has_until {
                continue;
            }
            if !self.is_held() {
                return Err(StampError::NotMine(self.range()));
            }
            held.begin(&[Change::BackedUp], self.life.next_mark())?;
            return self.settle(&mut held).await;
        }
    }

    /// Gives up a range that has stopped in a way that another process may do better with: it cannot reach
    /// the object store, say. Nothing is served under this handle any more, and whoever takes the range
    /// seals what is open.
    ///
    /// # Errors
    ///
    /// If the lease has ended, or another has the range.
    pub async fn give_up(&self) -> Result<(), StampError> {
        self.stop(RangeStop::Released);
        let mut held = self.held.lock().await;
        self.settle(&mut held).await?;
        held.begin_release(self.life.next_mark())?;
        self.settle(&mut held).await
    }
}
