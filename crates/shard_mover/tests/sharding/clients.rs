//! Clients: each with a map of its own, a clock that may be wrong, and a router for each kind of shard.

use crate::held::HeldRows;
use crate::ledger::{Ending, RowId};
use crate::setting::{CLOCK_BOUND, Setting, TABLES, TENANTS, row};
use crate::signed::{SignedChange, SignedConnector, SignedRows};
use base::clock::TICKS_PER_SECOND;
use base::{BoxFuture, Clock, Ticks};
use shard_backend::{Backend, BackendError, Capabilities, RowKey};
use shard_map::KeyValue;
use shard_router::{
    AttemptError, CachedMap, Keys, MapSettings, PoolSettings, Routed, Router, RouterError, RouterParts,
    RowsConnector, ShardConnector, ShardCredentials, ShardWork,
};
use shard_store::Access;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Rows of each tenant and table that one client writes.
const NUMBERS: i32 = 3;

/// A clock whose wall is wrong by so much.
struct WrongClock {
    clock: Arc<dyn Clock>,
    by_ticks: i64,
}

impl Clock for WrongClock {
    fn now(&self) -> Ticks {
        Ticks(self.clock.now().0.saturating_add_signed(self.by_ticks))
    }
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(sleep_for)
    }
}

struct Client {
    setting: Arc<Setting>,
    number: i32,
    held: Router<RowsConnector>,
    signed: Router<SignedConnector>,
    /// Rows of which it is open what they are: they are changed no more.
    open: BTreeSet<RowId>,
    writes: u64,
}

/// Writes and reads until all is over.
pub(crate) async fn client(setting: Arc<Setting>, number: i32) {
    let mut client = Client::new(&setting, number);
    while !setting.is_over.load(Ordering::Relaxed) {
        match setting.below(3) {
            0 => client.read(setting.below(TENANTS as u64) as i32).await,
            _ => client.change().await,
        }
        setting.clock.sleep(Duration::from_millis(setting.below(1000))).await;
    }
}

impl Client {
    fn new(setting: &Arc<Setting>, number: i32) -> Self {
        let off_s = setting.below(2 * CLOCK_BOUND.as_secs() + 1) as i64 - CLOCK_BOUND.as_secs() as i64;
        let clock: Arc<dyn Clock> =
            Arc::new(WrongClock { clock: setting.clock.clone(), by_ticks: off_s * TICKS_PER_SECOND as i64 });
        let (home, spawner) = (setting.home(), setting.spawner.clone());
        let map = CachedMap::new(home, clock.clone(), spawner, MapSettings::default());
        let held = setting.shards.iter().filter(|(_, shard)| !shard.is_signed);
        let held = held.map(|(name, shard)| {
            let rows = HeldRows { setting: setting.clone(), shard: shard.clone() };
            (name.clone(), Arc::new(rows) as Arc<dyn Backend>)
        });
        let held = RowsConnector::new(Capabilities::POSTGRES, held.collect());
        let signed = SignedConnector { setting: setting.clone(), clock: clock.clone() };
        Client {
            setting: setting.clone(),
            number,
            held: router(setting, &map, &clock, held),
            signed: router(setting, &map, &clock, signed),
            open: BTreeSet::new(),
            writes: 0,
        }
    }

    /// Whether the shard of a key is one whose fence is a signature; none if it has no route now.
    async fn is_signed(&self, key: &[KeyValue], access: Access) -> Option<bool> {
        let routed = self.held.route_of(Keys::new("m", &[key]), access).await.ok()?;
        Some(self.setting.shards[&routed.shard().name].is_signed)
    }

    /// Writes or deletes a row.
    async fn change(&mut self) {
        let setting = self.setting.clone();
        let tenant = setting.below(TENANTS as u64) as i32;
        let number = self.number * NUMBERS + setting.below(NUMBERS as u64) as i32;
        let id: RowId = (setting.below(TABLES.len() as u64) as usize, tenant, number);
        if self.open.contains(&id) {
            return;
        }
        self.writes += 1;
        let text = (!setting.is_one_in(4)).then(|| format!("client {}, write {}", self.number, self.writes));
        let key = [KeyValue::from(tenant)];
        let Some(is_signed) = self.is_signed(&key, Access::Write).await else { return };
        let begun = setting.ledger.lock().begin(id, text.clone());
        let outcome = self.run(is_signed, &key, id, text).await;
        let (ending, count) = match outcome {
            Ok(()) => (Ending::Acknowledged, &setting.counts.acknowledged),
            Err(error) if error.may_be_done() => {
                self.open.insert(id);
                (Ending::Open, &setting.counts.open)
            }
            Err(_) => (Ending::Refused, &setting.counts.refused),
        };
        count.fetch_add(1, Ordering::Relaxed);
        setting.ledger.lock().end(id, begun, ending);
    }

    async fn run(
        &self,
        is_signed: bool,
        key: &[KeyValue],
        id: RowId,
        text: Option<String>,
    ) -> Result<(), RouterError<BackendError>> {
        let table = self.setting.schema.table(TABLES[id.0]).expect("it");
        let keys = [RowKey { values: vec![id.1.into(), id.2.into()] }];
        let rows = text.map(|text| [row(id, &text)]);
        match (is_signed, rows) {
            (true, rows) => {
                let change = rows.map_or(Err(keys.to_vec()), |rows| Ok(rows.to_vec()));
                let mut work = SignedChange { table: table.clone(), change };
                self.signed.run(Keys::new("m", &[key]), Access::Write, &mut work).await
            }
            (false, Some(rows)) => self.held.write_rows("m", key, table, &rows).await,
            (false, None) => self.held.delete_rows("m", key, table, &keys).await,
        }
    }

    /// Reads a tenant's rows, which must have what was acknowledged before.
    async fn read(&self, tenant: i32) {
        let setting = &self.setting;
        let key = [KeyValue::from(tenant)];
        let Some(is_signed) = self.is_signed(&key, Access::Read).await else { return };
        let is_of_it = |row: &RowId| row.1 == tenant;
        let since = setting.ledger.lock().since(is_of_it);
        let (keys, mut work) = ([&key[..]], ReadAll { setting: setting.clone(), from: String::new() });
        let found = match is_signed {
            true => self.signed.run(Keys::new("m", &keys), Access::Read, &mut work).await.ok(),
            false => self.held.run(Keys::new("m", &keys), Access::Read, &mut work).await.ok(),
        };
        let Some(found) = found else { return };
        setting.counts.read.fetch_add(1, Ordering::Relaxed);
        let found = found.into_iter().filter(|(row, _)| is_of_it(row)).collect();
        let checked = setting.ledger.lock().check(is_of_it, &since, &found);
        let (at, from) = (setting.clock.monotonic(), &work.from);
        setting.found(checked.map_err(|why| format!("a read from {from} at {at:?}: {why}")));
    }
}

fn router<C: ShardConnector>(
    setting: &Setting,
    map: &CachedMap,
    clock: &Arc<dyn Clock>,
    connector: C,
) -> Router<C> {
    Router::new(RouterParts {
        map: map.clone(),
        connector: Arc::new(connector),
        credentials: Arc::new(ShardCredentials::default()),
        clock: clock.clone(),
        spawner: setting.spawner.clone(),
        pool: PoolSettings::default(),
    })
}

/// Reads all rows of a shard, behind its fence.
struct ReadAll {
    setting: Arc<Setting>,
    /// The shard that was read.
    from: String,
}

impl ShardWork<Arc<dyn Backend>> for ReadAll {
    type Output = BTreeMap<RowId, String>;
    type Error = String;

    fn attempt<'a>(
        &'a mut self,
        _rows: &'a mut Arc<dyn Backend>,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<Self::Output, AttemptError<String>>> {
        Box::pin(async move {
            self.setting.pause().await;
            let shard = &self.setting.shards[&routed.shard().name];
            self.from = format!("{}, held", routed.shard().name);
            shard.local.hold(|copy| {
                for mapping in routed.mappings() {
                    let (map, id) = (routed.map().name(), &mapping.mapping);
                    let here = copy.and_then(|copy| copy.mapping(map.as_str(), id));
                    shard_store::check_fence(map, id, here, mapping.since, Access::Read)
                        .map_err(AttemptError::Refused)?;
                }
                Ok(shard.contents())
            })
        })
    }
}

impl ShardWork<SignedRows> for ReadAll {
    type Output = BTreeMap<RowId, String>;
    type Error = String;

    fn attempt<'a>(
        &'a mut self,
        rows: &'a mut SignedRows,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<Self::Output, AttemptError<String>>> {
        self.from = format!("{}, signed", rows.shard_name());
        Box::pin(rows.read(routed))
    }
}
