//! A late delete of a deletion that has ended: it was on its way when its mover was killed, another mover
//! finished the deletion, keys of the mapping were pinned to that shard, clients wrote, and it arrives.

use crate::gate::{Gate, Kind};
use crate::shards::{Setting, TENANTS, name, row};
use base::Environment;
use shard_backend::{Backend, Capabilities, FenceHold, Shardlet};
use shard_map::{Change, MapChange, MappingId};
use shard_mover::{MoveState, Planted, PlantedFault};
use shard_store::{HomeError, LocalStore};
use sim::World;
use std::sync::Arc;

/// Operations of the deletion at which its mover is killed.
const KILLED_AT: std::ops::Range<u64> = 0..80;

/// Pins the tenants of virtual shard 0 to the shard that had it, and writes rows of them there.
async fn pin_and_write(setting: &Arc<Setting>) {
    let catalog = setting.home().load().await.expect("a catalog");
    let map = catalog.map("m").expect("it").clone();
    let is_of_it =
        |tenant: &i32| map.route(&[(*tenant).into()]).expect("a route").mapping == MappingId::Virtual(0);
    let tenants: Vec<i32> = (0..TENANTS).filter(is_of_it).collect();
    let pin = |tenant: &i32| {
        Change::Map(name("m"), MapChange::Pin { key: vec![(*tenant).into()], shard: name("a") })
    };
    let changes: Vec<Change> = tenants.iter().map(pin).collect();
    let decide = |_: &_| Ok::<_, HomeError>(changes.clone());
    let catalog = setting.home().change(&catalog, "pinned", decide).await.expect("pinned").catalog;
    let locals =
        setting.locals.iter().map(|(name, local)| (name.clone(), local.clone() as Arc<dyn LocalStore>));
    setting.home().publish(&catalog, &locals.collect()).await.expect("published");
    let map = catalog.map("m").expect("it");
    for tenant in tenants {
        let route = map.route(&[tenant.into()]).expect("a route");
        let shardlet = Shardlet::new(map.clone(), route.mapping).expect("it");
        let hold = FenceHold::Open(route.placement.since);
        for table in ["notes", "tags"] {
            for number in 0..4 {
                let schema = setting.schema.table(table).expect("it");
                let rows = [row(tenant, number, "pinned")];
                setting.backends["a"].write(schema, &shardlet, hold, &rows).await.expect("written");
                setting.model.lock().insert((table, tenant, number), "pinned".to_owned());
            }
        }
    }
}

/// Whether all is right; none if nothing was on its way.
async fn is_right(env: Environment, planted: Planted, at: u64) -> Option<bool> {
    let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
    let outside = || (env.clock.clone(), env.random.clone());
    let mover = setting.mover(&Gate::new(outside(), None, 0), planted);
    let catalog = setting.home().load().await.expect("a catalog");
    let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
    mover.finish(&id, &|_| {}).await.expect("moved");
    let gate = Gate::new(outside(), Some((at, Kind::Late)), 0);
    let killed = setting.mover(&gate, planted);
    tokio::select! { biased; _ = killed.delete_source(&id, &|_| {}) => {}, () = gate.killed() => {} }
    let late = gate.left_behind()?;
    let ended = mover.delete_source(&id, &|_| {}).await.expect("an end");
    assert!(matches!(ended.state(), MoveState::SourceDeleted { .. }), "{:?}", ended.state());
    let catalog = setting.home().load().await.expect("a catalog");
    assert_eq!(setting.count_on(&catalog, "a", 0), 0);
    pin_and_write(&setting).await;
    late().await;
    let catalog = setting.home().load().await.expect("a catalog");
    Some(setting.check(&catalog).is_ok())
}

/// The first kill that went wrong, and how many were tried.
fn first_wrong(planted: Planted) -> (Option<u64>, usize) {
    let mut tried = 0;
    for at in KILLED_AT {
        match World::new(at).run(|env, _| is_right(env, planted, at)).flatten() {
            Some(true) => tried += 1,
            Some(false) => return (Some(at), tried),
            None => {}
        }
    }
    (None, tried)
}

#[test]
fn a_late_delete_of_an_ended_deletion_spares_rows_of_another_mapping() {
    let (wrong, tried) = first_wrong(Planted::default());
    println!("{tried} arrivals");
    assert!(wrong.is_none() && tried >= 4, "{wrong:?} {tried}");
}

#[test]
fn a_claim_that_is_never_released_is_found() {
    let (wrong, _) = first_wrong(Planted::fault(PlantedFault::NoRelease));
    println!("{wrong:?}");
    assert!(wrong.is_some());
}
