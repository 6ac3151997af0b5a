//! Random expressions and entities, a printer with variations, and the rules of evaluation written plainly.

use super::super::expression::{Expression, Operator};
use crate::edm::{EdmValue, date_time_text, guid_text};
use crate::entities::entity::Properties;
use crate::entities::entity::tests::stored;
use base::Ticks;
use partition::{RowKey, RowVersion};
use proptest::prelude::*;
use std::cmp::Ordering;

/// Texts that are close to each other in every order there is.
pub(super) const TEXTS: &[&str] = &[
    "",
    "\0",
    "a",
    "A",
    "a\0",
    "ab",
    "b",
    "it's",
    "''",
    "\u{7f}",
    "é",
    "\u{d7ff}",
    "\u{e000}",
    "\u{ffff}",
    "\u{1f600}",
];

const NAMES: &[&str] = &["A", "B", "_c", "été"];

/// Pieces of filters, some of them wrong.
pub(super) const WORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "(",
    ")",
    "A",
    "PartitionKey",
    "RowKey",
    "Timestamp",
    "'x'",
    "''",
    "'it''s'",
    "'",
    "1",
    "-5",
    "12L",
    "1.5",
    "1e300",
    "1e400",
    "99999999999",
    "true",
    "False",
    "null",
    "X'01ff'",
    "X'0'",
    "binary''",
    "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
    "guid'x'",
    "datetime'2020-01-02T03:04:05Z'",
    "datetime'1'",
    "NaN",
    "INF",
    "-INF",
    "-",
    "+",
    ".",
    "=",
    "\"a\"",
    "é",
    "\u{1f600}",
    "\u{0}",
];

#[derive(Clone, Debug)]
pub(super) struct ModelEntity {
    pub(super) partition_key: String,
    pub(super) row_key: String,
    pub(super) version: RowVersion,
    pub(super) properties: Vec<(String, EdmValue)>,
}

impl ModelEntity {
    pub(super) fn new(partition_key: &str, row_key: &str, properties: Vec<(&str, EdmValue)>) -> Self {
        let own = properties.into_iter().map(|(name, value)| (name.to_owned(), value));
        ModelEntity {
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
            version: RowVersion(132_000_000_000_000_000),
            properties: own.collect(),
        }
    }

    pub(super) fn stored(&self) -> Vec<u8> {
        stored(&Properties(self.properties.clone()))
    }

    pub(super) fn key(&self) -> RowKey {
        RowKey::new("acct", 7, &self.partition_key, &self.row_key)
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop::sample::select(TEXTS).prop_map(str::to_owned)
}

/// Values from small sets, so that equal ones are frequent.
pub(super) fn any_constant() -> impl Strategy<Value = EdmValue> {
    prop_oneof![
        3 => any_text().prop_map(EdmValue::String),
        1 => prop::collection::vec(0u8..3, 0..3).prop_map(EdmValue::Binary),
        1 => any::<bool>().prop_map(EdmValue::Boolean),
        2 => prop::sample::select(&[-1, 0, 1, i32::MAX, i32::MIN][..]).prop_map(EdmValue::Int32),
        2 => prop::sample::select(&[-1, 0, 1, 1 << 40, i64::MAX, i64::MIN][..]).prop_map(EdmValue::Int64),
        2 => prop::sample::select(&[-1.0, -0.0, 0.0, 1.0, 1.5, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY][..])
            .prop_map(EdmValue::Double),
        1 => prop::array::uniform16(0u8..2).prop_map(EdmValue::Guid),
        1 => (132_000_000_000_000_000u64 - 1..132_000_000_000_000_002).prop_map(|at| EdmValue::DateTime(Ticks(at))),
    ]
}

pub(super) fn any_entity() -> impl Strategy<Value = ModelEntity> {
    let properties = prop::collection::btree_map(prop::sample::select(NAMES), any_constant(), 0..4);
    let version = 132_000_000_000_000_000u64..132_000_000_000_000_002;
    (any_text(), any_text(), version, properties).prop_map(|(partition_key, row_key, version, properties)| {
        ModelEntity {
            partition_key,
            row_key,
            version: RowVersion(version),
            properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    })
}

fn any_operator() -> impl Strategy<Value = Operator> {
    prop::sample::select(
        &[
            Operator::Equal,
            Operator::NotEqual,
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
        ][..],
    )
}

fn any_leaf() -> impl Strategy<Value = Expression> {
    let compare = |property: &str, operator, constant| Expression::Compare {
        property: property.to_owned(),
        operator,
        constant,
    };
    let own = (prop::sample::select(NAMES), any_operator(), any_constant());
    let key = (prop::sample::select(&["PartitionKey", "RowKey"][..]), any_operator(), any_text());
    let odd =
        (prop::sample::select(&["PartitionKey", "RowKey", "Timestamp"][..]), any_operator(), any_constant());
    prop_oneof![
        4 => own.prop_map(move |(name, operator, constant)| compare(name, operator, constant)),
        6 => key.prop_map(move |(name, operator, text)| compare(name, operator, EdmValue::String(text))),
        2 => odd.prop_map(move |(name, operator, constant)| compare(name, operator, constant)),
        1 => any::<bool>().prop_map(Expression::Constant),
    ]
}

pub(super) fn any_expression() -> impl Strategy<Value = Expression> {
    any_expression_over(any_leaf())
}

/// Of the extended grammar.
pub(super) fn any_extended_expression() -> impl Strategy<Value = Expression> {
    let names = prop::sample::select(&["PartitionKey", "RowKey", "PartitionKey", "RowKey", "A", "B"][..]);
    let starts_with = (names, any_text())
        .prop_map(|(property, prefix)| Expression::StartsWith { property: property.to_owned(), prefix });
    any_expression_over(prop_oneof![2 => any_leaf(), 3 => starts_with])
}

fn any_expression_over(
    leaf: impl Strategy<Value = Expression> + 'static,
) -> impl Strategy<Value = Expression> {
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::Or),
            inner.prop_map(|inner| Expression::Not(Box::new(inner))),
        ]
    })
}

/// `expression` about `to` where it was about `from`.
pub(super) fn rename(expression: Expression, from: &str, to: &str) -> Expression {
    let each = |terms: Vec<Expression>| terms.into_iter().map(|term| rename(term, from, to)).collect();
    match expression {
        Expression::And(terms) => Expression::And(each(terms)),
        Expression::Or(terms) => Expression::Or(each(terms)),
        Expression::Not(inner) => Expression::Not(Box::new(rename(*inner, from, to))),
        // Tables have no keys and no Timestamp, so comparisons with those are dropped.
        Expression::Compare { property, .. }
            if matches!(property.as_str(), "PartitionKey" | "RowKey" | "Timestamp") =>
        {
            Expression::Constant(true)
        }
        Expression::Compare { property, operator, constant } => Expression::Compare {
            property: if property == from { to.to_owned() } else { property },
            operator,
            constant,
        },
        Expression::StartsWith { property, prefix } => Expression::StartsWith {
            property: if property == from { to.to_owned() } else { property },
            prefix,
        },
        Expression::Constant(value) => Expression::Constant(value),
    }
}

/// `expression` with its texts in lower case.
pub(super) fn lower_case(expression: Expression) -> Expression {
    let each = |terms: Vec<Expression>| terms.into_iter().map(lower_case).collect();
    match expression {
        Expression::And(terms) => Expression::And(each(terms)),
        Expression::Or(terms) => Expression::Or(each(terms)),
        Expression::Not(inner) => Expression::Not(Box::new(lower_case(*inner))),
        Expression::Compare { property, operator, constant: EdmValue::String(text) } => {
            Expression::Compare { property, operator, constant: EdmValue::String(text.to_ascii_lowercase()) }
        }
        other => other,
    }
}

/// What `expression` is on `entity`, by the rules of the protocol.
pub(super) fn evaluate(expression: &Expression, entity: &ModelEntity) -> bool {
    let mut all = entity.properties.clone();
    all.push(("PartitionKey".to_owned(), EdmValue::String(entity.partition_key.clone())));
    all.push(("RowKey".to_owned(), EdmValue::String(entity.row_key.clone())));
    all.push(("Timestamp".to_owned(), EdmValue::DateTime(Ticks(entity.version.0))));
    evaluate_properties(expression, &all)
}

pub(super) fn evaluate_properties(expression: &Expression, properties: &[(String, EdmValue)]) -> bool {
    match expression {
        Expression::And(terms) => terms.iter().all(|term| evaluate_properties(term, properties)),
        Expression::Or(terms) => terms.iter().any(|term| evaluate_properties(term, properties)),
        Expression::Not(inner) => !evaluate_properties(inner, properties),
        Expression::Constant(value) => *value,
        Expression::StartsWith { property, prefix } => {
            let value = properties.iter().find(|(name, _)| name == property);
            value.is_some_and(|(_, value)| match value {
                EdmValue::String(text) => units(text).starts_with(&units(prefix)),
                _ => false,
            })
        }
        Expression::Compare { property, operator, constant } => {
            let value = properties.iter().find(|(name, _)| name == property);
            value.is_some_and(|(_, value)| compare(value, *operator, constant))
        }
    }
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn compare(value: &EdmValue, operator: Operator, constant: &EdmValue) -> bool {
    let doubles = |a: f64, b: f64| (a.partial_cmp(&b), false);
    let (ordering, mismatch) = match (value, constant) {
        (EdmValue::String(a), EdmValue::String(b)) => (Some(units(a).cmp(&units(b))), false),
        (EdmValue::Binary(a), EdmValue::Binary(b)) => (Some(a.cmp(b)), false),
        (EdmValue::Boolean(a), EdmValue::Boolean(b)) => (Some(a.cmp(b)), false),
        (EdmValue::Int32(a), EdmValue::Int32(b)) => (Some(a.cmp(b)), false),
        (EdmValue::Int64(a), EdmValue::Int64(b)) => (Some(a.cmp(b)), false),
        (EdmValue::Int64(a), EdmValue::Int32(b)) => (Some(a.cmp(&(*b).into())), false),
        (EdmValue::Double(a), EdmValue::Double(b)) => doubles(*a, *b),
        (EdmValue::Double(a), EdmValue::Int32(b)) => doubles(*a, (*b).into()),
        (EdmValue::Double(a), EdmValue::Int64(b)) => doubles(*a, *b as f64),
        (EdmValue::Guid(a), EdmValue::Guid(b)) => (Some(guid_text(a).cmp(&guid_text(b))), false),
        (EdmValue::DateTime(a), EdmValue::DateTime(b)) => (Some(a.cmp(b)), false),
        _ => (None, true),
    };
    let ordering = match ordering {
        Some(ordering) => ordering,
        None if mismatch => Ordering::Less,
        None => return operator == Operator::NotEqual,
    };
    match operator {
        Operator::Equal => ordering == Ordering::Equal,
        Operator::NotEqual => ordering != Ordering::Equal,
        Operator::Less => ordering == Ordering::Less,
        Operator::LessOrEqual => ordering != Ordering::Greater,
        Operator::Greater => ordering == Ordering::Greater,
        Operator::GreaterOrEqual => ordering != Ordering::Less,
    }
}

/// The text of `expression`; the bits of `style` choose among ways to write it.
pub(super) fn print(expression: &Expression, style: u64) -> String {
    Printer { style }.expression(expression, 0)
}

struct Printer {
    style: u64,
}

impl Printer {
    fn choose(&mut self) -> bool {
        self.style = self.style.rotate_left(1);
        self.style & 1 == 1
    }

    /// `binding`: 0 in `or`, 1 in `and`, 2 under `not`.
    fn expression(&mut self, expression: &Expression, binding: u8) -> String {
        let own_binding = match expression {
            Expression::Or(_) => 0,
            Expression::And(_) => 1,
            _ => 2,
        };
        let text = match expression {
            Expression::And(terms) => self.joined(terms, " and ", 1),
            Expression::Or(terms) => self.joined(terms, " or ", 0),
            Expression::Not(inner) => format!("not {}", self.expression(inner, 2)),
            Expression::Constant(value) => value.to_string(),
            Expression::Compare { property, operator, constant } => {
                self.comparison(property, *operator, constant)
            }
            Expression::StartsWith { property, prefix } => {
                let prefix = self.literal(&EdmValue::String(prefix.clone()));
                let blank = if self.choose() { " " } else { "" };
                format!("startswith({property}{blank},{blank}{prefix}{blank})")
            }
        };
        if own_binding < binding || self.choose() { format!("({text})") } else { text }
    }

    fn joined(&mut self, terms: &[Expression], operator: &str, binding: u8) -> String {
        let terms: Vec<_> = terms.iter().map(|term| self.expression(term, binding)).collect();
        terms.join(operator)
    }

    fn comparison(&mut self, property: &str, operator: Operator, constant: &EdmValue) -> String {
        // A key is no Boolean, and is refused as a condition of its own.
        let is_key = matches!(property, "PartitionKey" | "RowKey" | "Timestamp");
        let is_condition = !is_key && operator == Operator::Equal && *constant == EdmValue::Boolean(true);
        if is_condition && self.choose() {
            return property.to_owned();
        }
        let literal = self.literal(constant);
        if self.choose() {
            return format!("{literal} {} {property}", word(operator.swapped()));
        }
        format!("{property} {} {literal}", word(operator))
    }

    fn literal(&mut self, value: &EdmValue) -> String {
        match value {
            EdmValue::String(text) => format!("'{}'", text.replace('\'', "''")),
            EdmValue::Binary(bytes) => {
                let prefix = if self.choose() { "X" } else { "binary" };
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{prefix}'{hex}'")
            }
            EdmValue::Boolean(value) => value.to_string(),
            EdmValue::Int32(value) => value.to_string(),
            EdmValue::Int64(value) => format!("{value}{}", if self.choose() { 'L' } else { 'l' }),
            EdmValue::Double(value) if value.is_nan() => "NaN".to_owned(),
            EdmValue::Double(value) if value.is_infinite() => {
                if *value > 0.0 { "INF" } else { "-INF" }.to_owned()
            }
            EdmValue::Double(value) => format!("{value:?}"),
            EdmValue::Guid(guid) => format!("guid'{}'", guid_text(guid)),
            EdmValue::DateTime(at) => format!("datetime'{}'", date_time_text(*at)),
        }
    }
}

fn word(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "eq",
        Operator::NotEqual => "ne",
        Operator::Less => "lt",
        Operator::LessOrEqual => "le",
        Operator::Greater => "gt",
        Operator::GreaterOrEqual => "ge",
    }
}
