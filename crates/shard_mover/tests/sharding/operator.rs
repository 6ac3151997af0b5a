//! An operator who splits, merges, pins and unpins while moves run, and opens what nothing has any more.
//!
//! What always holds: no change brings a key to another shard, because rows go with moves only.

use crate::gate::Gate;
use crate::setting::{HASHED_FROM, Setting, TENANTS, name};
use shard_map::{Catalog, Change, KeyValue, MapChange, MappingId, Selection, State};
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
        let (kind, tenant) = (setting.below(4), setting.below(TENANTS as u64) as i32);
        let decide =
            |catalog: &Catalog| Ok::<_, HomeError>(change(catalog, kind, tenant).into_iter().collect());
        let Ok(changed) = home.change(&known, "an operator", decide).await else { continue };
        if !changed.diff.is_empty() {
            setting.counts.map_changes.fetch_add(1, Ordering::Relaxed);
            drop(home.publish(&changed.catalog, &setting.locals()).await);
        }
    }
}

/// A change that leaves all keys where they are, if this one is possible.
fn change(catalog: &Catalog, kind: u64, tenant: i32) -> Option<Change> {
    let map = Setting::map(catalog);
    let key = || vec![KeyValue::from(tenant)];
    let shard = map.route(&key()).ok()?.placement.shard.clone();
    let encoded = map.key_type().encode(&key()).ok()?;
    let is_pinned = map.placement(&MappingId::Pin(encoded)).is_some();
    let change = match kind {
        0 if is_pinned => {
            // Only if the mapping below is on the same shard.
            let unpin = Change::Map(name("m"), MapChange::Unpin { key: key() });
            let after = catalog.apply(std::slice::from_ref(&unpin)).ok()?.catalog;
            let below = Setting::map(&after).route(&key()).ok()?.placement.shard.clone();
            return (below == shard).then_some(unpin);
        }
        0 | 1 if !is_pinned => MapChange::Pin { key: key(), shard },
        2 if (1..HASHED_FROM).contains(&tenant) => MapChange::Split { at: key() },
        3 if (1..HASHED_FROM).contains(&tenant) => MapChange::Merge { at: key() },
        _ => return None,
    };
    let change = Change::Map(name("m"), change);
    catalog.apply(std::slice::from_ref(&change)).is_ok().then_some(change)
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
