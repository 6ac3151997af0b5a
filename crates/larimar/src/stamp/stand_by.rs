//! Standing by: a process joins its stamp, founds it if there is none, looks at who serves it, and takes it
//! once nobody does.

use crate::stamp::former_revisions::FormerRevisions;
use crate::stamp::founding::{FoundError, found_stamp};
use crate::stamp::log_ahead::LogAhead;
use crate::stamp::served_settings::{ServedSettings, Silence, may_take};
use crate::stamp::stores::{StampFailure, Stores};
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use stamp::{Incarnation, OwnEntry, OwnerEpoch, RangeId};
use stamp_streams::{Life, OwnedRange, RangeWatch, StampError, Surroundings, Taken, is_founded};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How often a process that stands by looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Lease times that a process may take to take and seal a stamp.
pub(super) const TAKES_OF_LEASE: u32 = 2;
/// How long others leave the range of an owner that is silent or cut off to the process that comes first.
const FIRST_TAKES_WITHIN: Duration = Duration::from_secs(1);
/// How long a stamp that was taken and can't be opened is handed back.
const HANDED_BACK_WITHIN: Duration = Duration::from_secs(1);
/// After what failed it is tried again then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why this process does not serve: for answers, `/ready` and the log.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<String>);

impl Waiting {
    /// What it waits for now; a change is logged.
    pub(super) fn note(&self, what: String) {
        let mut waiting = self.0.lock();
        if *waiting != what {
            tracing::info!("standing by: {what}");
            *waiting = what;
        }
    }

    /// The same, but nothing is logged.
    pub(super) fn update(&self, what: String) {
        *self.0.lock() = what;
    }

    /// What it waits for.
    pub(crate) fn reason(&self) -> String {
        format!("This process stands by: {}.", self.0.lock())
    }
}

/// A range that this process has, and the life that it has it in.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) life: Arc<Life>,
    pub(super) range: Arc<OwnedRange>,
}

/// Whether a process leaves a range whose log may have been read ahead to the one that comes first, which has
/// read it: two that read it would share what the store gives.
fn gives_way(is_first: bool, silence: Silence, ttl: Duration) -> bool {
    let first_takes = match silence {
        Silence::OfOwner(silent_for) => (ttl..ttl + FIRST_TAKES_WITHIN).contains(&silent_for),
        Silence::SinceRelease(seen_for) => seen_for < FIRST_TAKES_WITHIN,
    };
    !is_first && first_takes
}

/// Whether nobody may have the stamp, as far as that is known without asking for its owner's key.
fn may_be_free(silence: Silence, ttl: Duration) -> bool {
    match silence {
        Silence::OfOwner(silent_for) => silent_for >= ttl,
        Silence::SinceRelease(_) => true,
    }
}

/// What came of a try to take the stamp.
enum Tried {
    Taken(Arc<OwnedRange>),
    NotNow,
    /// It may have been taken, and this process can't serve it: it is handed back and the life ends, so that
    /// another can.
    StandDown(RangeId),
}

/// What a process that stands by has.
pub(super) struct StandBy<'a> {
    /// Its life, which ends with the process whatever it is at then.
    pub(super) life: Mutex<Option<Arc<Life>>>,
    /// When it saw first that nobody has the stamp since this epoch, by the monotonic clock.
    pub(super) released_at: Mutex<Option<(OwnerEpoch, Duration)>>,
    /// The newest owner, if it was cut off from the object store when it was seen last.
    pub(super) cut_off: Mutex<Option<Incarnation>>,
    pub(super) stores: &'a Stores,
    pub(super) settings: &'a ServedSettings,
    pub(super) revisions: &'a FormerRevisions,
    pub(super) waiting: &'a Waiting,
    pub(super) log_ahead: LogAhead,
}

impl StandBy<'_> {
    fn surroundings(&self) -> &Surroundings {
        &self.stores.surroundings
    }

    /// Waits until this process has the stamp. A life that still holds is gone on with.
    ///
    /// # Errors
    ///
    /// If the stores can't carry the stamp, or what they have is not this stamp.
    pub(super) async fn take(&self, mut before: Option<Arc<Life>>) -> Result<Held, StampFailure> {
        loop {
            let life = match before.take().filter(|life| life.holds()) {
                Some(life) => life,
                None => match self.join().await? {
                    Some(life) => life,
                    None => continue,
                },
            };
            *self.life.lock() = Some(life.clone());
            let watch = RangeWatch::new(&life);
            while life.holds() {
                self.note_revision(&life);
                match self.try_to_take(&watch).await? {
                    Tried::Taken(range) => match self.settings.note_served(&range).await {
                        Ok(()) => {
                            self.log_ahead.use_up();
                            *self.cut_off.lock() = None;
                            return Ok(Held { life, range });
                        }
                        Err(error) => {
                            self.waiting.note(error.to_string());
                            break;
                        }
                    },
                    Tried::NotNow => self.surroundings().clock.sleep(LOOK_EVERY).await,
                    Tried::StandDown(range) => {
                        self.hand_back(&watch, range).await;
                        break;
                    }
                }
            }
            self.log_ahead.end();
            life.leave().await;
            // Others look meanwhile.
            self.surroundings().clock.sleep(RETRY_AFTER).await;
        }
    }

    async fn try_to_take(&self, watch: &RangeWatch) -> Result<Tried, StampFailure> {
        let mut sent_for = None;
        let tried = async {
            let ranges = watch.look().await?;
            let Some((range, own)) = ranges.into_iter().next() else { return Ok(Tried::NotNow) };
            let Some(silence) = self.may_take(watch, own).await? else { return Ok(Tried::NotNow) };
            let is_first = self.read_ahead_if_first(watch, range, own);
            if gives_way(is_first, silence, self.surroundings().settings.ttl) {
                return Ok(Tried::NotNow);
            }
            if !self.reaches_store(silence).await {
                self.waiting.note("the object store does not answer this process".to_owned());
                return Ok(Tried::NotNow);
            }
            sent_for = Some(range);
            let keeps = self.log_ahead.keep();
            // It may have the range by then, and not reach the store that it must seal it in.
            let clock = &self.surroundings().clock;
            let patience = clock.sleep(TAKES_OF_LEASE * self.surroundings().settings.ttl);
            let taken = match select(pin!(watch.take(range)), patience).await {
                Either::Left((taken, _)) => taken?,
                Either::Right(_) => {
                    self.waiting.note("the stamp could not be taken in time".to_owned());
                    return Ok(Tried::StandDown(range));
                }
            };
            if keeps && !matches!(taken, Taken::Range(_)) {
                self.log_ahead.end();
            }
            match taken {
                Taken::Range(range) => return Ok(Tried::Taken(range)),
                Taken::Owned => self.waiting.note(served_by(own)),
                Taken::Wait(wait) => {
                    let seconds = wait.as_secs_f64();
                    self.waiting.note(format!("{}, was heard of and has {seconds:.0} s", served_by(own)));
                }
                Taken::NotNow => {}
            }
            Ok(Tried::NotNow)
        };
        match tried.await {
            Err(StampError::Stored(error)) => Err(StampFailure::Refused(error.to_string())),
            Err(error) => {
                self.waiting.note(error.to_string());
                Ok(sent_for.map_or(Tried::NotNow, Tried::StandDown))
            }
            Ok(tried) => Ok(tried),
        }
    }

    /// Others need not wait for the end of the lease. If etcd does not answer, they do.
    async fn hand_back(&self, watch: &RangeWatch, range: RangeId) {
        let patience = self.surroundings().clock.sleep(HANDED_BACK_WITHIN);
        if let Either::Left((Err(error), _)) = select(pin!(watch.hand_back(range)), patience).await {
            tracing::debug!(%error, "the stamp was not handed back");
        }
    }

    /// Whether this process comes first of those that may take the range. If so, and if its owner is silent
    /// or cut off, the log is read ahead.
    fn read_ahead_if_first(&self, watch: &RangeWatch, range: RangeId, own: OwnEntry) -> bool {
        let mut cut_off = self.cut_off.lock();
        let Some(owner) = own.owner else {
            // Where the owner was not cut off, nobody comes first; where it was, one that could read nothing
            // may be cut off, too.
            let comes_first = |former| watch.is_first_in_line(former) && self.log_ahead.has_any();
            return cut_off.is_none_or(comes_first);
        };
        let is_first = watch.is_first_in_line(owner);
        let is_cut_off = watch.is_cut_off(owner);
        *cut_off = is_cut_off.then_some(owner);
        match is_first {
            true => self.log_ahead.note_owner(range, owner, watch.silent_for(owner), is_cut_off),
            false => self.log_ahead.end(),
        }
        is_first
    }

    /// Whether the object store answers, if the stamp may be free: whoever takes it must seal it there, and
    /// keeps it from all others meanwhile. Of a stamp whose owner lives nothing is read.
    ///
    /// A slow answer counts: else nobody would serve from a slow store. etcd is looked at more than once in a
    /// lease time.
    async fn reaches_store(&self, silence: Silence) -> bool {
        let settings = &self.surroundings().settings;
        if !may_be_free(silence, settings.ttl) || self.log_ahead.has_any() {
            return true;
        }
        self.surroundings().reaches_store(settings.object_try_for.min(settings.ttl / 2)).await
    }

    /// For how long the owner was silent or the range was nobody's, if this process may take it as far as
    /// settings go.
    async fn may_take(&self, watch: &RangeWatch, own: OwnEntry) -> Result<Option<Silence>, StampError> {
        let served = self.settings.served(self.surroundings()).await;
        let served = served.map_err(|error| StampError::Store { what: "settings".to_owned(), error })?;
        let unlike = self.settings.unlike(&served);
        let ttl = self.surroundings().settings.ttl;
        // After the settings were read, which takes time.
        let silence = self.silence(watch, own);
        let may = may_take(unlike, silence, ttl);
        if let Some(unlike) = unlike.filter(|_| !may) {
            self.waiting.note(unlike.reason());
        }
        Ok(may.then_some(silence))
    }

    /// Notes how far etcd is: whoever serves next has it forget what was before.
    fn note_revision(&self, life: &Life) {
        self.revisions.note(life.life().generation, life.known_revision());
    }

    fn silence(&self, watch: &RangeWatch, own: OwnEntry) -> Silence {
        let mut released_at = self.released_at.lock();
        match own.owner {
            Some(owner) => {
                *released_at = None;
                Silence::OfOwner(watch.silent_for(owner))
            }
            None => {
                let now = self.surroundings().clock.monotonic();
                // Whoever had it meanwhile has raised the epoch.
                let seen = released_at.filter(|(epoch, _)| *epoch == own.epoch);
                let (_, since) = *released_at.insert(seen.unwrap_or((own.epoch, now)));
                Silence::SinceRelease(now.saturating_sub(since))
            }
        }
    }

    /// Joins the stamp, which is founded first if there is none. None: not now.
    async fn join(&self) -> Result<Option<Arc<Life>>, StampFailure> {
        let surroundings = self.surroundings();
        let failed = match self.found_and_join().await {
            Ok(life) => return Ok(Some(life)),
            Err(error) => error,
        };
        match failed {
            FoundError::Stamp(StampError::Stored(error)) => Err(StampFailure::Refused(error.to_string())),
            FoundError::Stamp(StampError::Setup(why)) => Err(StampFailure::Refused(why)),
            FoundError::FirstStart(why) => Err(StampFailure::Refused(why)),
            FoundError::Stamp(error) => {
                self.waiting.note(error.to_string());
                surroundings.clock.sleep(RETRY_AFTER).await;
                Ok(None)
            }
        }
    }

    async fn found_and_join(&self) -> Result<Arc<Life>, FoundError> {
        let surroundings = self.surroundings();
        if !is_founded(surroundings).await? {
            self.waiting.note("the stamp is being made".to_owned());
            found_stamp(self.stores).await?;
        }
        Ok(Life::join(surroundings).await?)
    }
}

fn served_by(own: OwnEntry) -> String {
    match own.owner {
        Some(owner) => format!("process {owner} serves the stamp"),
        None => "nobody serves the stamp".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While the store was away for all, whoever took a stamp could not seal it, and kept it for two lease
    /// times and one more from those that could once the store was back.
    #[test]
    fn only_of_a_stamp_that_may_be_free_the_store_is_asked_first() {
        let ttl = Duration::from_secs(10);
        let silent = |ms| Silence::OfOwner(Duration::from_millis(ms));
        assert_eq!([0, 9999, 10_000].map(|ms| may_be_free(silent(ms), ttl)), [false, false, true]);
        assert!(may_be_free(Silence::SinceRelease(Duration::ZERO), ttl));
    }

    #[test]
    fn others_leave_the_range_to_the_first_for_a_second() {
        let ttl = Duration::from_secs(10);
        let silent = |ms| Silence::OfOwner(Duration::from_millis(ms));
        let released = |ms| Silence::SinceRelease(Duration::from_millis(ms));
        for (is_first, silence, expected) in [
            (false, silent(9999), false),
            (false, silent(10_000), true),
            (false, silent(10_999), true),
            (false, silent(11_000), false),
            (true, silent(10_500), false),
            (false, released(0), true),
            (false, released(1000), false),
            (true, released(0), false),
        ] {
            assert_eq!(gives_way(is_first, silence, ttl), expected, "{is_first} {silence:?}");
        }
    }
}
