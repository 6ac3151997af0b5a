//! A range that is served: a handle that is bound to one incarnation and epoch.
//!
//! What always holds: nothing is admitted without a lease, or once the range has stopped; a handle that has
//! stopped never serves again. An answer leaves only if [`OwnedRange::admits_reads`] says yes after it was
//! made.

use crate::extents::load::ExtentReader;
use crate::extents::log_core::LogCore;
use crate::membership::cut_off::note_answer;
use crate::membership::life::Life;
use crate::membership::loops::LoopSign;
use crate::range::range_stop::RangeStop;
use crate::range::waiting_changes::WaitingChanges;
use crate::settings::Breach;
use crate::surroundings::{Surroundings, store_answers_in};
use base::BoxFuture;
use bytes::Bytes;
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use stamp::{
    Backup, ExtentEntry, ExtentName, HeldRange, Owner, PutAnswer, RangeDocument, RangeId, Release, StampLife,
    StreamId, UniqueName, encode_document, missing_document_bytes,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// Who may do what with a range.
#[derive(Debug, Default)]
struct Admission {
    release: Release,
    stop: Option<RangeStop>,
}

/// How large the document of a range is.
pub(crate) struct DocumentSize {
    /// Bytes of the one that is known to be committed.
    pub(crate) bytes: AtomicU64,
    /// Whether the log says that it is large.
    pub(crate) has_said_large: AtomicBool,
}

/// Backups on demand.
#[derive(Default)]
pub(crate) struct RangeBackups {
    /// One at a time: it has what all wait for.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// What one must have of the split that made this range, for the owner that split it.
    pub(crate) of_split: Mutex<Option<Backup>>,
}

/// A range that is served.
pub struct OwnedRange {
    pub(crate) life: Arc<Life>,
    pub(crate) held: tokio::sync::Mutex<HeldRange>,
    /// Changes that wait for the one under way.
    pub(crate) waiting_changes: WaitingChanges,
    pub(crate) backups: RangeBackups,
    /// A planted fault: the extent that is written again from its start.
    pub(crate) reopened: Option<ExtentName>,
    range: RangeId,
    owner: Owner,
    document: Mutex<Arc<RangeDocument>>,
    pub(crate) document_size: DocumentSize,
    admission: Mutex<Admission>,
    stopped: Notify,
    pub(crate) logs: Mutex<BTreeMap<StreamId, Arc<LogCore>>>,
}

impl OwnedRange {
    pub(crate) fn new(life: &Arc<Life>, held: HeldRange, reopened: Option<ExtentName>) -> Self {
        let size = encode_document(held.document(), life.life().stamp).len() as u64;
        *life.not_taken.handles.lock().entry(held.document().range).or_default() += 1;
        OwnedRange {
            life: life.clone(),
            range: held.document().range,
            owner: held.owner(),
            document: Mutex::new(held.document().clone()),
            document_size: DocumentSize {
                bytes: AtomicU64::new(size),
                has_said_large: AtomicBool::new(false),
            },
            held: tokio::sync::Mutex::new(held),
            waiting_changes: WaitingChanges::default(),
            backups: RangeBackups::default(),
            reopened,
            admission: Mutex::default(),
            stopped: Notify::new(),
            logs: Mutex::default(),
        }
    }

    /// Which range.
    pub fn range(&self) -> RangeId {
        self.range
    }

    /// Incarnation and epoch that serve it.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The stamp, and the life of its metadata store.
    pub fn stamp_life(&self) -> StampLife {
        self.life.life()
    }

    /// The last document that is known to be committed.
    pub fn document(&self) -> Arc<RangeDocument> {
        self.document.lock().clone()
    }

    pub(crate) fn committed(&self, document: &Arc<RangeDocument>) {
        let size = encode_document(document, self.life.life().stamp).len() as u64;
        self.document_size.bytes.store(size, Ordering::Relaxed);
        *self.document.lock() = document.clone();
    }

    /// By how many bytes the document is in its reserve: until it is out of it, the caller should request
    /// only what makes it smaller. Cheap.
    pub fn missing_document_bytes(&self) -> u64 {
        missing_document_bytes(self.document_size.bytes.load(Ordering::Relaxed) as usize) as u64
    }

    /// Whether a read may be admitted now, and its answer leave now.
    pub fn admits_reads(&self) -> bool {
        let planted = &self.life.surroundings.settings.planted;
        let holds = self.life.holds() || planted.has(Breach::ReadWithoutLease);
        let admission = self.admission.lock();
        let is_released = admission.release == Release::Sent && planted.has(Breach::ReadUntilReleased);
        let is_stopped = match &admission.stop {
            Some(RangeStop::LeaseEnded) => !planted.has(Breach::ReadWithoutLease),
            Some(_) => true,
            None => false,
        };
        holds && !is_stopped && (admission.release.admits_reads() || is_released)
    }

    /// Whether a write may be admitted now.
    pub fn admits_writes(&self) -> bool {
        let holds = self.life.holds();
        let admission = self.admission.lock();
        holds && admission.stop.is_none() && admission.release.admits_writes()
    }

    /// A sign for a loop that the range is served by: this process keeps its lease only while all go round.
    pub fn watch_loop(&self, name: &str) -> LoopSign {
        let admission = self.admission.lock();
        let sign = LoopSign::new(&self.life.loops, self.range, name);
        if admission.stop.is_some() {
            // It came too late to be forgotten with the others.
            sign.forget();
        }
        sign
    }

    /// Whether the lease holds and the range has not stopped.
    pub(crate) fn is_held(&self) -> bool {
        self.life.holds() && self.admission.lock().stop.is_none()
    }

    pub(crate) fn change_release<T>(&self, change: impl FnOnce(&mut Release) -> T) -> T {
        change(&mut self.admission.lock().release)
    }

    /// Nothing is served any more; the first reason counts.
    pub(crate) fn stop(&self, why: RangeStop) {
        {
            let mut admission = self.admission.lock();
            if admission.stop.is_none() {
                admission.stop = Some(why);
                // Whoever reads the range again has loops of its own.
                self.life.loops.forget(self.range);
                self.end_handle();
            }
        }
        self.stopped.notify_waiters();
        for log in self.logs.lock().values() {
            log.changed.notify_waiters();
        }
    }

    /// Once for each handle: when it stops, or is dropped before.
    fn end_handle(&self) {
        let mut handles = self.life.not_taken.handles.lock();
        if let Some(count) = handles.get_mut(&self.range) {
            *count -= 1;
            if *count == 0 {
                handles.remove(&self.range);
            }
        }
    }

    /// Why the range is not served any more, if it is not.
    pub fn stopped(&self) -> Option<RangeStop> {
        if !self.life.holds() {
            self.stop(RangeStop::LeaseEnded);
        }
        self.admission.lock().stop.clone()
    }

    /// Waits until the range is not served any more.
    pub async fn until_stopped(&self) -> RangeStop {
        loop {
            let stopped = self.stopped.notified();
            let mut stopped = std::pin::pin!(stopped);
            stopped.as_mut().enable();
            if let Some(stop) = self.stopped() {
                return stop;
            }
            let ended = std::pin::pin!(self.life.ended());
            select(stopped, ended).await;
        }
    }

    /// What the process was given.
    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.life.surroundings
    }

    /// Bytes of an extent of a log after which the next one is begun.
    pub fn extent_size_bytes(&self) -> u64 {
        self.life.surroundings.settings.extent_size_bytes
    }

    /// Starts a task beside the range.
    pub(crate) fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.life.surroundings.spawner.spawn(name, task);
    }

    /// Whether the object store answers this process in time, whatever it answers for one object.
    pub async fn reaches_store(&self) -> bool {
        let surroundings = self.surroundings();
        surroundings.reaches_store(store_answers_in(surroundings.settings.object_try_for)).await
    }

    /// Whether the object store creates for this process in time: after a part that got no answer, a read
    /// says nothing of that. A store that is full is so for all processes; one that refuses this one's
    /// credentials or rights may not refuse others'.
    pub async fn creates_in_store(&self) -> bool {
        let surroundings = self.surroundings();
        // A name of its own each time: one that is taken would be refused without a write.
        let name = format!("{}/probe/{}", surroundings.settings.stamp, self.next_name());
        let created = surroundings.objects.create(&name, Bytes::from_static(b"probe\n"));
        let is_created = match select(
            created,
            surroundings.clock.sleep(store_answers_in(surroundings.settings.object_try_for)),
        )
        .await
        {
            Either::Left((answer, _)) => match answer {
                PutAnswer::Created => true,
                PutAnswer::Failed { status } => ![401, 403].contains(&status),
                PutAnswer::Refused | PutAnswer::Unknown => false,
            },
            Either::Right(_) => false,
        };
        if is_created {
            note_answer(&self.life);
            // What stays holds a few bytes, and nobody looks at it.
            drop(surroundings.try_object(surroundings.objects.delete(&name)).await);
        }
        is_created
    }

    /// A name that nothing has.
    pub(crate) fn next_name(&self) -> UniqueName {
        self.life.next_name()
    }

    /// A name for a new extent. No extent of the document has the same short form.
    pub(crate) fn new_extent(&self) -> ExtentName {
        let document = self.document();
        loop {
            let name = ExtentName(self.life.next_name());
            let mut listed = document.streams.values().flat_map(|stream| &stream.extents);
            if listed.all(|entry| entry.name.short() != name.short()) {
                return name;
            }
        }
    }

    /// Reads an extent of the document; none while its length is not recorded.
    pub fn reader(&self, entry: &ExtentEntry) -> Option<ExtentReader<'_>> {
        entry.length.map(|length| ExtentReader::new(&self.life.surroundings, entry.name, length))
    }
}

impl Drop for OwnedRange {
    fn drop(&mut self) {
        if self.admission.get_mut().stop.is_none() {
            self.end_handle();
        }
    }
}
