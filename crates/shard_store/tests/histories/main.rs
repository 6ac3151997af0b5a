//! Random histories of a map and its shards, under a seed, in virtual time: writers change the map,
//! publishers bring copies up to it, all at once; places fail before and after they did what was asked,
//! shards go and come back, publishers are cut off anywhere, the map is lost.
//!
//! After every write of a copy: of all routes that clients may know, of any epoch, those of one key pass at
//! one shard at most. In the end: each change that was acknowledged is in the log once, each shard has what
//! the map says, and a map that was recovered has each key. A failure names its seed; `LARIMAR_SIM_SEED` runs
//! it alone.

mod observed;
mod scenario;

use base::Environment;
use observed::Observed;
use scenario::{Scenario, publish_all};
use sim::World;

/// Histories in each run; `LARIMAR_SIM_SEEDS` sets another number.
const SEEDS: u64 = 150;

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

#[test]
fn no_key_is_written_on_two_shards_and_no_change_is_lost() {
    let (mut held, mut recovered, mut refused) = (0, 0, 0);
    for seed in seeds() {
        let world = World::new(seed);
        let outcome = world.run(|env, _| history(env, seed)).expect("the disk does not crash");
        held += outcome.held;
        recovered += usize::from(outcome.is_recovered == Some(true));
        refused += usize::from(outcome.is_recovered == Some(false));
    }
    println!("{held} shards were held, {recovered} maps recovered, {refused} recoveries refused");
    if seeds().len() >= SEEDS as usize {
        assert!(held > 20 && recovered > 20, "{held} shards were held, {recovered} maps recovered");
    }
}

/// What a history came to.
struct Outcome {
    /// How often a shard had to wait for another.
    held: usize,
    /// Whether a lost map was recovered, if it was lost.
    is_recovered: Option<bool>,
}

async fn history(env: Environment, seed: u64) -> Outcome {
    let observed = Observed::new(&env, seed);
    let scenario = Scenario::start(&env, observed.clone()).await;
    let acknowledged = scenario.run().await;
    observed.calm();
    let held = observed.held();
    let catalog = observed.catalog().await;
    scenario.check_log(&acknowledged, &catalog).await;
    let is_recovered = match seed % 3 {
        0 => {
            publish_all(&scenario.home(), &catalog, &observed).await;
            None
        }
        // Nothing of the map is left, or an old backup.
        kind => Some(scenario.lose_and_recover(kind == 1).await),
    };
    Outcome { held, is_recovered }
}
