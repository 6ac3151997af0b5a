//! A target that loses a row which it acknowledged: the comparison finds it, and nothing is switched.

use crate::gate::{Gate, Kind};
use crate::shards::{Setting, name, row_key};
use base::Environment;
use shard_backend::{Backend, Capabilities, FenceHold, Shardlet};
use shard_map::MappingId;
use shard_mover::{MoveState, Planted, PlantedFault};
use sim::World;

/// The end of a move whose target loses a row of the copy, and what is wrong with the rows then.
async fn moved_with_a_loss(
    env: Environment,
    planted: Planted,
    at: u64,
) -> Option<(MoveState, Result<(), String>)> {
    let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
    let outside = || (env.clock.clone(), env.random.clone());
    let open = Gate::new(outside(), None, 0);
    let mover = setting.mover(&open, planted);
    let catalog = setting.home().load().await.expect("a catalog");
    let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
    let gate = Gate::new(outside(), Some((at, Kind::KillAfter)), 0);
    let killed = setting.mover(&gate, planted);
    tokio::select! { biased; _ = killed.finish(&id, &|_| {}) => {}, () = gate.killed() => {} }
    let of = mover.read(&id).await.expect("a move");
    let MoveState::Copied { .. } = of.state() else { return None };
    let marked = setting.home().load().await.expect("a catalog");
    let map = marked.map("m").expect("it").clone();
    let mapping = MappingId::Virtual(0);
    let tenant = (0..12).find(|tenant| map.route(&[(*tenant).into()]).expect("a route").mapping == mapping);
    let shardlet = Shardlet::new(map, mapping).expect("it");
    let hold = FenceHold::Closed(of.marked_epoch().expect("marked"));
    let keys = [row_key(tenant.expect("one of them"), 2)];
    let notes = setting.schema.table("notes").expect("it");
    setting.backends[&name("b")].delete(notes, &shardlet, hold, &keys).await.expect("deleted");
    let ended = mover.finish(&id, &|_| {}).await.expect("an end");
    let state = ended.state().clone();
    let checked = setting.check(&setting.home().load().await.expect("a catalog"));
    if let MoveState::Failed { .. } = state {
        let undone = mover.undo(&id, &|_| {}).await.expect("undone");
        assert!(matches!(undone.state(), MoveState::Undone { .. }), "{undone:?}");
        setting.check(&setting.home().load().await.expect("a catalog")).expect("all rows");
    }
    Some((state, checked))
}

fn moved(planted: Planted) -> (MoveState, Result<(), String>) {
    let of = |at| World::new(at).run(|env, _| moved_with_a_loss(env, planted, at)).flatten();
    (0..1000).find_map(of).expect("the state copied")
}

#[test]
fn a_row_that_the_target_lost_fails_the_move_before_the_switch() {
    let (state, checked) = moved(Planted::default());
    let MoveState::Failed { reason } = &state else { panic!("{state:?}") };
    assert!(reason.contains("table `notes` differs: `a` has"), "{reason}");
    assert_eq!(checked, Ok(()));
}

#[test]
fn a_switch_before_the_comparison_is_found() {
    let (state, checked) = moved(Planted::fault(PlantedFault::SwitchBeforeVerify));
    assert!(matches!(state, MoveState::Done { .. }), "{state:?}");
    assert!(checked.is_err());
}
