//! All documents, owners and processes of a stamp at one revision of the metadata store.
//!
//! What always holds: everything in a snapshot was so at its revision, under the generation that was in force
//! then; a stored value that does not read fails the snapshot with its name.

use crate::backup::back_up::complete_backups;
use crate::backup::store_mark::check_store;
use crate::error::StampError;
use crate::metadata::metadata_store::{Metadata, Values, read_life};
use crate::metadata::wire::{KeyKind, LifeEntry, key_text};
use crate::migration::content::is_unfinished;
use crate::snapshot::parts::SnapshotParts;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use base::BoxFuture;
use stamp::{
    ExtentName, Incarnation, Key, OwnEntry, RangeDocument, RangeId, Revision, StampLife, StoredError, Value,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a snapshot is tried while the metadata store does not answer, or the stamp is restored.
const TRIES_MAX: usize = 5;
/// What is read of the metadata store.
const KINDS: [KeyKind; 5] =
    [KeyKind::Own, KeyKind::Document, KeyKind::Process, KeyKind::Beat, KeyKind::Dropped];

/// A range at the snapshot's revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRange {
    /// Its owner and epoch.
    pub own: OwnEntry,
    /// Its document.
    pub document: Arc<RangeDocument>,
    /// When the document was changed last.
    pub changed_at: Revision,
}

/// A process that has joined the stamp, or had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotProcess {
    /// Whether its key is there, which goes with its lease of the metadata store.
    pub has_key: bool,
    /// When it beat last, if it did and that is not forgotten.
    pub beat: Option<Revision>,
}

/// An extent that a document lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotExtent {
    /// The extent.
    pub name: ExtentName,
    /// Bytes that it has for ever; none while it is not known to be sealed.
    pub length: Option<u64>,
    /// What the streams that list it are used for, in the order of the document.
    pub purposes: Vec<String>,
}

/// A stamp at one revision of its metadata store.
#[derive(Clone)]
pub struct StampSnapshot {
    surroundings: Surroundings,
    life: StampLife,
    restores: u64,
    revision: Revision,
    ranges: BTreeMap<RangeId, SnapshotRange>,
    processes: BTreeMap<Incarnation, SnapshotProcess>,
    dropped: BTreeMap<ExtentName, u64>,
    is_collection_on: bool,
}

impl StampSnapshot {
    /// Reads the stamp; none if the metadata store has none.
    ///
    /// # Errors
    ///
    /// If the metadata store can't be reached, or what it has is damaged.
    pub fn read<'a>(surroundings: &'a Surroundings) -> BoxFuture<'a, Result<Option<Self>, StampError>> {
        Box::pin(async move {
            let mut back_off = surroundings.back_off();
            let mut tries = 0;
            loop {
                tries += 1;
                match Self::try_to_read(surroundings).await {
                    Err(StampError::Stored(error)) => return Err(error.into()),
                    Err(_) if tries < TRIES_MAX => back_off.wait().await,
                    outcome => return outcome,
                }
            }
        })
    }

    async fn try_to_read(surroundings: &Surroundings) -> Result<Option<Self>, StampError> {
        let Some(entry) = read_life(surroundings).await? else { return Ok(None) };
        let life = StampLife { stamp: surroundings.settings.stamp, generation: entry.generation };
        let metadata = Metadata::new(surroundings.clone(), life);
        let values = metadata.list(&KINDS, &[Key::Collection]).await?;
        // Without an answer of the object store there is still something to see.
        if let Err(error @ StampError::Setup(_)) = check_store(surroundings, entry.generation).await {
            return Err(error);
        }
        // A generation is never in force again: what was read belongs to the one that is.
        if read_life(surroundings).await? != Some(entry) {
            return Err(StampError::Raced("the stamp was restored meanwhile".to_owned()));
        }
        Ok(Some(Self::of(surroundings, life, entry, values)?))
    }

    fn of(
        surroundings: &Surroundings,
        life: StampLife,
        entry: LifeEntry,
        values: Values,
    ) -> Result<Self, StoredError> {
        let mut snapshot = StampSnapshot {
            surroundings: surroundings.clone(),
            life,
            restores: entry.restores,
            revision: values.revision,
            ranges: BTreeMap::new(),
            processes: BTreeMap::new(),
            dropped: BTreeMap::new(),
            is_collection_on: false,
        };
        for (key, (value, changed_at)) in &values.values {
            match (key, value) {
                (Key::Document(range), Value::Document(document)) => {
                    let what = || format!("the owner of range {range}");
                    let own = values.own(*range).ok_or_else(|| StoredError::Missing { what: what() })?;
                    let (document, changed_at) = (document.clone(), *changed_at);
                    snapshot.ranges.insert(*range, SnapshotRange { own, document, changed_at });
                }
                (Key::Own(range), _) if values.get(Key::Document(*range)).is_none() => {
                    return Err(StoredError::Missing { what: format!("the document of range {range}") });
                }
                (Key::Process(incarnation), _) => {
                    snapshot.processes.entry(*incarnation).or_default().has_key = true;
                }
                (Key::Beat(incarnation), _) => {
                    snapshot.processes.entry(*incarnation).or_default().beat = Some(*changed_at);
                }
                (Key::Dropped(extent), Value::Dropped { length }) => {
                    snapshot.dropped.insert(*extent, *length);
                }
                (Key::Collection, Value::Collection { is_on }) => snapshot.is_collection_on = *is_on,
                _ => {}
            }
        }
        Ok(snapshot)
    }

    /// The stamp, and the life of its metadata store.
    pub fn life(&self) -> StampLife {
        self.life
    }

    /// How many restores came before that life.
    pub fn restores(&self) -> u64 {
        self.restores
    }

    /// The metadata store's revision when it was read.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// All ranges.
    pub fn ranges(&self) -> &BTreeMap<RangeId, SnapshotRange> {
        &self.ranges
    }

    /// All processes of which a key or a beat is there.
    pub fn processes(&self) -> &BTreeMap<Incarnation, SnapshotProcess> {
        &self.processes
    }

    /// Extents that were dropped and wait for collection, with their lengths in bytes.
    pub fn dropped(&self) -> &BTreeMap<ExtentName, u64> {
        &self.dropped
    }

    /// Whether extents may be deleted; not during a restore.
    pub fn is_collection_on(&self) -> bool {
        self.is_collection_on
    }

    /// Whether a process whose key is there has any of the ranges.
    pub fn is_served(&self) -> bool {
        let lives = |owner: &Incarnation| self.processes.get(owner).is_some_and(|process| process.has_key);
        self.ranges.values().any(|range| range.own.owner.is_some_and(|owner| lives(&owner)))
    }

    /// Whether a migration into the stamp is not finished: no process serves it then.
    pub fn has_unfinished_migration(&self) -> bool {
        self.ranges.values().any(|range| is_unfinished(&range.document))
    }

    /// Whether any document lists the extent.
    pub fn names(&self, extent: ExtentName) -> bool {
        self.ranges.values().any(|range| range.document.names(extent))
    }

    /// The extents that a range lists, each once, in the order of their names; none of a range that is not
    /// there.
    pub fn extents(&self, range: RangeId) -> Vec<SnapshotExtent> {
        let mut extents: BTreeMap<ExtentName, SnapshotExtent> = BTreeMap::new();
        let streams = self.ranges.get(&range).into_iter().flat_map(|range| range.document.streams.values());
        for stream in streams {
            for entry in &stream.extents {
                let new = || SnapshotExtent { name: entry.name, length: entry.length, purposes: Vec::new() };
                let extent = extents.entry(entry.name).or_insert_with(new);
                extent.length = extent.length.or(entry.length);
                extent.purposes.push(stream.purpose.clone());
            }
        }
        extents.into_values().collect()
    }

    /// For how long the lease of a process still lives by the metadata store, now; none if it has ended, or
    /// the store can't say.
    ///
    /// # Errors
    ///
    /// If the metadata store can't be reached.
    pub async fn lease_left(&self, process: Incarnation) -> Result<Option<Duration>, StampError> {
        let key = key_text(self.life.generation, Key::Process(process));
        let left = self.surroundings.try_key(self.surroundings.keys.lease_left(&key)).await;
        let left = left.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
        left.map_err(|error| StampError::store("a lease", error))
    }

    /// The revision of the newest complete backup of this life of the metadata store, by its name.
    ///
    /// # Errors
    ///
    /// If the object store can't be reached.
    pub async fn newest_backup(&self) -> Result<Option<Revision>, StampError> {
        let complete = complete_backups(&self.surroundings, self.life).await?;
        Ok(complete.last().map(|(name, _)| name.revision))
    }

    /// The parts of an extent, in order.
    pub fn read_parts(&self, extent: &SnapshotExtent) -> SnapshotParts {
        SnapshotParts::new(&self.surroundings, extent.name, extent.length)
    }

    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }
}
