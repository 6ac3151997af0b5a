//! Plans, moves and checks over shards in memory: a SaaS with tenants in ranges, one of them large.

use super::*;
use crate::{Description, Operation, PlanRequest, Run};
use base::system::{SystemClock, SystemRandom};
use shard_backend::{Backend, Capabilities, DigestKey, FenceHold, MemoryBackend, Row, Schema, Shardlet};
use shard_map::Shard;
use shard_mover::{Backends, MoverSettings, NamedDigestKey, Shards};
use shard_store::{CatalogHome, LocalStore, MemoryLocal, MemoryRecords};

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
}

/// The shards of the description and one more, each tenant from 0 to 29 with three orders.
async fn setting() -> Setting {
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    let records = Arc::new(MemoryRecords::new("memory", random.clone()));
    let schema = Arc::new(Schema::parse(SCHEMA).expect("a schema"));
    let (mut locals, mut backends) = (LocalStores::new(), std::collections::BTreeMap::new());
    for shard in ["eu1", "eu2", "large", "us1", "eu3"] {
        let local = Arc::new(MemoryLocal::new(shard, random.clone()));
        let backend = MemoryBackend::new(shard, Capabilities::SQLITE, local.clone(), random.clone());
        backend.create_tables(&schema);
        locals.insert(name(shard), local as Arc<dyn LocalStore>);
        backends.insert(name(shard), Arc::new(backend));
    }
    let home = CatalogHome::new(records.clone(), clock.clone(), random.clone());
    let run = Run { home, shards: locals.clone(), is_dry: false };
    let described = Description::parse(TENANTS).expect("a description");
    Operation::Init(described).run(&run).await.expect("created");
    run.home.publish(&run.home.load().await.expect("it"), &only_known(&locals)).await.expect("published");
    let all = backends.iter().map(|(name, backend)| (name.clone(), backend.clone() as Arc<dyn Backend>));
    let shards = Shards { locals: locals.clone(), backends: all.collect::<Backends>() };
    let digest_key = NamedDigestKey { id: "test".to_owned(), key: DigestKey::new([7; 16]) };
    let settings = MoverSettings::new(digest_key);
    let mover = Mover::new(records.clone(), shards, schema.clone(), settings, (clock, random));
    let fingerprint = schema.fingerprint().to_string();
    let run = MoveRun { mover, locals, map: name("tenants"), schema: fingerprint, is_dry: false };
    let setting = Setting { run, schema, backends, records };
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
    let outside: (Arc<dyn Clock>, Arc<dyn Random>) =
        (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    let shown = status(setting.records.clone(), outside, &[]).await.expect("moves");
    assert!(shown.text().contains("source-deleted") && !shown.is_amiss(), "{}", shown.text());
}

#[tokio::test]
async fn a_shard_is_added_drained_and_a_range_split() {
    let setting = setting().await;
    let key = vec!["eu".to_owned(), "5".to_owned()];
    let split = PlanRequest::Split { map: name("tenants"), key, to: Some(name("eu2")) };
    setting.apply(split, true).await;
    assert_eq!((setting.shard_of(4).await, setting.shard_of(5).await), ("eu1".into(), "eu2".into()));
    setting.apply(PlanRequest::Add { shard: Shard::new(name("eu3"), "sqlite:eu3.db") }, true).await;
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
