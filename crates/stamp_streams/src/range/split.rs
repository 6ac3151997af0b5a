//! A range becomes two: carries out `stamp::choose_split`.
//!
//! What always holds: until the outcome is known the parent takes no writes, and this process takes none of
//! the heirs.

use crate::error::StampError;
use crate::range::owned_range::OwnedRange;
use crate::range::range_stop::RangeStop;
use stamp::{
    AfterTransaction, Backup, BackupScope, FIRST_EPOCH, HeirNames, HeldRange, Owner, RangeDocument, RangeId,
    Revision, Split, StreamId, TransactionAnswer, choose_after_transaction, choose_split,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl OwnedRange {
    /// Splits the range at `at`, the first key of the second heir, and serves both from now on: the caller
    /// reads them first.
    ///
    /// # Errors
    ///
    /// If the key is not inside the range, or the range has stopped.
    pub async fn split(self: &Arc<Self>, at: &[u8]) -> Result<[Arc<OwnedRange>; 2], StampError> {
        self.change_release(|release| *release = release.begin());
        let outcome = self.try_split(at).await;
        if outcome.is_err() && self.is_held() {
            self.change_release(|release| *release = release.abort());
            self.all_logs().iter().for_each(|log| log.reopen());
        }
        outcome
    }

    async fn try_split(self: &Arc<Self>, at: &[u8]) -> Result<[Arc<OwnedRange>; 2], StampError> {
        for log in self.all_logs() {
            log.close().await.map_err(|_| StampError::NotMine(self.range()))?;
        }
        let mut held = self.held.lock().await;
        self.settle(&mut held).await?;
        if !self.is_held() {
            return Err(StampError::NotMine(self.range()));
        }
        let names = [self.heir_names(held.document()), self.heir_names(held.document())];
        let split = choose_split(&held, at, names)?;
        let heirs: Vec<RangeId> = split.heirs.iter().map(|heir| heir.range).collect();
        self.life.not_taken.heirs_under_way.lock().extend(heirs.iter().copied());
        let outcome = self.send(&split, held.revision()).await;
        let served = outcome.map(|revision| {
            self.stop(RangeStop::Split);
            self.heirs(split, revision)
        });
        // From here on this process has handles of them, or there are none.
        self.life.not_taken.heirs_under_way.lock().retain(|heir| !heirs.contains(heir));
        served
    }

    fn heir_names(&self, parent: &RangeDocument) -> HeirNames {
        let streams = parent.streams.keys().map(|id| (*id, StreamId(self.life.next_name())));
        let streams: BTreeMap<StreamId, StreamId> = streams.collect();
        HeirNames { range: RangeId(self.life.next_name()), streams, mark: self.life.next_mark() }
    }

    /// Sends the split until its outcome is known. Once it is not, the lease has ended.
    async fn send(&self, split: &Split, compared: Revision) -> Result<Revision, StampError> {
        let mut back_off = self.life.surroundings.back_off();
        let first = &split.heirs[0];
        loop {
            if !self.life.holds() {
                self.stop(RangeStop::LeaseEnded);
                return Err(StampError::LeaseEnded);
            }
            let answer = self.life.metadata.commit(&split.transaction).await;
            let mut read = None;
            if answer == TransactionAnswer::CompareFailed {
                // The parent is gone once the split is committed: an heir shows whose split it was.
                let found = self.life.metadata.read_document(first.range).await;
                if found.is_err() {
                    // Whether it is committed nobody knows then: the parent serves no more.
                    self.stop(RangeStop::Lost);
                }
                read = Some(found?);
            }
            match choose_after_transaction(answer, read, first.mark, compared) {
                AfterTransaction::Committed(revision) => return Ok(revision),
                AfterTransaction::Superseded => {
                    self.stop(RangeStop::Lost);
                    return Err(StampError::NotMine(self.range()));
                }
                AfterTransaction::SendAgain | AfterTransaction::Read => back_off.wait().await,
            }
        }
    }

    fn heirs(&self, split: Split, revision: Revision) -> [Arc<OwnedRange>; 2] {
        let backup = Backup {
            life: self.life.life(),
            restores: self.life.restores(),
            revision,
            scope: BackupScope::Change { removed: vec![self.range()] },
            documents: split.heirs.to_vec(),
        };
        split.heirs.map(|document| {
            let owner = Owner { epoch: FIRST_EPOCH, ..self.owner() };
            let held = HeldRange::new(self.life.life(), owner, document, revision);
            let heir = OwnedRange::new(&self.life, held, None);
            *heir.backups.of_split.lock() = Some(backup.clone());
            Arc::new(heir)
        })
    }
}
