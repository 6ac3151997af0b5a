//! Everything of one run: hosts, stores, what clients know, and what was found to be wrong.

use crate::clients::KEYS;
use crate::faults::{Fault, breaches};
use crate::host::{Gate, HostClock, HostSpawner};
use crate::keys::{HostKeys, SimKeys};
use crate::ledger::Ledger;
use crate::network::{Link, Weather};
use crate::objects::{HostObjects, SimObjects};
use crate::server::Server;
use parking_lot::Mutex;
use sim::SimRandom;
use stamp::{BundleBounds, KeyLimits, PartPath, StampId, StoredError, WindowBounds};
use stamp_streams::{Breach, Bundles, FirstRange, Planted, StampSettings, Surroundings, found};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const STAMP: StampId = StampId(0xfeed);
pub(crate) const HOSTS: usize = 3;
/// How many seconds in a million a clock gains or loses at most: 3 %, so that two differ by 0.6 s in a lease.
const DRIFT_MAX: u64 = 30_000;

/// A host and the process that runs on it.
pub(crate) struct Host {
    pub(crate) gate: Arc<Gate>,
    pub(crate) clock: Arc<HostClock>,
    pub(crate) to_objects: Arc<Link>,
    pub(crate) to_keys: Arc<Link>,
    pub(crate) server: Arc<Server>,
}

/// What happened, for what a run must have reached.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) kills: AtomicU64,
    pub(crate) pauses: AtomicU64,
    pub(crate) cuts: AtomicU64,
    pub(crate) releases: AtomicU64,
    pub(crate) splits: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) hangs: AtomicU64,
    pub(crate) restores: AtomicU64,
}

/// Everything of one run.
pub(crate) struct World {
    pub(crate) random: SimRandom,
    pub(crate) weather: Arc<Mutex<Weather>>,
    pub(crate) objects: Arc<SimObjects>,
    pub(crate) keys: Arc<SimKeys>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) hosts: Mutex<Vec<Host>>,
    pub(crate) counts: Counts,
    pub(crate) fault: Option<Fault>,
    settings: Arc<StampSettings>,
    wrong: Mutex<Option<String>>,
    is_over: AtomicBool,
}

/// Small ones: the parts of a history have some tens of bytes.
fn bundle_bounds(random: &SimRandom) -> BundleBounds {
    BundleBounds {
        parts_max: 2 + random.below(6) as usize,
        size_bytes: 40 + random.below(200),
        part_size_bytes_max: 30 + random.below(60),
        waiting_size_bytes_max: 100 + random.below(1000),
    }
}

fn settings(random: &SimRandom, planted: Planted) -> StampSettings {
    let mut settings = StampSettings::new(STAMP);
    settings.window = WindowBounds { parts_max: 1 + random.below(3) as usize, size_bytes_max: 1 << 20 };
    settings.bundles = Bundles { bounds: bundle_bounds(random), of: |_| true };
    settings.extent_size_bytes = [60, 200, 1000][random.below(3) as usize];
    settings.give_up_after = Duration::from_secs(6 + random.below(20));
    settings.names_early = random.one_in(2) || planted.has(Breach::RollBeforeSeal);
    // An hour is then 5 s, a week is 14 minutes.
    settings.age_factor = 720;
    settings.planted = planted;
    settings
}

impl World {
    /// Both stores, empty, and no host.
    pub(crate) fn empty(seed: u64, fault: Option<Fault>, is_control: bool) -> Arc<Self> {
        let random = SimRandom::new(seed);
        let planted = Planted::of(&fault.map(|fault| breaches(fault, is_control)).unwrap_or_default());
        let settings = Arc::new(settings(&random, planted));
        let list_lag = Duration::from_secs(if random.one_in(3) { random.below(8) } else { 0 });
        let compares_epoch_alone = settings.planted.has(Breach::EqualEpochs);
        let world = Arc::new(World {
            weather: Arc::new(Mutex::new(Weather::CALM)),
            objects: Arc::new(SimObjects::new(list_lag)),
            keys: Arc::new(SimKeys::new(STAMP, compares_epoch_alone)),
            ledger: Mutex::default(),
            hosts: Mutex::default(),
            counts: Counts::default(),
            fault,
            settings,
            wrong: Mutex::default(),
            is_over: AtomicBool::new(false),
            random,
        });
        world.watch_deletions();
        world
    }

    /// A stamp of two ranges, and three hosts that serve it.
    pub(crate) async fn new(seed: u64, fault: Option<Fault>, is_control: bool) -> Arc<Self> {
        let world = Self::empty(seed, fault, is_control);
        world.found_stamp().await;
        for _ in 0..HOSTS {
            let host = world.new_host(None);
            world.hosts.lock().push(host);
        }
        world
    }

    fn watch_deletions(self: &Arc<Self>) {
        let keys = self.keys.clone();
        let is_named = move |name: &str| {
            let path = PartPath::parse(name, STAMP)?;
            keys.names(path.extent).then(|| format!("{name} is deleted, and a document names its extent"))
        };
        *self.objects.check.lock() = Some(Box::new(is_named));
    }

    /// What an operator has: a way to both stores without faults, a clock that is right.
    pub(crate) fn operator(self: &Arc<Self>) -> Surroundings {
        self.operator_in(&Arc::new(Mutex::new(Weather::CALM)))
    }

    /// The same in this weather.
    pub(crate) fn operator_in(self: &Arc<Self>, weather: &Arc<Mutex<Weather>>) -> Surroundings {
        let link = || Arc::new(Link::new(&self.random, weather));
        let gate = Arc::new(Gate::default());
        self.surroundings(&gate, Arc::new(HostClock::new(0)), &link(), &link())
    }

    /// What one more process has, on a host with a right clock, in the world's weather.
    pub(crate) fn new_process(self: &Arc<Self>) -> (Arc<Gate>, Surroundings) {
        let link = || Arc::new(Link::new(&self.random, &self.weather));
        let gate = Arc::new(Gate::default());
        let surroundings = self.surroundings(&gate, Arc::new(HostClock::new(0)), &link(), &link());
        (gate, surroundings)
    }

    /// A stamp of two ranges, where there is none.
    pub(crate) async fn found_stamp(self: &Arc<Self>) {
        let middle = (KEYS / 2) as u8;
        let purposes = vec![crate::application::LOG.to_owned(), crate::application::CHECKPOINT.to_owned()];
        let limits = [
            KeyLimits { from: Vec::new(), to: Some(vec![middle]) },
            KeyLimits { from: vec![middle], to: None },
        ];
        let ranges = limits.map(|keys| FirstRange { keys, purposes: purposes.clone() });
        found(&self.operator(), &ranges).await.expect("a stamp");
    }

    fn surroundings(
        &self,
        gate: &Arc<Gate>,
        clock: Arc<HostClock>,
        to_objects: &Arc<Link>,
        to_keys: &Arc<Link>,
    ) -> Surroundings {
        Surroundings {
            clock,
            random: Arc::new(self.random.clone()),
            spawner: Arc::new(HostSpawner(gate.clone())),
            objects: Arc::new(HostObjects { store: self.objects.clone(), link: to_objects.clone() }),
            cache: None,
            ahead: Arc::default(),
            keys: Arc::new(HostKeys { store: self.keys.clone(), link: to_keys.clone() }),
            settings: self.settings.clone(),
        }
    }

    /// A process that starts: on a host that was there, its clock and its links stay.
    pub(crate) fn new_host(self: &Arc<Self>, former: Option<&Host>) -> Host {
        let gate = Arc::new(Gate::default());
        let gains = self.random.below(2 * DRIFT_MAX) as i64 - DRIFT_MAX as i64;
        let clock = former.map_or_else(|| Arc::new(HostClock::new(gains)), |host| host.clock.clone());
        let link = || Arc::new(Link::new(&self.random, &self.weather));
        let to_objects = former.map_or_else(link, |host| host.to_objects.clone());
        let to_keys = former.map_or_else(link, |host| host.to_keys.clone());
        let surroundings = self.surroundings(&gate, clock.clone(), &to_objects, &to_keys);
        let server = Server::start(self, &gate, surroundings);
        gate.spawn(server.clone().keep_sweeping());
        Host { gate, clock, to_objects, to_keys, server }
    }

    /// Nothing more happens: what is in memory goes with the last handle of the world.
    pub(crate) fn forget(&self) {
        *self.objects.check.lock() = None;
        self.hosts.lock().clear();
    }

    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.hosts.lock().iter().map(|host| host.server.clone()).collect()
    }

    /// Something is wrong; the first thing counts.
    pub(crate) fn found(&self, wrong: String) {
        self.wrong.lock().get_or_insert(wrong);
    }

    pub(crate) fn found_damage(&self, error: &StoredError) {
        self.found(format!("damage is reported, and there is none: {error}"));
    }

    /// What is wrong, if anything is.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.wrong.lock().clone().or_else(|| self.objects.wrong.lock().clone())
    }

    /// Whether reads count: not where leases end early on purpose.
    pub(crate) fn checks_reads(&self) -> bool {
        !self.settings.planted.has(Breach::TrustKeyAlone) || self.fault == Some(Fault::KeyAlone)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.wrong().is_some()
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, breach: Breach) -> bool {
        self.settings.planted.has(breach)
    }
}
