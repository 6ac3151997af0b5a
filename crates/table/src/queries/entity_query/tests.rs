//! Pages over rows in memory: all matching rows, in order, once, however the pages end.

use super::*;
use crate::edm::EdmValue;
use crate::entities::entity::Properties;
use crate::entities::entity::tests::owned_properties;
use crate::entities::entity_group::{EntityGroup, EntityOperation, EntityVerb};
use crate::memory_rows::{MemoryRows, StepClock, run};
use crate::queries::page_budget::{LOOK_AHEAD_ROWS, PAGE_BYTES_MAX, PAGE_EXAMINED_ROWS_MAX};
use crate::queries::query_class::QueryClass;
use partition::RowKey;
use proptest::prelude::*;
use service::Condition;
use std::time::Duration;

const ACCOUNT: &str = "acct";
const TABLE: u64 = 7;

fn insert(rows: &mut MemoryRows, table: u64, partition_key: &str, row_key: &str, number: i32, size: usize) {
    let operation = EntityOperation {
        verb: EntityVerb::Insert,
        partition_key: partition_key.to_owned(),
        row_key: row_key.to_owned(),
        properties: Properties(vec![
            ("Number".to_owned(), EdmValue::Int32(number)),
            ("Text".to_owned(), EdmValue::String("x".repeat(size))),
        ]),
        condition: Condition::None,
    };
    let group = EntityGroup::prepare(ACCOUNT, table, &[operation]).unwrap();
    rows.execute(&group).unwrap();
}

fn query(filter: &str, top: usize) -> EntityQuery {
    let filter = Filter::parse(filter).unwrap();
    EntityQuery {
        filter: Some(filter),
        select: None,
        top,
        start: None,
        examined_rows_max: None,
        reading: Reading::default(),
    }
}

fn page(rows: &MemoryRows, query: &EntityQuery) -> EntityPage {
    page_at(rows, query, Duration::ZERO)
}

/// A page with a clock that advances by `step` at each reading.
fn page_at(rows: &MemoryRows, query: &EntityQuery, step: Duration) -> EntityPage {
    run(read_entity_page(rows, &StepClock::shared(step), ACCOUNT, TABLE, query)).unwrap()
}

fn keys(page: &EntityPage) -> Vec<(String, String)> {
    let keys = page.entities().map(|entity| (entity.partition_key().to_owned(), entity.row_key().to_owned()));
    keys.collect()
}

/// One partition with rows 00000, 00001, … whose Number is the row's.
fn numbered(count: i32) -> MemoryRows {
    let mut rows = MemoryRows::default();
    for number in 0..count {
        insert(&mut rows, TABLE, "p", &format!("{number:05}"), number, 0);
    }
    rows
}

fn token(row_key: &str) -> Option<EntityToken> {
    Some(EntityToken { partition_key: "p".to_owned(), row_key: Some(row_key.to_owned()) })
}

#[test]
fn a_full_page_has_a_token_only_if_more_matches() {
    let rows = numbered(10);
    assert_eq!(page(&rows, &query("", 3)).next, token("00003"));
    assert_eq!(page(&rows, &query("", 10)).next, None);
    assert_eq!(page(&rows, &query("Number lt 3", 3)).next, None);
    assert_eq!(page(&rows, &query("Number lt 3 or Number eq 8", 3)).next, token("00008"));
    let rest = EntityQuery { start: token("00008"), ..query("Number lt 3 or Number eq 8", 3) };
    assert_eq!(keys(&page(&rows, &rest)), [("p".to_owned(), "00008".to_owned())]);
}

#[test]
fn the_look_ahead_is_bounded() {
    let rows = numbered(1000);
    let found = page(&rows, &query("Number eq 0 or Number eq 999", 1));
    assert_eq!(found.rows_read, 1 + LOOK_AHEAD_ROWS);
    assert_eq!(found.next, token(&format!("{:05}", 1 + LOOK_AHEAD_ROWS)));
    let within = page(&rows, &query("Number eq 0 or Number eq 256", 1));
    assert_eq!(within.next, token("00256"));
}

#[test]
fn points_are_found_without_a_scan() {
    let rows = numbered(100);
    let found = page(&rows, &query("PartitionKey eq 'p' and RowKey eq '00042'", 10));
    assert_eq!((found.len(), found.rows_read, found.class), (1, 1, QueryClass::Point));
    let missing = page(&rows, &query("PartitionKey eq 'p' and RowKey eq 'x'", 10));
    assert!(missing.is_empty() && missing.rows_read == 0 && missing.next.is_none());
    let list = "PartitionKey eq 'p' and (RowKey eq '00007' or RowKey eq '00001' or RowKey eq '00003')";
    let first = page(&rows, &query(list, 2));
    assert_eq!((keys(&first).len(), first.next.clone()), (2, token("00007")));
    let rest = page(&rows, &EntityQuery { start: first.next, ..query(list, 2) });
    assert_eq!((keys(&rest), rest.next), (vec![("p".to_owned(), "00007".to_owned())], None));
}

fn counted(rows: &MemoryRows, query: &EntityQuery, step: Duration) -> EntityCount {
    run(count_entity_page(rows, &StepClock::shared(step), ACCOUNT, TABLE, query)).unwrap()
}

/// As the protocol documents it, with all texts here being ASCII.
fn documented_size(partition_key: &str, row_key: &str, text: usize) -> u64 {
    let number = 8 + 2 * "Number".len() + 4;
    let text = 8 + 2 * "Text".len() + 4 + 2 * text;
    (4 + 2 * (partition_key.len() + row_key.len()) + number + text) as u64
}

#[test]
fn a_count_is_of_rows_and_bytes_that_match() {
    let mut rows = numbered(1500);
    insert(&mut rows, TABLE, "q", "long", 7, 30_000);
    insert(&mut rows, TABLE + 1, "p", "another table", 7, 0);
    let small = documented_size("p", "00000", 0);
    for (filter, entities, size_bytes, class) in [
        ("", 1501, 1500 * small + documented_size("q", "long", 30_000), QueryClass::TableScan),
        ("PartitionKey eq 'p'", 1500, 1500 * small, QueryClass::RowRange),
        ("PartitionKey eq 'p' and RowKey ge '01000'", 500, 500 * small, QueryClass::RowRange),
        ("Number eq 7", 2, small + documented_size("q", "long", 30_000), QueryClass::TableScan),
        ("PartitionKey eq 'z'", 0, 0, QueryClass::RowRange),
    ] {
        // A page of entities would end at the first.
        let found = counted(&rows, &query(filter, 1), Duration::ZERO);
        assert_eq!(
            (found.entities, found.size_bytes, found.class),
            (entities, size_bytes, class),
            "{filter}"
        );
        assert_eq!(found.next, None, "{filter}");
    }
}

#[test]
fn a_count_of_many_rows_goes_on_page_by_page() {
    let rows = numbered(1000);
    for (examined, step) in [(Some(64), Duration::ZERO), (None, Duration::from_secs(2))] {
        let mut query = EntityQuery { examined_rows_max: examined, ..query("Number ge 10", 1000) };
        let (mut entities, mut pages) = (0, 0);
        loop {
            let page = counted(&rows, &query, step);
            (entities, pages) = (entities + page.entities, pages + 1);
            assert!(page.rows_read < 300, "{page:?}");
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        assert!(entities == 990 && pages > 3, "{entities} entities on {pages} pages");
    }
}

#[test]
fn a_page_ends_at_its_size_but_holds_one_entity() {
    let mut rows = MemoryRows::default();
    for number in 0..200 {
        insert(&mut rows, TABLE, "p", &format!("{number:05}"), number, 30_000);
    }
    let first = page(&rows, &query("", 1000));
    let fits = PAGE_BYTES_MAX / 30_100;
    assert!((fits - 2..=fits + 1).contains(&first.len()), "{}", first.len());
    assert_eq!(first.next, token(&format!("{:05}", first.len())));
}

/// Names that no entity has once made a response of a hundred megabytes from a long `$select`.
#[test]
fn selected_names_count_for_each_entity_of_a_page() {
    let rows = numbered(1000);
    let select = |len: usize, count: usize| {
        let names = (0..count).map(|index| format!("{index:03}{}", "n".repeat(len - 3))).collect();
        page(&rows, &EntityQuery { select: Some(names), ..query("", 1000) })
    };
    let long = select(200, 255);
    let fits = PAGE_BYTES_MAX / (255 * 204);
    assert!((fits - 2..=fits).contains(&long.len()), "{}", long.len());
    assert_eq!(long.next, token(&format!("{:05}", long.len())));
    let one = select(PAGE_BYTES_MAX, 1);
    assert_eq!((one.len(), one.next), (1, token("00001")), "one entity may exceed it");
    assert_eq!((select(10, 20).len(), select(10, 20).next), (1000, None));
    // A name counts once, however often it is listed.
    let again = EntityQuery { select: Some(vec!["n".repeat(200); 255]), ..query("", 1000) };
    assert_eq!(page(&rows, &again).len(), 1000);
}

#[test]
fn a_page_ends_at_its_time_and_makes_progress() {
    let rows = numbered(1000);
    let none = query("Number lt 0", 10);
    let stopped = page_at(&rows, &none, Duration::from_secs(3));
    assert!(stopped.is_empty() && stopped.rows_read < 200, "{}", stopped.rows_read);
    assert_eq!(stopped.next, token(&format!("{:05}", stopped.rows_read)));
    // However slow the clock is, following the tokens ends.
    let mut query = none;
    let mut pages = 0;
    loop {
        let page = page_at(&rows, &query, Duration::from_secs(10));
        assert!(page.rows_read > 0);
        pages += 1;
        assert!(pages <= 1000);
        query.start = page.next.clone();
        if page.next.is_none() {
            break;
        }
    }
    assert!(pages > 5);
    // Absent points do not use up a page.
    let list = "PartitionKey eq 'p' and (RowKey eq '!' or RowKey eq '00001' or RowKey eq '00002')";
    let page = page_at(&rows, &self::query(list, 10), Duration::from_secs(10));
    assert_eq!((page.len(), page.next), (1, token("00002")));
}

#[test]
fn a_page_ends_at_the_rows_it_may_examine() {
    let mut rows = MemoryRows::default();
    let value = crate::entities::encode::encode_entity(&Properties::default(), 0).unwrap();
    for number in 0..PAGE_EXAMINED_ROWS_MAX + 1 {
        rows.put(
            ObjectTable::Entity,
            &RowKey::new(ACCOUNT, TABLE, "p", &format!("{number:08}")),
            value.clone(),
        );
    }
    let found = page(&rows, &query("Number eq 1", 10));
    assert_eq!(found.rows_read, PAGE_EXAMINED_ROWS_MAX);
    assert_eq!(found.next, token(&format!("{PAGE_EXAMINED_ROWS_MAX:08}")));
}

#[test]
fn only_selected_properties_are_copied() {
    let rows = numbered(2);
    let select = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let query = EntityQuery { select: Some(names), ..query("", 10) };
        let page = page(&rows, &query);
        let entity = page.entities().next().unwrap();
        assert_eq!((entity.partition_key(), entity.row_key()), ("p", "00000"));
        owned_properties(&entity).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(select(&["Text"]), ["Text"]);
    assert_eq!(select(&["RowKey", "Missing"]), Vec::<String>::new());
    assert_eq!(select(&["Text", "*"]), ["Number", "Text"]);
}

#[test]
fn a_damaged_entity_is_an_error_and_is_not_skipped() {
    for filter in ["", "Number eq 5", "PartitionKey eq 'p' and RowKey eq '00001' and Number eq 5"] {
        let mut rows = numbered(3);
        let key = RowKey::new(ACCOUNT, TABLE, "p", "00001");
        rows.put(ObjectTable::Entity, &key, bytes::Bytes::from_static(b"\x01\x09x"));
        let query = query(filter, 10);
        let result = run(read_entity_page(&rows, &StepClock::shared(Duration::ZERO), ACCOUNT, TABLE, &query));
        assert!(matches!(result, Err(TableError::Partition(_))), "{filter}");
    }
}

#[test]
fn a_token_without_a_row_key_is_the_start_of_its_partition() {
    let mut rows = MemoryRows::default();
    for (partition_key, row_key) in [("a", ""), ("b", ""), ("b", "1"), ("c", "1")] {
        insert(&mut rows, TABLE, partition_key, row_key, 0, 0);
    }
    for row_key in [None, Some(String::new())] {
        let start = Some(EntityToken { partition_key: "b".to_owned(), row_key });
        assert_eq!(page(&rows, &EntityQuery { start, ..query("", 10) }).len(), 3);
    }
    let start = Some(EntityToken { partition_key: "aa".to_owned(), row_key: Some("zz".to_owned()) });
    assert_eq!(page(&rows, &EntityQuery { start, ..query("", 10) }).len(), 3);
}

#[test]
fn a_page_in_reverse_begins_at_the_last_row_and_its_token_is_the_next_one_down() {
    let rows = numbered(10);
    let reverse = |filter: &str, top: usize, start: Option<EntityToken>| {
        let reading = Reading { is_reverse: true, ..Reading::default() };
        let found = page(&rows, &EntityQuery { reading, start, ..query(filter, top) });
        (keys(&found).into_iter().map(|(_, row)| row).collect::<Vec<_>>(), found.next)
    };
    let texts = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>();
    assert_eq!(reverse("", 2, None), (texts(&["00009", "00008"]), token("00007")));
    assert_eq!(
        reverse("", 8, token("00007")),
        (texts(&["00007", "00006", "00005", "00004", "00003", "00002", "00001", "00000"]), None)
    );
    assert_eq!(reverse("Number lt 3 or Number eq 8", 2, None), (texts(&["00008", "00002"]), token("00001")));
    assert_eq!(reverse("RowKey lt '00003'", 1, None), (texts(&["00002"]), token("00001")));
    assert_eq!(reverse("RowKey lt '00003'", 9, token("00001")), (texts(&["00001", "00000"]), None));
    // A row that is not there any more.
    assert_eq!(reverse("", 1, token("000065")).0, texts(&["00006"]));
    let partition = Some(EntityToken { partition_key: "p".to_owned(), row_key: None });
    assert_eq!(reverse("", 1, partition).0, texts(&["00009"]));
    let before = Some(EntityToken { partition_key: "o".to_owned(), row_key: None });
    assert_eq!(reverse("", 1, before), (Vec::new(), None));
}

const TEXTS: &[&str] = &["", "a", "ab", "b", "\u{e000}", "\u{1f600}"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pages_together_are_the_answer(
        entities in prop::collection::btree_map(
            (prop::sample::select(TEXTS), prop::sample::select(TEXTS)), 0i32..4, 0..30,
        ),
        filter in prop::sample::select(&[
            "", "Number ge 2", "PartitionKey eq 'a'", "PartitionKey ne 'a' and Number eq 1",
            "(PartitionKey eq 'a' and RowKey gt 'a') or PartitionKey gt 'b'", "RowKey eq 'ab'", "not (Number eq 1)",
            "PartitionKey ge 'a' and PartitionKey lt '\u{1f600}' and RowKey ge 'b'", "false",
            "(PartitionKey eq 'b' or PartitionKey eq '') and (RowKey eq 'a' or RowKey eq '\u{e000}')",
        ][..]),
        top in 1usize..6,
        step_ms in prop::sample::select(&[0u64, 2_000, 10_000][..]),
        is_reverse: bool,
    ) {
        let mut rows = MemoryRows::default();
        for ((partition_key, row_key), number) in &entities {
            insert(&mut rows, TABLE, partition_key, row_key, *number, 0);
        }
        // Neighbouring tables, whose rows must never match.
        insert(&mut rows, TABLE - 1, "a", "a", 2, 0);
        insert(&mut rows, TABLE + 1, "a", "a", 2, 0);

        let whole = page(&rows, &query("", 1000));
        let mut expected = Vec::new();
        let parsed = Filter::parse(filter).unwrap();
        for entity in whole.entities() {
            let key = RowKey::new(ACCOUNT, TABLE, entity.partition_key(), entity.row_key());
            let row = crate::filter::EntityRow {
                key: key.as_bytes(),
                container_len: KeyRange::container(ACCOUNT, TABLE).start.len(),
                version: entity.version(),
                value: entity.value,
            };
            if parsed.matches(row, &mut crate::filter::Scratch::default()).unwrap() {
                expected.push((entity.partition_key().to_owned(), entity.row_key().to_owned()));
            }
        }
        prop_assert_eq!(whole.len(), entities.len());

        if is_reverse {
            expected.reverse();
        }
        let reading = Reading { is_reverse, ..Reading::default() };
        let mut query = EntityQuery { reading, ..query(filter, top) };
        let mut found = Vec::new();
        for pages in 0.. {
            prop_assert!(pages <= entities.len() + 1, "the tokens lead nowhere");
            let page = page_at(&rows, &query, Duration::from_millis(step_ms));
            prop_assert!(page.len() <= top);
            found.extend(keys(&page));
            prop_assert!(step_ms > 0 || page.next.is_none() || page.len() == top);
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        prop_assert_eq!(found, expected);
    }
}
