//! Sweeps: the store is listed, then all documents are read at one revision, then what `stamp::choose_sweep`
//! chooses is done.
//!
//! How long ago an extent was dropped is counted by the sweeper's own clock, from when it first saw the key,
//! or by the stored clock of all sweepers (`ages.rs`), whichever says more: never longer than it is.
//!
//! What always holds: nothing but a sweep deletes; a sweep that is cut off anywhere has done no harm; an
//! object that can't be deleted keeps nothing else from being done.

use crate::backup::back_up::newest_backup;
use crate::collection::age_clock::AgeClock;
use crate::error::StampError;
use crate::extents::seal::{SealFor, seal};
use crate::membership::forget::forget_beat;
use crate::membership::life::Life;
use crate::metadata::metadata_store::Values;
use crate::metadata::wire::KeyKind;
use crate::settings::Breach;
use crate::stores::store_error::StoreError;
use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use stamp::{
    BundlePath, Compare, DroppedExtent, ExtentName, ExtentPlace, FIRST_EPOCH, Found, Incarnation, Key,
    Listing, NamedExtents, Owner, PartPath, RangeId, Revision, SealWalk, StreamId, SweepAction, SweepView,
    Transaction, Value, WalkStep, choose_sweep,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Objects that a sweep deletes at a time: a store takes that many without others noticing it.
const DELETIONS_AT_ONCE_MAX: usize = 16;

/// Deletions without an answer after which the store is taken to be away: the next sweep goes on. One that
/// refuses certain objects answers.
const DELETIONS_UNANSWERED_MAX: usize = 64;

/// What a sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Extents that were sealed because no document names them.
    pub sealed: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Extents of which nothing is left.
    pub forgotten: usize,
}

/// Sweeps a stamp, as often as it is called. One for each life of a process.
pub struct Sweeper {
    life: Arc<Life>,
    /// When the key of a dropped extent was first seen as it is.
    seen: Mutex<BTreeMap<ExtentName, (Revision, Duration)>>,
    /// None: it is read anew.
    ages: Mutex<Option<AgeClock>>,
}

impl Sweeper {
    /// Sweeps for this life.
    pub fn new(life: &Arc<Life>) -> Self {
        Sweeper { life: life.clone(), seen: Mutex::default(), ages: Mutex::default() }
    }

    /// What was dropped grows older from now on, and not only from the first sweep on.
    pub async fn begin(&self) {
        let ages = AgeClock::read(&self.life).await;
        *self.ages.lock() = ages;
    }

    /// One sweep.
    ///
    /// # Errors
    ///
    /// If a store can't be reached, a document is damaged, the lease has ended, or an object can't be
    /// deleted: what was done is right, and in the last case it is all else.
    pub async fn sweep(&self) -> Result<Swept, StampError> {
        let (life, planted) = (&self.life, &self.life.surroundings.settings.planted);
        let kinds = [KeyKind::Document, KeyKind::Dropped, KeyKind::Own, KeyKind::Beat, KeyKind::Process];
        let early = match planted.has(Breach::DocumentsFirst) {
            true => Some(life.metadata.list(&kinds, &[Key::Collection]).await?),
            false => None,
        };
        let paths: BTreeSet<PartPath> = life.surroundings.list_parts().await?.into_iter().collect();
        let bundles = life.surroundings.list_bundles().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "bundles are swept another time");
            Vec::new()
        });
        let bundles: BTreeSet<BundlePath> = bundles.into_iter().collect();
        let ended_at = life.metadata.read(&[Key::Collection]).await?.revision;
        let values = match early {
            Some(mut values) => {
                values.revision = values.revision.max(ended_at);
                values
            }
            None => life.metadata.list(&kinds, &[Key::Collection]).await?,
        };
        let read_at = life.surroundings.clock.monotonic();
        if self.ages.lock().is_none() {
            self.begin().await;
        }
        let backup = match planted.has(Breach::DeleteWithoutBackup) {
            true => Some(Revision(u64::MAX)),
            false => newest_backup(&life.surroundings, life.life()).await?,
        };
        let view = self.view(Listing { paths, bundles, ended_at }, &values, backup);
        let actions = self.choose(&view)?;
        let mut swept = Swept::default();
        let (deleted, others): (Vec<_>, Vec<_>) =
            actions.into_iter().partition(|action| action.object(life.life().stamp).is_some());
        // An extent of which a part is deleted has no other step in the same sweep.
        let not_deleted = self.delete(deleted, &mut swept).await;
        for action in others {
            if !life.holds() {
                return Err(StampError::LeaseEnded);
            }
            self.act(action, &view, &values, &mut swept).await;
        }
        self.forget_beats(&values).await;
        self.move_ages(values.revision, read_at).await;
        not_deleted.map_or(Ok(swept), Err)
    }

    /// The stored clock goes on, to when the documents were read.
    async fn move_ages(&self, revision: Revision, read_at: Duration) {
        let ages = self.ages.lock().take();
        if let Some(ages) = ages {
            let moved = ages.moved(&self.life, revision, read_at).await;
            *self.ages.lock() = moved;
        }
    }

    fn view(&self, listing: Listing, values: &Values, backup: Option<Revision>) -> SweepView {
        let surroundings = &self.life.surroundings;
        let now = surroundings.clock.monotonic();
        let mut view = SweepView { listing, backup, ..SweepView::default() };
        view.named.read_at = values.revision;
        let mut seen = self.seen.lock();
        let ages = self.ages.lock();
        let mut still: BTreeMap<ExtentName, (Revision, Duration)> = BTreeMap::new();
        for (key, (value, changed_at)) in &values.values {
            match (key, value) {
                (_, Value::Document(document)) => view.named.extents.extend(document.extents()),
                (Key::Dropped(extent), Value::Dropped { length }) => {
                    let known = seen.get(extent).filter(|(revision, _)| revision == changed_at);
                    let since = known.map_or(now, |(_, since)| *since);
                    still.insert(*extent, (*changed_at, since));
                    let own = now.saturating_sub(since) * surroundings.settings.age_factor;
                    let stored = ages.as_ref().map(|ages| ages.age(&self.life, *changed_at, now));
                    let age = own.max(stored.unwrap_or_default());
                    let dropped = DroppedExtent { length: *length, dropped_at: *changed_at, age };
                    view.dropped.insert(*extent, dropped);
                }
                (_, Value::Collection { is_on }) => view.is_collection_on = *is_on,
                _ => {}
            }
        }
        *seen = still;
        view
    }

    fn choose(&self, view: &SweepView) -> Result<Vec<SweepAction>, StampError> {
        let planted = &self.life.surroundings.settings.planted;
        let NamedExtents { extents: named, .. } = &view.named;
        let unnamed = || view.listing.paths.iter().filter(move |path| !named.contains(&path.extent));
        if planted.has(Breach::DeleteAtOnce) {
            let bundles = view.listing.bundles.iter().filter(|bundle| !named.contains(&bundle.extent));
            let bundles = bundles.map(|bundle| SweepAction::DeleteBundle(*bundle));
            return Ok(unnamed().map(|path| SweepAction::Delete(*path)).chain(bundles).collect());
        }
        let mut actions = choose_sweep(view)?;
        if planted.has(Breach::DeleteTombstones) {
            let touched: BTreeSet<ExtentName> = view.dropped.keys().copied().collect();
            let all = unnamed().filter(|path| touched.contains(&path.extent));
            actions.extend(all.map(|path| SweepAction::Delete(*path)));
        }
        Ok(actions)
    }

    /// Deletes objects side by side. Returns the first failure; the others are deleted all the same.
    async fn delete(&self, actions: Vec<SweepAction>, swept: &mut Swept) -> Option<StampError> {
        let deleting = stream::iter(actions).map(|action| async move {
            match action.object(self.life.life().stamp) {
                Some(_) if !self.life.holds() => Err(StampError::LeaseEnded),
                Some(name) => self.life.surroundings.delete_named(&name).await,
                None => Ok(()),
            }
        });
        let mut deleting = deleting.buffer_unordered(DELETIONS_AT_ONCE_MAX);
        let (mut first, mut unanswered) = (None, 0);
        while let Some(deleted) = deleting.next().await {
            let Err(error) = deleted else {
                swept.deleted += 1;
                continue;
            };
            let is_refused = matches!(&error, StampError::Store { error: StoreError::Refused(_), .. });
            unanswered += usize::from(!is_refused);
            let is_over = error == StampError::LeaseEnded || unanswered >= DELETIONS_UNANSWERED_MAX;
            first.get_or_insert(error);
            if is_over {
                break;
            }
        }
        first
    }

    async fn act(&self, action: SweepAction, view: &SweepView, values: &Values, swept: &mut Swept) {
        match action {
            // They are behind this.
            SweepAction::Delete(_) | SweepAction::DeleteBundle(_) => {}
            SweepAction::Seal(extent) => {
                swept.sealed += usize::from(self.seal(extent, view).await);
            }
            SweepAction::Forget(extent) => {
                let key = Key::Dropped(extent);
                let mut transaction = Transaction::new(self.life.life().generation);
                transaction.compares.push(Compare::ChangedAt(key, values.changed_at(key)));
                transaction.deletes.push(key);
                // Without a known outcome the next sweep does it again.
                self.life.metadata.commit(&transaction).await;
                swept.forgotten += 1;
            }
        }
    }

    /// Seals an extent that no document names; if it is not known as dropped, writes that it is.
    async fn seal(&self, extent: ExtentName, view: &SweepView) -> bool {
        let life = &self.life;
        let place = self.place(extent, view).await;
        let owner = Owner { incarnation: life.incarnation(), epoch: FIRST_EPOCH };
        let walk = SealWalk::new(life.life(), place, owner);
        let walk = seal(&life.surroundings, walk, SealFor::Other, || life.holds()).await;
        let WalkStep::Sealed { length } = walk.step() else { return false };
        if !view.dropped.contains_key(&extent) {
            let key = Key::Dropped(extent);
            let mut transaction = Transaction::new(life.life().generation);
            transaction.compares.push(Compare::ChangedAt(key, Revision(0)));
            transaction.puts.push((key, Value::Dropped { length }));
            // Without a known outcome the next sweep does it again.
            life.metadata.commit(&transaction).await;
        }
        true
    }

    /// What the seal says of an extent: what its objects say, if one is left.
    async fn place(&self, extent: ExtentName, view: &SweepView) -> ExtentPlace {
        for path in view.listing.paths.iter().filter(|path| path.extent == extent) {
            if let Found::Header(header) = self.life.surroundings.read_header(extent, path.offset).await {
                return header.place;
            }
        }
        // Names that no range and no stream has, different for each extent: a restore finds two extents of
        // one ordinal of one stream to be damage.
        let (range, stream) = (RangeId(extent.0), StreamId(extent.0));
        ExtentPlace { extent, range, stream, ordinal: 0 }
    }

    /// Removes beats of processes that are gone and own nothing: those of owners prove their silence.
    async fn forget_beats(&self, values: &Values) {
        let owners: BTreeSet<Incarnation> = values
            .values
            .values()
            .filter_map(|(value, _)| match value {
                Value::Own(own) => own.owner,
                _ => None,
            })
            .collect();
        for (key, (_, changed_at)) in &values.values {
            let Key::Beat(incarnation) = key else { continue };
            let process = Key::Process(*incarnation);
            if owners.contains(incarnation) || values.get(process).is_some() {
                continue;
            }
            let transaction = forget_beat(self.life.life().generation, *incarnation, *changed_at);
            self.life.metadata.commit(&transaction).await;
        }
    }
}
