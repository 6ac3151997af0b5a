//! Giving a range up on purpose: carries out `stamp::Release`.
//!
//! What always holds: reads stop before the release is sent; nothing is served while its outcome is unknown.

use crate::error::StampError;
use crate::range::open::own_entry;
use crate::range::owned_range::OwnedRange;
use crate::range::range_stop::RangeStop;
use crate::settings::Breach;
use stamp::{AfterTransaction, HeldRange, OwnEntry, Release};
use std::sync::Arc;

impl OwnedRange {
    /// Releases the range, so that another can take it at once. Writes are refused from now on; reads stop
    /// once everything that was appended is durable.
    ///
    /// # Errors
    ///
    /// If the range has stopped in another way.
    pub async fn release(self: &Arc<Self>) -> Result<(), StampError> {
        self.change_release(|release| *release = release.begin());
        for log in self.all_logs() {
            log.drained().await.map_err(|_| StampError::NotMine(self.range()))?;
        }
        let mut held = self.held.lock().await;
        self.settle(&mut held).await?;
        self.change_release(|release| *release = release.drained(true));
        if !self.is_held() || self.change_release(|release| *release) != Release::Quiet {
            return Err(StampError::NotMine(self.range()));
        }
        held.begin_release(self.life.next_mark())?;
        self.change_release(|release| *release = release.sent());
        if self.life.surroundings.settings.planted.has(Breach::BelieveReadAfterRelease) {
            return self.believe_read(&mut held).await;
        }
        let settled = self.settle(&mut held).await;
        if settled.is_ok() {
            let after = AfterTransaction::Committed(held.revision());
            self.change_release(|release| *release = release.settled(&after));
            self.stop(RangeStop::Released);
        }
        settled
    }

    /// A planted fault: after an unknown outcome the own entry is read; if it names this owner, the range is
    /// served on.
    async fn believe_read(&self, held: &mut HeldRange) -> Result<(), StampError> {
        let Some(transaction) = held.sent().map(|sent| sent.transaction.clone()) else { return Ok(()) };
        match self.life.metadata.commit(&transaction).await {
            stamp::TransactionAnswer::Unknown => {}
            answer => {
                held.answered(answer, None);
                self.stop(RangeStop::Released);
                return Ok(());
            }
        }
        if own_entry(&self.life, self.range()).await? == Some(OwnEntry::of(self.owner())) {
            let (document, revision) = (held.document().clone(), held.revision());
            *held = HeldRange::new(self.life.life(), self.owner(), document, revision);
            self.change_release(|release| *release = Release::Serving);
        } else {
            self.stop(RangeStop::Released);
        }
        Ok(())
    }
}
