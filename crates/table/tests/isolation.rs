//! Isolation of concurrent clients, through the facade of the Table service:
//!
//! - readers of a partition under a storm of group transactions never see half of one, nor anything of a
//!   refused one;
//! - of writers with the same ETag exactly one wins, and what it wrote is there;
//! - all operations within one partition, groups and queries included, are linearizable, and versions rise.
//!
//! The clients run in virtual time on a simulated disk with tiny memory tables and extents, so that flushes,
//! compactions and seals happen in between. `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED`
//! runs one.

mod linearizability;

use base::{Clock, Environment};
use futures_util::future::join_all;
use linearizability::{HistoryEntry, Model, check};
use parking_lot::Mutex;
use partition::{PartitionSettings, Partitions, RowVersion};
use service::Condition;
use sim::{Faults, SimRandom, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stream::{StreamSettings, Streams};
use table::{
    EdmValue, EdmValueRef, EntityOperation, EntityQuery, EntityRef, EntityVerb, Filter, Properties, Reading,
    TableError, TableService,
};

const SEED_COUNT: u64 = 50;
const ACCOUNT: &str = "acct";
const TABLE: &str = "People";

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEED_COUNT)).collect(),
    }
}

/// The state that the clients of one run share.
struct Stage {
    seed: u64,
    service: TableService,
    random: SimRandom,
    clock: Arc<dyn Clock>,
    /// Numbers calls and returns.
    instants: AtomicU64,
}

impl Stage {
    async fn open(seed: u64, env: &Environment, random: SimRandom) -> Self {
        let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
        let partitions = Partitions::open(env, streams, PartitionSettings::tiny()).await.unwrap();
        let service = TableService::new(Arc::new(partitions), env.clock.clone());
        service.create_table(ACCOUNT, TABLE).await.unwrap();
        Stage { seed, service, random, clock: env.clock.clone(), instants: AtomicU64::new(0) }
    }

    fn instant(&self) -> u64 {
        self.instants.fetch_add(1, Ordering::SeqCst)
    }

    /// Lets other clients run first, at random.
    async fn pause(&self) {
        match self.random.below(4) {
            0 => {}
            1 => self.clock.sleep(Duration::from_micros(self.random.below(3000))).await,
            _ => self.clock.sleep(Duration::from_micros(self.random.below(200))).await,
        }
    }

    async fn query(&self, filter: &str) -> Vec<(String, RowVersion, Option<i32>)> {
        let filter = Some(Filter::parse(filter).unwrap());
        let query = EntityQuery {
            filter,
            select: None,
            top: 1000,
            start: None,
            examined_rows_max: None,
            reading: Reading::default(),
        };
        let page = self.service.query(ACCOUNT, TABLE, &query).await.unwrap();
        assert_eq!(page.next, None, "seed {}: the page should hold all rows", self.seed);
        page.entities()
            .map(|entity| (entity.row_key().to_owned(), entity.version(), value_of(&entity)))
            .collect()
    }

    async fn get(&self, row: usize) -> Option<(i32, RowVersion)> {
        match self.service.get_entity(ACCOUNT, TABLE, PARTITION, &row_key(row)).await {
            Ok(entity) => {
                let entity = entity.as_ref();
                Some((value_of(&entity).expect("a value"), entity.version()))
            }
            Err(TableError::ResourceNotFound) => None,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }
}

fn value_of(entity: &EntityRef<'_>) -> Option<i32> {
    match entity.property("Value").expect("a well-formed entity") {
        Some(EdmValueRef::Int32(value)) => Some(value),
        _ => None,
    }
}

const PARTITION: &str = "p";

fn row_key(row: usize) -> String {
    format!("r{row}")
}

/// A change to one row. Bulk fills memory tables, so that rows are read from checkpoints too.
fn change(verb: EntityVerb, row: usize, value: i32, condition: Condition) -> EntityOperation {
    let bulk = EdmValue::Binary(vec![value as u8; 200 + 37 * (value as usize % 20)]);
    let properties = match verb {
        EntityVerb::Delete => Properties::default(),
        _ => Properties(vec![("Value".to_owned(), EdmValue::Int32(value)), ("Bulk".to_owned(), bulk)]),
    };
    let partition_key = PARTITION.to_owned();
    EntityOperation { verb, partition_key, row_key: row_key(row), properties, condition }
}

fn put(row: usize, value: i32) -> EntityOperation {
    change(EntityVerb::InsertOrReplace, row, value, Condition::None)
}

/// Runs `play` once for each seed.
fn run<F: Future<Output = ()>>(play: impl Fn(Arc<Stage>) -> F) {
    for seed in seeds() {
        let world = World::new(seed);
        // A slow disk now and then, so that a group waits for durability while other clients proceed.
        world.disk.set_faults(Faults { slow_one_in: 8, ..Faults::default() });
        let random = world.random.clone();
        let play = &play;
        let finished = world.run(|env, _| async move {
            let stage = Stage::open(seed, &env, random).await;
            play(Arc::new(stage)).await;
        });
        assert!(finished.is_some(), "seed {seed}: the disk crashed without a planned crash");
    }
}

const STORM_ROWS: usize = 8;
const STORM_WRITERS: i32 = 3;
const STORM_READERS: usize = 3;
const STORM_GROUPS: i32 = 25;

/// The readers' filters, and how many rows each matches: one range, points, adjacent ranges, both.
const STORM_FILTERS: &[(&str, usize)] = &[
    ("PartitionKey eq 'p'", STORM_ROWS),
    ("PartitionKey eq 'p' and RowKey ge 'r0' and RowKey lt 's'", STORM_ROWS),
    ("", STORM_ROWS),
    ("PartitionKey eq 'p' and (RowKey eq 'r0' or RowKey eq 'r3' or RowKey eq 'r7')", 3),
    ("PartitionKey eq 'p' and RowKey ne 'r4'", STORM_ROWS - 1),
    ("PartitionKey eq 'p' and (RowKey lt 'r2' or RowKey gt 'r5')", 4),
    ("PartitionKey eq 'p' and (RowKey eq 'r1' or RowKey gt 'r5')", 3),
];

/// A value that only refused groups write.
const POISON: i32 = -1;

#[test]
fn readers_never_see_half_of_a_group() {
    run(|stage| async move {
        let writing = AtomicU64::new(STORM_WRITERS as u64);
        let (stage, writing) = (&*stage, &writing);
        let writers = (0..STORM_WRITERS).map(|writer| async move {
            for number in 0..STORM_GROUPS {
                write_storm_group(stage, writer * 1000 + number).await;
                stage.pause().await;
            }
            writing.fetch_sub(1, Ordering::SeqCst);
        });
        let readers = (0..STORM_READERS).map(|_| async move {
            let mut newest = RowVersion(0);
            while writing.load(Ordering::SeqCst) > 0 {
                read_storm(stage, &mut newest).await;
                stage.pause().await;
            }
        });
        futures_util::future::join(join_all(writers), join_all(readers)).await;
    });
}

/// All rows get one value, or all are deleted, or nothing happens because one operation is refused.
async fn write_storm_group(stage: &Stage, value: i32) {
    let kind = stage.random.below(6);
    let mut group: Vec<EntityOperation> = (0..STORM_ROWS)
        .map(|row| match kind {
            0 => change(EntityVerb::Delete, row, 0, Condition::Exists),
            1 => put(row, POISON),
            2 => change(EntityVerb::InsertOrMerge, row, value, Condition::None),
            _ => put(row, value),
        })
        .collect();
    if kind == 1 {
        // One operation in the group must fail: it demands a version that no row has.
        let at = stage.random.below(STORM_ROWS as u64) as usize;
        let never = Condition::Version(Some(RowVersion(1)));
        group[at] = change(EntityVerb::Replace, at, POISON, never);
    }
    let outcome = stage.service.execute_group(ACCOUNT, TABLE, group).await;
    match (kind, outcome) {
        (1, Err(refused)) => assert!(
            matches!(refused.error, TableError::UpdateConditionNotSatisfied | TableError::ResourceNotFound),
            "seed {}: {refused}",
            stage.seed
        ),
        (0, Err(refused)) if matches!(refused.error, TableError::ResourceNotFound) => {}
        (1, Ok(_)) => panic!("seed {}: a group with a wrong version was applied", stage.seed),
        (_, outcome) => drop(outcome.unwrap_or_else(|error| panic!("seed {}: {error}", stage.seed))),
    }
}

async fn read_storm(stage: &Stage, newest: &mut RowVersion) {
    let (filter, row_count) = STORM_FILTERS[stage.random.below(STORM_FILTERS.len() as u64) as usize];
    let found = stage.query(filter).await;
    let seed = stage.seed;
    let Some((_, version, value)) = found.first() else {
        return;
    };
    assert_eq!(found.len(), row_count, "seed {seed}: half of a group by {filter}: {found:?}");
    assert!(
        found.iter().all(|(_, other_version, other)| (other_version, other) == (version, value)),
        "seed {seed}: two groups mixed by {filter}: {found:?}"
    );
    assert_ne!(*value, Some(POISON), "seed {seed}: a refused group is visible");
    assert!(version >= newest, "seed {seed}: an older state after a newer one");
    *newest = *version;
}

#[test]
fn of_writers_with_one_etag_exactly_one_wins() {
    run(|stage| async move {
        let stage = &*stage;
        let mut value = 0;
        for _ in 0..20 {
            let inserts = 2 + stage.random.below(3) as i32;
            let insert = |writer: i32| change(EntityVerb::Insert, 0, value + writer, Condition::None);
            let outcomes = join_all((0..inserts).map(|writer| race(stage, insert(writer)))).await;
            let winner = only_winner(stage, &outcomes);
            let found = stage.get(0).await.expect("a row");
            assert_eq!(found.0, value + winner as i32, "seed {}", stage.seed);
            value += inserts;

            let condition = Condition::Version(Some(found.1));
            let writers = 2 + stage.random.below(4) as i32;
            let operations: Vec<EntityOperation> = (0..writers)
                .map(|writer| {
                    let verb = match stage.random.below(3) {
                        0 => EntityVerb::Delete,
                        1 => EntityVerb::Merge,
                        _ => EntityVerb::Replace,
                    };
                    change(verb, 0, value + writer, condition)
                })
                .collect();
            let outcomes = join_all(operations.iter().cloned().map(|operation| race(stage, operation))).await;
            let winner = only_winner(stage, &outcomes);
            let found = stage.get(0).await;
            match operations[winner].verb {
                EntityVerb::Delete => assert_eq!(found, None, "seed {}", stage.seed),
                _ => {
                    assert_eq!(found.map(|row| row.0), Some(value + winner as i32), "seed {}", stage.seed);
                    let delete = change(EntityVerb::Delete, 0, 0, Condition::Exists);
                    stage.service.execute(ACCOUNT, TABLE, delete).await.unwrap();
                }
            }
            value += writers;
        }
    });
}

async fn race(stage: &Stage, operation: EntityOperation) -> Result<RowVersion, TableError> {
    stage.pause().await;
    stage.service.execute(ACCOUNT, TABLE, operation).await.map(|outcome| outcome.version)
}

fn only_winner(stage: &Stage, outcomes: &[Result<RowVersion, TableError>]) -> usize {
    let winners: Vec<usize> =
        outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_ok()).map(|(index, _)| index).collect();
    assert_eq!(winners.len(), 1, "seed {}: {outcomes:?}", stage.seed);
    for outcome in outcomes {
        let expected = matches!(
            outcome,
            Ok(_)
                | Err(TableError::EntityAlreadyExists
                    | TableError::UpdateConditionNotSatisfied
                    | TableError::ResourceNotFound)
        );
        assert!(expected, "seed {}: {outcome:?}", stage.seed);
    }
    winners[0]
}

const MODEL_ROWS: usize = 3;

/// One partition as a plain value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
struct PartitionModel {
    rows: [Option<(i32, RowVersion)>; MODEL_ROWS],
    newest: RowVersion,
}

/// A client's request and its reply.
#[derive(Clone, Debug)]
enum Event {
    Get { row: usize, found: Option<(i32, RowVersion)> },
    Query { found: [Option<(i32, RowVersion)>; MODEL_ROWS] },
    Change { changes: Vec<Change>, outcome: Outcome },
}

#[derive(Clone, Debug)]
struct Change {
    verb: EntityVerb,
    row: usize,
    value: i32,
    condition: Condition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done(RowVersion),
    Refused { index: usize, refusal: Refusal },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Exists,
    Missing,
    OtherVersion,
}

impl PartitionModel {
    fn refusal(&self, change: &Change) -> Option<Refusal> {
        let present = self.rows[change.row];
        let upserts = matches!(change.verb, EntityVerb::InsertOrReplace | EntityVerb::InsertOrMerge);
        match (change.verb, present, change.condition) {
            (EntityVerb::Insert, Some(_), _) => Some(Refusal::Exists),
            (EntityVerb::Insert, None, _) => None,
            (_, None, _) => (!upserts).then_some(Refusal::Missing),
            (_, Some((_, version)), Condition::Version(wanted)) if wanted != Some(version) => {
                Some(Refusal::OtherVersion)
            }
            _ => None,
        }
    }
}

impl Model for PartitionModel {
    type Event = Event;

    fn after(&self, event: &Event) -> Option<Self> {
        match event {
            Event::Get { row, found } => (self.rows[*row] == *found).then(|| self.clone()),
            Event::Query { found } => (self.rows == *found).then(|| self.clone()),
            Event::Change { changes, outcome } => {
                let refused = changes.iter().enumerate().find_map(|(index, change)| {
                    let refusal = self.refusal(change)?;
                    Some(Outcome::Refused { index, refusal })
                });
                let Outcome::Done(version) = *outcome else {
                    return (refused == Some(*outcome)).then(|| self.clone());
                };
                if refused.is_some() || version <= self.newest {
                    return None;
                }
                let mut after = PartitionModel { newest: version, ..self.clone() };
                for change in changes {
                    after.rows[change.row] =
                        (change.verb != EntityVerb::Delete).then_some((change.value, version));
                }
                Some(after)
            }
        }
    }
}

const CLIENTS: i32 = 4;
const OPERATIONS_PER_CLIENT: i32 = 25;

#[test]
fn a_partition_is_linearizable() {
    run(|stage| async move {
        let history = Mutex::new(Vec::new());
        let (stage, history) = (&*stage, &history);
        join_all((0..CLIENTS).map(|client| async move {
            // The version of each row that the client read last, for its conditions.
            let mut versions = [None; MODEL_ROWS];
            for number in 0..OPERATIONS_PER_CLIENT {
                stage.pause().await;
                let called_at = stage.instant();
                let event = one_operation(stage, client * 1000 + number, &mut versions).await;
                history.lock().push(HistoryEntry { called_at, returned_at: stage.instant(), event });
            }
        }))
        .await;
        if let Err(problem) = check(PartitionModel::default(), &history.lock()) {
            panic!("seed {}: {problem}", stage.seed);
        }
    });
}

async fn one_operation(stage: &Stage, value: i32, versions: &mut [Option<RowVersion>; MODEL_ROWS]) -> Event {
    match stage.random.below(8) {
        0 | 1 => {
            let row = stage.random.below(MODEL_ROWS as u64) as usize;
            let found = stage.get(row).await;
            versions[row] = found.map(|(_, version)| version);
            Event::Get { row, found }
        }
        2 => {
            let mut found = [None; MODEL_ROWS];
            for (key, version, value) in stage.query("PartitionKey eq 'p'").await {
                let row = (0..MODEL_ROWS).find(|row| row_key(*row) == key).expect("a row of the model");
                found[row] = Some((value.expect("a value"), version));
                versions[row] = Some(version);
            }
            Event::Query { found }
        }
        kind => {
            let rows: Vec<usize> = match kind {
                3 => (0..MODEL_ROWS).collect(),
                _ => vec![stage.random.below(MODEL_ROWS as u64) as usize],
            };
            let changes: Vec<Change> =
                rows.into_iter().map(|row| random_change(stage, row, value, versions[row])).collect();
            let group =
                changes.iter().map(|step| change(step.verb, step.row, step.value, step.condition)).collect();
            let outcome = match stage.service.execute_group(ACCOUNT, TABLE, group).await {
                Ok(outcomes) => Outcome::Done(outcomes[0].version),
                Err(refused) => Outcome::Refused {
                    index: refused.index,
                    refusal: match refused.error {
                        TableError::EntityAlreadyExists => Refusal::Exists,
                        TableError::ResourceNotFound => Refusal::Missing,
                        TableError::UpdateConditionNotSatisfied => Refusal::OtherVersion,
                        error => panic!("seed {}: {error}", stage.seed),
                    },
                },
            };
            if let Outcome::Done(version) = outcome {
                for change in &changes {
                    versions[change.row] = (change.verb != EntityVerb::Delete).then_some(version);
                }
            }
            Event::Change { changes, outcome }
        }
    }
}

fn random_change(stage: &Stage, row: usize, value: i32, versions: Option<RowVersion>) -> Change {
    let conditional = match versions {
        Some(version) if stage.random.below(2) == 0 => Condition::Version(Some(version)),
        _ => Condition::Exists,
    };
    let (verb, condition) = match stage.random.below(8) {
        0 => (EntityVerb::Insert, Condition::None),
        1 => (EntityVerb::Delete, conditional),
        2 => (EntityVerb::InsertOrReplace, Condition::None),
        3 => (EntityVerb::InsertOrMerge, Condition::None),
        4 | 5 => (EntityVerb::Merge, conditional),
        _ => (EntityVerb::Replace, conditional),
    };
    Change { verb, row, value, condition }
}

/// A checker that accepts invalid histories would prove nothing.
mod the_checker {
    use super::*;

    fn at(called_at: u64, returned_at: u64, event: Event) -> HistoryEntry<Event> {
        HistoryEntry { called_at, returned_at, event }
    }

    fn write(rows: &[usize], value: i32, version: u64) -> Event {
        let (verb, condition) = (EntityVerb::InsertOrReplace, Condition::None);
        let changes = rows.iter().map(|&row| Change { verb, row, value, condition }).collect();
        Event::Change { changes, outcome: Outcome::Done(RowVersion(version)) }
    }

    fn replace(value: i32, wanted: u64, outcome: Outcome) -> Event {
        let condition = Condition::Version(Some(RowVersion(wanted)));
        Event::Change {
            changes: vec![Change { verb: EntityVerb::Replace, row: 0, value, condition }],
            outcome,
        }
    }

    fn get(found: Option<(i32, u64)>) -> Event {
        Event::Get { row: 0, found: found.map(|(value, version)| (value, RowVersion(version))) }
    }

    fn explained(history: &[HistoryEntry<Event>]) -> bool {
        check(PartitionModel::default(), history).is_ok()
    }

    #[test]
    fn takes_overlapping_operations_in_any_order() {
        for found in [None, Some((1, 10))] {
            assert!(explained(&[at(0, 3, write(&[0], 1, 10)), at(1, 2, get(found))]));
        }
        assert!(explained(&[]));
    }

    #[test]
    fn refuses_a_stale_read() {
        assert!(explained(&[at(0, 1, write(&[0], 1, 10)), at(2, 3, get(Some((1, 10))))]));
        assert!(!explained(&[at(0, 1, write(&[0], 1, 10)), at(2, 3, get(None))]));
        // Two readers one after the other: the second may not go back.
        let reads = [at(1, 2, get(Some((1, 10)))), at(3, 4, get(None))];
        assert!(!explained(&[[at(0, 9, write(&[0], 1, 10))].as_slice(), &reads].concat()));
    }

    #[test]
    fn refuses_half_of_a_group() {
        let half = Event::Query { found: [Some((1, RowVersion(10))), None, None] };
        assert!(!explained(&[at(0, 3, write(&[0, 1, 2], 1, 10)), at(1, 2, half)]));
    }

    #[test]
    fn refuses_two_winners_and_none() {
        let start = at(0, 1, write(&[0], 1, 10));
        let won = |version| Outcome::Done(RowVersion(version));
        let lost = Outcome::Refused { index: 0, refusal: Refusal::OtherVersion };
        let race = |first, second| {
            [start.clone(), at(2, 5, replace(2, 10, first)), at(3, 4, replace(3, 10, second))]
        };
        assert!(explained(&race(won(11), lost)) && explained(&race(lost, won(11))));
        assert!(!explained(&race(won(11), won(12))));
        assert!(!explained(&race(lost, lost)));
    }

    #[test]
    fn refuses_versions_that_do_not_rise() {
        assert!(!explained(&[at(0, 1, write(&[0], 1, 10)), at(2, 3, write(&[0], 2, 10))]));
        assert!(!explained(&[at(0, 1, write(&[0], 1, 10)), at(2, 3, write(&[1], 2, 9))]));
    }
}
