//! A late batch of a former move: it was on its way when its mover was killed, the move was undone, clients
//! wrote, and it arrives during the next move of the same mapping.

use crate::gate::{Gate, Kind};
use crate::shards::{Setting, TENANTS, name, row};
use base::Environment;
use shard_backend::{Backend, Capabilities, FenceHold, Shardlet};
use shard_map::MappingId;
use shard_mover::{MoveState, Planted, PlantedFault};
use sim::World;
use std::sync::Arc;

/// Operations of the first move at which its mover is killed, and of the second after which the batch
/// arrives.
const KILLED_AT: std::ops::Range<u64> = 30..100;
const ARRIVES_AFTER: std::ops::Range<u64> = 20..150;

async fn write_all(setting: &Arc<Setting>) {
    let catalog = setting.home().load().await.expect("a catalog");
    let map = catalog.map("m").expect("it");
    for tenant in 0..TENANTS {
        let route = map.route(&[tenant.into()]).expect("a route");
        if route.mapping != MappingId::Virtual(0) {
            continue;
        }
        let shardlet = Shardlet::new(map.clone(), route.mapping).expect("it");
        let hold = FenceHold::Open(route.placement.since);
        for number in 0..4 {
            let rows = [row(tenant, number, "second")];
            let notes = setting.schema.table("notes").expect("it");
            let backend = &setting.backends[&route.placement.shard];
            backend.write(notes, &shardlet, hold, &rows).await.expect("written");
            setting.model.lock().insert(("notes", tenant, number), "second".to_owned());
        }
    }
}

/// Whether all is right; none if nothing was on its way in the copy.
async fn is_right(env: Environment, planted: Planted, at: u64, after: u64) -> Option<bool> {
    let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
    let outside = || (env.clock.clone(), env.random.clone());
    let open = Gate::new(outside(), None, 0);
    let mover = setting.mover(&open, planted);
    let catalog = setting.home().load().await.expect("a catalog");
    let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
    let gate = Gate::new(outside(), Some((at, Kind::Late)), 0);
    let killed = setting.mover(&gate, planted);
    tokio::select! { biased; _ = killed.finish(&id, &|_| {}) => {}, () = gate.killed() => {} }
    let is_in_copy = *mover.read(&id).await.expect("a move").state() == MoveState::Claimed;
    let late = gate.left_behind().filter(|_| is_in_copy)?;
    mover.undo(&id, &|_| {}).await.expect("undone");
    write_all(&setting).await;
    let catalog = setting.home().load().await.expect("a catalog");
    let next = Gate::new(outside(), None, 0);
    next.arrive_after(after, late);
    let mover = setting.mover(&next, planted);
    let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
    let ended = mover.finish(&id, &|_| {}).await.expect("an end");
    let catalog = setting.home().load().await.expect("a catalog");
    let is_there = catalog.map("m")?.placement(&MappingId::Virtual(0))?.shard == name("b");
    let is_done = matches!(ended.state(), MoveState::Done { .. });
    Some(is_done && is_there && setting.check(&catalog).is_ok())
}

/// The first kill and arrival that went wrong, and how many were tried.
fn first_wrong(planted: Planted) -> (Option<(u64, u64)>, usize) {
    let mut tried = 0;
    for at in KILLED_AT {
        for after in ARRIVES_AFTER.step_by(6) {
            match World::new(at).run(|env, _| is_right(env, planted, at, after)).flatten() {
                Some(true) => tried += 1,
                Some(false) => return (Some((at, after)), tried),
                None => break,
            }
        }
    }
    (None, tried)
}

#[test]
fn a_late_batch_of_a_former_move_is_refused() {
    let (wrong, tried) = first_wrong(Planted::default());
    println!("{tried} arrivals");
    assert!(wrong.is_none() && tried > 50, "{wrong:?} {tried}");
}

#[test]
fn one_claim_for_all_moves_is_found() {
    let (wrong, _) = first_wrong(Planted::fault(PlantedFault::OneClaim));
    println!("{wrong:?}");
    assert!(wrong.is_some());
}
