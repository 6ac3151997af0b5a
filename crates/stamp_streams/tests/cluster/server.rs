//! A process: it joins, takes ranges, serves them, sweeps, makes backups; and joins anew once its lease has
//! ended.

use crate::application::{LoadError, Served, is_within};
use crate::faults::Fault;
use crate::host::Gate;
use crate::world::World;
use parking_lot::Mutex;
use stamp::{RangeId, StoredError};
use stamp_streams::{
    Life, Next, OwnedRange, RangeWatch, SnapshotLayer, StampError, StampSnapshot, Surroundings, Sweeper,
    Taken, back_up_all,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stream::StreamLayer;

/// How a process is with a range.
pub(crate) enum Slot {
    /// It takes it, or finds out what to do with it.
    Busy,
    Served(Arc<Served>),
    /// It leaves it alone for ever: a planted fault.
    Stuck,
}

/// A process.
pub(crate) struct Server {
    pub(crate) world: Arc<World>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) surroundings: Surroundings,
    pub(crate) ranges: Mutex<BTreeMap<RangeId, Slot>>,
    life: Mutex<Option<Arc<Life>>>,
}

const LOOK_EVERY_MS: u64 = 1000;

impl Server {
    pub(crate) fn start(world: &Arc<World>, gate: &Arc<Gate>, surroundings: Surroundings) -> Arc<Self> {
        let server = Arc::new(Server {
            world: world.clone(),
            gate: gate.clone(),
            surroundings,
            ranges: Mutex::default(),
            life: Mutex::default(),
        });
        gate.spawn(server.clone().run());
        server
    }

    async fn sleep_ms(&self, ms: u64) {
        self.surroundings.clock.sleep(Duration::from_millis(ms)).await;
    }

    async fn run(self: Arc<Self>) {
        loop {
            match Life::join(&self.surroundings).await {
                Ok(life) => self.live(life).await,
                Err(StampError::Stored(error)) => return self.world.found_damage(&error),
                Err(_) => {}
            }
            self.sleep_ms(200 + self.world.random.below(800)).await;
        }
    }

    async fn live(self: &Arc<Self>, life: Arc<Life>) {
        *self.life.lock() = Some(life.clone());
        if self.world.fault == Some(Fault::DeleteAtStart) {
            self.delete_what_looks_left_over().await;
        }
        let watch = Arc::new(RangeWatch::new(&life));
        while life.holds() {
            if let Ok(ranges) = watch.look().await {
                for range in ranges.into_keys() {
                    self.consider(&life, &watch, range);
                }
            }
            let ended = std::pin::pin!(life.ended());
            let pause = std::pin::pin!(self.sleep_ms(LOOK_EVERY_MS));
            futures_util::future::select(ended, pause).await;
        }
        if self.world.fault == Some(Fault::IgnoreTheLease) {
            // It goes on answering reads until it joins again.
            self.sleep_ms(20_000).await;
        }
        self.ranges.lock().clear();
        life.leave().await;
    }

    fn consider(self: &Arc<Self>, life: &Arc<Life>, watch: &Arc<RangeWatch>, range: RangeId) {
        if !self.world.random.one_in(2) || self.ranges.lock().contains_key(&range) {
            return;
        }
        self.ranges.lock().insert(range, Slot::Busy);
        let (server, life, watch) = (self.clone(), life.clone(), watch.clone());
        self.gate.spawn(async move {
            if server.world.random.one_in(4) {
                server.read_ahead(range).await;
            }
            match watch.take(range).await {
                Ok(Taken::Range(owned)) => server.serve(&life, owned).await,
                // By a split this process may serve it meanwhile.
                _ if server.serves(range) => return,
                Ok(Taken::Owned | Taken::Wait(_) | Taken::NotNow) => {}
                Err(StampError::Stored(error)) => server.world.found_damage(&error),
                Err(_) => {}
            }
            server.forget(&life, range);
        });
    }

    /// Reads what there is of a range before it takes it, as far as it comes in some seconds.
    async fn read_ahead(&self, range: RangeId) {
        let surroundings = &self.surroundings;
        let is_loaded: [fn(&str) -> bool; 2] = [|_| true, |purpose| purpose.len() % 2 == 0];
        surroundings.ahead.begin(1 << 20, is_loaded[self.world.random.below(2) as usize]);
        let reading = async {
            let Ok(Some(snapshot)) = StampSnapshot::read(surroundings).await else { return };
            let Ok((layer, _)) = SnapshotLayer::open_damaged(&snapshot, range).await else { return };
            for stream in layer.list("") {
                let Ok(mut replay) = layer.replay(&stream, None) else { continue };
                while let Ok(Some(_)) = replay.next().await {}
            }
        };
        let patience = self.sleep_ms(self.world.random.below(8000));
        futures_util::future::select(std::pin::pin!(reading), std::pin::pin!(patience)).await;
    }

    fn serves(&self, range: RangeId) -> bool {
        matches!(self.ranges.lock().get(&range), Some(Slot::Served(_)))
    }

    /// How this life is with a range, if the process is still in it.
    fn set(&self, life: &Arc<Life>, range: RangeId, slot: Slot) {
        if self.life.lock().as_ref().is_some_and(|current| Arc::ptr_eq(current, life)) {
            self.ranges.lock().insert(range, slot);
        }
    }

    /// The range has no role any more in this life.
    fn forget(&self, life: &Arc<Life>, range: RangeId) {
        if self.world.fault == Some(Fault::IgnoreTheLease) && !life.holds() {
            return;
        }
        let is_current = self.life.lock().as_ref().is_some_and(|current| Arc::ptr_eq(current, life));
        let mut ranges = self.ranges.lock();
        if is_current && !matches!(ranges.get(&range), Some(Slot::Stuck)) {
            ranges.remove(&range);
        }
    }

    /// Serves a range, and what becomes of it, until it is not this process's any more.
    async fn serve(self: &Arc<Self>, life: &Arc<Life>, mut owned: Arc<OwnedRange>) {
        loop {
            let range = owned.range();
            self.surroundings.ahead.use_up();
            let loaded = self.load(&owned).await;
            // It is the same for all ranges of the process: one whose load goes on reads the rest anew.
            self.surroundings.ahead.end();
            match loaded {
                Ok(served) => {
                    self.gate.spawn(served.clone().commit_groups(self.clone()));
                    self.gate.spawn(self.clone().keep_checkpoints(served.clone()));
                    if owned.stopped().is_none() {
                        self.set(life, range, Slot::Served(served));
                    }
                }
                Err(LoadError::Wrong(wrong)) => return self.wrong(&owned, wrong).await,
                Err(LoadError::Stamp(error)) => match owned.broken(error).await {
                    StampError::Stored(error) => return self.world.found_damage(&error),
                    _ if owned.stopped().is_none() => {
                        // A store did not answer: it is read again.
                        self.sleep_ms(500).await;
                        continue;
                    }
                    _ => {}
                },
            }
            owned.until_stopped().await;
            if self.world.fault != Some(Fault::IgnoreTheLease) {
                self.set(life, range, Slot::Busy);
            }
            match owned.go_on().await {
                Ok(Next::Serve(again)) => owned = again,
                Ok(Next::LeaveAlone) => return self.set(life, range, Slot::Stuck),
                Err(StampError::Stored(error)) => return self.world.found_damage(&error),
                Ok(Next::TakeAgain | Next::Forget) | Err(_) => return,
            }
        }
    }

    /// What was read is not what was written; but if the range is another's, its owner may have been changing
    /// it.
    async fn wrong(&self, owned: &Arc<OwnedRange>, wrong: String) {
        let as_damage = StoredError::Malformed { what: "log".to_owned(), why: wrong.clone() };
        if let StampError::Stored(_) = owned.broken(as_damage.into()).await {
            self.world.found(wrong);
        }
    }

    async fn load(&self, owned: &Arc<OwnedRange>) -> Result<Arc<Served>, LoadError> {
        let keys = owned.document().keys.clone();
        let floors = self.world.ledger.lock().floors(|key| is_within(key, &keys));
        let served = Served::load(owned).await?;
        if owned.admits_reads() && self.world.checks_reads() {
            let checked = self.world.ledger.lock().check_served(&served.durable().writes, &floors);
            checked.map_err(LoadError::Wrong)?;
        }
        Ok(served)
    }

    /// The range of a key, if it is served here.
    pub(crate) fn serving(&self, key: u8) -> Option<Arc<Served>> {
        self.ranges.lock().values().find_map(|slot| match slot {
            Slot::Served(served) if is_within(key, &served.keys) => Some(served.clone()),
            _ => None,
        })
    }

    pub(crate) fn life(&self) -> Option<Arc<Life>> {
        self.life.lock().clone()
    }

    pub(crate) async fn back_up(self: Arc<Self>) {
        if let Some(life) = self.life() {
            drop(back_up_all(&life).await);
        }
    }

    /// Sweeps now and then, as long as it lives.
    pub(crate) async fn keep_sweeping(self: Arc<Self>) {
        loop {
            let Some(life) = self.life() else {
                self.sleep_ms(500).await;
                continue;
            };
            let sweeper = Sweeper::new(&life);
            while life.holds() {
                drop(back_up_all(&life).await);
                drop(sweeper.sweep().await);
                self.sleep_ms(1000 + self.world.random.below(4000)).await;
            }
            self.sleep_ms(500).await;
        }
    }

    pub(crate) async fn release(self: Arc<Self>, served: Arc<Served>) {
        drop(served.owned.release().await);
    }

    pub(crate) async fn split(self: Arc<Self>, served: Arc<Served>, at: u8) {
        let life = self.life();
        let Ok(heirs) = served.owned.split(&[at]).await else { return };
        let Some(life) = life else { return };
        for heir in heirs {
            let (server, life, range) = (self.clone(), life.clone(), heir.range());
            self.set(&life, range, Slot::Busy);
            self.gate.spawn(async move {
                server.serve(&life, heir).await;
                server.forget(&life, range);
            });
        }
    }

    pub(crate) async fn checkpoint(self: Arc<Self>, served: Arc<Served>) {
        match served.checkpoint().await {
            Err(LoadError::Wrong(wrong)) => self.wrong(&served.owned, wrong).await,
            Err(LoadError::Stamp(error)) => {
                if let StampError::Stored(error) = served.owned.broken(error).await {
                    self.world.found_damage(&error);
                }
            }
            Ok(()) => {}
        }
    }

    /// Makes a checkpoint now and then, as long as the range is served.
    async fn keep_checkpoints(self: Arc<Self>, served: Arc<Served>) {
        while served.owned.stopped().is_none() {
            self.sleep_ms(2000 + self.world.random.below(8000)).await;
            // A change of the document would show a former owner that the range is another's.
            let hides_it = self.world.fault == Some(Fault::ReleaseBelievedNotDone);
            if served.owned.admits_writes() && !hides_it {
                self.clone().checkpoint(served.clone()).await;
            }
        }
    }

    /// A planted fault: what this process does not own, so all there is, looks left over to it.
    async fn delete_what_looks_left_over(&self) {
        let prefix = stamp::extents_folder(self.surroundings.settings.stamp);
        if let Ok(page) = self.surroundings.objects.list(&prefix, None).await {
            for name in page.names {
                drop(self.surroundings.objects.delete(&name).await);
            }
        }
    }
}
