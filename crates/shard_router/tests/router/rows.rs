//! Rows of declared tables over backends in memory.

use crate::setup::{Setup, name, place};
use base::Environment;
use shard_backend::{Backend, BackendError, Capabilities, MemoryBackend, Row, Schema};
use shard_map::{Change, KeyValue, Name};
use shard_router::{PoolError, Router, RouterError, RowsConnector};
use shard_store::MemoryFaults;
use sim::World;
use std::collections::BTreeMap;
use std::sync::Arc;

const SCHEMA: &str = "map = \"m\"\n[sharded.notes]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
                      columns = { tenant = \"int32\", number = \"int32\", note = \"text null\" }";

struct Rows {
    setup: Setup,
    schema: Schema,
    backends: BTreeMap<Name, Arc<MemoryBackend>>,
}

impl Rows {
    async fn start(env: &Environment) -> Self {
        let setup = Setup::start(env).await;
        let schema = Schema::parse(SCHEMA).expect("a schema");
        let backend = |(shard, local): (&Name, &Arc<shard_store::MemoryLocal>)| {
            let (place, random) = (shard.as_str(), setup.random.clone());
            let backend = MemoryBackend::new(place, Capabilities::POSTGRES, local.clone(), random);
            backend.create_tables(&schema);
            (shard.clone(), Arc::new(backend))
        };
        let backends = setup.locals.iter().map(backend).collect();
        Rows { setup, schema, backends }
    }

    fn router(&self) -> Router<RowsConnector> {
        let backends = self.backends.iter();
        let backends = backends.map(|(name, backend)| (name.clone(), backend.clone() as Arc<dyn Backend>));
        self.setup.router(RowsConnector::new(Capabilities::POSTGRES, backends.collect()))
    }

    async fn write(
        &self,
        router: &Router<RowsConnector>,
        key: i32,
        tenants: &[i32],
    ) -> Result<(), RouterError<BackendError>> {
        let rows: Vec<Row> = tenants
            .iter()
            .map(|tenant| Row { values: vec!["hello".into(), 1_i32.into(), (*tenant).into()] })
            .collect();
        let notes = self.schema.table("notes").expect("it is declared");
        router.write_rows("m", &[KeyValue::from(key)], notes, &rows).await
    }

    fn count(&self, shard: &str) -> usize {
        self.backends[&name(shard)].contents("notes").len()
    }
}

fn run<F: Future<Output = ()>>(life: impl FnOnce(Environment) -> F) {
    World::new(1).run(|env, _| life(env)).expect("no crash");
}

#[test]
fn a_client_with_an_old_map_writes_to_the_right_shard() {
    run(|env| async move {
        let rows = Rows::start(&env).await;
        let router = rows.router();
        rows.write(&router, 1, &[1]).await.expect("written");
        rows.setup.change(vec![place(None, "s1")]).await;
        rows.setup.publish().await;
        rows.write(&router, 1, &[1, 2]).await.expect("written");
        assert_eq!((rows.count("s0"), rows.count("s1"), router.map().read_count()), (1, 2, 2));
    });
}

#[test]
fn rows_of_another_mapping_are_refused_as_a_whole() {
    run(|env| async move {
        let rows = Rows::start(&env).await;
        let router = rows.router();
        let error = rows.write(&router, 1, &[1, 5]).await.expect_err("5 is elsewhere");
        assert!(
            matches!(&error, RouterError::Failed { error: BackendError::OtherShardlet { .. }, .. }),
            "{error}"
        );
        assert!(!error.may_be_done());
        assert_eq!(rows.count("s0"), 0);
    });
}

#[test]
fn what_may_have_been_done_is_not_tried_again() {
    run(|env| async move {
        let rows = Rows::start(&env).await;
        let router = rows.router();
        let faults = MemoryFaults { not_done_one_in: 0, done_one_in: 1 };
        rows.backends[&name("s0")].set_faults(faults);
        let error = rows.write(&router, 1, &[1]).await.expect_err("its answer is lost");
        assert!(error.may_be_done(), "{error}");
        assert_eq!((rows.count("s0"), router.map().read_count()), (1, 1));
        rows.backends[&name("s0")].set_faults(MemoryFaults::default());
        rows.backends[&name("s0")].set_down(true);
        let error = rows.write(&router, 1, &[1]).await.expect_err("it is out of reach");
        assert!(!error.may_be_done(), "{error}");
    });
}

#[test]
fn connections_of_a_shard_that_was_removed_are_closed() {
    run(|env| async move {
        let rows = Rows::start(&env).await;
        let router = rows.router();
        rows.write(&router, 1, &[1]).await.expect("written");
        rows.write(&router, 5, &[5]).await.expect("written");
        let s0 = &rows.backends[&name("s0")];
        let held = Arc::strong_count(s0);
        rows.setup.change(vec![place(None, "s2")]).await;
        rows.setup.publish().await;
        rows.setup.change(vec![Change::RemoveShard(name("s0"))]).await;
        router.map().begun_after(rows.setup.clock.monotonic()).await.expect("a map");
        rows.write(&router, 5, &[5]).await.expect("written");
        assert_eq!(Arc::strong_count(s0), held - 1, "the idle connection is closed");
        rows.write(&router, 1, &[1]).await.expect("written");
        assert_eq!(rows.count("s2"), 1);
        // A location that nothing connects to is named with its shard.
        let none = RowsConnector::new(Capabilities::POSTGRES, BTreeMap::new());
        let error = rows.write(&rows.setup.router(none), 5, &[5]).await.expect_err("no backend");
        assert!(matches!(error, RouterError::Pool(PoolError::Connect { .. })), "{error}");
    });
}
