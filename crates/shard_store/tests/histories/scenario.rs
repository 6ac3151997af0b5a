//! What happens in a history: writers, publishers, shards that go, and a map that is lost.

use crate::observed::{KEYS, Observed, name};
use base::Environment;
use futures_util::future::{join, join_all};
use shard_map::{
    Catalog, Change, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, Name, Placement,
    Selection, Shard, State,
};
use shard_store::{CatalogHome, HomeError, LocalCopy, PublishError, recover};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long writers and publishers are at it.
const RUN_FOR: Duration = Duration::from_millis(400);
const WRITERS: usize = 2;
const PUBLISHERS: usize = 3;

pub(crate) struct Scenario {
    observed: Arc<Observed>,
    start: Catalog,
}

/// Changes that were acknowledged to a writer: the epoch that each led to, and its note.
pub(crate) type Acknowledged = BTreeMap<u64, String>;

fn first_changes() -> Vec<Change> {
    let key = || KeyType::new([KeyKind::Int32]).expect("a type");
    let mut ranges = MapBuilder::new(name("ranges"), key());
    ranges.range(&[], Some(&[6.into()]), Placement::on(name("s0"))).expect("a range");
    ranges.range(&[6.into()], None, Placement::on(name("s1"))).expect("a range");
    let mut hash = MapBuilder::new(name("hash"), key());
    hash.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 6 }).expect("a hash");
    hash.spread(&[name("s0"), name("s1"), name("s2")]).expect("room");
    let shards = ["s0", "s1", "s2", "s3"].map(|shard| Change::AddShard(Shard::new(name(shard), shard)));
    let maps = [ranges, hash].map(|map| Change::AddMap(map.build().expect("a map")));
    shards.into_iter().chain(maps).collect()
}

impl Scenario {
    /// Creates the map while nothing fails yet.
    pub(crate) async fn start(_env: &Environment, observed: Arc<Observed>) -> Self {
        let home = observed.home();
        let empty = home.create(&name("catalog")).await.expect("a catalog");
        let changes = first_changes();
        let start = home
            .change::<HomeError>(&empty, "start", |_| Ok(changes.clone()))
            .await
            .expect("a start")
            .catalog;
        Scenario { observed, start }
    }

    pub(crate) fn home(&self) -> CatalogHome {
        self.observed.home()
    }

    /// Lets all run beside each other for a while.
    pub(crate) async fn run(&self) -> Acknowledged {
        self.observed.disturb();
        let (observed, start) = (&self.observed, &self.start);
        let writers = (0..WRITERS).map(|writer| write(observed.clone(), start.clone(), writer));
        let publishers = (0..PUBLISHERS).map(|_| publish(observed.clone(), start.clone()));
        let others = join(join_all(publishers), take_shards_down(observed.clone()));
        let (acknowledged, _) = join(join_all(writers), others).await;
        acknowledged.into_iter().flatten().collect()
    }

    /// Each acknowledged change is in the log, and the log is the map.
    pub(crate) async fn check_log(&self, acknowledged: &Acknowledged, catalog: &Catalog) {
        let history = self.home().history(shard_map::Epoch(0), usize::MAX).await.expect("history");
        let notes: BTreeMap<u64, &str> =
            history.iter().map(|entry| (entry.diff.to.0, entry.note.as_str())).collect();
        for (epoch, note) in acknowledged {
            assert_eq!(notes.get(epoch), Some(&note.as_str()), "epoch {epoch}");
        }
        let distinct: BTreeSet<&str> = notes.values().copied().collect();
        assert_eq!(distinct.len(), history.len(), "a change is in the log twice");
        let empty = Catalog::new(catalog.name().clone(), catalog.id());
        let all = empty.patch_all(history.iter().map(|entry| &entry.diff));
        assert_eq!(all.as_ref(), Ok(catalog));
    }

    /// The map is lost, or an old backup takes its place; whether it was recovered from the shards.
    pub(crate) async fn lose_and_recover(&self, is_lost: bool) -> bool {
        let newest = self.observed.catalog().await;
        let history = self.home().history(shard_map::Epoch(0), usize::MAX).await.expect("history");
        let kept = self.observed.below(history.len() as u64) as usize;
        let old = Catalog::new(newest.name().clone(), newest.id())
            .patch_all(history[..=kept].iter().map(|entry| &entry.diff))
            .expect("an earlier epoch");
        // With a backup, a shard may be out of reach, too.
        let absent = self.observed.shards.keys().nth(self.observed.below(8) as usize).filter(|_| !is_lost);
        let copies: BTreeMap<Name, LocalCopy> = self
            .observed
            .shards
            .iter()
            .filter(|(name, _)| absent != Some(*name))
            .filter_map(|(name, shard)| Some((name.clone(), shard.contents()?)))
            .collect();
        let believed = copies.keys().cloned().collect();
        let old = (!is_lost).then_some(&old);
        // What was closed on one shard and not yet opened on another is missing, if no map says where it is.
        let Ok((recovered, _)) = recover(old, &copies, &believed) else { return false };
        self.observed.records.restore(BTreeMap::new());
        self.observed.forget_map();
        let home = self.home();
        home.create_from(&recovered, "recovered").await.expect("a home");
        self.observed.learn(&recovered);
        self.observed.check();
        if let Some(absent) = absent {
            self.observed.shards[absent].set_down(true);
            let published = home.publish(&recovered, &self.observed.stores()).await.expect("published");
            assert!(published.failed.contains_key(absent), "{published:?}");
            self.observed.shards[absent].set_down(false);
            self.observed.check();
        }
        publish_all(&home, &recovered, &self.observed).await;
        for map in ["ranges", "hash"] {
            let Some(there) = recovered.map(map) else {
                // All of it was closed when the map was lost.
                assert!(old.is_none() && copies.values().all(|copy| !copy.maps.contains_key(map)), "{map}");
                continue;
            };
            assert!(
                KEYS.into_iter().all(|key| there.route(&[KeyValue::Int32(key)]).is_ok()),
                "map {map}: a key has no mapping"
            );
        }
        true
    }
}

/// In the end each shard has what the map says.
pub(crate) async fn publish_all(home: &CatalogHome, known: &Catalog, observed: &Arc<Observed>) {
    let published = home.publish(known, &observed.stores()).await.expect("published");
    assert!(published.is_complete(), "{published:?}");
    let newest = home.refresh(known).await.expect("a catalog");
    for (name, shard) in &observed.shards {
        let Some(target) = LocalCopy::of(&newest, name.as_str()) else {
            // The map was lost before the shard had a copy.
            assert_eq!(shard.contents(), None, "{name}");
            continue;
        };
        let copy = shard.contents().expect("a copy");
        assert!(copy.is_same(&target), "{name}: {copy:?}, and not {target:?}");
    }
    observed.check();
}

async fn write(observed: Arc<Observed>, start: Catalog, writer: usize) -> Acknowledged {
    let (home, mut known, mut acknowledged) = (observed.home(), start, Acknowledged::new());
    let mut number = 0;
    while observed.clock.monotonic() < RUN_FOR {
        observed.clock.sleep(Duration::from_micros(observed.below(20_000))).await;
        number += 1;
        let note = format!("writer {writer}, change {number}");
        let seen = observed.clone();
        let decide = |catalog: &Catalog| Ok::<_, HomeError>(vec![some_change(catalog, &seen)]);
        // Some changes are refused, and some fail.
        if let Ok(changed) = home.change(&known, &note, decide).await {
            known = changed.catalog;
            if !changed.diff.is_empty() {
                acknowledged.insert(changed.diff.to.0, note);
            }
        }
    }
    acknowledged
}

fn some_change(catalog: &Catalog, observed: &Observed) -> Change {
    let shard = || name(["s0", "s1", "s2", "s3"][observed.below(4) as usize]);
    let key = || vec![KeyValue::Int32(observed.below(KEYS.end as u64) as i32)];
    let map = ["ranges", "hash"][observed.below(2) as usize];
    let there = catalog.map(map).expect("it");
    let low = || {
        let index = observed.below(there.ranges().len() as u64) as usize;
        let (low, _) = there.ranges().nth(index).expect("one of them");
        there.key_type().decode_bound(low.as_bytes()).expect("a bound")
    };
    let selection = || match observed.below(3) {
        0 => Selection::Pin(key()),
        _ if map == "hash" => {
            let number = observed.below(6) as u32;
            Selection::Virtual(number, number)
        }
        _ => Selection::Range(low()),
    };
    let change = match observed.below(8) {
        0 | 1 => MapChange::Pin { key: key(), shard: shard() },
        2 => MapChange::Unpin { key: key() },
        3 if map == "ranges" => MapChange::Split { at: key() },
        4 if map == "ranges" => MapChange::Merge { at: low() },
        5 => {
            let state = [State::Online, State::Online, State::ReadOnly][observed.below(3) as usize];
            MapChange::SetState { mappings: selection(), state }
        }
        _ => MapChange::Place { mappings: selection(), shard: shard() },
    };
    Change::Map(name(map), change)
}

/// Publishes again and again; each third time it is cut off somewhere.
async fn publish(observed: Arc<Observed>, start: Catalog) {
    let (home, stores) = (observed.home(), observed.stores());
    let mut known = start;
    while observed.clock.monotonic() < RUN_FOR {
        observed.clock.sleep(Duration::from_micros(observed.below(20_000))).await;
        let cut_after = match observed.below(3) {
            0 => Duration::from_micros(observed.below(20_000)),
            _ => Duration::from_secs(10),
        };
        tokio::select! {
            published = home.publish(&known, &stores) => match published {
                Ok(published) => observed.add_held(published.held.len()),
                Err(PublishError::Mismatch(mismatch)) => panic!("{mismatch}"),
                Err(PublishError::Home(_) | PublishError::Busy(_)) => {}
            },
            () = observed.clock.sleep(cut_after) => {}
        }
        // Some publishers are late.
        if observed.below(2) == 0 {
            known = home.refresh(&known).await.unwrap_or(known);
        }
    }
}

async fn take_shards_down(observed: Arc<Observed>) {
    while observed.clock.monotonic() < RUN_FOR {
        observed.clock.sleep(Duration::from_micros(observed.below(50_000))).await;
        let index = observed.below(4) as usize;
        if let Some(shard) = observed.shards.values().nth(index) {
            shard.set_down(observed.below(2) == 0);
        }
    }
}
