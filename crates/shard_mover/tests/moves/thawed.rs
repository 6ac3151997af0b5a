//! Whatever cuts off a move or a repair, or is in its way: it comes to an end, and its mappings are thawed.

use crate::gate::{Gate, Kind};
use crate::shards::{SHARDS, Setting, name, row};
use base::Environment;
use shard_backend::{Backend, Capabilities, FenceHold, Shardlet};
use shard_map::{Change, MapChange, MappingId, Shard};
use shard_mover::{MoveState, Mover, Planted, RepairPlan, Rules, plan_repair};
use shard_store::HomeError;
use sim::World;
use std::sync::Arc;

struct Trial {
    setting: Arc<Setting>,
    env: Environment,
}

impl Trial {
    async fn new(env: Environment) -> Self {
        Trial { setting: Setting::new(&env, [Capabilities::POSTGRES; 3]).await, env }
    }

    fn mover(&self, fault: Option<(u64, Kind)>) -> (Mover, Arc<Gate>) {
        let gate = Gate::new((self.env.clock.clone(), self.env.random.clone()), fault, 0);
        (self.setting.mover(&gate, Planted::default()), gate)
    }

    async fn catalog(&self) -> shard_map::Catalog {
        self.setting.home().load().await.expect("a catalog")
    }

    async fn frozen(&self) -> usize {
        self.catalog().await.map("m").expect("it").frozen().len()
    }

    async fn change(&self, changes: Vec<Change>) {
        let home = self.setting.home();
        let known = self.catalog().await;
        let decide = |_: &_| Ok::<_, HomeError>(changes.clone());
        home.change(&known, "an operator", decide).await.expect("changed");
    }

    async fn check(&self) {
        let checked = self.setting.check(&self.catalog().await);
        checked.unwrap_or_else(|why| panic!("{why}"));
    }
}

fn in_world(seed: u64, test: impl AsyncFnOnce(Trial) + 'static) {
    World::new(seed).run(async |env, _| test(Trial::new(env).await).await).expect("the disk does not crash");
}

/// An undo failed again and again at a row of the copy that could not be read, and a deletion as well.
#[test]
fn a_row_that_cannot_be_read_fails_a_copy_and_stays_at_a_deletion() {
    in_world(1, async |trial| {
        let (mover, gate) = trial.mover(None);
        let id = mover.begin(&trial.setting.planned(&trial.catalog().await, 0, "b")).await.expect("begun");
        gate.make_unreadable(Some("a"));
        let failed = mover.finish(&id, &|_| {}).await.expect("an end");
        assert!(matches!(failed.state(), MoveState::Failed { .. }), "{:?}", failed.state());
        gate.make_unreadable(Some("b"));
        let undone = mover.undo(&id, &|_| {}).await.expect("an end");
        let MoveState::Undone { note: Some(note) } = undone.state() else { panic!("{:?}", undone.state()) };
        assert!(note.starts_with("rows of table `notes` are left on `b`: "), "{note}");
        assert_eq!(trial.frozen().await, 0);
        gate.make_unreadable(None);
        let id = mover.begin(&trial.setting.planned(&trial.catalog().await, 0, "b")).await.expect("begun");
        mover.finish(&id, &|_| {}).await.expect("moved");
        gate.make_unreadable(Some("a"));
        let deleted = mover.delete_source(&id, &|_| {}).await.expect("an end");
        let MoveState::SourceDeleted { note: Some(note), rows } = deleted.state() else {
            panic!("{:?}", deleted.state())
        };
        assert!(note.starts_with("rows of table `notes` are left on `a`: ") && *rows > 0, "{note} {rows}");
        assert_eq!(trial.frozen().await, 0);
        trial.check().await;
    });
}

/// A repair's claim is later than that of the placement, by which the source was deleted: refused for ever.
#[test]
fn a_source_is_deleted_after_a_repair_of_the_same_mapping() {
    in_world(2, async |trial| {
        let (mover, _) = trial.mover(None);
        let id = mover.begin(&trial.setting.planned(&trial.catalog().await, 0, "b")).await.expect("begun");
        mover.finish(&id, &|_| {}).await.expect("moved");
        let rules = Rules::parse("", &trial.setting.schema).expect("rules");
        let report = mover.check_integrity(&rules, &|_| {}).await.expect("checked");
        let repaired = mover.repair(&plan_repair(&report)).await.expect("repaired");
        assert!(repaired.deleted > 0 && repaired.skipped.is_empty(), "{repaired:?}");
        let deleted = mover.delete_source(&id, &|_| {}).await.expect("deleted");
        assert!(
            matches!(deleted.state(), MoveState::SourceDeleted { note: None, .. }),
            "{:?}",
            deleted.state()
        );
        assert_eq!(trial.setting.count_on(&trial.catalog().await, "a", 0), 0);
        trial.check().await;
    });
}

/// Of two movers that delete the source's rows, one does all of it between any two operations of the other.
#[test]
fn a_mover_that_is_behind_freezes_and_thaws_nothing() {
    for after in 0..40 {
        in_world(after, async move |trial| {
            let (mover, _) = trial.mover(None);
            let planned = trial.setting.planned(&trial.catalog().await, 0, "b");
            let id = mover.begin(&planned).await.expect("begun");
            let is_of_deletion = after >= 20;
            if is_of_deletion {
                mover.finish(&id, &|_| {}).await.expect("moved");
            }
            let (behind, gate) = trial.mover(None);
            let (faster, of) = (mover.clone(), id.clone());
            let all = async move {
                faster.finish(&of, &|_| {}).await.expect("moved");
                faster.delete_source(&of, &|_| {}).await.expect("deleted");
            };
            gate.arrive_after(after % 20, Box::new(move || Box::pin(all)));
            let ended = match is_of_deletion {
                true => behind.delete_source(&id, &|_| {}).await,
                false => behind.finish(&id, &|_| {}).await,
            };
            let state = ended.expect("an end").state().clone();
            assert!(matches!(state, MoveState::SourceDeleted { .. }), "{after}: {state:?}");
            assert_eq!(trial.frozen().await, 0, "{after}");
            trial.check().await;
        });
    }
}

/// The tenant whose rows a repair deletes from a shard that is not its owner.
const TENANT: i32 = 5;

/// What is left of a killed repair: a delete by its claim, whose tenant has another mapping by then.
#[test]
fn a_repair_that_was_killed_is_taken_over_and_its_late_delete_is_refused() {
    let mut late_count = 0;
    for at in 0..60 {
        let was_late = World::new(at).run(async move |env, _| late_repair(Trial::new(env).await, at).await);
        late_count += usize::from(was_late.expect("the disk does not crash"));
    }
    assert!(late_count > 0, "no delete was on its way");
}

/// Whether something was on its way, and the mappings were frozen.
async fn late_repair(trial: Trial, at: u64) -> bool {
    let catalog = trial.catalog().await;
    let map = catalog.map("m").expect("it").clone();
    let route = map.route(&[TENANT.into()]).expect("a route");
    let owner = route.placement.shard.clone();
    let other = SHARDS.map(name).into_iter().find(|shard| *shard != owner).expect("a shard");
    // What is left there are equal copies.
    let shardlet = Shardlet::new(map.clone(), route.mapping.clone()).expect("it");
    let rows = [row(TENANT, 0, "first"), row(TENANT, 1, "first"), row(TENANT, 2, "first")];
    let notes = trial.setting.schema.table("notes").expect("it");
    let hold = FenceHold::Closed(shard_map::Epoch(1));
    trial.setting.backends[&other].write(notes, &shardlet, hold, &rows).await.expect("written");
    let (mover, _) = trial.mover(None);
    let rules = Rules::parse("", &trial.setting.schema).expect("rules");
    let report = mover.check_integrity(&rules, &|_| {}).await.expect("checked");
    let (killed, gate) = trial.mover(Some((at, Kind::Late)));
    let plan = plan_repair(&report);
    tokio::select! { biased; _ = killed.repair(&plan) => {}, () = gate.killed() => {} }
    let (late, was_frozen) = (gate.left_behind(), trial.frozen().await > 0);
    if was_frozen {
        let planned = trial.setting.planned_of(&trial.catalog().await, route.mapping.clone(), other.as_str());
        let refused = mover.begin(&planned).await.expect_err("refused").to_string();
        assert!(refused.contains("is frozen by repair "), "{refused}");
    }
    // Without findings it still ends what the former one left.
    mover.repair(&RepairPlan::default()).await.expect("repaired");
    assert_eq!(trial.frozen().await, 0, "{at}");
    let pin = MapChange::Pin { key: vec![TENANT.into()], shard: owner };
    trial.change(vec![Change::Map(name("m"), pin)]).await;
    trial.setting.publish(&trial.catalog().await).await;
    let pinned = MappingId::Pin(map.key_type().encode(&[TENANT.into()]).expect("a key"));
    let planned = trial.setting.planned_of(&trial.catalog().await, pinned, other.as_str());
    let id = mover.begin(&planned).await.expect("begun");
    let moved = mover.finish(&id, &|_| {}).await.expect("moved");
    assert!(matches!(moved.state(), MoveState::Done { .. }), "{:?}", moved.state());
    let is_late = late.is_some();
    if let Some(late) = late {
        late().await;
    }
    trial.check().await;
    is_late && was_frozen
}

/// Changes after which two snapshots are newer than anything before them.
const MANY: u64 = 140;

/// A move whose mover was killed between its mark and the record of it found no mark in a history that was
/// pruned meanwhile: the mapping stayed closed, and no move had it.
#[test]
fn a_move_goes_on_although_the_history_was_pruned() {
    for at in 0..60 {
        in_world(at, async move |trial| {
            let catalog = trial.catalog().await;
            let planned = trial.setting.planned(&catalog, 0, "b");
            let (mover, _) = trial.mover(None);
            let id = mover.begin(&planned).await.expect("begun");
            let (killed, gate) = trial.mover(Some((at, Kind::KillAfter)));
            tokio::select! { biased; _ = killed.finish(&id, &|_| {}) => {}, () = gate.killed() => {} }
            for number in 0..MANY {
                let mut shard = Shard::new(name("c"), format!("c{number}"));
                shard.is_draining = false;
                trial.change(vec![Change::ChangeShard(shard)]).await;
            }
            let epoch = trial.catalog().await.epoch();
            let pruned = trial.setting.home().prune(epoch).await.expect("pruned");
            assert!(pruned.entries > 10, "{pruned:?}");
            let undo = at.is_multiple_of(2);
            let ended = match undo {
                true => mover.undo(&id, &|_| {}).await,
                false => mover.finish(&id, &|_| {}).await,
            };
            let state = match ended {
                Ok(ended) => ended.state().clone(),
                // It was placed already.
                Err(_) => mover.finish(&id, &|_| {}).await.expect("an end").state().clone(),
            };
            assert!(matches!(state, MoveState::Done { .. } | MoveState::Undone { .. }), "{at}: {state:?}");
            let catalog = trial.catalog().await;
            let there = catalog.map("m").expect("it").placement(&MappingId::Virtual(0)).expect("it").clone();
            assert_eq!(there.state, shard_map::State::Online, "{at}");
            assert_eq!(trial.frozen().await, 0, "{at}");
            trial.check().await;
        });
    }
}
