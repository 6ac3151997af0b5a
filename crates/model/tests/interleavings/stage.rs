//! The stage of these tests: the two stores, one range with a log, and what processes do again and again.

use model::backup_store::BackupStore;
use model::metadata_store::{Leniency, MetadataStore};
use model::object_store::ObjectStore;
use stamp::{
    AppendWindow, Change, ExtentLoad, ExtentName, ExtentPlace, FirstPart, Found, Generation, HeldRange,
    Incarnation, Key, KeyLimits, LEASE_TTL, LogProgress, Mark, Observed, ObservedOwner, OwnEntry, OwnerEpoch,
    PartHeader, PartPath, PutAnswer, RangeDocument, RangeId, Revision, SealWalk, StampId, StampLife,
    StreamId, Take, TakeChoice, Taking, TakingStep, Transaction, TransactionAnswer, TrimPoint, Value,
    WalkStep, WindowBounds, apply_changes, choose_first_part, choose_take,
};
use std::sync::Arc;

/// The writer.
pub(crate) const W: Incarnation = Incarnation(1);
/// Its successor.
pub(crate) const N: Incarnation = Incarnation(2);
/// The life of the metadata store.
pub(crate) const LIFE: StampLife = StampLife { stamp: StampId(7), generation: Generation(1) };

pub(crate) fn range() -> RangeId {
    RangeId::new(Incarnation(0), 0)
}

pub(crate) fn log() -> StreamId {
    StreamId::new(Incarnation(0), 1)
}

/// The stores, and a counter for names.
pub(crate) struct Stage {
    pub(crate) store: ObjectStore,
    pub(crate) backups: BackupStore,
    pub(crate) metadata: MetadataStore,
    counter: u64,
}

impl Stage {
    /// A range with an empty log that nobody has.
    pub(crate) fn new() -> Self {
        let own = OwnEntry::released(OwnerEpoch(0));
        let empty = RangeDocument::new(range(), own, KeyLimits::default(), Mark::new(Incarnation(0), 2));
        let changes = [Change::CreateStream { stream: log(), purpose: "log".to_owned() }, Change::BackedUp];
        let document = apply_changes(&empty, &changes).unwrap().document;
        let mut metadata = MetadataStore::new(LIFE.generation, 0);
        metadata.put(Key::Own(range()), Value::Own(own));
        metadata.put(Key::Document(range()), Value::Document(Arc::new(document)));
        for process in [W, N] {
            metadata.put(Key::Process(process), Value::Present);
        }
        Stage { store: ObjectStore::default(), backups: BackupStore::default(), metadata, counter: 100 }
    }

    pub(crate) fn counter(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// A PUT arrives.
    pub(crate) fn put(&mut self, header: PartHeader) -> PutAnswer {
        let path = PartPath { extent: header.place.extent, offset: header.offset };
        self.store.create(path, header)
    }

    pub(crate) fn read(&self, header: &PartHeader) -> Found {
        self.store.read(header.place.extent, header.offset)
    }

    /// A transaction arrives.
    pub(crate) fn commit(&mut self, transaction: &Transaction) -> TransactionAnswer {
        self.metadata.tick();
        self.metadata.commit(transaction, Leniency::default())
    }

    pub(crate) fn own(&self) -> OwnEntry {
        self.metadata.own(range()).unwrap()
    }

    /// The etcd lease of a process ends.
    pub(crate) fn expire(&mut self, process: Incarnation) {
        self.metadata.expire(process);
    }

    /// What a taker sees, with an owner that has been silent for a lease time if it is said so.
    pub(crate) fn observed(&self, is_silent: bool) -> Observed {
        let owner = self.own().owner.map(|owner| ObservedOwner {
            has_key: self.metadata.has_process(owner),
            beat: Revision(0),
            beat_unchanged_for: if is_silent { LEASE_TTL } else { LEASE_TTL / 2 },
        });
        Observed {
            own: self.own(),
            document: self.metadata.document(range()).unwrap().clone(),
            revision: self.metadata.changed_at(Key::Document(range())),
            owner,
        }
    }

    /// Step (1) of a take, not yet sent.
    pub(crate) fn choose_take(&mut self, taker: Incarnation) -> Take {
        let mark = Mark::new(taker, self.counter());
        match choose_take(LIFE, taker, &self.observed(true), LEASE_TTL, mark) {
            TakeChoice::Take(take) => *take,
            other => panic!("{taker} may not take the range: {other:?}"),
        }
    }

    /// Step (1) of a take, committed.
    pub(crate) fn begin_take(&mut self, taker: Incarnation) -> Taking {
        let take = self.choose_take(taker);
        let TransactionAnswer::Committed(revision) = self.commit(&take.transaction) else {
            panic!("{taker} did not get the range")
        };
        Taking::new(HeldRange::new(LIFE, take.owner, take.document, revision))
    }

    /// Steps (2) and (3): seals every open extent and records the lengths.
    pub(crate) fn finish_take(&mut self, mut taking: Taking) -> HeldRange {
        for index in 0..taking.walks().count() {
            self.seal(taking.walk_mut(index).unwrap());
        }
        let TakingStep::Record(changes) = taking.step() else { panic!("{:?}", taking.step()) };
        let mut held = taking.into_held();
        self.change(&mut held, &changes);
        held
    }

    /// A whole take.
    pub(crate) fn take(&mut self, taker: Incarnation) -> HeldRange {
        let taking = self.begin_take(taker);
        self.finish_take(taking)
    }

    /// A walk to its end.
    pub(crate) fn seal(&mut self, walk: &mut SealWalk) -> u64 {
        loop {
            match walk.step() {
                WalkStep::Read { offset } => walk.found(&self.store.read(walk.place().extent, offset)),
                WalkStep::Create(header) => walk.answered(self.put(header)),
                WalkStep::Sealed { length } => return length,
                WalkStep::Stopped(stop) => panic!("{stop}"),
            }
        }
    }

    /// A change by an owner, committed.
    pub(crate) fn change(&mut self, held: &mut HeldRange, changes: &[Change]) {
        let mark = Mark::new(held.owner().incarnation, self.counter());
        let transaction = held.begin(changes, mark).unwrap().transaction.clone();
        let answer = self.commit(&transaction);
        assert!(matches!(answer, TransactionAnswer::Committed(_)), "{answer:?}");
        held.answered(answer, None);
    }

    /// A new extent at the end of the log, in the document.
    pub(crate) fn name_extent(&mut self, held: &mut HeldRange) -> ExtentName {
        let extent = ExtentName::new(held.owner().incarnation, self.counter());
        self.change(held, &[Change::AddExtent { stream: log(), extent }]);
        extent
    }

    /// A window over an extent of the log, whose first part may be sent.
    pub(crate) fn open(
        &self,
        held: &HeldRange,
        extent: ExtentName,
        sealed: Option<ExtentName>,
    ) -> AppendWindow {
        let progress = LogProgress { opened: None, sealed };
        assert_eq!(choose_first_part(held.document(), log(), extent, progress), FirstPart::May);
        let bounds = WindowBounds { parts_max: 3, size_bytes_max: 1000 };
        AppendWindow::new(LIFE, self.place(held, extent), held.owner(), bounds)
    }

    pub(crate) fn place(&self, held: &HeldRange, extent: ExtentName) -> ExtentPlace {
        let ordinal = held.document().streams[&log()].extent(extent).unwrap().ordinal;
        ExtentPlace { extent, range: range(), stream: log(), ordinal }
    }

    /// An owner with an open tail.
    pub(crate) fn writer(&mut self, taker: Incarnation) -> (HeldRange, AppendWindow) {
        let mut held = self.take(taker);
        let extent = self.name_extent(&mut held);
        let window = self.open(&held, extent, None);
        (held, window)
    }

    /// Drops the first extents of the log, up to this ordinal.
    pub(crate) fn trim(&mut self, held: &mut HeldRange, ordinal: u64) {
        self.change(held, &[Change::Trim { stream: log(), to: TrimPoint { ordinal, offset: 0 } }]);
    }

    /// The bodies in the log that a document names.
    pub(crate) fn replay(&self, document: &RangeDocument) -> Vec<u64> {
        let mut bodies = Vec::new();
        for entry in &document.streams[&log()].extents {
            let mut load = ExtentLoad::new(entry.name, entry.length.expect("a sealed extent"));
            while let Some(offset) = load.next_offset() {
                let part = load.found(self.store.read(entry.name, offset)).expect("an unbroken chain");
                bodies.extend(part.map(|part| part.body_checksum));
            }
        }
        bodies
    }
}
