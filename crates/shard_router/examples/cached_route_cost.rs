//! What the route of a cached map costs a router, from values to placement, with the check of the map's age.
//! `cargo xtask bench routes` builds and runs it.
//!
//! Keys are drawn from all that the map has, in no order. Each number is the median of some rounds; one that
//! is too high makes the run fail at its end.
#![allow(clippy::disallowed_methods)] // A bench reads clocks by nature.

use base::memory_disk::MemoryDisk;
use base::random::splitmix64;
use shard_map::{
    Change, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, Name, Placement, Shard, ShardMap,
};
use shard_router::{CachedMap, MapSettings};
use shard_store::{CatalogHome, HomeError, MemoryRecords};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// What a route may cost.
const ROUTE_NS_MAX: f64 = 1000.0;
const ROUNDS: usize = 9;
const ROUTES: usize = 200_000;
const PINS: i64 = 20_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A key of a random number.
type DrawKey = fn(u64) -> i64;

/// Pins over a hash.
fn map(shards: &[Name]) -> Outcome<ShardMap> {
    let mut map = MapBuilder::new(Name::parse("all")?, KeyType::new([KeyKind::Int64])?);
    for index in 0..PINS {
        map.pin(&[index.into()], Placement::on(shards[index as usize % shards.len()].clone()))?;
    }
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 65_536 })?.spread(shards)?;
    Ok(map.build()?)
}

fn median_ns(cached: &CachedMap, key: DrawKey, random: &mut u64) -> Outcome<f64> {
    let keys: Vec<[KeyValue; 1]> = (0..ROUTES).map(|_| [key(splitmix64(random)).into()]).collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let started_at = Instant::now();
        for key in &keys {
            let read = cached.cached().ok_or("the map is gone")?;
            black_box(read.route("all", black_box(key))?.placement);
        }
        rounds.push(started_at.elapsed().as_nanos() as f64 / ROUTES as f64);
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[ROUNDS / 2])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<ExitCode> {
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let records = Arc::new(MemoryRecords::new("memory", env.random.clone()));
    let home = CatalogHome::new(records, env.clock.clone(), env.random.clone());
    let empty = home.create(&Name::parse("bench")?).await?;
    let shards: Vec<Name> =
        (0..100).map(|index| Name::parse(&format!("shard-{index}"))).collect::<Result<_, _>>()?;
    let add = shards.iter().map(|shard| Change::AddShard(Shard::new(shard.clone(), "here")));
    let changes: Vec<Change> = add.chain([Change::AddMap(map(&shards)?)]).collect();
    home.change::<HomeError>(&empty, "", |_| Ok(changes.clone())).await?;
    let cached = CachedMap::new(home, env.clock.clone(), env.spawner.clone(), MapSettings::default());
    cached.get().await?;
    let mut random = 1;
    let mut is_too_slow = false;
    let keys: [(&str, DrawKey); 2] = [
        ("cached: a pin of 20,000", |draw| (draw % PINS as u64) as i64),
        ("cached: a virtual shard of 65,536", |draw| -1 - (draw >> 2) as i64),
    ];
    for (name, key) in keys {
        let ns = median_ns(&cached, key, &mut random)?;
        is_too_slow |= ns > ROUTE_NS_MAX;
        println!("{name:<36} {ns:>7.0} ns, at most {ROUTE_NS_MAX:.0}");
    }
    Ok(if is_too_slow { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
