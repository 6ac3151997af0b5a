//! Filters against a plain evaluator: random expressions are printed, read back and compared on random
//! entities.

mod accepted;
mod key_ranges;
mod model;
mod plan;
mod refused;
mod starts_with;

use super::expression::{Expression, Grammar};
use super::*;
use crate::edm::EdmValue;
use model::{ModelEntity, any_entity, any_expression, evaluate, print};
use proptest::prelude::*;

/// Bytes of a test key before the partition name.
fn container() -> partition::KeyRange {
    partition::KeyRange::container("acct", 7)
}

fn matches(filter: &Filter, entity: &ModelEntity) -> bool {
    let value = entity.stored();
    let key = entity.key();
    let row = EntityRow {
        key: key.as_bytes(),
        container_len: container().start.len(),
        version: entity.version,
        value: &value,
    };
    filter.matches(row, &mut Scratch::default()).unwrap()
}

fn parse(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `not PartitionKey` was once accepted, and true of every entity.
#[test]
fn keys_are_no_conditions() {
    for text in
        ["PartitionKey", "not RowKey", "(PartitionKey ) and (RowKey ge '000050')", "A eq 1 or Timestamp"]
    {
        assert!(matches!(Filter::parse(text), Err(FilterError::Syntax { .. })), "{text}");
    }
    for text in ["Active", "not Active", "PartitionKey eq true"] {
        assert!(Filter::parse(text).is_ok(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_printed_expression_parses_to_the_same_meaning(
        expression in any_expression(),
        entities in prop::collection::vec(any_entity(), 1..8),
        style in any::<u64>(),
    ) {
        let text = print(&expression, style);
        let filter = parse(&text);
        let mut scratch = Scratch::default();
        for entity in &entities {
            let (value, key) = (entity.stored(), entity.key());
            let row = EntityRow { key: key.as_bytes(), container_len: container().start.len(), version: entity.version, value: &value };
            // The scratch still holds the row before, which must not affect the outcome.
            let found = filter.matches(row, &mut scratch).unwrap();
            prop_assert_eq!(found, evaluate(&expression, entity), "{} on {:?}", text, entity);
        }
    }

    #[test]
    fn a_double_is_the_one_that_was_written(
        value in any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
    ) {
        for literal in [format!("{value:?}"), format!("{value:e}"), format!("{value}d")] {
            let expression = parser::parse(&format!("A eq {literal}"), Grammar::Protocol).unwrap();
            let Some(Expression::Compare { constant: EdmValue::Double(read), .. }) = expression else {
                panic!("{literal}: {expression:?}");
            };
            prop_assert_eq!(read.to_bits(), value.to_bits(), "{}", literal);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = Filter::parse(&text);
    }

    #[test]
    fn near_misses_are_read_or_refused(
        words in prop::collection::vec(prop::sample::select(model::WORDS), 0..30),
        blanks: u32,
    ) {
        let mut text = String::new();
        for (index, word) in words.iter().enumerate() {
            text.push_str(word);
            if blanks >> (index % 32) & 1 == 1 {
                text.push(' ');
            }
        }
        if let Err(FilterError::Syntax { position, text: shown }) = Filter::parse(&text) {
            prop_assert!(position <= text.encode_utf16().count());
            prop_assert_eq!(shown, text);
        }
    }

    #[test]
    fn damaged_entities_are_errors_or_answers(expression in any_expression(), mut bytes: Vec<u8>) {
        let filter = parse(&print(&expression, 0));
        bytes.insert(0, crate::entities::entity::FORMAT);
        let row = EntityRow { key: &bytes, container_len: 3, version: partition::RowVersion(1), value: &bytes };
        let _ = filter.matches(row, &mut Scratch::default());
    }

    #[test]
    fn a_filter_on_tables_is_one_on_a_property(
        expression in any_expression(),
        names in prop::collection::vec(prop::sample::select(model::TEXTS), 1..5),
    ) {
        // `A` stands for TableName.
        let expression = model::rename(expression, "A", "TableName");
        let filter = parse(&print(&expression, 0));
        let expression = model::lower_case(expression);
        for name in names {
            let properties = vec![("TableName".to_owned(), EdmValue::String(name.to_ascii_lowercase()))];
            let found = filter.matches_table(TableNameRow { name }).unwrap();
            prop_assert_eq!(found, model::evaluate_properties(&expression, &properties));
            if found && let Some(names) = filter.table_names() {
                prop_assert!(names.contains(&name.to_ascii_lowercase()));
            }
        }
    }
}

#[test]
fn the_deepest_filters_are_read_evaluated_and_dropped() {
    let entity = ModelEntity::new("p", "r", vec![]);
    for (open, close) in [("(", ")"), ("not (", ")")] {
        let nest = |depth: usize| format!("{}RowKey eq 'r'{}", open.repeat(depth), close.repeat(depth));
        let negations = if open == "(" { 0 } else { FILTER_DEPTH_MAX };
        assert_eq!(matches(&parse(&nest(FILTER_DEPTH_MAX)), &entity), negations % 2 == 0, "{open}");
        let deeper = Filter::parse(&nest(FILTER_DEPTH_MAX + 1));
        assert!(matches!(deeper, Err(FilterError::TooComplex(_))), "{open}");
        assert!(Filter::parse(&open.repeat(FILTER_BYTES_MAX / open.len())).is_err());
    }
    let negations = FILTER_BYTES_MAX / "not ".len() - 4;
    let text = format!("{}RowKey eq 'r'", "not ".repeat(negations));
    assert_eq!(matches(&parse(&text), &entity), negations.is_multiple_of(2));
    // `and` and `or` in turn: the tree itself is as deep as it gets.
    let mut text = "RowKey eq 'r'".to_owned();
    for index in 0..FILTER_COMPARISONS_MAX - 1 {
        let operator = if index % 2 == 0 { "and" } else { "or" };
        text = format!("({text}) {operator} RowKey eq 'r'");
    }
    assert!(matches(&parse(&text), &entity));
    let more = format!("({text}) or RowKey eq 'r'");
    assert!(matches!(Filter::parse(&more), Err(FilterError::TooComplex(_))));
}

#[test]
fn lists_of_their_own_kind_are_flat() {
    let expression =
        parser::parse("((A eq 1 or B eq 2) or C eq 3) or (D eq 4 or E eq 5)", Grammar::Protocol).unwrap();
    assert!(matches!(expression, Some(Expression::Or(terms)) if terms.len() == 5));
    let expression = parser::parse("not not (A and (B and C))", Grammar::Protocol).unwrap();
    assert!(matches!(expression, Some(Expression::And(terms)) if terms.len() == 3));
}
