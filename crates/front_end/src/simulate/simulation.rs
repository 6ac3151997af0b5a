//! What is simulated, and what it has counted so far: decides over each request, one after the other.
//!
//! A refused request takes no tokens, and one that a rule answers before its work takes none either. What
//! always holds: nothing here waits, and what is held is bounded: the places by their own bound, accounts by
//! their number, counts by the rules.

use super::balancing::Whereabouts;
use super::chance::{hash_number, share};
use super::fault_rule::{Disturbance, RuleCount, Subject, choose_rule};
use super::operation::{Operation, Target};
use super::places::{Place, Places};
use super::settings::{SimulationSettings, TargetLimits};
use super::token_bucket::{TokenBucket, refill_for};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Limits, boundaries and faults for a front end.
pub struct Simulation {
    state: Mutex<State>,
}

struct State {
    settings: Arc<SimulationSettings>,
    /// One for each rule.
    counts: Vec<RuleCount>,
    /// By their numbers.
    accounts: BTreeMap<u32, AccountBuckets>,
    places: Places,
}

#[derive(Clone, Copy, Debug, Default)]
struct AccountBuckets {
    requests: TokenBucket,
    ingress: TokenBucket,
    egress: TokenBucket,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    pub(crate) account: &'a str,
    pub(crate) account_number: u32,
    pub(crate) service: &'static str,
}

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A place, or an account, has no tokens.
    Throttled(Bucket),
    /// The place is being moved.
    Away { timed_out: bool },
}

/// What had no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bucket {
    Place,
    Account,
    Ingress,
    Egress,
}

/// A rule that disturbs a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) rule: String,
    /// Which match of its rule it is.
    pub(crate) nth: u64,
    pub(crate) delay: Option<Duration>,
    pub(crate) disturbance: Option<Disturbance>,
}

/// What is decided over a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    /// What a rule does to it.
    pub(crate) fault: Option<Fault>,
    /// It is not served.
    pub(crate) refusal: Option<Refusal>,
    /// With it the move of a place begins, which takes so long.
    pub(crate) move_begins: Option<Duration>,
}

/// What a request has moved, known once it is done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) ingress_bytes: u64,
    pub(crate) egress_bytes: u64,
}

impl Simulation {
    /// With full buckets, and nothing counted.
    pub fn new(settings: SimulationSettings) -> Self {
        let counts = vec![RuleCount::default(); settings.rules.len()];
        let (accounts, places) = (BTreeMap::new(), Places::default());
        let state = State { settings: Arc::new(settings), counts, accounts, places };
        Simulation { state: Mutex::new(state) }
    }

    /// From now on with these settings. Rules begin to count anew; buckets and loads stay as they are.
    pub fn replace_settings(&self, settings: SimulationSettings) {
        let mut state = self.state.lock();
        state.counts = vec![RuleCount::default(); settings.rules.len()];
        state.settings = Arc::new(settings);
    }

    /// What is in force, for messages.
    pub fn describe(&self) -> impl std::fmt::Debug + use<> {
        self.settings()
    }

    /// What is simulated.
    pub(crate) fn settings(&self) -> Arc<SimulationSettings> {
        self.state.lock().settings.clone()
    }

    /// Decides over a request, which rules count; `key` is the operation's as they see it.
    pub(crate) fn admit(
        &self,
        now: Duration,
        requester: &Requester<'_>,
        operation: &Operation<'_>,
        key: &str,
    ) -> Admission {
        let mut state = self.state.lock();
        let settings = state.settings.clone();
        let subject = Subject {
            account: requester.account,
            service: requester.service,
            operation: operation.name,
            key,
        };
        let fault = choose_rule(&settings.rules, &mut state.counts, settings.seed, &subject).map(|index| {
            let rule = &settings.rules[index];
            let nth = state.counts[index].matched;
            Fault { rule: rule.name.clone(), nth, delay: rule.delay, disturbance: rule.disturbance.clone() }
        });
        if fault.as_ref().is_some_and(|fault| fault.disturbance.as_ref().is_some_and(Disturbance::is_before))
        {
            return Admission { fault, ..Admission::default() };
        }
        let place = operation.place(requester.service, requester.account);
        let rate = rate_of(&settings.limits, operation.target);
        let place = place.zip(rate).map(|(id, rate)| Charged { id, rate, cost: operation.cost });
        Admission { fault, ..state.admit_within_limits(now, &settings, requester.account_number, place) }
    }

    /// Charges for rows that a query returns, by partition, in their order; refuses the page if the first
    /// partition has no tokens.
    pub(crate) fn admit_rows(
        &self,
        now: Duration,
        requester: &Requester<'_>,
        partitions: &[(Operation<'_>, u64)],
    ) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        let settings = state.settings.clone();
        let Some(rate) = settings.limits.partition_entities else { return Ok(()) };
        for (index, (operation, rows)) in partitions.iter().enumerate() {
            let Some(id) = operation.place(requester.service, requester.account) else { continue };
            if index == 0 && !state.places.find(id).requests.has_any(now) {
                return Err(Refusal::Throttled(Bucket::Place));
            }
            state.charge(now, &settings, id, refill_for(*rows, rate));
        }
        Ok(())
    }

    /// Charges for more messages than a request was known to be about.
    pub(crate) fn charge_more(
        &self,
        now: Duration,
        requester: &Requester<'_>,
        operation: &Operation<'_>,
        count: u64,
    ) {
        let mut state = self.state.lock();
        let settings = state.settings.clone();
        let place = operation.place(requester.service, requester.account);
        if let Some((id, rate)) = place.zip(rate_of(&settings.limits, operation.target)) {
            state.charge(now, &settings, id, refill_for(count, rate));
        }
    }

    /// Charges an account for what was moved.
    pub(crate) fn charge_bytes(&self, now: Duration, account_number: u32, moved: Moved) {
        let mut state = self.state.lock();
        let limits = state.settings.limits;
        let account = state.accounts.entry(account_number).or_default();
        if let Some(rate) = limits.ingress_bytes {
            account.ingress.take(now, moved.ingress_bytes, rate);
        }
        if let Some(rate) = limits.egress_bytes {
            account.egress.take(now, moved.egress_bytes, rate);
        }
    }

    /// A request was about a page blob: it is charged for its bytes, and, unless that was known before, for
    /// a page blob's request in the place of a block blob's.
    pub(crate) fn charge_page_blob(
        &self,
        now: Duration,
        requester: &Requester<'_>,
        operation: &Operation<'_>,
        moved: Moved,
    ) {
        let mut state = self.state.lock();
        let settings = state.settings.clone();
        let Some(id) = operation.place(requester.service, requester.account) else { return };
        let mut place = state.places.find(id);
        let limits = &settings.limits;
        if let (Target::Blob { is_page: false }, Some(page)) = (operation.target, limits.page_blob_requests) {
            let charged = limits.block_blob_requests.map_or(Duration::ZERO, |rate| refill_for(1, rate));
            place.requests.take_for(now, refill_for(1, page).saturating_sub(charged));
        }
        if let Some(rate) = limits.page_blob_bytes {
            place.bytes.take(now, moved.ingress_bytes + moved.egress_bytes, rate);
        }
        state.places.keep(id, place, now, settings.balancing.as_ref());
    }
}

/// A place, and what a request takes of its bucket.
#[derive(Clone, Copy)]
struct Charged {
    id: u64,
    rate: NonZeroU64,
    cost: u64,
}

impl State {
    fn admit_within_limits(
        &mut self,
        now: Duration,
        settings: &SimulationSettings,
        account_number: u32,
        charged: Option<Charged>,
    ) -> Admission {
        let mut admission = Admission::default();
        let mut account = self.accounts.get(&account_number).copied().unwrap_or_default();
        let mut place = charged.map_or_else(Place::default, |charged| self.places.find(charged.id));
        if let (Some(charged), Some(balancing)) = (charged, &settings.balancing) {
            let chance = |count| share(hash_number(hash_number(settings.seed, charged.id), count));
            let work = refill_for(charged.cost, charged.rate);
            let found = place.load.note(now, work, balancing, chance(place.move_count));
            if let Whereabouts::Leaving(away_for) = found {
                place.move_count += 1;
                admission.move_begins = Some(away_for);
            }
            if found != Whereabouts::Here {
                place.away_count += 1;
                let timed_out = chance(place.away_count.wrapping_neg()) < balancing.timed_out;
                admission.refusal = Some(Refusal::Away { timed_out });
            }
        }
        if admission.refusal.is_none() {
            let lacking = lacking(now, &settings.limits, &account, charged.map(|charged| (charged, &place)));
            admission.refusal = lacking.map(Refusal::Throttled);
        }
        if admission.refusal.is_none() {
            if let Some(rate) = settings.limits.account_requests {
                account.requests.take(now, 1, rate);
                self.accounts.insert(account_number, account);
            }
            if let Some(charged) = charged {
                place.requests.take(now, charged.cost, charged.rate);
            }
        }
        if let Some(charged) = charged {
            self.places.keep(charged.id, place, now, settings.balancing.as_ref());
        }
        admission
    }

    fn charge(&mut self, now: Duration, settings: &SimulationSettings, id: u64, refill_for: Duration) {
        let mut place = self.places.find(id);
        place.requests.take_for(now, refill_for);
        if let Some(balancing) = &settings.balancing {
            place.load.add(now, refill_for, balancing);
        }
        self.places.keep(id, place, now, settings.balancing.as_ref());
    }
}

/// What has too few tokens for a request: the account's buckets come first.
fn lacking(
    now: Duration,
    limits: &TargetLimits,
    account: &AccountBuckets,
    place: Option<(Charged, &Place)>,
) -> Option<Bucket> {
    if limits.account_requests.is_some_and(|rate| !account.requests.admits(now, 1, rate)) {
        return Some(Bucket::Account);
    }
    if limits.ingress_bytes.is_some() && !account.ingress.has_any(now) {
        return Some(Bucket::Ingress);
    }
    if limits.egress_bytes.is_some() && !account.egress.has_any(now) {
        return Some(Bucket::Egress);
    }
    let (charged, place) = place?;
    let has_tokens = place.requests.admits(now, charged.cost, charged.rate) && place.bytes.has_any(now);
    (!has_tokens).then_some(Bucket::Place)
}

fn rate_of(limits: &TargetLimits, target: Target) -> Option<NonZeroU64> {
    match target {
        Target::Account => None,
        Target::Partition => limits.partition_entities,
        Target::Queue => limits.queue_messages,
        Target::Blob { is_page: false } => limits.block_blob_requests,
        Target::Blob { is_page: true } => limits.page_blob_requests,
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
