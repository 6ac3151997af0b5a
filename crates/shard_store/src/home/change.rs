//! Changing a home: read, decide, put the next entry; begin again if another was faster.
//!
//! What always holds: a change that returned is in the log once; one that failed with an error that leaves it
//! open is in the log once or not at all, under the id of its one try.

use super::entry::{FORMAT, StoredEntry, Unreadable, read, write};
use super::home::CatalogHome;
use super::home_error::HomeError;
use super::keys::{self, PartsId};
use super::parts::put_parts;
use crate::error::StoreError;
use crate::records::records::{Put, VALUE_BYTES_MAX};
use base::date_time::date_time_text;
use shard_map::{Catalog, Change, Changed, Diff};
use std::time::Duration;

/// How often a change is decided again because others changed the catalog.
const CHANGES_MAX: u32 = 16;
/// How often an entry is put of which it is open whether it is there.
const PUTS_MAX: u32 = 5;
/// The longest wait before the second try; later ones wait up to that times their number.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Bytes of a note, at most; the rest is cut off.
const NOTE_BYTES_MAX: usize = 2000;
/// What an entry has beside its difference, and more.
const ENTRY_BYTES_MAX: usize = VALUE_BYTES_MAX - 2 * NOTE_BYTES_MAX - 500;

/// Whether an entry was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Appended {
    Done,
    /// Another change follows that epoch.
    Conflict,
}

impl CatalogHome {
    /// Decides over the newest epoch and makes the changes, in one epoch. `decide` is called again with a
    /// newer epoch if another writer was faster. No changes, or changes that make nothing different, write
    /// nothing.
    pub async fn change<E: From<HomeError>>(
        &self,
        known: &Catalog,
        note: &str,
        mut decide: impl FnMut(&Catalog) -> Result<Vec<Change>, E> + Send,
    ) -> Result<Changed, E> {
        self.make(known, note, |catalog| {
            let changes = decide(catalog)?;
            catalog.apply(&changes).map_err(|error| HomeError::from(error).into())
        })
        .await
    }

    /// Undoes a change, which may be any of the history.
    pub async fn undo(&self, known: &Catalog, diff: &Diff, note: &str) -> Result<Changed, HomeError> {
        self.make(known, note, |catalog| catalog.undo(diff).map_err(HomeError::from)).await
    }

    /// Replaces the catalog by a later epoch that was made elsewhere: a recovery. `known` must be the newest
    /// epoch.
    pub async fn replace(&self, known: &Catalog, by: &Catalog, note: &str) -> Result<(), HomeError> {
        if known.id() != by.id() {
            let (there, given) = (known.name().clone(), by.name().clone());
            return Err(HomeError::OtherCatalog { place: self.place().to_owned(), there, given });
        }
        let newest = self.refresh(known).await?;
        if newest.epoch() != known.epoch() {
            let (at, expected) = (newest.epoch(), known.epoch());
            return Err(HomeError::Moved { place: self.place().to_owned(), at, expected });
        }
        self.append(known, by, note).await
    }

    async fn make<E: From<HomeError>>(
        &self,
        known: &Catalog,
        note: &str,
        mut make: impl FnMut(&Catalog) -> Result<Changed, E> + Send,
    ) -> Result<Changed, E> {
        let mut known = known.clone();
        for attempt in 1..=CHANGES_MAX {
            known = self.refresh(&known).await?;
            let changed = make(&known)?;
            if changed.diff.is_empty() {
                return Ok(changed);
            }
            if self.put_entry(&changed.diff, note).await? == Appended::Done {
                self.snapshot_if_due(&changed.catalog, &changed.diff).await;
                return Ok(changed);
            }
            self.wait(attempt).await;
        }
        Err(HomeError::Busy { place: self.place().to_owned(), attempts: CHANGES_MAX }.into())
    }

    /// Appends what differs between two catalogs.
    pub(super) async fn append(&self, from: &Catalog, to: &Catalog, note: &str) -> Result<(), HomeError> {
        let diff = Diff::between(from, to);
        match self.put_entry(&diff, note).await? {
            Appended::Done => {
                self.snapshot_if_due(to, &diff).await;
                Ok(())
            }
            Appended::Conflict => {
                let (at, expected) = (self.refresh(from).await?.epoch(), from.epoch());
                Err(HomeError::Moved { place: self.place().to_owned(), at, expected })
            }
        }
    }

    async fn put_entry(&self, diff: &Diff, note: &str) -> Result<Appended, HomeError> {
        let id = self.new_id();
        let mut entry = StoredEntry {
            format: FORMAT,
            id: id.to_string(),
            at: date_time_text(self.clock.now()),
            note: note[..note.floor_char_boundary(NOTE_BYTES_MAX)].to_owned(),
            diff: None,
            part_count: 0,
        };
        let text = write(diff);
        if text.len() <= ENTRY_BYTES_MAX {
            entry.diff = Some(diff.clone());
        } else {
            entry.part_count = put_parts(&*self.records, &id, &text).await?;
        }
        self.put_until_known(&keys::entry(diff.from), &write(&entry), &id).await
    }

    /// Puts an entry until it is known whether this one is there or another.
    async fn put_until_known(&self, key: &str, value: &str, id: &PartsId) -> Result<Appended, HomeError> {
        let mut open: Option<StoreError> = None;
        for attempt in 1..=PUTS_MAX {
            match self.records.put(key, value).await {
                Ok(Put::Done) => return Ok(Appended::Done),
                Ok(Put::Taken) => return self.is_ours(key, id).await,
                Err(error) if error.may_be_done => open = Some(error),
                // Whether a former try was done is still open.
                Err(error) => return Err(open.unwrap_or(error).into()),
            }
            self.wait(attempt).await;
        }
        Err(open.unwrap_or_else(|| StoreError::uncertain(self.place(), "it did not answer")).into())
    }

    /// Whose entry it is that is there.
    async fn is_ours(&self, key: &str, id: &PartsId) -> Result<Appended, HomeError> {
        let Some(text) = self.records.get(key).await? else {
            return Err(self.damaged(key, "it was there and is gone"));
        };
        match read::<StoredEntry>(&text) {
            Ok(there) if there.id == id.to_string() => Ok(Appended::Done),
            Ok(_) => Ok(Appended::Conflict),
            Err(why @ (Unreadable::Newer(_) | Unreadable::Damaged(_))) => Err(self.unreadable(key, why)),
        }
    }

    async fn wait(&self, attempt: u32) {
        let share = self.random.next_u64() >> 32;
        let wait = (WAIT_MAX.as_nanos() as u64 * u64::from(attempt) * share) >> 32;
        self.clock.sleep(Duration::from_nanos(wait)).await;
    }
}
