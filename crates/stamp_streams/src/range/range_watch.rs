//! Which ranges there are, who has them, and taking one.
//!
//! What always holds: a range is taken by the transaction of `stamp::choose_take` only, then opened
//! (`open.rs`); no heir of a split of this process is taken while the split's outcome is unknown; no range is
//! taken while this process has a handle of it that has not stopped, which would answer beside the new one.

use crate::error::StampError;
use crate::membership::beats_seen::BeatsSeen;
use crate::membership::life::Life;
use crate::metadata::wire::KeyKind;
use crate::range::open::open;
use crate::range::owned_range::OwnedRange;
use crate::settings::Breach;
use parking_lot::Mutex;
use stamp::{
    AfterTransaction, HeldRange, Incarnation, Key, Observed, ObservedOwner, OwnEntry, Owner, RangeId,
    Revision, Take, TakeChoice, TransactionAnswer, Value, choose_after_transaction, choose_take,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// For how many lease times others believe a process that says that it is cut off.
const WORD_HOLDS_FOR_TTLS: u32 = 2;

/// The outcome of trying to take a range.
pub enum Taken {
    /// It is served now, once it has been read.
    Range(Arc<OwnedRange>),
    /// Its owner lives.
    Owned,
    /// Its owner may live: try again after this time.
    Wait(Duration),
    /// It was changed meanwhile, or is not there: look again.
    NotNow,
}

/// What is seen of a range that might be taken.
enum Observation {
    Of(Box<Observed>),
    /// Its owner's key is there.
    Lives,
    /// It was changed meanwhile, or is not there.
    Changed,
}

/// Looks at all ranges, and takes some. One for each life of a process.
pub struct RangeWatch {
    life: Arc<Life>,
    seen: Mutex<BeatsSeen>,
    /// The words of those that the object store does not answer.
    cut_off: Mutex<BeatsSeen>,
}

impl RangeWatch {
    /// Watches for this life.
    pub fn new(life: &Arc<Life>) -> Self {
        RangeWatch { life: life.clone(), seen: Mutex::default(), cut_off: Mutex::default() }
    }

    /// All ranges and who has them. To be called more often than once in a lease time: the silence of an
    /// owner counts from when its newest beat was seen first.
    ///
    /// # Errors
    ///
    /// If the metadata store can't be read, or what it has is damaged.
    pub async fn look(&self) -> Result<BTreeMap<RangeId, OwnEntry>, StampError> {
        let values = self.life.metadata.list(&[KeyKind::Own, KeyKind::Beat, KeyKind::CutOff], &[]).await?;
        let answered_at = self.life.surroundings.clock.monotonic();
        let (mut ranges, mut beats, mut cut_off) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let owners = values.values.values().filter_map(|(value, _)| match value {
            Value::Own(own) => own.owner,
            _ => None,
        });
        // An owner without a beat is silent, too.
        beats.extend(owners.map(|owner| (owner, Revision(0))));
        for (key, (value, changed_at)) in &values.values {
            match (key, value) {
                (Key::Own(range), Value::Own(own)) => {
                    ranges.insert(*range, *own);
                }
                (Key::Beat(incarnation), _) => {
                    beats.insert(*incarnation, *changed_at);
                }
                (Key::CutOff(incarnation), _) => {
                    cut_off.insert(*incarnation, *changed_at);
                }
                _ => {}
            }
        }
        self.seen.lock().saw(&beats, answered_at);
        self.cut_off.lock().saw(&cut_off, answered_at);
        Ok(ranges)
    }

    /// Waits until something has changed in the metadata store, or for some time.
    pub async fn changed(&self, after: Revision) {
        let waiting = self.life.surroundings.keys.wait_for_change(after);
        drop(self.life.surroundings.try_key(waiting).await);
    }

    /// For how long the owner of a range has shown no new beat, by what [`Self::look`] has seen.
    pub fn silent_for(&self, owner: Incarnation) -> Duration {
        let now = self.life.surroundings.clock.monotonic();
        self.seen.lock().silent_for(owner, now)
    }

    /// Whether a process has said in the last [`WORD_HOLDS_FOR_TTLS`] lease times that the object store does
    /// not answer it, by what [`Self::look`] has seen. An owner gives its ranges up by then, if that lasts;
    /// one that has not is not believed any longer.
    pub fn is_cut_off(&self, process: Incarnation) -> bool {
        let (now, ttl) = (self.life.surroundings.clock.monotonic(), self.life.surroundings.settings.ttl);
        let said_for = self.cut_off.lock().seen_for(process, now);
        said_for.is_some_and(|said_for| said_for < WORD_HOLDS_FOR_TTLS * ttl)
    }

    /// Whether this process comes first of those that live, are not cut off and may take a range of this
    /// owner. Nothing but haste depends on it: two may think so, or none.
    pub fn is_first_in_line(&self, owner: Incarnation) -> bool {
        let (mine, now) = (self.life.incarnation(), self.life.surroundings.clock.monotonic());
        let out = |other| other == owner || self.is_cut_off(other);
        self.seen.lock().is_first(mine, out, self.life.surroundings.settings.ttl, now)
    }

    /// Takes a range that this process does not serve, if it may be taken: its document names this process
    /// then, and every extent of it has a recorded length.
    ///
    /// # Errors
    ///
    /// [`StampError::Stored`] if the range is damaged; then it is not served by anybody.
    pub async fn take(&self, range: RangeId) -> Result<Taken, StampError> {
        let planted = &self.life.surroundings.settings.planted;
        let observed = match self.observe(range).await? {
            Observation::Of(observed) => observed,
            Observation::Lives => return Ok(Taken::Owned),
            Observation::Changed => return Ok(Taken::NotNow),
        };
        let life = &self.life;
        // After the look, which saw a range that this process has got meanwhile, by a split perhaps.
        let is_heir = life.not_taken.heirs_under_way.lock().contains(&range);
        if is_heir && !planted.has(Breach::TakeHeirsEarly)
            || life.not_taken.handles.lock().contains_key(&range)
        {
            return Ok(Taken::NotNow);
        }
        let ttl = life.surroundings.settings.ttl;
        let choice = choose_take(life.life(), life.incarnation(), &observed, ttl, life.next_mark());
        let mut take = match choice {
            TakeChoice::Take(take) => take,
            TakeChoice::Owned => return Ok(Taken::Owned),
            TakeChoice::Wait(wait) => return Ok(Taken::Wait(wait)),
        };
        if planted.has(Breach::EqualEpochs) {
            take_at_epoch(&mut take, &observed);
        }
        match self.commit(&take).await? {
            Some(revision) => {
                let held = HeldRange::new(life.life(), take.owner, take.document.clone(), revision);
                Ok(Taken::Range(open(life, held).await?))
            }
            None => Ok(Taken::NotNow),
        }
    }

    /// Hands a range over that a take of this process got and could not open, so that another may take it at
    /// once and need not wait for the lease's end. Nothing, if the range is not this process's.
    ///
    /// # Errors
    ///
    /// If the metadata store can't be reached.
    pub async fn hand_back(&self, range: RangeId) -> Result<(), StampError> {
        let life = &self.life;
        let Observation::Of(observed) = self.observe(range).await? else { return Ok(()) };
        let Observed { own, document, revision, .. } = *observed;
        let is_served = life.not_taken.handles.lock().contains_key(&range);
        if own.owner != Some(life.incarnation()) || is_served {
            return Ok(());
        }
        let owner = Owner { incarnation: life.incarnation(), epoch: own.epoch };
        let held = HeldRange::new(life.life(), owner, document, revision);
        OwnedRange::new(life, held, None).give_up().await
    }

    async fn observe(&self, range: RangeId) -> Result<Observation, StampError> {
        let metadata = &self.life.metadata;
        let Some(before) = metadata.read(&[Key::Own(range)]).await?.own(range) else {
            return Ok(Observation::Changed);
        };
        if let Some(owner) = before.owner.filter(|owner| *owner != self.life.incarnation()) {
            let key = Key::Process(owner);
            // Whoever stands by looks several times a second, and the document is large.
            if metadata.read(&[key]).await?.get(key).is_some() {
                return Ok(Observation::Lives);
            }
        }
        let mut keys = vec![Key::Own(range), Key::Document(range)];
        keys.extend(before.owner.into_iter().flat_map(|owner| [Key::Process(owner), Key::Beat(owner)]));
        let sent_at = self.life.surroundings.clock.monotonic();
        let values = metadata.read(&keys).await?;
        let Some(Value::Document(document)) = values.get(Key::Document(range)) else {
            return Ok(Observation::Changed);
        };
        if values.own(range) != Some(before) {
            return Ok(Observation::Changed);
        }
        let trusts_key = self.life.surroundings.settings.planted.has(Breach::TrustKeyAlone);
        let owner = before.owner.map(|owner| {
            let beat = values.changed_at(Key::Beat(owner));
            let unchanged_for = self.seen.lock().unchanged_for(owner, beat, sent_at);
            ObservedOwner {
                has_key: values.get(Key::Process(owner)).is_some(),
                beat,
                beat_unchanged_for: if trusts_key { Duration::MAX } else { unchanged_for },
            }
        });
        let (own, document) = (before, document.clone());
        let revision = values.changed_at(Key::Document(range));
        Ok(Observation::Of(Box::new(Observed { own, document, revision, owner })))
    }

    /// Sends the transaction of a take until its outcome is known; none if what it relied on has changed.
    async fn commit(&self, take: &Take) -> Result<Option<Revision>, StampError> {
        let (life, mark) = (&self.life, take.document.mark);
        let mut back_off = life.surroundings.back_off();
        loop {
            if !life.holds() {
                return Err(StampError::LeaseEnded);
            }
            let answer = life.metadata.commit(&take.transaction).await;
            let mut read = None;
            if answer == TransactionAnswer::CompareFailed {
                read = Some(life.metadata.read_document(take.document.range).await?);
            }
            match choose_after_transaction(answer, read, mark, take.compared) {
                AfterTransaction::Committed(revision) => return Ok(Some(revision)),
                AfterTransaction::SendAgain | AfterTransaction::Read
                    if answer == TransactionAnswer::Unknown || read == Some(stamp::DocumentRead::Unknown) =>
                {
                    back_off.wait().await;
                }
                _ => return Ok(None),
            }
        }
    }
}

/// A planted fault: the epoch does not rise.
fn take_at_epoch(take: &mut Take, observed: &Observed) {
    take.owner.epoch = stamp::OwnerEpoch(observed.own.epoch.0.max(1));
    let own = OwnEntry::of(take.owner);
    let mut document = (*take.document).clone();
    document.own = own;
    take.document = Arc::new(document);
    for (key, value) in &mut take.transaction.puts {
        match key {
            Key::Own(_) => *value = Value::Own(own),
            _ => *value = Value::Document(take.document.clone()),
        }
    }
}
