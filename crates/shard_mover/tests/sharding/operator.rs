//! An operator who splits, merges, pins, unpins, adds and removes ranges and resizes the hash while moves
//! run, and opens what nothing has any more.
//!
//! What always holds: no change brings a key to another shard, because rows go with moves only.

use crate::gate::Gate;
use crate::setting::{HASHED_FROM, Setting, TENANTS, name};
use shard_map::{Catalog, Change, ChangeError, KeyValue, MapChange, MappingId, Selection, ShardMap, State};
use shard_store::HomeError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Changes of the map now and then.
pub(crate) async fn operate(setting: Arc<Setting>) {
    while !setting.is_over.load(Ordering::Relaxed) {
        setting.clock.sleep(Duration::from_millis(setting.below(40_000))).await;
        if setting.is_one_in(3) {
            drop(reopen(&setting).await);
            continue;
        }
        let home = setting.home();
        let Ok(known) = home.load().await else { continue };
        let (kind, tenant) = (setting.below(7), setting.below(TENANTS as u64) as i32);
        let decide = |catalog: &Catalog| {
            Ok::<_, HomeError>(change(&setting, catalog, kind, tenant).into_iter().collect())
        };
        let Ok(changed) = home.change(&known, "an operator", decide).await else { continue };
        if !changed.diff.is_empty() {
            setting.counts.map_changes.fetch_add(1, Ordering::Relaxed);
            drop(home.publish(&changed.catalog, &setting.locals()).await);
        }
    }
}

/// A change, if this one is possible and leaves all keys where they are.
fn change(setting: &Setting, catalog: &Catalog, kind: u64, tenant: i32) -> Option<Change> {
    let map = Setting::map(catalog);
    let key = |tenant: i32| vec![KeyValue::from(tenant)];
    let route = map.route(&key(tenant)).ok()?;
    let shard = route.placement.shard.clone();
    let is_in_ranges = (1..HASHED_FROM).contains(&tenant);
    let change = match (kind, &route.mapping) {
        (0, MappingId::Pin(_)) => MapChange::Unpin { key: key(tenant) },
        (0 | 1, _) => MapChange::Pin { key: key(tenant), shard },
        (2, _) if is_in_ranges => MapChange::Split { at: key(tenant) },
        (3, _) if is_in_ranges => MapChange::Merge { at: key(tenant) },
        (4, _) => MapChange::AddRange { low: key(tenant), high: Some(key(tenant + 1)), shard },
        (5, MappingId::Range(low)) => {
            MapChange::RemoveRange { low: map.key_type().decode_bound(low.as_bytes()).ok()? }
        }
        (6, _) => {
            let is_small = map.virtual_shards()?.hashed().count == 2;
            MapChange::Resize { count: if is_small { 4 } else { 2 } }
        }
        _ => return None,
    };
    let change = Change::Map(name("m"), change);
    let after = match catalog.apply(std::slice::from_ref(&change)) {
        Ok(after) => after.catalog,
        Err(error) => {
            let is_frozen = matches!(error, ChangeError::Frozen { .. });
            setting.counts.frozen.fetch_add(u64::from(is_frozen), Ordering::Relaxed);
            return None;
        }
    };
    let shard_of = |map: &ShardMap, tenant| Some(map.route(&key(tenant)).ok()?.placement.shard.clone());
    (0..TENANTS)
        .all(|tenant| shard_of(map, tenant) == shard_of(Setting::map(&after), tenant))
        .then_some(change)
}

/// Opens mappings that are closed while no move is under way.
pub(crate) async fn reopen(setting: &Arc<Setting>) -> Result<(), String> {
    let home = setting.home();
    let known = home.load().await.map_err(|error| error.to_string())?;
    let open = Gate::new((setting.clock.clone(), setting.random.clone()), None, 0);
    let moves = setting.mover(&open).moves().await.map_err(|error| error.to_string())?;
    if moves.iter().any(|of| of.state().is_active()) {
        return Err("a move is under way".to_owned());
    }
    let closed: Vec<_> = Setting::map(&known)
        .mappings()
        .filter(|(_, placement)| placement.state != State::Online)
        .map(|(id, placement)| (id, placement.clone()))
        .collect();
    let decide = |catalog: &Catalog| {
        let map = Setting::map(catalog);
        let same = closed.iter().filter(|(id, placement)| map.placement(id) == Some(placement));
        let open = same.map(|(id, _)| {
            let mappings = match id {
                MappingId::Pin(key) => Selection::Pin(map.key_type().decode(key.as_bytes()).expect("a key")),
                MappingId::Range(low) => {
                    Selection::Range(map.key_type().decode_bound(low.as_bytes()).expect("a bound"))
                }
                MappingId::Virtual(number) => Selection::Virtual(*number, *number),
            };
            Change::Map(name("m"), MapChange::SetState { mappings, state: State::Online })
        });
        Ok::<_, HomeError>(open.collect())
    };
    let changed = home.change(&known, "an operator opens it", decide).await;
    let changed = changed.map_err(|error| error.to_string())?;
    let published = home.publish(&changed.catalog, &setting.locals()).await;
    published.map(drop).map_err(|error| error.to_string())
}
