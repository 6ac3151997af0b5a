//! Plans, moves and checks over shards in memory: a SaaS with tenants in ranges, one of them large.

use super::*;
use crate::{Description, Operation, PlanRequest, Run};
use base::system::{SystemClock, SystemRandom};
use shard_backend::{Backend, Capabilities, DigestKey, FenceHold, MemoryBackend, Row, Schema, Shardlet};
use shard_map::{MapChange, MappingId, Selection, Shard, State};
use shard_mover::{Backends, MoverSettings, NamedDigestKey, Shards};
use shard_store::{CatalogHome, HomeError, LocalStore, LocalStores, MemoryLocal, MemoryRecords};

const TENANTS: &str = include_str!("../../../../../examples/sharding/tenants.toml");
const SCHEMA: &str = include_str!("../../../../../examples/sharding/tenants-schema.toml");
const RULES: &str = include_str!("../../../../../examples/sharding/tenants-rules.toml");

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

struct Setting {
    run: MoveRun,
    schema: Arc<Schema>,
    backends: std::collections::BTreeMap<Name, Arc<MemoryBackend>>,
    records: Arc<MemoryRecords>,
    stores: std::collections::BTreeMap<&'static str, Arc<MemoryLocal>>,
}

/// The shards of the description and one more, each tenant from 0 to 29 with three orders.
async fn setting() -> Setting {
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    let records = Arc::new(MemoryRecords::new("memory", random.clone()));
    let schema = Arc::new(Schema::parse(SCHEMA).expect("a schema"));
    let (mut locals, mut backends) = (LocalStores::new(), std::collections::BTreeMap::new());
    let mut stores = std::collections::BTreeMap::new();
    for shard in ["eu1", "eu2", "large", "us1", "eu3"] {
        let local = Arc::new(MemoryLocal::new(shard, random.clone()));
        let backend = MemoryBackend::new(shard, Capabilities::SQLITE, local.clone(), random.clone());
        backend.create_tables(&schema);
        stores.insert(shard, local.clone());
        locals.insert(name(shard), local as Arc<dyn LocalStore>);
        backends.insert(name(shard), Arc::new(backend));
    }
    let home = CatalogHome::new(records.clone(), clock.clone(), random.clone());
    let run = Run { home, shards: locals.clone(), is_dry: false };
    let described = Description::parse(TENANTS).expect("a description");
    Operation::Init(described).run(&run).await.expect("created");
    run.home.publish(&run.home.load().await.expect("it"), &only_known(&locals)).await.expect("published");
    let all = backends.iter().map(|(name, backend)| (name.clone(), backend.clone() as Arc<dyn Backend>));
    let shards = Shards { locals, backends: all.collect::<Backends>() };
    let digest_key = NamedDigestKey { id: "test".to_owned(), key: DigestKey::new([7; 16]) };
    let settings = MoverSettings::new(digest_key);
    let mover = Mover::new(records.clone(), shards, schema.clone(), settings, (clock, random));
    let fingerprint = schema.fingerprint().to_string();
    let run = MoveRun { mover, map: name("tenants"), schema: fingerprint, is_dry: false };
    let setting = Setting { run, schema, backends, records, stores };
    for tenant in 0..30 {
        setting.order(tenant, &[1, 2, 3]).await;
    }
    setting
}

/// The shards that the description has.
fn only_known(all: &LocalStores) -> LocalStores {
    all.iter()
        .filter(|(name, _)| name.as_str() != "eu3")
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect()
}

impl Setting {
    /// A customer with number 1 and orders of that one, written as a client does.
    async fn order(&self, tenant: i64, numbers: &[i64]) {
        let catalog = self.run.mover.home().load().await.expect("a catalog");
        let map = catalog.map("tenants").expect("it");
        let key = ["eu".into(), tenant.into()];
        let route = map.route(&key).expect("a route");
        let shardlet = Shardlet::new(map.clone(), route.mapping).expect("it");
        let hold = FenceHold::Open(route.placement.since);
        let backend = &self.backends[&route.placement.shard];
        // Columns are in the order of their names: customer, name, region, tenant; and customer, number,
        // region, tenant.
        let customer = Row { values: vec![1_i64.into(), "first".into(), "eu".into(), tenant.into()] };
        let order =
            |number: &i64| Row { values: vec![1_i64.into(), (*number).into(), "eu".into(), tenant.into()] };
        let orders: Vec<Row> = numbers.iter().map(order).collect();
        for (table, rows) in [("customers", vec![customer]), ("orders", orders)] {
            let table = self.schema.table(table).expect("it");
            backend.write(table, &shardlet, hold, &rows).await.expect("written");
        }
    }

    async fn run(&self, operation: MoveOperation) -> MoveOutcome {
        self.try_run(operation).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn try_run(&self, operation: MoveOperation) -> Result<MoveOutcome, OperationError> {
        operation.run(&self.run, Sinks { moves: &|_| {}, checks: &|_| {} }).await
    }

    async fn plan(&self, request: PlanRequest) -> Box<PlanDocument> {
        let outcome = self.run(MoveOperation::Plan(request, PlanSettings::default())).await;
        let MoveOutcome::Planned(planned) = outcome else { unreachable!("a plan") };
        // As it is read from a file.
        Box::new(PlanDocument::parse(&planned.document.to_json()).expect("a plan"))
    }

    async fn apply(&self, request: PlanRequest, delete_sources: bool) -> MoveOutcome {
        let plan = Some(self.plan(request).await);
        let outcome = self.run(MoveOperation::Apply { plan, delete_sources }).await;
        assert!(!outcome.is_amiss(), "{}", outcome.text());
        outcome
    }

    async fn shard_of(&self, tenant: i64) -> String {
        let catalog = self.run.mover.home().load().await.expect("a catalog");
        let map = catalog.map("tenants").expect("it");
        map.route(&["eu".into(), tenant.into()]).expect("a route").placement.shard.to_string()
    }

    fn orders_on(&self, shard: &str) -> usize {
        self.backends[&name(shard)].contents("orders").len()
    }

    async fn status(&self) -> MoveOutcome {
        let outside: (Arc<dyn Clock>, Arc<dyn Random>) =
            (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
        status(self.records.clone(), outside, &[]).await.expect("moves")
    }

    async fn verify(&self) -> MoveOutcome {
        self.run(MoveOperation::Verify(Rules::parse(RULES, &self.schema).expect("rules"))).await
    }
}

#[tokio::test]
async fn a_tenant_goes_alone_off_a_full_shard_and_leaves_nothing() {
    let setting = setting().await;
    let before = setting.orders_on("eu1");
    let key = vec!["eu".to_owned(), "3".to_owned()];
    let request = PlanRequest::Move { map: name("tenants"), key, to: name("large"), alone: true };
    let outcome = setting.apply(request, true).await;
    assert!(outcome.text().contains("source-deleted"), "{}", outcome.text());
    assert_eq!((setting.shard_of(3).await, setting.shard_of(4).await), ("large".into(), "eu1".into()));
    // Tenant 7 is there already.
    assert_eq!((setting.orders_on("eu1"), setting.orders_on("large")), (before - 3, 6));
    let verified = setting.verify().await;
    assert!(!verified.is_amiss(), "{}", verified.text());
    let shown = setting.status().await;
    assert!(shown.text().contains("source-deleted") && !shown.is_amiss(), "{}", shown.text());
}

/// A further shard of the region.
fn eu3() -> Shard {
    let tags = [(name("region"), "eu".to_owned())].into();
    Shard { tags, ..Shard::new(name("eu3"), "sqlite:eu3.db") }
}

#[tokio::test]
async fn a_shard_is_added_drained_and_a_range_split() {
    let setting = setting().await;
    let key = vec!["eu".to_owned(), "5".to_owned()];
    let split = PlanRequest::Split { map: name("tenants"), key, to: Some(name("eu2")) };
    setting.apply(split, true).await;
    assert_eq!((setting.shard_of(4).await, setting.shard_of(5).await), ("eu1".into(), "eu2".into()));
    setting.apply(PlanRequest::Add { shard: eu3() }, true).await;
    assert!(setting.orders_on("eu3") > 0, "it has its part");
    setting.apply(PlanRequest::Drain { shard: name("eu1") }, true).await;
    assert_eq!(setting.orders_on("eu1"), 0);
    let verified = setting.verify().await;
    assert!(!verified.is_amiss(), "{}", verified.text());
}

#[tokio::test]
async fn a_plan_of_an_old_epoch_is_refused_and_changes_nothing() {
    let setting = setting().await;
    let key = vec!["eu".to_owned(), "3".to_owned()];
    let request = PlanRequest::Move { map: name("tenants"), key, to: name("large"), alone: true };
    let plan = setting.plan(request.clone()).await;
    assert!(setting.run.mover.moves().await.expect("moves").is_empty());
    setting.apply(request, false).await;
    let again = MoveOperation::Apply { plan: Some(plan), delete_sources: false };
    assert!(matches!(setting.try_run(again).await, Err(OperationError::OldPlan { .. })));
}

#[tokio::test]
async fn copies_that_a_move_left_are_found_and_deleted() {
    let setting = setting().await;
    let key = vec!["eu".to_owned(), "3".to_owned()];
    let request = PlanRequest::Move { map: name("tenants"), key, to: name("large"), alone: true };
    setting.apply(request, false).await;
    let verified = setting.verify().await;
    assert!(
        verified.is_amiss() && verified.text().contains("4 duplicate, 4 stale-copy"),
        "{}",
        verified.text()
    );
    let rules = Rules::parse(RULES, &setting.schema).expect("rules");
    let repaired = setting.run(MoveOperation::Repair(rules)).await;
    assert!(!repaired.is_amiss() && repaired.text().contains("4 copies deleted"), "{}", repaired.text());
    assert!(!setting.verify().await.is_amiss());
}

#[tokio::test]
async fn moves_that_began_are_undone() {
    let setting = setting().await;
    let key = vec!["eu".to_owned(), "3".to_owned()];
    let request = PlanRequest::Move { map: name("tenants"), key, to: name("large"), alone: true };
    let plan = setting.plan(request).await;
    begin(&setting.run, &plan).await.expect("begun");
    let undone = setting.run(MoveOperation::Undo(Vec::new())).await;
    assert!(!undone.is_amiss() && undone.text().contains("undone"), "{}", undone.text());
    assert_eq!(setting.shard_of(3).await, "eu1");
}

/// The mapping of a tenant goes to the shard of large ones.
fn large(key: &str, alone: bool) -> PlanRequest {
    PlanRequest::Move {
        map: name("tenants"),
        key: vec!["eu".to_owned(), key.to_owned()],
        to: name("large"),
        alone,
    }
}

/// A pin gave the range below it other keys under its move, whose late batches then hit the pinned tenant.
#[tokio::test]
async fn no_key_is_taken_out_of_a_mapping_that_a_move_has() {
    let setting = setting().await;
    let plan = setting.plan(large("4", false)).await;
    let id = begin(&setting.run, &plan).await.expect("begun").remove(0);
    let alone = || MoveOperation::Plan(large("3", true), PlanSettings::default());
    // It has not marked the range yet.
    let refused = setting.try_run(alone()).await.expect_err("refused").to_string();
    assert!(refused.contains("finish or undo it first"), "{refused}");
    let home = setting.run.mover.home();
    let known = home.load().await.expect("a catalog");
    let map = known.map("tenants").expect("it");
    let MappingId::Range(low) = map.route(&["eu".into(), 4_i64.into()]).expect("a route").mapping else {
        panic!("a range")
    };
    let range = || Selection::Range(map.key_type().decode_bound(low.as_bytes()).expect("a bound"));
    let of_map = |change| vec![Change::Map(name("tenants"), change)];
    let closed = of_map(MapChange::SetState { mappings: range(), state: State::ReadOnly });
    let known =
        home.change(&known, "closed", |_| Ok::<_, HomeError>(closed.clone())).await.expect("closed").catalog;
    let refused = setting.try_run(alone()).await.expect_err("refused").to_string();
    assert!(refused.contains("is read-only"), "{refused}");
    let frozen = [
        MapChange::SetState { mappings: range(), state: State::Online },
        MapChange::Freeze { mappings: range(), by: "move 7".to_owned() },
    ];
    let frozen: Vec<Change> = frozen.into_iter().flat_map(of_map).collect();
    home.change(&known, "frozen", |_| Ok::<_, HomeError>(frozen.clone())).await.expect("frozen");
    setting.run.mover.undo(&id, &|_| {}).await.expect("undone");
    let refused = setting.try_run(alone()).await.expect_err("refused").to_string();
    assert!(refused.contains("is frozen by move 7 (online)"), "{refused}");
}

/// A plan whose moves had not all begun had to be made anew, and `plan add` refused its own shard.
#[tokio::test]
async fn a_plan_that_was_cut_off_is_applied_again() {
    let setting = setting().await;
    let add = || PlanRequest::Add { shard: eu3() };
    // Pieces that can be spread.
    for at in ["3", "6", "8", "15", "20", "25"] {
        let key = vec!["eu".to_owned(), at.to_owned()];
        setting.apply(PlanRequest::Split { map: name("tenants"), key, to: None }, false).await;
    }
    let plan = setting.plan(add()).await;
    assert!(plan.moves.len() > 1, "{}", plan.to_json());
    // It was cut off after the first move had begun.
    let home = setting.run.mover.home();
    let known = home.load().await.expect("a catalog");
    let changes = plan.request.changes(&known).expect("changes");
    let catalog =
        home.change(&known, &plan.note(), |_| Ok::<_, HomeError>(changes.clone())).await.expect("changed");
    let first = plan.moves[0].planned(&catalog.catalog).expect("it");
    setting.run.mover.begin(&first).await.expect("begun");
    // A new plan knows its shard.
    let again = setting.run(MoveOperation::Plan(add(), PlanSettings::default())).await;
    let MoveOutcome::Planned(again) = again else { panic!("a plan") };
    assert!(again.plan.changes.is_empty(), "{}", again.document.to_json());
    let applied = setting.run(MoveOperation::Apply { plan: Some(plan.clone()), delete_sources: true }).await;
    assert!(!applied.is_amiss(), "{}", applied.text());
    let MoveOutcome::Moved { moves, .. } = applied else { panic!("moves") };
    assert_eq!(moves.len(), plan.moves.len());
    assert_eq!(setting.run.mover.moves().await.expect("moves").len(), plan.moves.len());
    // Once it was applied it is an old plan.
    let applied = setting.try_run(MoveOperation::Apply { plan: Some(plan), delete_sources: false }).await;
    assert!(matches!(applied, Err(OperationError::OldPlan { .. })));
    // A shard with mappings is not added again.
    assert!(setting.try_run(MoveOperation::Plan(add(), PlanSettings::default())).await.is_err());
}

/// A split moves nothing: what its publish did not reach stayed so, and nothing said it.
#[tokio::test]
async fn a_shard_that_could_not_be_reached_is_shown_until_an_apply_reaches_it() {
    let setting = setting().await;
    setting.run(MoveOperation::Apply { plan: None, delete_sources: false }).await;
    let local = &setting.stores["eu1"];
    local.set_down(true);
    let key = vec!["eu".to_owned(), "5".to_owned()];
    let plan = Some(setting.plan(PlanRequest::Split { map: name("tenants"), key, to: None }).await);
    let applied = setting.run(MoveOperation::Apply { plan, delete_sources: false }).await;
    let line = "shard eu1 does not have the map yet: ";
    assert!(applied.is_amiss() && applied.text().contains(line), "{}", applied.text());
    let shown = setting.status().await;
    assert!(shown.is_amiss() && shown.text().contains(line), "{}", shown.text());
    assert!(shown.json()["unreached"]["eu1"].is_string(), "{}", shown.json());
    local.set_down(false);
    let applied = setting.run(MoveOperation::Apply { plan: None, delete_sources: false }).await;
    assert!(!applied.is_amiss() && !applied.text().contains(line), "{}", applied.text());
    assert!(!setting.status().await.is_amiss());
    let known = setting.run.mover.home().load().await.expect("a catalog");
    let there = local.contents().expect("a copy");
    let expected = shard_store::LocalCopy::of(&known, "eu1").expect("it");
    assert!(there.is_same(&expected));
}

/// Dry runs without anything to do listed all moves that there had ever been.
#[tokio::test]
async fn a_dry_run_lists_what_would_be_done() {
    let mut setting = setting().await;
    setting.apply(large("3", true), false).await;
    setting.run.is_dry = true;
    let dry = |delete_sources| MoveOperation::Apply { plan: None, delete_sources };
    for (operation, expected) in [(dry(false), 0), (dry(true), 1), (MoveOperation::Undo(Vec::new()), 0)] {
        let outcome = setting.run(operation.clone()).await;
        let MoveOutcome::WouldDrive(moves) = &outcome else { panic!("{}", outcome.text()) };
        assert_eq!(moves.len(), expected, "{operation:?}");
        assert!(outcome.text().starts_with("dry run: ") && !outcome.is_amiss());
    }
    assert_eq!(setting.run.mover.moves().await.expect("moves")[0].state().name(), "done");
}
