//! Rules of integrity over the shards in memory: each kind of finding, and what a repair leaves.

use crate::gate::{Gate, Kind};
use crate::shards::{SHARDS, Setting, TENANTS, name, row};
use base::Environment;
use shard_backend::{Backend, Capabilities, FenceHold, Shardlet};
use shard_map::{Epoch, MappingId};
use shard_mover::{FindingKind, IntegrityReport, Mover, Planted, Rules, plan_repair};
use sim::World;
use std::sync::Arc;

const ORPHANS: &str = "[orphans.note-of-tag]\nchild = \"tags\"\ncolumns = [\"tenant\", \"number\"]\n\
                       parent = \"notes\"\n";

fn in_world(seed: u64, test: impl AsyncFnOnce(Environment) + 'static) {
    World::new(seed).run(|env, _| test(env)).expect("the disk does not crash");
}

fn mover(setting: &Setting, env: &Environment) -> Mover {
    let gate = Gate::new((env.clock.clone(), env.random.clone()), None, 0);
    setting.mover(&gate, Planted::default())
}

/// Writes rows to a shard, whether the map has their tenant there or not.
async fn put(setting: &Setting, shard: &str, table: &str, tenant: i32, numbers: &[i32], text: &str) {
    let catalog = setting.home().load().await.expect("a catalog");
    let map = catalog.map("m").expect("it");
    let route = map.route(&[tenant.into()]).expect("a route");
    let shardlet = Shardlet::new(map.clone(), route.mapping).expect("it");
    let backend = &setting.backends[&name(shard)];
    let hold = match route.placement.shard == name(shard) {
        true => FenceHold::Open(route.placement.since),
        false => {
            backend.claim(&shardlet, Epoch(1)).await.expect("claimed");
            FenceHold::Closed(Epoch(1))
        }
    };
    let rows: Vec<_> = numbers.iter().map(|number| row(tenant, *number, text)).collect();
    backend.write(setting.schema.table(table).expect("it"), &shardlet, hold, &rows).await.expect("written");
}

/// The shard that the map names for a tenant, and one that it does not.
async fn owner_and_other(setting: &Setting, tenant: i32) -> (&'static str, &'static str) {
    let catalog = setting.home().load().await.expect("a catalog");
    let route = catalog.map("m").expect("it").route(&[tenant.into()]).expect("a route");
    let is_owner = |shard: &&&str| **shard == route.placement.shard.as_str();
    let owner = SHARDS.iter().find(is_owner).expect("a shard");
    let other = SHARDS.iter().find(|shard| !is_owner(shard)).expect("a shard");
    (owner, other)
}

async fn check(mover: &Mover, setting: &Setting, rules: &str) -> IntegrityReport {
    let rules = Rules::parse(rules, &setting.schema).expect("rules");
    mover.check_integrity(&rules, &|_| {}).await.expect("checked")
}

fn count(report: &IntegrityReport, kind: &str) -> u64 {
    report.counts.get(kind).copied().unwrap_or_default()
}

/// The setting's rows that are left from a former placement: of each tenant and table, on two shards, one
/// whose key the owner has with another text, and one that it has not.
const LEFT: u64 = 2 * 2 * TENANTS as u64;

#[test]
fn each_row_on_a_wrong_shard_is_found_once_and_only_equal_copies_are_deleted() {
    in_world(1, async |env| {
        let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
        let mover = mover(&setting, &env);
        let (_, other) = owner_and_other(&setting, 5).await;
        // Number 1 was there as another row, and is a copy by now.
        put(&setting, other, "notes", 5, &[0, 1, 2], "first").await;
        let report = check(&mover, &setting, "").await;
        let found = ["stale-copy", "conflict", "stray", "duplicate"].map(|kind| count(&report, kind));
        // Number 1 of each tenant is on all three shards and number 9 on two: one duplicate each.
        assert_eq!(found, [3, LEFT - 1, LEFT, 4 * TENANTS as u64 + 2]);
        assert!(!report.is_of_old_map && !report.is_clean());
        let plan = plan_repair(&report);
        assert_eq!((plan.steps.len(), plan.steps[0].rows.copies), (1, 3));
        let before: usize =
            SHARDS.iter().map(|shard| setting.backends[&name(shard)].contents("notes").len()).sum();
        let repaired = mover.repair(&plan).await.expect("repaired");
        assert_eq!((repaired.deleted, repaired.skipped), (3, Vec::new()));
        let after: usize =
            SHARDS.iter().map(|shard| setting.backends[&name(shard)].contents("notes").len()).sum();
        assert_eq!(before - after, 3);
        let catalog = setting.home().load().await.expect("a catalog");
        setting.check(&catalog).expect("clients' rows are as they were");
        let report = check(&mover, &setting, "").await;
        assert_eq!([count(&report, "stale-copy"), count(&report, "stray")], [0, LEFT]);
    });
}

#[test]
fn orphans_are_found_across_shards_and_a_parent_on_a_wrong_shard_is_none() {
    in_world(2, async |env| {
        let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
        let mover = mover(&setting, &env);
        let only_orphans = format!("foreign = false\nduplicates = false\n{ORPHANS}");
        assert!(check(&mover, &setting, &only_orphans).await.is_clean());
        let (owner, _) = owner_and_other(&setting, 3).await;
        // Of number 9 there is a note on the wrong shards only.
        put(&setting, owner, "tags", 3, &[7, 9], "no note").await;
        let report = check(&mover, &setting, &only_orphans).await;
        let keys: Vec<&str> = report.findings.iter().map(|finding| finding.key.as_str()).collect();
        assert_eq!(keys, ["(3, 7)", "(3, 9)"]);
        let is_orphan = |kind: &FindingKind| matches!(kind, FindingKind::Orphan { rule, parent_key } if rule == "note-of-tag" && parent_key == "(3, 7) of `notes`");
        assert!(is_orphan(&report.findings[0].kind), "{:?}", report.findings[0]);
    });
}

#[test]
fn rows_of_a_move_are_not_judged_and_not_repaired() {
    in_world(3, async |env| {
        let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
        let mover = mover(&setting, &env);
        let catalog = setting.home().load().await.expect("a catalog");
        let before = check(&mover, &setting, "").await;
        let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
        // Killed at each operation until the copy is there.
        for at in 0..200 {
            let gate = Gate::new((env.clock.clone(), env.random.clone()), Some((at, Kind::KillAfter)), 0);
            let killed = setting.mover(&gate, Planted::default());
            tokio::select! { biased; _ = killed.finish(&id, &|_| {}) => break, () = gate.killed() => {} }
            let is_active = mover.read(&id).await.expect("it").state().is_active();
            let report = check(&mover, &setting, "").await;
            assert!(!is_active || report.moves == [id.clone()]);
            let in_hands = |(shard, mapping): &(shard_map::Name, MappingId)| {
                *mapping == MappingId::Virtual(0) && (shard.as_str() == "a" || shard.as_str() == "b")
            };
            assert!(!is_active || !report.foreign.keys().any(in_hands), "{at}: {:?}", report.foreign);
            // A plan that was made before the move began does nothing to its rows.
            let mut plan = plan_repair(&before);
            for step in plan_all(&before) {
                plan.steps.push(step);
            }
            let repaired = mover.repair(&plan).await.expect("repaired");
            assert!(
                !is_active || repaired.skipped.iter().any(|(step, _)| step.mapping == MappingId::Virtual(0))
            );
            assert_eq!(repaired.deleted, 0, "{at}");
        }
        mover.finish(&id, &|_| {}).await.expect("an end");
        let catalog = setting.home().load().await.expect("a catalog");
        setting.check(&catalog).expect("nothing is lost");
    });
}

/// Steps for all places with foreign rows, copies or not.
fn plan_all(report: &IntegrityReport) -> Vec<shard_mover::RepairStep> {
    let step = |((shard, mapping), rows): (&shard_mover::ForeignPlace, &_)| shard_mover::RepairStep {
        shard: shard.clone(),
        mapping: mapping.clone(),
        rows: *rows,
    };
    report.foreign.iter().map(step).collect()
}

/// What the left rows' text was when a repair was planned; a client wrote the owner's row since.
#[test]
fn a_row_that_differs_by_now_stays() {
    in_world(4, async |env| {
        let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
        let mover = mover(&setting, &env);
        let (owner, other) = owner_and_other(&setting, 5).await;
        put(&setting, other, "notes", 5, &[0, 2], "first").await;
        let plan = plan_repair(&check(&mover, &setting, "").await);
        put(&setting, owner, "notes", 5, &[2], "later").await;
        setting.model.lock().insert(("notes", 5, 2), "later".to_owned());
        let repaired = mover.repair(&plan).await.expect("repaired");
        assert_eq!(repaired.deleted, 1);
        let catalog = setting.home().load().await.expect("a catalog");
        setting.check(&catalog).expect("clients' rows are as they were");
    });
}

/// Killed at each of its operations, a repair is done again and deletes what is left.
#[test]
fn a_repair_that_was_killed_is_done_again() {
    for at in 0..40 {
        in_world(at, async move |env| {
            let setting: Arc<Setting> = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
            let mover = mover(&setting, &env);
            let (_, other) = owner_and_other(&setting, 5).await;
            put(&setting, other, "notes", 5, &[0, 2], "first").await;
            let plan = plan_repair(&check(&mover, &setting, "").await);
            let gate = Gate::new((env.clock.clone(), env.random.clone()), Some((at, Kind::KillAfter)), 0);
            let killed = setting.mover(&gate, Planted::default());
            tokio::select! { biased; _ = killed.repair(&plan) => {}, () = gate.killed() => {} }
            mover.repair(&plan).await.expect("repaired");
            assert_eq!(count(&check(&mover, &setting, "").await, "stale-copy"), 0);
            let catalog = setting.home().load().await.expect("a catalog");
            setting.check(&catalog).expect("clients' rows are as they were");
        });
    }
}

#[test]
fn sizes_are_of_the_rows_that_the_map_has_there() {
    in_world(5, async |env| {
        let setting = Setting::new(&env, [Capabilities::POSTGRES; 3]).await;
        let mover = mover(&setting, &env);
        let catalog = setting.home().load().await.expect("a catalog");
        let facts = mover.facts(&catalog, Default::default()).await.expect("measured");
        let map = catalog.map("m").expect("it");
        // Four rows in two tables of each tenant.
        let mut expected = std::collections::BTreeMap::new();
        for tenant in 0..TENANTS {
            *expected.entry(map.route(&[tenant.into()]).expect("a route").mapping).or_insert(0) += 8;
        }
        let found = facts.sizes.into_iter().map(|((_, mapping), size)| (mapping, size.rows));
        assert_eq!(found.collect::<std::collections::BTreeMap<_, _>>(), expected);
    });
}
