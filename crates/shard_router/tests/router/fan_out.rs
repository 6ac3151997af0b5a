//! Questions to all shards, in virtual time, over models that take their time.

use crate::setup::name;
use base::{BoxFuture, Clock, Environment};
use shard_map::Name;
use shard_router::{
    BatchSource, FanOutError, FanOutSettings, Needed, ShardFailure, SortedMerge, query_shards,
};
use sim::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 100;

fn run<F: Future<Output = ()>>(seed: u64, life: impl FnOnce(Environment) -> F) {
    World::new(seed).run(|env, _| life(env)).expect("no crash");
}

/// A hundred model shards with delays of 50 to 500 ms.
fn delays(env: &Environment) -> Vec<(Name, Duration)> {
    let delay = |_| Duration::from_millis(50 + env.random.next_u64() % 451);
    (0..SHARDS).map(|index| (name(&format!("s{index:03}")), delay(index))).collect()
}

#[test]
fn a_hundred_shards_take_little_longer_than_the_slowest() {
    for seed in 0..20 {
        run(seed, |env| async move {
            let shards = delays(&env);
            let slowest = shards.iter().map(|(_, delay)| *delay).max().expect("a hundred");
            let (asked, at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let started_at = env.clock.monotonic();
            let settings = FanOutSettings::default();
            let answers = query_shards(&shards, &settings, &*env.clock, |delay| {
                let (clock, asked, at_once, most) = (&env.clock, &asked, &at_once, &most);
                Box::pin(async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    most.fetch_max(at_once.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    clock.sleep(*delay).await;
                    at_once.fetch_sub(1, Ordering::Relaxed);
                    Ok::<_, ShardFailure<String>>(1_u64)
                })
            });
            let answers = answers.await.expect("all answer");
            let took = env.clock.monotonic() - started_at;
            assert_eq!(answers.answers.iter().map(|(_, one)| one).sum::<u64>(), SHARDS as u64);
            assert_eq!(asked.load(Ordering::Relaxed), SHARDS);
            assert!(most.load(Ordering::Relaxed) <= settings.shards_at_once);
            assert!(took <= slowest.mul_f64(1.3), "{took:?}, and the slowest {slowest:?}");
            println!("{took:?} of {SHARDS} shards, the slowest {slowest:?}");
        });
    }
}

#[test]
fn no_more_shards_are_queried_at_a_time_than_allowed() {
    run(1, |env| async move {
        let shards = delays(&env);
        let settings = FanOutSettings { shards_at_once: 7, ..FanOutSettings::default() };
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let answers = query_shards(&shards, &settings, &*env.clock, |delay| {
            let (clock, at_once, most) = (&env.clock, &at_once, &most);
            Box::pin(async move {
                most.fetch_max(at_once.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                clock.sleep(*delay).await;
                at_once.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, ShardFailure<String>>(())
            })
        });
        assert_eq!(answers.await.expect("all answer").answers.len(), SHARDS);
        assert_eq!(most.load(Ordering::Relaxed), 7);
    });
}

#[test]
fn all_or_some_shards_answer_and_each_failure_is_named() {
    run(1, |env| async move {
        let shards = delays(&env);
        let settings = FanOutSettings {
            needed: Needed::SomeShards,
            shard_for_max: Duration::from_millis(300),
            ..FanOutSettings::default()
        };
        let query = |delay: &'_ Duration| -> BoxFuture<'_, Result<(), ShardFailure<String>>> {
            let clock = env.clock.clone();
            let delay = *delay;
            Box::pin(async move {
                clock.sleep(delay).await;
                match delay.as_millis() % 10 {
                    0 => Err(ShardFailure::Failed("no".to_owned())),
                    _ => Ok(()),
                }
            })
        };
        let some = query_shards(&shards, &settings, &*env.clock, query).await.expect("some answer");
        assert_eq!(some.answers.len() + some.failed.len(), SHARDS);
        for (shard, delay) in &shards {
            let expected = match delay {
                delay if *delay > settings.shard_for_max => {
                    Some(ShardFailure::TimedOut(settings.shard_for_max))
                }
                delay if delay.as_millis() % 10 == 0 => Some(ShardFailure::Failed("no".to_owned())),
                _ => None,
            };
            assert_eq!(some.failed.get(shard), expected.as_ref(), "{shard} {delay:?}");
        }
        let all = FanOutSettings { needed: Needed::AllShards, ..settings };
        let error = query_shards(&shards, &all, &*env.clock, query).await.map(drop).expect_err("one fails");
        let FanOutError::Shard { shard, .. } = error else { panic!("{error}") };
        assert!(some.failed.contains_key(&shard));
    });
}

/// Numbers in batches, each after a delay.
struct Numbers {
    clock: Arc<dyn Clock>,
    rows: Vec<u64>,
    batch_rows: usize,
    fails_at: Option<usize>,
    in_memory: Arc<AtomicUsize>,
}

impl BatchSource<u64, String> for Numbers {
    fn next_batch(&mut self) -> BoxFuture<'_, Result<Vec<u64>, ShardFailure<String>>> {
        Box::pin(async move {
            self.clock.sleep(Duration::from_millis(10)).await;
            if self.fails_at.is_some_and(|left| self.rows.len() <= left) {
                return Err(ShardFailure::Failed("no".to_owned()));
            }
            let rest = self.rows.split_off(self.batch_rows.min(self.rows.len()));
            let batch = std::mem::replace(&mut self.rows, rest);
            self.in_memory.fetch_add(batch.len(), Ordering::Relaxed);
            Ok(batch)
        })
    }
}

struct Merging {
    env: Environment,
    in_memory: Arc<AtomicUsize>,
    all: Vec<u64>,
}

impl Merging {
    fn new(env: Environment) -> Self {
        Merging { env, in_memory: Arc::default(), all: Vec::new() }
    }

    /// Twenty shards, some empty, with up to 50 numbers each in batches of four.
    fn sources(&mut self, fails: bool) -> Vec<(Name, Box<dyn BatchSource<u64, String>>)> {
        let draw = |bound: u64| self.env.random.next_u64() % bound;
        let mut sources = Vec::new();
        for index in 0..20 {
            let mut rows: Vec<u64> = (0..draw(51)).map(|_| draw(200)).collect();
            rows.sort_unstable();
            let fails_at = (fails && index == 7).then_some(10);
            self.all.extend(&rows);
            let (clock, in_memory) = (self.env.clock.clone(), self.in_memory.clone());
            let source = Numbers { clock, rows, batch_rows: 4, fails_at, in_memory };
            sources.push((name(&format!("s{index:02}")), Box::new(source) as Box<dyn BatchSource<_, _>>));
        }
        self.all.sort_unstable();
        sources
    }

    fn merge(&mut self, fails: bool, limit: Option<u64>, needed: Needed) -> SortedMerge<u64, u64, String> {
        let settings = FanOutSettings { needed, ..FanOutSettings::default() };
        let sources = self.sources(fails);
        SortedMerge::new(sources, |row| *row, limit, settings, self.env.clock.clone())
    }
}

#[test]
fn rows_are_merged_in_order_in_bounded_memory() {
    for seed in 0..20 {
        run(seed, |env| async move {
            let mut merging = Merging::new(env);
            let limit = (seed % 2 == 0).then_some(seed * 10);
            let mut merge = merging.merge(false, limit, Needed::AllShards);
            let (mut found, mut before) = (Vec::new(), None);
            while let Some((shard, row)) = merge.next().await.expect("no failure") {
                found.push(row);
                // Of rows of one key those of the first shard come first.
                assert!(before.replace((row, shard.clone())).is_none_or(|before| before <= (row, shard)));
                let held = merging.in_memory.load(Ordering::Relaxed) - found.len();
                assert!(held <= 20 * 4, "{held} rows in memory");
            }
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            merging.all.truncate(limit);
            assert_eq!(found, merging.all);
        });
    }
}

#[test]
fn a_shard_that_fails_on_the_way_ends_the_merge_or_is_named() {
    for seed in 0..20 {
        run(seed, |env| async move {
            let mut merging = Merging::new(env.clone());
            let mut merge = merging.merge(true, None, Needed::SomeShards);
            while merge.next().await.expect("no failure").is_some() {}
            assert_eq!(merge.failed().len(), 1);
            let mut merge = Merging::new(env).merge(true, None, Needed::AllShards);
            let error = loop {
                match merge.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the failure is not seen"),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().starts_with("shard `s07`"), "{error}");
        });
    }
}

#[test]
fn rows_out_of_order_are_found() {
    run(1, |env| async move {
        let (clock, in_memory) = (env.clock.clone(), Arc::default());
        let source = Numbers { clock, rows: vec![1, 3, 2], batch_rows: 2, fails_at: None, in_memory };
        let sources = vec![(name("one"), Box::new(source) as Box<dyn BatchSource<_, String>>)];
        let settings = FanOutSettings::default();
        let mut merge = SortedMerge::new(sources, |row: &u64| *row, None, settings, env.clock.clone());
        assert_eq!(merge.next().await.expect("a row"), Some((name("one"), 1)));
        let error = merge.next().await.expect_err("2 is after 3");
        assert!(error.to_string().contains("order"), "{error}");
        // What it had taken by then is gone: it does not go on without it.
        for _ in 0..2 {
            assert!(matches!(merge.next().await, Err(FanOutError::Broken)));
        }
    });
}
