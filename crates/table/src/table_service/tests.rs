//! The facade over the real partition layer, on a disk in memory.

use super::*;
use crate::edm::EdmValue;
use crate::entities::entity::Properties;
use crate::entities::entity_group::EntityVerb;
use crate::filter::Filter;
use crate::queries::page_walk::Reading;
use base::memory_disk::MemoryDisk;
use base::{BoxFuture, Ticks};
use parking_lot::Mutex;
use partition::PartitionSettings;
use service::{Condition, CorsRule};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";

async fn open() -> TableService {
    let environment = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let streams = Streams::open(&environment, StreamSettings::tiny()).await.unwrap();
    let partitions = Partitions::open(&environment, streams, PartitionSettings::tiny()).await.unwrap();
    TableService::new(Arc::new(partitions), environment.clock.clone())
}

fn operation(verb: EntityVerb, row_key: &str, list: &[(&str, i32)], condition: Condition) -> EntityOperation {
    let own = |(name, value): &(&str, i32)| ((*name).to_owned(), EdmValue::Int32(*value));
    EntityOperation {
        verb,
        partition_key: "p".to_owned(),
        row_key: row_key.to_owned(),
        properties: Properties(list.iter().map(own).collect()),
        condition,
    }
}

fn insert(row_key: &str, number: i32) -> EntityOperation {
    operation(EntityVerb::Insert, row_key, &[("Number", number)], Condition::None)
}

async fn row_keys(service: &TableService, table: &str, filter: &str) -> Vec<String> {
    let filter = Some(Filter::parse(filter).unwrap());
    let query = EntityQuery {
        filter,
        select: None,
        top: 1000,
        start: None,
        examined_rows_max: None,
        reading: Reading::default(),
    };
    let page = service.query(ACCOUNT, table, &query).await.unwrap();
    assert_eq!(page.next, None);
    page.entities().map(|entity| entity.row_key().to_owned()).collect()
}

#[tokio::test]
async fn an_entity_through_its_life() {
    let service = open().await;
    service.create_table(ACCOUNT, "People").await.unwrap();
    let inserted = service.execute(ACCOUNT, "people", insert("r", 1)).await.unwrap();
    let again = service.execute(ACCOUNT, "PEOPLE", insert("r", 2)).await;
    assert!(matches!(again, Err(TableError::EntityAlreadyExists)));

    let entity = service.get_entity(ACCOUNT, "People", "p", "r").await.unwrap();
    assert_eq!(entity.as_ref().version(), inserted.version);
    assert_eq!(
        entity.as_ref().property("Number").unwrap().map(|value| value.to_owned()),
        Some(EdmValue::Int32(1))
    );

    let condition = Condition::Version(Some(inserted.version));
    let merge = operation(EntityVerb::Merge, "r", &[("Other", 5)], condition);
    let merged = service.execute(ACCOUNT, "People", merge.clone()).await.unwrap();
    assert!(merged.version > inserted.version);
    let stale = service.execute(ACCOUNT, "People", merge).await;
    assert!(matches!(stale, Err(TableError::UpdateConditionNotSatisfied)));
    assert_eq!(row_keys(&service, "People", "Number eq 1 and Other eq 5").await, ["r"]);

    let delete = operation(EntityVerb::Delete, "r", &[], Condition::Exists);
    service.execute(ACCOUNT, "People", delete.clone()).await.unwrap();
    let gone = service.execute(ACCOUNT, "People", delete).await;
    assert!(matches!(gone, Err(TableError::ResourceNotFound)));
    let gone = service.get_entity(ACCOUNT, "People", "p", "r").await;
    assert!(matches!(gone, Err(TableError::ResourceNotFound)));
}

#[tokio::test]
async fn a_group_is_applied_whole_or_not_at_all() {
    let service = open().await;
    service.create_table(ACCOUNT, "People").await.unwrap();
    let group = vec![insert("1", 1), insert("2", 2), insert("3", 3)];
    let outcomes = service.execute_group(ACCOUNT, "People", group).await.unwrap();
    assert!(outcomes.len() == 3 && outcomes.iter().all(|outcome| *outcome == outcomes[0]));

    let refused = service.execute_group(ACCOUNT, "People", vec![insert("4", 4), insert("2", 2)]).await;
    let refused = refused.unwrap_err();
    assert!(refused.index == 1 && matches!(refused.error, TableError::EntityAlreadyExists));
    assert_eq!(row_keys(&service, "People", "").await, ["1", "2", "3"]);
    let nowhere = service.execute_group(ACCOUNT, "Nowhere", vec![insert("1", 1)]).await.unwrap_err();
    assert!(nowhere.index == 0 && matches!(nowhere.error, TableError::TableNotFound));
}

#[tokio::test]
async fn a_table_that_is_created_again_is_empty() {
    let service = open().await;
    service.create_table(ACCOUNT, "People").await.unwrap();
    assert!(matches!(service.create_table(ACCOUNT, "pEOPLE").await, Err(TableError::TableAlreadyExists)));
    service.create_table("other", "People").await.unwrap();
    service.execute(ACCOUNT, "People", insert("r", 1)).await.unwrap();
    service.delete_table(ACCOUNT, "people").await.unwrap();
    assert!(matches!(service.delete_table(ACCOUNT, "People").await, Err(TableError::ResourceNotFound)));
    assert!(matches!(service.table(ACCOUNT, "People").await, Err(TableError::ResourceNotFound)));
    let gone = service.execute(ACCOUNT, "People", insert("r", 1)).await;
    assert!(matches!(gone, Err(TableError::TableNotFound)));

    service.create_table(ACCOUNT, "PEOPLE").await.unwrap();
    assert_eq!(service.table(ACCOUNT, "people").await.unwrap(), "PEOPLE");
    assert!(row_keys(&service, "People", "").await.is_empty());
    let query = TableListQuery { filter: None, top: 10, start: None };
    assert_eq!(service.list_tables(ACCOUNT, &query).await.unwrap().names, ["PEOPLE"]);
}

/// A cached table row is valid only for the range it was read from, and until that range changes.
#[tokio::test]
async fn a_cached_table_is_read_again_once_its_range_changes() {
    let service = open().await;
    let missing = service.execute(ACCOUNT, "People", insert("r", 1)).await;
    assert!(matches!(missing, Err(TableError::TableNotFound)));
    service.create_table(ACCOUNT, "People").await.unwrap();
    service.execute(ACCOUNT, "People", insert("r", 1)).await.unwrap();

    let key = container_key(ACCOUNT, SERVICE_TABLE, "People");
    let moment = || service.partitions.moment(ObjectTable::Container, &key).unwrap();
    let before = moment();
    service.execute(ACCOUNT, "People", insert("r2", 1)).await.unwrap();
    assert_eq!(moment(), before, "entities are of another range");
    assert!(service.partitions.split(ObjectTable::Container, &key).await.unwrap());
    let split = moment();
    assert_ne!(split, before, "a new range has moments of its own");
    assert_eq!(row_keys(&service, "People", "").await, ["r", "r2"]);
    service.create_table(ACCOUNT, "Other").await.unwrap();
    assert_ne!(moment(), split, "any change invalidates it");

    service.delete_table(ACCOUNT, "People").await.unwrap();
    let gone = service.get_entity(ACCOUNT, "People", "p", "r").await;
    assert!(matches!(gone, Err(TableError::TableNotFound)));
    service.create_table(ACCOUNT, "People").await.unwrap();
    service.execute(ACCOUNT, "People", insert("r", 1)).await.unwrap();
    assert_eq!(row_keys(&service, "People", "").await, ["r"]);
}

#[tokio::test]
async fn bad_table_names_are_refused_by_every_method() {
    let service = open().await;
    let query = EntityQuery {
        filter: None,
        select: None,
        top: 1,
        start: None,
        examined_rows_max: None,
        reading: Reading::default(),
    };
    let results = [
        service.create_table(ACCOUNT, "1a-").await,
        service.delete_table(ACCOUNT, "1a-").await,
        service.table(ACCOUNT, "1a-").await.map(drop),
        service.execute(ACCOUNT, "1a-", insert("r", 1)).await.map(drop),
        service.get_entity(ACCOUNT, "1a-", "p", "r").await.map(drop),
        service.query(ACCOUNT, "1a-", &query).await.map(drop),
        service.table_policies(ACCOUNT, "1a-").await.map(drop),
        service.set_table_policies(ACCOUNT, "1a-", Vec::new()).await,
    ];
    for result in results {
        assert!(matches!(result, Err(TableError::TableNameCharacters(_))), "{result:?}");
    }
}

#[tokio::test]
async fn policies_and_properties_are_kept() {
    let service = open().await;
    service.create_table(ACCOUNT, "People").await.unwrap();
    assert!(service.table_policies(ACCOUNT, "People").await.unwrap().is_empty());
    let policy = |id: &str| StoredPolicy { id: id.to_owned(), ..StoredPolicy::default() };
    let policies = vec![policy("a"), policy("b")];
    service.set_table_policies(ACCOUNT, "people", policies.clone()).await.unwrap();
    assert_eq!(service.table_policies(ACCOUNT, "People").await.unwrap(), policies);
    let six = (0..6).map(|id| policy(&id.to_string())).collect();
    let refused = service.set_table_policies(ACCOUNT, "People", six).await;
    assert!(matches!(refused, Err(TableError::Policies(_))));
    let nowhere = service.set_table_policies(ACCOUNT, "Nowhere", policies).await;
    assert!(matches!(nowhere, Err(TableError::TableNotFound)));

    assert_eq!(service.service_properties(ACCOUNT).await.unwrap(), ServiceProperties::default());
    let cors = vec![CorsRule { allowed_origins: "*".to_owned(), ..CorsRule::default() }];
    let update = ServicePropertiesUpdate { cors: Some(cors.clone()), ..ServicePropertiesUpdate::default() };
    service.set_service_properties(ACCOUNT, update).await.unwrap();
    assert_eq!(service.service_properties(ACCOUNT).await.unwrap().cors, cors);
    assert!(service.service_properties("other").await.unwrap().cors.is_empty());
}

/// A process that ended between the deletion of a table and its retirement once left orphaned entities for
/// ever.
#[tokio::test]
async fn entities_of_deleted_tables_are_retired_at_once_or_at_the_next_start() {
    let service = open().await;
    for table in ["Kept", "Deleted", "Lost"] {
        service.create_table(ACCOUNT, table).await.unwrap();
        service.execute(ACCOUNT, table, insert("r", 1)).await.unwrap();
    }
    let partitions = service.partitions.clone();
    service.delete_table(ACCOUNT, "Deleted").await.unwrap();
    assert_eq!(partitions.retired_container_count(), 1);
    let key = container_key(ACCOUNT, SERVICE_TABLE, "Lost");
    partitions.execute(DeleteContainer { key }).await.unwrap().unwrap();
    assert_eq!(partitions.retired_container_count(), 1);
    assert_eq!(
        service.retire_lost_tables().await.unwrap(),
        2,
        "the lost one, and the retired one that has rows yet"
    );
    assert_eq!(partitions.retired_container_count(), 2);
    assert_eq!(row_keys(&service, "Kept", "PartitionKey eq 'p'").await, ["r"]);
    // A deletion does not touch a table that is created again under the same name.
    service.create_table(ACCOUNT, "Deleted").await.unwrap();
    service.execute(ACCOUNT, "Deleted", insert("again", 2)).await.unwrap();
    assert_eq!(row_keys(&service, "Deleted", "PartitionKey eq 'p'").await, ["again"]);
}

/// The names of an account were read once for each of its containers that no name leads to.
#[tokio::test]
async fn lost_tables_of_several_accounts_are_found_and_no_others() {
    let service = open().await;
    let partitions = service.partitions.clone();
    for account in ["a", "b", "c"] {
        for table in ["KeptA", "LostA", "LostB", "KeptB"] {
            service.create_table(account, table).await.unwrap();
            service.execute(account, table, insert("r", 1)).await.unwrap();
        }
        service.create_table(account, "Empty").await.unwrap();
        service.delete_table(account, "Empty").await.unwrap();
    }
    assert_eq!(partitions.retired_container_count(), 0, "tables without entities need no mark");
    for (account, table) in [("a", "LostA"), ("a", "LostB"), ("c", "LostB")] {
        let key = container_key(account, SERVICE_TABLE, table);
        partitions.execute(DeleteContainer { key }).await.unwrap().unwrap();
    }
    assert_eq!(service.retire_lost_tables().await.unwrap(), 3);
    assert_eq!(partitions.retired_container_count(), 3);
}

/// A clock that runs an action at its second reading: the first reading is at the start of a page, the second
/// one in the middle of it.
struct ActionClock {
    clock: Arc<dyn Clock>,
    readings: AtomicU32,
    action: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for ActionClock {
    fn now(&self) -> Ticks {
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        if self.readings.fetch_add(1, Ordering::SeqCst) == 1
            && let Some(action) = self.action.lock().take()
        {
            action();
        }
        self.clock.monotonic()
    }

    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(sleep_for)
    }
}

/// A filter with `or` or `ne` has several spans of rows. Each was once read from a snapshot of its own, and a
/// page inside one partition held half of a group that was committed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_several_spans_shows_a_group_whole_or_not_at_all() {
    const ROWS: usize = 120;
    let row_key = |row: usize| format!("{row:03}");
    let points: Vec<String> = (0..ROWS).map(|row| format!("RowKey eq '{}'", row_key(row))).collect();
    for filter in [
        format!("PartitionKey eq 'p' and ({})", points.join(" or ")),
        "PartitionKey eq 'p' and RowKey ne '100'".to_owned(),
        "(PartitionKey eq 'p' and RowKey lt '100') or (PartitionKey eq 'p' and RowKey gt '110')".to_owned(),
        "(PartitionKey eq 'p' and RowKey lt '100') or (PartitionKey eq 'p' and RowKey eq '119')".to_owned(),
    ] {
        let service = Arc::new(open().await);
        service.create_table(ACCOUNT, "People").await.unwrap();
        for rows in (0..ROWS).collect::<Vec<_>>().chunks(60) {
            let group = rows.iter().map(|row| insert(&row_key(*row), 1)).collect();
            service.execute_group(ACCOUNT, "People", group).await.unwrap();
        }
        let writer = service.clone();
        let runtime = tokio::runtime::Handle::current();
        let action = move || {
            let replace =
                |row| operation(EntityVerb::Replace, &row_key(row), &[("Number", 2)], Condition::Exists);
            let group = vec![replace(0), replace(ROWS - 1)];
            let execute = writer.execute_group(ACCOUNT, "People", group);
            tokio::task::block_in_place(|| runtime.block_on(execute)).unwrap();
        };
        let clock = Arc::new(ActionClock {
            clock: service.clock.clone(),
            readings: AtomicU32::new(0),
            action: Mutex::new(Some(Box::new(action))),
        });
        let reader = TableService::new(service.partitions.clone(), clock.clone());
        let query = EntityQuery {
            filter: Some(Filter::parse(&filter).unwrap()),
            select: None,
            top: 1000,
            start: None,
            examined_rows_max: None,
            reading: Reading::default(),
        };
        let numbers = |page: &EntityPage| {
            let first_and_last = [page.entities().next(), page.entities().last()];
            first_and_last.map(|entity| {
                let entity = entity.unwrap();
                (
                    entity.row_key().to_owned(),
                    entity.property("Number").unwrap().map(|value| value.to_owned()),
                )
            })
        };
        let expected = |number| [0, ROWS - 1].map(|row| (format!("{row:03}"), Some(EdmValue::Int32(number))));
        let page = reader.query(ACCOUNT, "People", &query).await.unwrap();
        assert!(clock.action.lock().is_none(), "{filter}: the action has not run");
        assert_eq!(numbers(&page), expected(1), "{filter}");
        let page = reader.query(ACCOUNT, "People", &query).await.unwrap();
        assert_eq!(numbers(&page), expected(2), "{filter}");
    }
}

/// A page over only tombstones once ended only after them: after a mass deletion it took longer than its
/// client waited, and so did every retry, because none got a token.
#[tokio::test]
async fn a_page_ends_in_time_among_deleted_entities() {
    const ROWS: usize = 600;
    let environment = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let streams = Streams::open(&environment, StreamSettings::tiny()).await.unwrap();
    // All rows stay in memory, because a compaction would drop the tombstones.
    let settings = PartitionSettings {
        memory_table_size_bytes: 4 << 20,
        memory_tables_size_bytes_max: 16 << 20,
        ..PartitionSettings::tiny()
    };
    let partitions = Arc::new(Partitions::open(&environment, streams, settings).await.unwrap());
    let service = TableService::new(partitions.clone(), environment.clock.clone());
    service.create_table(ACCOUNT, "People").await.unwrap();
    let rows: Vec<String> = (0..ROWS).map(|row| format!("{row:05}")).collect();
    for rows in rows.chunks(100) {
        let inserts = rows.iter().map(|row| insert(row, 1)).collect();
        service.execute_group(ACCOUNT, "People", inserts).await.unwrap();
    }
    for rows in rows.chunks(100) {
        let delete = |row: &String| operation(EntityVerb::Delete, row, &[], Condition::Exists);
        service.execute_group(ACCOUNT, "People", rows.iter().map(delete).collect()).await.unwrap();
    }
    service.execute(ACCOUNT, "People", insert("z", 1)).await.unwrap();

    // Each reading of this clock is later than the last by more than a page may take.
    let reader =
        TableService::new(partitions, crate::memory_rows::StepClock::shared(Duration::from_secs(10)));
    let mut query = EntityQuery {
        filter: None,
        select: None,
        top: 10,
        start: None,
        examined_rows_max: None,
        reading: Reading::default(),
    };
    let mut pages = Vec::new();
    loop {
        let page = reader.query(ACCOUNT, "People", &query).await.unwrap();
        pages.push(page.len());
        query.start = page.next;
        if query.start.is_none() {
            break;
        }
        assert!(pages.len() <= ROWS, "following the tokens does not end");
    }
    assert_eq!(pages.iter().sum::<usize>(), 1, "the entity after the tombstones");
    assert!(pages.len() >= 4, "{pages:?}");

    // A full page examines only a few more rows.
    service.execute(ACCOUNT, "People", insert("0", 1)).await.unwrap();
    let query = EntityQuery {
        filter: None,
        select: None,
        top: 1,
        start: None,
        examined_rows_max: None,
        reading: Reading::default(),
    };
    let page = service.query(ACCOUNT, "People", &query).await.unwrap();
    let next = page.next.clone().unwrap().row_key.unwrap();
    assert!(page.len() == 1 && next != "z" && *next > *"00200", "{next}");
}
