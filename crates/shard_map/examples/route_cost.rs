//! What a route of a cached map costs, from values to placement, beside what it may cost. `cargo xtask bench
//! routes` builds and runs it.
//!
//! Keys are drawn from all that the map has, in no order, so that the search meets a cold cache. Each number
//! is the median of some rounds; one that is too high makes the run fail at its end.
#![allow(clippy::disallowed_methods)] // A bench reads clocks by nature.

use base::random::splitmix64;
use shard_map::{Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, Name, Placement, ShardMap};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

/// What a route may cost.
const ROUTE_NS_MAX: f64 = 1000.0;
const ROUNDS: usize = 9;
const ROUTES: usize = 200_000;
const PINS: i64 = 100_000;
const RANGES: i64 = 100_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<ExitCode> {
    let mut random = 1;
    let mut is_too_slow = false;
    let all = layered()?;
    let text = texts()?;
    for (name, map, key) in [
        ("a pin of 100,000", &all, &(|draw: u64| vec![pinned(draw)]) as &dyn Fn(u64) -> Vec<KeyValue>),
        ("a range of 100,000 under them", &all, &|draw| {
            vec![KeyValue::Int64((draw % 1_000_000) as i64 * 2 + 1)]
        }),
        ("a virtual shard of 65,536 below", &all, &|draw| vec![KeyValue::Int64(-1 - (draw >> 2) as i64)]),
        ("a virtual shard by text and number", &text, &|draw| {
            vec![KeyValue::Text(format!("tenant-{}", draw % 1000)), KeyValue::Int64(draw as i64)]
        }),
    ] {
        let ns = median_ns(map, key, &mut random)?;
        is_too_slow |= ns > ROUTE_NS_MAX;
        println!("{name:<36} {ns:>7.0} ns, at most {ROUTE_NS_MAX:.0}");
    }
    Ok(if is_too_slow { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn pinned(draw: u64) -> KeyValue {
    KeyValue::Int64((draw % PINS as u64) as i64 * 20)
}

fn shards() -> Outcome<Vec<Name>> {
    (0..100).map(|index| Ok(Name::parse(&format!("shard-{index}"))?)).collect()
}

/// Pins over ranges of the keys that are not negative, over a hash.
fn layered() -> Outcome<ShardMap> {
    let shards = shards()?;
    let on = |index: i64| Placement::on(shards[index as usize % shards.len()].clone());
    let mut map = MapBuilder::new(Name::parse("all")?, KeyType::new([KeyKind::Int64])?);
    for index in 0..PINS {
        map.pin(&[pinned(index as u64)], on(index))?;
    }
    for index in 0..RANGES {
        map.range(&[(index * 20).into()], Some(&[(index * 20 + 20).into()]), on(index))?;
    }
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 65_536 })?.spread(&shards)?;
    Ok(map.build()?)
}

fn texts() -> Outcome<ShardMap> {
    let mut map = MapBuilder::new(Name::parse("texts")?, KeyType::new([KeyKind::Text, KeyKind::Int64])?);
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 1024 })?.spread(&shards()?)?;
    Ok(map.build()?)
}

fn median_ns(map: &ShardMap, key: &dyn Fn(u64) -> Vec<KeyValue>, random: &mut u64) -> Outcome<f64> {
    let keys: Vec<Vec<KeyValue>> = (0..ROUTES).map(|_| key(splitmix64(random))).collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let started_at = Instant::now();
        for key in &keys {
            black_box(map.route(black_box(key))?.placement);
        }
        rounds.push(started_at.elapsed().as_nanos() as f64 / ROUTES as f64);
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[ROUNDS / 2])
}
