//! A map in a place, with its shards there, from the first copy to a lost map.

use crate::homes::{first_changes, make, move_pin, name, pin};
use crate::place::Place;
use shard_store::{
    Access, DifferenceKind, LocalCopy, LocalStores, PublishError, ShardCopy, differences, read_copies,
    recover,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) async fn moves_are_published_and_recovered(place: &dyn Place) {
    let home = place.home("map");
    let empty = home.create(&name("app")).await.expect("a catalog");
    let first = make(&home, &empty, first_changes()).await.expect("changes");
    let stores: LocalStores =
        ["one", "two"].map(|shard| (name(shard), place.local(&format!("shard-{shard}")))).into();
    let kinds =
        |found: Vec<shard_store::Difference>| found.into_iter().map(|one| one.kind).collect::<Vec<_>>();
    let found = differences(&first, &read_copies(&first, &stores).await);
    assert_eq!(kinds(found), [DifferenceKind::NoCopy, DifferenceKind::NoCopy]);
    let published = home.publish(&first, &stores).await.expect("published");
    assert!(published.is_complete() && published.written == [name("one"), name("two")], "{published:?}");
    let pinned = make(&home, &first, vec![pin(1, "one"), pin(2, "two")]).await.expect("pins");
    let moved = make(&home, &pinned, vec![move_pin(1, "two")]).await.expect("a move");
    let found = differences(&moved, &read_copies(&moved, &stores).await);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(
        shown[1].contains(
            "map `tenants`: the key 1 is online since epoch 3 in the map, and not there on shard `two`"
        ),
        "{shown:?}"
    );
    let published = home.publish(&moved, &stores).await.expect("published");
    assert!(published.is_complete() && published.epoch == moved.epoch(), "{published:?}");
    let copies = read_copies(&moved, &stores).await;
    assert_eq!(differences(&moved, &copies), []);
    let again = home.publish(&moved, &stores).await.expect("published");
    assert_eq!(again.written, []);
    check_fence(&moved, &copies);
    refuse_another_catalog(place, &stores).await;
    // The map is lost.
    let copies = copies_only(copies);
    let believed: BTreeSet<_> = copies.keys().cloned().collect();
    let (recovered, _) = recover(None, &copies, &believed).expect("a map");
    let home = place.home("map-again");
    home.create_from(&recovered, "recovered").await.expect("a home");
    // The range is older than the pin over it: no copy says what is left of it, so late clients of it are
    // refused.
    let found = differences(&recovered, &read_copies(&recovered, &stores).await);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let epoch = recovered.epoch();
    assert_eq!(
        shown,
        [format!(
            "map `tenants`: the range [first, last] is online since epoch {epoch} in the map, and online since epoch 2 on \
             shard `one`"
        )]
    );
    assert!(home.publish(&recovered, &stores).await.expect("published").is_complete());
    assert_eq!(differences(&recovered, &read_copies(&recovered, &stores).await), []);
    let next = make(&home, &recovered, vec![move_pin(2, "one")]).await.expect("a move");
    assert!(home.publish(&next, &stores).await.expect("published").is_complete());
    // The former home is found again.
    let error = place.home("map").publish(&moved, &stores).await.expect_err("it is old");
    assert!(
        error.to_string().contains("the map is old: catalog `app` is at epoch 3, and shard `one` has"),
        "{error}"
    );
}

/// A client that knows where the key was is refused, the others are not.
fn check_fence(moved: &shard_map::Catalog, copies: &BTreeMap<shard_map::Name, ShardCopy>) {
    let route = moved.map("tenants").expect("it").route(&[1.into()]).expect("a route");
    let (mapping, since) = (route.mapping.clone(), route.placement.since);
    for (shard, copy) in copies_only(copies.clone()) {
        let passes = copy.check(&name("tenants"), &mapping, since, Access::Write).is_ok();
        assert_eq!(passes, shard == name("two"));
    }
}

fn copies_only(copies: BTreeMap<shard_map::Name, ShardCopy>) -> BTreeMap<shard_map::Name, LocalCopy> {
    let copy = |(name, copy)| match copy {
        ShardCopy::Read(Some(stored)) => (name, stored.copy),
        other => panic!("{other:?}"),
    };
    copies.into_iter().map(copy).collect()
}

async fn refuse_another_catalog(place: &dyn Place, stores: &LocalStores) {
    let home = place.home("other-map");
    let empty = home.create(&name("billing")).await.expect("a catalog");
    let mut changes = first_changes();
    changes.truncate(2);
    let other = make(&home, &empty, changes).await.expect("changes");
    let error = home.publish(&other, stores).await.expect_err("they are taken");
    assert!(matches!(error, PublishError::Mismatch(_)));
    let text = error.to_string();
    assert!(
        text.contains(
            "shard `one` of catalog `billing` is at at one, and there is shard `one` of catalog `app`"
        ),
        "{text}"
    );
    // Two names for one place.
    let swapped: LocalStores =
        [("one", "two"), ("two", "one")].map(|(shard, at)| (name(shard), stores[&name(at)].clone())).into();
    let error =
        place.home("map").publish(&empty_of(place).await, &swapped).await.expect_err("swapped").to_string();
    assert!(error.contains("and there is shard `two` of the same catalog `app`"), "{error}");
}

async fn empty_of(place: &dyn Place) -> shard_map::Catalog {
    place.home("map").load().await.expect("a catalog")
}
