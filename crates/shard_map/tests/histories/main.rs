//! Random histories of changes of a catalog with maps of every form, under a seed.
//!
//! At each epoch: every key has exactly one mapping, as a plain model finds it; an earlier route that a shard
//! would still let pass is the key's route now (the fence); the difference, the document and the undo make
//! of it what they should. A failure names its seed; `LARIMAR_SIM_SEED` runs it alone.

mod changes;
mod model;

use base::random::splitmix64;
use changes::{CHANGES, catalog, change, thaw_all};
use model::{Content, KeyRoutes, content, keys, routes};
use shard_map::{Catalog, Diff, MappingId};
use std::collections::BTreeMap;

/// Histories in each run.
const SEEDS: u64 = 200;
/// Changes that are tried in each.
const STEPS: usize = 60;

/// A source of small numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        (splitmix64(&mut self.0) % bound as u64) as usize
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("LARIMAR_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("LARIMAR_SIM_SEED is a number")],
        Err(_) => (0..SEEDS).collect(),
    }
}

#[test]
fn every_key_has_one_mapping_and_old_routes_that_pass_are_right() {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in seeds() {
        for name in history(seed) {
            *made.entry(name).or_default() += 1;
        }
    }
    if seeds().len() > 1 {
        // A change that is never made is not tested.
        for name in CHANGES {
            assert!(made.get(name).is_some_and(|count| *count > 20), "{name} is made too rarely: {made:?}");
        }
    }
}

/// One history; the names of the changes that it made.
fn history(seed: u64) -> Vec<&'static str> {
    let mut chance = Chance(seed);
    let mut made = Vec::new();
    let start = catalog();
    let (mut now, mut diffs) = (start.clone(), Vec::<Diff>::new());
    let mut past: Vec<KeyRoutes> = vec![routes(&start, seed)];
    for _ in 0..STEPS {
        let count = 1 + chance.below(2);
        let changes: Vec<_> = (0..count).map(|_| change(&now, &mut |bound| chance.below(bound))).collect();
        let (names, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let Ok(changed) = now.apply(&changes) else { continue };
        if changed.diff.is_empty() {
            assert_eq!(changed.catalog, now, "seed {seed}");
            continue;
        }
        made.extend(names);
        check_step(&now, &changed.catalog, &changed.diff, seed);
        let routes = routes(&changed.catalog, seed);
        check_fence(&changed.catalog, &past, &routes, seed);
        check_frozen(&now, &changed.catalog, (&past[past.len() - 1], &routes), seed);
        past.push(routes);
        diffs.push(changed.diff);
        now = changed.catalog;
    }
    assert_eq!(start.patch_all(&diffs).as_ref(), Ok(&now), "seed {seed}: the whole log");
    undo_all(&start, now, &diffs, seed);
    made
}

fn check_step(before: &Catalog, after: &Catalog, diff: &Diff, seed: u64) {
    assert_eq!(after.epoch(), before.epoch().next(), "seed {seed}");
    assert_eq!(before.patch(diff).as_ref(), Ok(after), "seed {seed}: the difference patched in");
    let text = serde_json::to_string(diff).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Diff>(&text).expect(&text),
        *diff,
        "seed {seed}: the difference as JSON"
    );
    for text in [after.to_json(), after.to_json_pretty()] {
        assert_eq!(Catalog::from_json(&text).as_ref(), Ok(after), "seed {seed}: {text}");
    }
    for map in after.maps() {
        for (mapping, _) in map.mappings() {
            let read = MappingId::parse(&mapping.to_string(), map.key_type());
            assert_eq!(read.as_ref(), Some(&mapping), "seed {seed}");
        }
    }
    // What is frozen refuses an undo of its keys.
    let after = &thawed(after);
    let undone = after.undo(diff).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_same(&undone.catalog, before, seed);
    let epoch = if undone.diff.is_empty() { after.epoch() } else { after.epoch().next() };
    assert_eq!(undone.catalog.epoch(), epoch, "seed {seed}");
    let redone = undone.catalog.undo(&undone.diff).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_same(&redone.catalog, after, seed);
}

/// Whether all but epochs is the same.
fn assert_same(one: &Catalog, other: &Catalog, seed: u64) {
    let (one, other): (Content, Content) = (content(one), content(other));
    assert_eq!(one, other, "seed {seed}");
}

/// A client that read its map at any earlier epoch sends a key with mapping and `since` to the shard that it
/// knew. If the shard has that mapping with that `since`, the write passes: then it must be right now.
fn check_fence(now: &Catalog, past: &[KeyRoutes], routes: &KeyRoutes, seed: u64) {
    for (epoch, former) in past.iter().enumerate() {
        for ((map, key), old) in former {
            let Some(there) = now.map(map).and_then(|map| map.placement(&old.mapping)) else { continue };
            let passes = there.shard == old.placement.shard && there.since == old.placement.since;
            if passes {
                let new = routes.get(&(map.clone(), key.clone()));
                assert_eq!(new, Some(old), "seed {seed}: map {map}, key {key}, from epoch {epoch}");
            }
        }
    }
}

fn thawed(catalog: &Catalog) -> Catalog {
    catalog.apply(&thaw_all(catalog)).expect("thawed").catalog
}

/// A mapping that the same froze before and after a change has the same keys.
fn check_frozen(before: &Catalog, after: &Catalog, routes: (&KeyRoutes, &KeyRoutes), seed: u64) {
    for map in before.maps() {
        for (mapping, frozen) in map.frozen() {
            let now = after.map(map.name().as_str()).and_then(|now| now.frozen_by(mapping));
            if now != Some(frozen) {
                continue;
            }
            let keys = |routes: &KeyRoutes| -> Vec<(String, String)> {
                let of_it = routes
                    .iter()
                    .filter(|((name, _), route)| name == map.name().as_str() && route.mapping == *mapping);
                of_it.map(|(key, _)| key.clone()).collect()
            };
            assert_eq!(keys(routes.0), keys(routes.1), "seed {seed}: {mapping} of map {}", map.name());
        }
    }
}

/// All changes undone, the last one first, each at a new epoch.
fn undo_all(start: &Catalog, mut now: Catalog, diffs: &[Diff], seed: u64) {
    now = thawed(&now);
    for diff in diffs.iter().rev() {
        now = now.undo(diff).unwrap_or_else(|error| panic!("seed {seed}: {error}")).catalog;
    }
    assert_same(&now, start, seed);
    let all: usize = now.maps().map(|map| keys(map).len()).sum();
    assert!(all > 50, "seed {seed}: there are keys to look at");
}
