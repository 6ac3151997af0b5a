//! Random histories under a seed, and what must be true at their ends.

use crate::clients::client;
use crate::faults::Fault;
use crate::gate::Late;
use crate::ledger::RowId;
use crate::movers::{end_all, movers};
use crate::operator::{operate, reopen};
use crate::setting::Setting;
use base::Environment;
use futures_util::future::{join, join_all};
use shard_map::State;
use shard_mover::{Move, MoveState};
use shard_store::MemoryFaults;
use sim::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Histories in each run; `LARIMAR_SIM_SEEDS` sets another number.
const SEEDS: u64 = 40;
/// Seeds among which a fault on purpose must be found.
const PLANTED_SEEDS: u64 = 400;
const CLIENTS: i32 = 4;
const MOVERS: usize = 3;
/// Longer than any operation is on its way.
const SETTLE_FOR: Duration = Duration::from_secs(200);

/// What a history came to.
#[derive(Default)]
struct Outcome {
    done: u64,
    deleted: u64,
    undone: u64,
    acknowledged: u64,
    refused: u64,
    open: u64,
    read: u64,
    map_changes: u64,
    lossy: u64,
    certified: u64,
    frozen: u64,
    /// Histories in whose end no shard may have a row that the map has elsewhere.
    strict: u64,
}

impl Outcome {
    fn add(&mut self, other: &Outcome) {
        let pairs = [
            (&mut self.done, other.done),
            (&mut self.deleted, other.deleted),
            (&mut self.undone, other.undone),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.refused, other.refused),
            (&mut self.open, other.open),
            (&mut self.read, other.read),
            (&mut self.map_changes, other.map_changes),
            (&mut self.lossy, other.lossy),
            (&mut self.certified, other.certified),
            (&mut self.frozen, other.frozen),
            (&mut self.strict, other.strict),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

fn history(seed: u64, fault: Option<Fault>) -> Result<Outcome, String> {
    World::new(seed).run(|env, _| live(env, fault)).expect("the disk does not crash")
}

async fn live(env: Environment, fault: Option<Fault>) -> Result<Outcome, String> {
    let setting = Setting::new(&env, fault).await;
    let has_operator = setting.is_one_in(2);
    let clients = join_all((0..CLIENTS).map(|number| client(setting.clone(), number)));
    let operator = async {
        if has_operator {
            operate(setting.clone()).await;
        }
    };
    let outages = outages(&setting);
    let driven = async {
        setting.set_faults(MemoryFaults { not_done_one_in: 200, done_one_in: 200 });
        let mut left_behind: Vec<Vec<Late>> = (0..MOVERS).map(|_| Vec::new()).collect();
        join_all(left_behind.iter_mut().map(|left| movers(setting.clone(), left))).await;
        setting.set_faults(MemoryFaults::default());
        setting.is_over.store(true, Ordering::Relaxed);
        left_behind
    };
    let ((left_behind, ()), _) = join(join(driven, operator), join(clients, outages)).await;
    let ended = end_all(&setting).await?;
    reopen(&setting).await?;
    setting.clock.sleep(SETTLE_FOR).await;
    for late in left_behind.into_iter().flatten() {
        late().await;
    }
    check_end(&setting, &ended, has_operator).await
}

/// Shards and copies out of reach for a while.
async fn outages(setting: &Setting) {
    let shards: Vec<_> = setting.shards.values().collect();
    while !setting.is_over.load(Ordering::Relaxed) {
        setting.clock.sleep(Duration::from_millis(setting.below(60_000))).await;
        let shard = shards[setting.below(shards.len() as u64) as usize];
        let (is_copy_down, are_rows_down) = (setting.is_one_in(2), setting.is_one_in(2));
        shard.local.set_down(is_copy_down);
        shard.rows.set_down(are_rows_down);
        setting.clock.sleep(Duration::from_millis(setting.below(5000))).await;
        shard.local.set_down(false);
        shard.rows.set_down(false);
    }
}

async fn check_end(setting: &Arc<Setting>, ended: &[Move], has_operator: bool) -> Result<Outcome, String> {
    if let Some(wrong) = setting.wrong.lock().take() {
        return Err(wrong);
    }
    let catalog = setting.true_catalog().await;
    let map = Setting::map(&catalog);
    if let Some((mapping, there)) = map.mappings().find(|(_, there)| there.state != State::Online) {
        return Err(format!("{} is {} in the end", map.mapping_text(&mapping), there.state));
    }
    if let Some((mapping, frozen)) = map.frozen().next() {
        return Err(format!("{} is frozen by {} in the end", map.mapping_text(mapping), frozen.by));
    }
    let (mut found, mut strays) = (BTreeMap::new(), Vec::new());
    for (name, shard) in &setting.shards {
        for (row, text) in shard.contents() {
            let route = map.route(&[row.1.into()]).expect("a route");
            match route.placement.shard == *name {
                true => drop(found.insert(row, text)),
                false => strays.push((name.clone(), row)),
            }
        }
    }
    let all = |_: &RowId| true;
    let ledger = setting.ledger.lock();
    ledger.check(all, &ledger.since(all), &found).map_err(|why| format!("in the end: {why}"))?;
    let count =
        |is_counted: fn(&MoveState) -> bool| ended.iter().filter(|of| is_counted(of.state())).count() as u64;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let counts = &setting.counts;
    let has_undeleted = ended
        .iter()
        .any(|of| !matches!(of.state(), MoveState::SourceDeleted { .. } | MoveState::Undone { note: None }));
    let is_strict = !has_operator && !setting.has_stale && !has_undeleted && of(&counts.lossy) == 0;
    if is_strict && !strays.is_empty() {
        return Err(format!("in the end rows are on two shards: {strays:?}"));
    }
    Ok(Outcome {
        done: count(|state| matches!(state, MoveState::Done { .. })),
        deleted: count(|state| matches!(state, MoveState::SourceDeleted { .. })),
        undone: count(|state| matches!(state, MoveState::Undone { .. })),
        acknowledged: of(&counts.acknowledged),
        refused: of(&counts.refused),
        open: of(&counts.open),
        read: of(&counts.read),
        map_changes: of(&counts.map_changes),
        lossy: of(&counts.lossy),
        certified: of(&counts.certified),
        frozen: of(&counts.frozen),
        strict: u64::from(is_strict),
    })
}

#[test]
fn every_acknowledged_write_is_on_one_shard() {
    let mut sum = Outcome::default();
    let seeds = seeds();
    for seed in &seeds {
        let outcome = history(*seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum.add(&outcome);
    }
    let Outcome { done, deleted, undone, acknowledged, refused, open, read, map_changes, .. } = sum;
    let Outcome { lossy, certified, frozen, strict, .. } = sum;
    println!(
        "{} histories: moves: {deleted} done and deleted at the source, {done} done, {undone} undone; \
         {certified} certificates; {map_changes} other changes of the map, {frozen} refused as frozen; writes: \
         {acknowledged} acknowledged, {refused} refused, {open} open; {read} reads; {lossy} losses; {strict} ended \
         without any stray row",
        seeds.len()
    );
    let moves = [done, deleted, undone, certified, lossy, strict, map_changes, frozen];
    let all = [moves.as_slice(), &[acknowledged, refused, open, read]].concat();
    assert!(seeds.len() < SEEDS as usize || all.iter().all(|count| *count > 0), "{all:?}");
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        let found = (0..PLANTED_SEEDS).find_map(|seed| Some((seed, history(seed, Some(fault)).err()?)));
        let (seed, why) = found.unwrap_or_else(|| panic!("{fault:?} is not found by {PLANTED_SEEDS} seeds"));
        println!("{fault:?} is found by seed {seed}: {why}");
    }
}
