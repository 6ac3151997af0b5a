//! Decisions as a table: present rows, operations -> changes, reply.

use super::*;
use crate::edm::EdmValue;
use crate::entities::entity::tests::stored;

const ACCOUNT: &str = "acct";
const TABLE: u64 = 7;
const NOW: RowVersion = RowVersion(900);
const BEFORE: RowVersion = RowVersion(500);

fn properties(list: &[(&str, i32)]) -> Properties {
    let own = |(name, value): &(&str, i32)| ((*name).to_owned(), EdmValue::Int32(*value));
    Properties(list.iter().map(own).collect())
}

fn operation(verb: EntityVerb, row_key: &str, list: &[(&str, i32)], condition: Condition) -> EntityOperation {
    EntityOperation {
        verb,
        partition_key: "p".to_owned(),
        row_key: row_key.to_owned(),
        properties: properties(list),
        condition,
    }
}

fn row(row_key: &str, list: &[(&str, i32)]) -> Row {
    Row {
        key: RowKey::new(ACCOUNT, TABLE, "p", row_key),
        version: BEFORE,
        value: stored(&properties(list)).into(),
    }
}

fn put(row_key: &str, list: &[(&str, i32)]) -> RowChange {
    RowChange::Put { key: RowKey::new(ACCOUNT, TABLE, "p", row_key), value: stored(&properties(list)).into() }
}

fn decide(
    operations: &[EntityOperation],
    present: Vec<Option<Row>>,
) -> (Vec<RowChange>, Result<RowVersion, (usize, String)>) {
    let group = EntityGroup::prepare(ACCOUNT, TABLE, operations).unwrap();
    assert_eq!(group.reads().len(), operations.len());
    let rows = Rows::new(present.into_iter().map(|row| row.into_iter().collect()).collect());
    let decision = group.decide(&rows, NOW);
    let reply = decision.reply;
    (decision.changes, reply.map_err(|error| (error.index, format!("{:?}", error.error))))
}

#[test]
fn single_operations() {
    use Condition::{Exists, None as Any, Version};
    use EntityVerb::*;
    let present: &[(&str, i32)] = &[("a", 1), ("b", 2)];
    let sent: &[(&str, i32)] = &[("b", 3), ("c", 4)];
    let merged: &[(&str, i32)] = &[("a", 1), ("b", 3), ("c", 4)];
    let right = Version(Some(BEFORE));
    let wrong = Version(Some(RowVersion(501)));
    let foreign = Version(None);
    let missing = "ResourceNotFound";
    let mismatch = "UpdateConditionNotSatisfied";
    // verb, condition, (outcome when absent), (outcome when present); Ok is what is then stored, empty for
    // nothing.
    type Outcome = Result<&'static [(&'static str, i32)], &'static str>;
    let sent_outcome: Outcome = Ok(&[("b", 3), ("c", 4)]);
    let merged_outcome: Outcome = Ok(&[("a", 1), ("b", 3), ("c", 4)]);
    let gone: Outcome = Ok(&[]);
    let cases: Vec<(EntityVerb, Condition, Outcome, Outcome)> = vec![
        (Insert, Any, sent_outcome, Err("EntityAlreadyExists")),
        (InsertOrReplace, Any, sent_outcome, sent_outcome),
        (InsertOrMerge, Any, sent_outcome, merged_outcome),
        (Replace, Any, Err(missing), sent_outcome),
        (Replace, Exists, Err(missing), sent_outcome),
        (Replace, right, Err(missing), sent_outcome),
        (Replace, wrong, Err(missing), Err(mismatch)),
        (Replace, foreign, Err(missing), Err(mismatch)),
        (Merge, Any, Err(missing), merged_outcome),
        (Merge, Exists, Err(missing), merged_outcome),
        (Merge, right, Err(missing), merged_outcome),
        (Merge, wrong, Err(missing), Err(mismatch)),
        (Delete, Any, Err(missing), gone),
        (Delete, Exists, Err(missing), gone),
        (Delete, right, Err(missing), gone),
        (Delete, wrong, Err(missing), Err(mismatch)),
        (Delete, foreign, Err(missing), Err(mismatch)),
        (InsertOrReplace, wrong, Err(missing), Err(mismatch)),
    ];
    assert_eq!(merged.len(), 3);
    for (verb, condition, when_absent, when_present) in cases {
        for (row_there, expected) in [(None, when_absent), (Some(row("r", present)), when_present)] {
            let name = format!("{verb:?} {condition:?} {}", row_there.is_some());
            let (changes, reply) = decide(&[operation(verb, "r", sent, condition)], vec![row_there]);
            match expected {
                Ok(list) => {
                    let change = if verb == Delete {
                        RowChange::Delete { key: RowKey::new(ACCOUNT, TABLE, "p", "r") }
                    } else {
                        put("r", list)
                    };
                    assert_eq!((changes, reply), (vec![change], Ok(NOW)), "{name}");
                }
                Err(error) => {
                    assert_eq!((changes, reply), (vec![], Err((0, error.to_owned()))), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_merge_of_nothing_still_writes_the_row() {
    let (changes, _) = decide(
        &[operation(EntityVerb::Merge, "r", &[], Condition::Exists)],
        vec![Some(row("r", &[("a", 1)]))],
    );
    assert_eq!(changes, vec![put("r", &[("a", 1)])]);
}

#[test]
fn a_group_is_all_or_nothing_and_reports_the_first_failure() {
    use EntityVerb::*;
    let group = [
        operation(Insert, "1", &[("a", 1)], Condition::None),
        operation(Delete, "2", &[], Condition::Exists),
        operation(Insert, "3", &[("a", 1)], Condition::None),
        operation(Merge, "4", &[("a", 1)], Condition::Exists),
    ];
    let (changes, reply) = decide(&group, vec![None, Some(row("2", &[])), None, Some(row("4", &[("z", 9)]))]);
    assert_eq!(reply, Ok(NOW));
    let deleted = RowChange::Delete { key: RowKey::new(ACCOUNT, TABLE, "p", "2") };
    let merged = put("4", &[("z", 9), ("a", 1)]);
    assert_eq!(changes, vec![put("1", &[("a", 1)]), deleted, put("3", &[("a", 1)]), merged]);

    let (changes, reply) = decide(&group, vec![None, Some(row("2", &[])), Some(row("3", &[])), None]);
    assert_eq!(changes, vec![]);
    assert_eq!(reply, Err((2, "EntityAlreadyExists".to_owned())));
}

fn refused(operations: &[EntityOperation]) -> (usize, String) {
    let error = EntityGroup::prepare(ACCOUNT, TABLE, operations).unwrap_err();
    (error.index, format!("{:?}", error.error))
}

#[test]
fn groups_that_are_refused_without_reading_rows() {
    let insert = |row_key: &str| operation(EntityVerb::Insert, row_key, &[], Condition::None);
    assert_eq!(refused(&[]), (0, "EmptyGroup".to_owned()));

    let hundred: Vec<_> = (0..100).map(|index| insert(&index.to_string())).collect();
    assert!(EntityGroup::prepare(ACCOUNT, TABLE, &hundred).is_ok());
    let more: Vec<_> = (0..101).map(|index| insert(&index.to_string())).collect();
    assert_eq!(refused(&more), (99, "TooManyOperations".to_owned()));

    let twice = [insert("1"), insert("2"), operation(EntityVerb::Delete, "1", &[], Condition::Exists)];
    assert_eq!(refused(&twice), (2, "InvalidDuplicateRow".to_owned()));

    let mut elsewhere = vec![insert("1"), insert("2")];
    elsewhere[1].partition_key = "q".to_owned();
    assert_eq!(refused(&elsewhere), (1, "CommandsInBatchActOnDifferentPartitions".to_owned()));

    let bad_key = [insert("1"), insert("a/b")];
    assert_eq!(refused(&bad_key).0, 1);
    assert!(refused(&bad_key).1.starts_with("KeyCharacters"));

    let mut bad_name = [insert("1"), insert("2")];
    bad_name[1].properties = properties(&[("a-b", 1)]);
    assert_eq!(refused(&bad_name), (1, "PropertyNameInvalid(\"a-b\")".to_owned()));
}

#[test]
fn a_damaged_row_is_an_error_and_changes_nothing() {
    let mut damaged = row("r", &[]);
    damaged.value = Bytes::from_static(b"\x09");
    let merge = operation(EntityVerb::Merge, "r", &[("a", 1)], Condition::Exists);
    let (changes, reply) = decide(&[merge], vec![Some(damaged)]);
    assert_eq!(changes, vec![]);
    assert!(reply.unwrap_err().1.contains("stored row"));
}
