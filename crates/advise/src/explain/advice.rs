//! How a filter, or the keys, can be changed so that a query reads less.
//!
//! What always holds: advice depends on the filter's plan only, so it is the same whatever is stored; a
//! filter of the best class has none but what concerns its other comparisons.

use super::words::quoted;
use table::{EdmValue, FilterPlan, PlanClass, PlannedComparison};

/// Advice, what helps most first; none if there is nothing to be had.
pub fn advice(plan: &FilterPlan) -> Vec<String> {
    let mut advice = Vec::new();
    advice.extend(key_of_another_type(plan));
    match plan.class {
        PlanClass::Nothing => advice.extend(of_nothing(plan)),
        PlanClass::Point => advice.extend(of_point(plan)),
        PlanClass::Points => advice.push(of_points(plan)),
        PlanClass::RowRange => advice.extend(second_row(plan, "the range")),
        PlanClass::PartitionScan => advice.extend(of_partition_scan(plan)),
        PlanClass::Partitions => {
            advice.push(one_query_a_partition(plan));
            advice.extend(second_row(plan, "each partition"));
        }
        PlanClass::PartitionRange => of_partition_range(plan, &mut advice),
        PlanClass::TableScan => of_table_scan(plan, &mut advice),
    }
    advice
}

/// Comparisons that are no part of a range.
fn unkeyed(plan: &FilterPlan) -> impl Iterator<Item = &PlannedComparison> {
    plan.comparisons.iter().filter(|one| !one.is_of_key())
}

/// The properties that are compared, each once.
fn properties(plan: &FilterPlan) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in unkeyed(plan) {
        if !names.contains(&one.property.as_str()) {
            names.push(&one.property);
        }
    }
    names
}

fn has(plan: &FilterPlan, property: &str) -> bool {
    plan.comparisons.iter().any(|one| one.property == property)
}

/// Keys are texts: another constant is a mistake more often than not.
fn key_of_another_type(plan: &FilterPlan) -> Option<String> {
    let mut keys = plan.comparisons.iter().filter(|one| one.is_of_key());
    let one = keys.find(|one| !matches!(one.constant, EdmValue::String(_)))?;
    let (name, operator) = (&one.property, one.operator);
    Some(format!(
        "{name} {operator} compares a key, which is always text, with a constant of type {}: put it in quotes, and \
         pad numbers with zeros so that they sort as texts",
        one.constant.edm_type().name()
    ))
}

fn of_nothing(plan: &FilterPlan) -> Option<String> {
    let is_typed =
        plan.comparisons.iter().any(|one| one.is_of_key() && !matches!(one.constant, EdmValue::String(_)));
    (!is_typed).then(|| "no entity can match: the comparisons of keys exclude each other".to_owned())
}

fn of_point(plan: &FilterPlan) -> Option<String> {
    let names = properties(plan).join(", ");
    (!names.is_empty()).then(|| {
        format!("{names} is only compared with the one row: a get by both keys costs the same and returns it whole")
    })
}

fn of_points(plan: &FilterPlan) -> String {
    let count = plan.span_count;
    format!(
        "here {count} rows are read one by one; elsewhere or may cost a scan: send {count} gets by both keys, in \
         parallel, instead"
    )
}

fn one_query_a_partition(plan: &FilterPlan) -> String {
    let count = plan.partition_count.unwrap_or(plan.span_count);
    format!(
        "send {count} queries, one a partition, in parallel, and merge their results: each is a query of its own \
         class everywhere, and or over partitions is not"
    )
}

/// Rows of a range are read and dropped because of other properties.
fn second_row(plan: &FilterPlan, range: &str) -> Option<String> {
    let name = *properties(plan).first()?;
    Some(format!(
        "rows of {range} are read and dropped where {} does not match: keep a second row of each entity in the same \
         partition, whose RowKey begins with {}, written in the same transaction",
        properties(plan).join(", "),
        shown_name(name),
    ))
}

fn of_partition_scan(plan: &FilterPlan) -> Option<String> {
    if properties(plan) == ["Timestamp"] {
        return Some(TIMESTAMP.to_owned());
    }
    let is_alternative = plan.comparisons.iter().any(|one| one.property == "RowKey" && one.is_alternative);
    if is_alternative && unkeyed(plan).any(|one| one.is_alternative) {
        return Some(
            "an or has a side without RowKey, so all rows of the partition are read: send one query a side"
                .to_owned(),
        );
    }
    second_row(plan, "the partition")
}

const TIMESTAMP: &str = "Timestamp is in no index: put the time into the RowKey, padded, or counted down so that the \
                         newest is first";

fn of_partition_range(plan: &FilterPlan, advice: &mut Vec<String>) {
    let excluded = plan.comparisons.iter().find(|one| {
        one.property == "PartitionKey"
            && (one.operator == "ne") != one.is_negated
            && matches!(one.operator, "ne" | "eq")
    });
    if let Some(one) = excluded {
        let constant = constant_text(&one.constant);
        advice.push(format!(
            "excluding a PartitionKey ({constant}) reads all others: name the ones that are wanted, one query each"
        ));
    } else if plan.ranges.iter().any(|range| range.partition.1 == std::ops::Bound::Unbounded) {
        advice.push(
            "the range of PartitionKeys has no upper bound: give one, for a prefix the prefix with its last character \
             raised by one"
                .to_owned(),
        );
    }
    if plan.ranges.iter().any(table::PlannedRange::reads_between) {
        advice.push(
            "RowKey narrows nothing within a range of partitions: send one query a partition, with PartitionKey eq, if \
             their keys are known"
                .to_owned(),
        );
    }
    advice.extend(index_table(plan));
}

fn of_table_scan(plan: &FilterPlan, advice: &mut Vec<String>) {
    if plan.comparisons.is_empty() {
        advice.push(
            "nothing is compared: if not all entities are wanted, begin with PartitionKey eq; for all of them larimar \
             table export reads ranges in parallel"
                .to_owned(),
        );
        return;
    }
    let has_partition = has(plan, "PartitionKey");
    if has_partition && plan.comparisons.iter().any(|one| one.is_alternative) {
        advice.push(
            "an or has a side without PartitionKey, so the whole table is read: add PartitionKey to each side, or send \
             one query a side"
                .to_owned(),
        );
    }
    if !has_partition {
        advice.push("add PartitionKey eq: without it each row of the table is read".to_owned());
    }
    if has(plan, "RowKey") && !has_partition {
        advice.push(
            "RowKey alone finds nothing: if it is what is known, make it the PartitionKey of an index table whose rows \
             name the PartitionKey"
                .to_owned(),
        );
    }
    if has(plan, "Timestamp") {
        advice.push(TIMESTAMP.to_owned());
    }
    advice.extend(index_table(plan));
}

/// A property that is looked for often deserves an index table.
fn index_table(plan: &FilterPlan) -> Option<String> {
    let one = unkeyed(plan).find(|one| one.property != "Timestamp")?;
    let name = shown_name(&one.property);
    let key = match one.operator {
        "eq" => format!("whose PartitionKey is {name} and whose RowKey is both keys"),
        _ => format!(
            "whose PartitionKey is a bucket of {name} (a day, a leading digit) and whose RowKey begins with it"
        ),
    };
    Some(format!(
        "if {name} is looked for often, keep an index table {key}; a queue's worker writes it, because no transaction \
         spans tables"
    ))
}

/// Names are the user's: one without end would fill the screen.
fn shown_name(name: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match name.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

fn constant_text(constant: &EdmValue) -> String {
    match constant {
        EdmValue::String(text) => quoted(text),
        other => other.edm_type().name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(filter: &str) -> String {
        advice(&FilterPlan::parse(filter).expect("a filter")).join("\n")
    }

    /// Each class has its own advice; each case names words that the advice needs.
    #[test]
    fn advice_fits_the_filter() {
        for (filter, words) in [
            ("PartitionKey eq 5", &["put it in quotes", "Edm.Int32"][..]),
            ("PartitionKey eq 'a' and PartitionKey eq 'b'", &["exclude each other"]),
            ("PartitionKey eq 'a' and RowKey eq '1' and A eq 1", &["get by both keys"]),
            ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", &["2 gets"]),
            ("PartitionKey eq 'a' and RowKey ge '1' and City eq 'x'", &["begins with City"]),
            ("PartitionKey eq 'a' and City eq 'x'", &["begins with City", "the same partition"]),
            ("PartitionKey eq 'a' and Timestamp gt datetime'2026-01-01T00:00:00Z'", &["no index"]),
            ("PartitionKey eq 'a' and (RowKey eq '1' or A eq 1)", &["one query a side"]),
            ("PartitionKey eq 'a' or PartitionKey eq 'b'", &["2 queries"]),
            ("PartitionKey ne 'it''s'", &["'it''s'", "reads all others"]),
            ("PartitionKey gt 'a'", &["no upper bound"]),
            ("PartitionKey gt 'a' and PartitionKey lt 'c' and RowKey eq '1'", &["RowKey narrows nothing"]),
            ("PartitionKey gt 'a' and PartitionKey lt 'c' and A gt 1", &["a bucket of A"]),
            ("", &["nothing is compared"]),
            ("City eq 'x'", &["add PartitionKey eq", "whose PartitionKey is City"]),
            ("RowKey eq '1'", &["RowKey alone"]),
            ("PartitionKey eq 'a' or City eq 'x'", &["side without PartitionKey"]),
            ("Timestamp gt datetime'2026-01-01T00:00:00Z'", &["Timestamp is in no index"]),
        ] {
            let text = of(filter);
            for word in words {
                assert!(text.contains(word), "{filter}: {text}");
            }
        }
    }

    #[test]
    fn what_is_good_has_no_advice() {
        for filter in [
            "PartitionKey eq 'a' and RowKey eq '1'",
            "PartitionKey eq 'a'",
            "PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2'",
            "PartitionKey ge 'a' and PartitionKey lt 'b'",
        ] {
            assert_eq!(of(filter), "", "{filter}");
        }
    }
}
