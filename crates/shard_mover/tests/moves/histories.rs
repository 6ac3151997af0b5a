//! Random histories: movers that race, are killed and go on, undo and move back, clients with old maps,
//! places that fail; and the same with a fault on purpose, which must be found.

use crate::clients::{Stop, client};
use crate::gate::{Gate, Kind};
use crate::shards::{SHARDS, Setting};
use base::Environment;
use futures_util::future::{join, join_all};
use shard_backend::Capabilities;
use shard_mover::{Move, MoveState, Planted, PlantedFault};
use shard_store::MemoryFaults;
use sim::World;
use std::sync::Arc;
use std::time::Duration;

/// Histories in each run; `LARIMAR_SIM_SEEDS` sets another number.
const SEEDS: u64 = 150;
/// Seeds among which a fault on purpose must be found.
const PLANTED_SEEDS: u64 = 300;
/// Tries of a mover, at most.
const TRIES: u64 = 4;

#[derive(Default)]
struct Outcome {
    done: usize,
    undone: usize,
    failed: usize,
    acknowledged: u64,
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

fn history(seed: u64, planted: Planted) -> Result<Outcome, String> {
    World::new(seed).run(|env, _| of_seed(env, planted)).expect("the disk does not crash")
}

async fn of_seed(env: Environment, planted: Planted) -> Result<Outcome, String> {
    let below = |bound: u64| env.random.next_u64() % bound;
    let kinds = [Capabilities::POSTGRES, Capabilities::STORAGE_TABLES];
    let capabilities = std::array::from_fn(|_| kinds[below(2) as usize]);
    let setting = Setting::new(&env, capabilities).await;
    let stop = Arc::new(Stop::default());
    let clients = join_all((0..3).map(|number| client(setting.clone(), stop.clone(), number)));
    let driven = async {
        let faults = MemoryFaults { not_done_one_in: 150, done_one_in: 150 };
        setting.records.set_faults(faults);
        setting.locals.values().for_each(|local| local.set_faults(faults));
        // Two movers of several mappings, each killed and followed now and then.
        join_all((0..2).map(|_| moves(&setting, planted))).await;
        setting.records.set_faults(MemoryFaults::default());
        setting.locals.values().for_each(|local| local.set_faults(MemoryFaults::default()));
        let ended = end_all(&setting, planted).await;
        stop.stop();
        ended
    };
    let (ended, _) = join(driven, clients).await;
    let catalog = setting.home().load().await.expect("a catalog");
    setting.check(&catalog)?;
    let mut outcome = Outcome::default();
    for of in ended? {
        match of.state() {
            MoveState::Done { .. } => outcome.done += 1,
            MoveState::Undone { .. } => outcome.undone += 1,
            _ => outcome.failed += 1,
        }
    }
    outcome.acknowledged = stop.acknowledged.load(std::sync::atomic::Ordering::Relaxed);
    Ok(outcome)
}

/// Begins moves and drives them, and those of others.
async fn moves(setting: &Arc<Setting>, planted: Planted) {
    let below = |bound: u64| setting.random.next_u64() % bound;
    let outside = || (setting.clock.clone(), setting.random.clone());
    for _ in 0..3 {
        let open = Gate::new(outside(), None, 2000);
        let mover = setting.mover(&open, planted);
        let Ok(catalog) = setting.home().load().await else { continue };
        let planned = setting.planned(&catalog, below(4) as u32, SHARDS[below(3) as usize]);
        let begun = mover.begin(&planned).await.ok();
        let Ok(all) = mover.moves().await else { continue };
        let active: Vec<_> = all.iter().filter(|of| of.state().is_active()).map(|of| of.id.clone()).collect();
        let Some(id) = begun.or_else(|| active.first().cloned()) else { continue };
        let mut late = None;
        for _ in 0..TRIES {
            let kind = [Kind::KillBefore, Kind::KillAfter, Kind::Late][below(3) as usize];
            let gate = Gate::new(outside(), Some((below(150), kind)), 2000);
            if let Some(late) = late.take() {
                gate.arrive_after(below(100), late);
            }
            let mover = setting.mover(&gate, planted);
            let run = async {
                match below(8) {
                    0 => drop(mover.undo(&id, &|_| {}).await),
                    _ => drop(mover.finish(&id, &|_| {}).await),
                }
            };
            tokio::select! { biased; () = run => {}, () = gate.killed() => {} }
            late = gate.left_behind();
            setting.clock.sleep(Duration::from_millis(below(50))).await;
        }
    }
}

/// Drives all moves to their ends, and undoes what failed.
async fn end_all(setting: &Arc<Setting>, planted: Planted) -> Result<Vec<Move>, String> {
    let open = Gate::new((setting.clock.clone(), setting.random.clone()), None, 0);
    let mover = setting.mover(&open, planted);
    let text = |error: shard_mover::MoveError| error.to_string();
    let mut ended = Vec::new();
    for of in mover.moves().await.map_err(text)? {
        let of = mover.finish(&of.id, &|_| {}).await.map_err(text)?;
        if let MoveState::Failed { .. } = of.state() {
            mover.undo(&of.id, &|_| {}).await.map_err(text)?;
        }
        ended.push(of);
    }
    Ok(ended)
}

#[test]
fn histories_lose_nothing_and_have_nothing_twice() {
    let mut sum = Outcome::default();
    for seed in seeds() {
        let found = history(seed, Planted::default()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum.done += found.done;
        sum.undone += found.undone;
        sum.failed += found.failed;
        sum.acknowledged += found.acknowledged;
    }
    let Outcome { done, undone, failed, acknowledged } = sum;
    println!("{done} moves done, {undone} undone, {failed} failed; {acknowledged} acknowledged writes");
    assert!(seeds().len() < SEEDS as usize || done > 100 && undone > 20, "{done} {undone}");
}

/// The first seed that finds a fault.
fn first_seed(fault: PlantedFault) -> Option<u64> {
    (0..PLANTED_SEEDS).find(|seed| history(*seed, Planted::fault(fault)).is_err())
}

#[test]
fn planted_faults_are_found() {
    for fault in [PlantedFault::SwappedPair, PlantedFault::NoWait] {
        let seed = first_seed(fault);
        println!("{fault:?}: seed {seed:?}");
        assert!(seed.is_some(), "{fault:?} was not found by {PLANTED_SEEDS} seeds");
    }
}
