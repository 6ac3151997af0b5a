//! Clients that write and delete rows with maps of any age.
//!
//! A write is acknowledged exactly if the model has it. On a shard that is fenced by signatures the client's
//! right to write ends [`EXPIRES_AFTER`] after it read the map, which is all that refuses it there.

use crate::gate::EXPIRES_AFTER;
use crate::shards::{Setting, TENANTS, row, row_key};
use shard_backend::{Backend, Fence, FenceHold, Shardlet};
use shard_map::{Catalog, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Stop {
    is_stopped: AtomicBool,
    pub(crate) acknowledged: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Stop {
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// Writes until it is stopped.
pub(crate) async fn client(setting: Arc<Setting>, stop: Arc<Stop>, number: u64) {
    let below = |bound: u64| setting.random.next_u64() % bound;
    let home = setting.home();
    let mut known: Option<(Catalog, Duration)> = None;
    let mut write = 0;
    while !stop.is_stopped.load(Ordering::Relaxed) {
        let (catalog, read_at) = match known.take().filter(|_| below(6) > 0) {
            Some(known) => known,
            None => {
                let read_at = setting.clock.monotonic();
                let Ok(catalog) = home.load().await else { continue };
                (catalog, read_at)
            }
        };
        // Some sleep through a whole move between reading the map and writing.
        let pause = match below(12) {
            0 => Duration::from_secs(below(40)),
            _ => Duration::from_micros(below(20_000)),
        };
        setting.clock.sleep(pause).await;
        write += 1;
        let text = format!("client {number}, write {write}");
        let is_done = one(&setting, &catalog, read_at, &text).await;
        let count = if is_done { &stop.acknowledged } else { &stop.refused };
        count.fetch_add(1, Ordering::Relaxed);
        if is_done {
            known = Some((catalog, read_at));
        }
    }
}

/// One write or delete; whether it was acknowledged.
async fn one(setting: &Setting, catalog: &Catalog, read_at: Duration, text: &str) -> bool {
    let below = |bound: u64| setting.random.next_u64() % bound;
    let (tenant, number) = (below(TENANTS as u64) as i32, below(7) as i32);
    let table = ["notes", "tags"][below(2) as usize];
    let map = catalog.map("m").expect("it");
    let route = map.route(&[tenant.into()]).expect("a route");
    let backend = &setting.backends[&route.placement.shard];
    let is_signed = setting.clock.monotonic() <= read_at + EXPIRES_AFTER;
    let is_expiring = backend.capabilities().fence == Fence::Expires;
    if route.placement.state != State::Online || is_expiring && !is_signed {
        return false;
    }
    let shardlet = Shardlet::new(map.clone(), route.mapping).expect("it");
    let hold = FenceHold::Open(route.placement.since);
    let schema = setting.schema.table(table).expect("it");
    // Memory answers at once, so nothing is between the write and the model.
    let key = (table, tenant, number);
    if below(4) == 0 {
        let deleted = backend.delete(schema, &shardlet, hold, &[row_key(tenant, number)]).await;
        if deleted.is_ok() {
            setting.model.lock().remove(&key);
        }
        return deleted.is_ok();
    }
    let written = backend.write(schema, &shardlet, hold, &[row(tenant, number, text)]).await;
    if written.is_ok() {
        setting.model.lock().insert(key, text.to_owned());
    }
    written.is_ok()
}
