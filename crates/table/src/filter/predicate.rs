//! A filter as it is evaluated: on stored bytes, key comparisons on encoded keys, each property found once
//! for each row.
//!
//! Rules, from the protocol: a comparison with a missing property is false, whichever operator. Int64
//! properties compare with Int32 and Int64 constants, Double properties with all numbers; any other
//! difference of type ranks the property below the constant. NaN equals nothing.

use super::expression::{Expression, Operator};
use crate::edm::{EdmType, EdmValue, EdmValueRef, guid_cmp, utf16_cmp};
use crate::entities::entity::{RawProperties, decode_value};
use crate::error::KeyColumn;
use base::codec::DecodeError;
use partition::RowVersion;
use partition::key::{partition_prefix, put_text, put_text_open};
use std::cmp::Ordering;

/// A compiled filter.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub(super) root: Node,
    /// Own properties that are compared, each once. Their indexes are the slots.
    names: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Constant(bool),
    /// A key against text in key encoding.
    Key {
        column: KeyColumn,
        operator: Operator,
        encoded: Vec<u8>,
    },
    Timestamp {
        operator: Operator,
        constant: EdmValue,
    },
    Property {
        slot: usize,
        operator: Operator,
        constant: EdmValue,
    },
    /// A key that begins with a text in key encoding, without its terminator.
    KeyPrefix {
        column: KeyColumn,
        encoded: Vec<u8>,
    },
    /// A property that is a text and begins so.
    PropertyPrefix {
        slot: usize,
        prefix: String,
    },
}

/// A stored entity in a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityRow<'a> {
    /// The encoded row key.
    pub(crate) key: &'a [u8],
    /// Bytes of the key before the partition name.
    pub(crate) container_len: usize,
    /// The Timestamp.
    pub(crate) version: RowVersion,
    /// The stored entity.
    pub(crate) value: &'a [u8],
}

/// A table as a row with one property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableNameRow<'a> {
    /// As created.
    pub(crate) name: &'a str,
}

/// Memory that is reused for each row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    slots: Vec<Option<Slot>>,
}

/// Where a property's value lies in the stored entity.
#[derive(Clone, Copy, Debug)]
struct Slot {
    type_code: u8,
    start: usize,
    len: usize,
}

impl Predicate {
    /// Compiles comparisons by what they compare: a key, the Timestamp or an own property.
    pub(crate) fn compile(expression: Expression) -> Predicate {
        let mut names = Vec::new();
        let root = compile(expression, &mut names);
        Predicate { root, names }
    }

    /// Whether an entity matches.
    pub(crate) fn matches_entity(
        &self,
        row: EntityRow<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool, DecodeError> {
        evaluate(
            &self.root,
            &mut EntitySubject { row, names: &self.names, slots: &mut scratch.slots, found: false },
        )
    }

    /// Whether a table matches.
    pub(crate) fn matches_table(&self, row: TableNameRow<'_>) -> Result<bool, DecodeError> {
        let mut subject = TableSubject { row, names: &self.names };
        evaluate(&self.root, &mut subject)
    }
}

fn compile(expression: Expression, names: &mut Vec<String>) -> Node {
    match expression {
        Expression::And(terms) => Node::And(terms.into_iter().map(|term| compile(term, names)).collect()),
        Expression::Or(terms) => Node::Or(terms.into_iter().map(|term| compile(term, names)).collect()),
        Expression::Not(inner) => Node::Not(Box::new(compile(*inner, names))),
        Expression::Constant(value) => Node::Constant(value),
        Expression::Compare { property, operator, constant } => {
            compile_comparison(property, operator, constant, names)
        }
        Expression::StartsWith { property, prefix } => match key_column(&property) {
            Some(column) => {
                let mut encoded = Vec::with_capacity(prefix.len());
                put_text_open(&mut encoded, &prefix);
                Node::KeyPrefix { column, encoded }
            }
            None => Node::PropertyPrefix { slot: slot_of(property, names), prefix },
        },
    }
}

fn key_column(property: &str) -> Option<KeyColumn> {
    match property {
        "PartitionKey" => Some(KeyColumn::PartitionKey),
        "RowKey" => Some(KeyColumn::RowKey),
        _ => None,
    }
}

/// The slot of an own property.
fn slot_of(property: String, names: &mut Vec<String>) -> usize {
    names.iter().position(|name| *name == property).unwrap_or_else(|| {
        names.push(property);
        names.len() - 1
    })
}

fn compile_comparison(
    property: String,
    operator: Operator,
    constant: EdmValue,
    names: &mut Vec<String>,
) -> Node {
    let column = match key_column(&property) {
        Some(column) => column,
        None if property == "Timestamp" => return Node::Timestamp { operator, constant },
        None => return Node::Property { slot: slot_of(property, names), operator, constant },
    };
    match constant {
        EdmValue::String(text) => {
            let mut encoded = Vec::with_capacity(text.len() + 2);
            put_text(&mut encoded, &text);
            Node::Key { column, operator, encoded }
        }
        // Keys always exist and are always strings.
        _ => Node::Constant(holds(operator, Outcome::Mismatch)),
    }
}

/// A row whose properties are compared.
trait Subject {
    /// How the row's key compares with an encoded text; `None` if the row has no such key.
    fn compare_key(&self, column: KeyColumn, encoded: &[u8]) -> Result<Option<Ordering>, DecodeError>;
    /// Whether the row's key begins with an encoded text; `None` if the row has no such key.
    fn key_starts_with(&self, column: KeyColumn, encoded: &[u8]) -> Result<Option<bool>, DecodeError>;
    /// The row's Timestamp.
    fn timestamp(&self) -> Option<RowVersion>;
    /// How an own property compares with a constant; `None` if there is no such property.
    fn compare_property(&mut self, slot: usize, constant: &EdmValue) -> Result<Option<Outcome>, DecodeError>;
    /// Whether an own property is a text that begins with `prefix`.
    fn property_starts_with(&mut self, slot: usize, prefix: &str) -> Result<bool, DecodeError>;
}

fn evaluate(node: &Node, subject: &mut impl Subject) -> Result<bool, DecodeError> {
    Ok(match node {
        Node::And(terms) => {
            for term in terms {
                if !evaluate(term, subject)? {
                    return Ok(false);
                }
            }
            true
        }
        Node::Or(terms) => {
            for term in terms {
                if evaluate(term, subject)? {
                    return Ok(true);
                }
            }
            false
        }
        Node::Not(inner) => !evaluate(inner, subject)?,
        Node::Constant(value) => *value,
        Node::Key { column, operator, encoded } => match subject.compare_key(*column, encoded)? {
            Some(ordering) => holds(*operator, Outcome::Ordered(ordering)),
            None => false,
        },
        Node::Timestamp { operator, constant } => match subject.timestamp() {
            Some(version) => {
                let at = EdmValueRef::DateTime(base::Ticks(version.0));
                holds(*operator, compare(at, constant))
            }
            None => false,
        },
        Node::Property { slot, operator, constant } => match subject.compare_property(*slot, constant)? {
            Some(outcome) => holds(*operator, outcome),
            None => false,
        },
        Node::KeyPrefix { column, encoded } => subject.key_starts_with(*column, encoded)?.unwrap_or_default(),
        Node::PropertyPrefix { slot, prefix } => subject.property_starts_with(*slot, prefix)?,
    })
}

struct EntitySubject<'a> {
    row: EntityRow<'a>,
    names: &'a [String],
    slots: &'a mut Vec<Option<Slot>>,
    /// Whether the slots are those of this row.
    found: bool,
}

impl Subject for EntitySubject<'_> {
    fn compare_key(&self, column: KeyColumn, encoded: &[u8]) -> Result<Option<Ordering>, DecodeError> {
        Ok(Some(self.key_segment(column)?.cmp(encoded)))
    }

    fn key_starts_with(&self, column: KeyColumn, encoded: &[u8]) -> Result<Option<bool>, DecodeError> {
        Ok(Some(self.key_segment(column)?.starts_with(encoded)))
    }

    fn timestamp(&self) -> Option<RowVersion> {
        Some(self.row.version)
    }

    fn compare_property(&mut self, slot: usize, constant: &EdmValue) -> Result<Option<Outcome>, DecodeError> {
        let stored = self.stored(slot)?;
        stored.map(|(type_code, value)| compare_stored(type_code, value, constant)).transpose()
    }

    fn property_starts_with(&mut self, slot: usize, prefix: &str) -> Result<bool, DecodeError> {
        let stored = self.stored(slot)?;
        Ok(stored.is_some_and(|(type_code, value)| {
            type_code == EdmType::String as u8 && value.starts_with(prefix.as_bytes())
        }))
    }
}

impl<'a> EntitySubject<'a> {
    /// The encoded key of this column.
    fn key_segment(&self, column: KeyColumn) -> Result<&'a [u8], DecodeError> {
        let malformed = || DecodeError("entity key");
        let partition_end = partition_prefix(self.row.key).ok_or_else(malformed)?.len();
        let segment = match column {
            KeyColumn::PartitionKey => self.row.key.get(self.row.container_len..partition_end),
            KeyColumn::RowKey => self.row.key.get(partition_end..),
        };
        segment.ok_or_else(malformed)
    }

    /// Type and bytes of an own property, if the row has it.
    fn stored(&mut self, slot: usize) -> Result<Option<(u8, &'a [u8])>, DecodeError> {
        if !self.found {
            self.find()?;
            self.found = true;
        }
        let Some(Some(slot)) = self.slots.get(slot) else {
            return Ok(None);
        };
        let value = self.row.value.get(slot.start..slot.start + slot.len);
        Ok(value.map(|value| (slot.type_code, value)))
    }

    /// Finds all properties that the filter compares, in one walk that ends with the last of them.
    fn find(&mut self) -> Result<(), DecodeError> {
        self.slots.clear();
        self.slots.resize(self.names.len(), None);
        let mut missing = self.names.len();
        let mut properties = RawProperties::open(self.row.value)?;
        let mut at = 1;
        while missing > 0 {
            let Some(property) = properties.next()? else {
                break;
            };
            at += property.encoded.len();
            let found = self.names.iter().position(|name| name.as_bytes() == property.name);
            if let Some(index) = found
                && self.slots[index].is_none()
            {
                // The value is the last thing in a property.
                self.slots[index] = Some(Slot {
                    type_code: property.type_code,
                    start: at - property.value.len(),
                    len: property.value.len(),
                });
                missing -= 1;
            }
        }
        Ok(())
    }
}

struct TableSubject<'a> {
    row: TableNameRow<'a>,
    names: &'a [String],
}

impl Subject for TableSubject<'_> {
    fn compare_key(&self, _column: KeyColumn, _encoded: &[u8]) -> Result<Option<Ordering>, DecodeError> {
        Ok(None)
    }

    fn key_starts_with(&self, _column: KeyColumn, _encoded: &[u8]) -> Result<Option<bool>, DecodeError> {
        Ok(None)
    }

    fn timestamp(&self) -> Option<RowVersion> {
        None
    }

    fn compare_property(&mut self, slot: usize, constant: &EdmValue) -> Result<Option<Outcome>, DecodeError> {
        if self.names.get(slot).is_none_or(|name| name != "TableName") {
            return Ok(None);
        }
        // Names have no case: tables whose names begin with a prefix are found by it in any.
        let lower = |text: &str| text.to_ascii_lowercase();
        Ok(Some(match constant {
            EdmValue::String(text) => {
                Outcome::Ordered(utf16_cmp(lower(self.row.name).as_bytes(), lower(text).as_bytes()))
            }
            _ => Outcome::Mismatch,
        }))
    }

    fn property_starts_with(&mut self, slot: usize, prefix: &str) -> Result<bool, DecodeError> {
        let is_name = self.names.get(slot).is_some_and(|name| name == "TableName");
        let start = self.row.name.as_bytes().get(..prefix.len());
        Ok(is_name && start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes())))
    }
}

/// How a property compares with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ordered(Ordering),
    /// NaN is involved.
    Unordered,
    /// The types don't compare.
    Mismatch,
}

fn holds(operator: Operator, outcome: Outcome) -> bool {
    let ordering = match outcome {
        Outcome::Ordered(ordering) => ordering,
        Outcome::Unordered => return operator == Operator::NotEqual,
        Outcome::Mismatch => {
            let below = [Operator::NotEqual, Operator::Less, Operator::LessOrEqual];
            return below.contains(&operator);
        }
    };
    match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::LessOrEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        Operator::GreaterOrEqual => ordering.is_ge(),
    }
}

/// As [`compare`], on a stored value; text is compared without a UTF-8 check.
fn compare_stored(type_code: u8, value: &[u8], constant: &EdmValue) -> Result<Outcome, DecodeError> {
    if type_code == EdmType::String as u8 {
        return Ok(match constant {
            EdmValue::String(text) => Outcome::Ordered(utf16_cmp(value, text.as_bytes())),
            _ => Outcome::Mismatch,
        });
    }
    Ok(compare(decode_value(type_code, value)?, constant))
}

fn compare(value: EdmValueRef<'_>, constant: &EdmValue) -> Outcome {
    let double = |a: f64, b: f64| a.partial_cmp(&b).map_or(Outcome::Unordered, Outcome::Ordered);
    match (value, constant) {
        (EdmValueRef::String(a), EdmValue::String(b)) => {
            Outcome::Ordered(utf16_cmp(a.as_bytes(), b.as_bytes()))
        }
        (EdmValueRef::Binary(a), EdmValue::Binary(b)) => Outcome::Ordered(a.cmp(b)),
        (EdmValueRef::Boolean(a), EdmValue::Boolean(b)) => Outcome::Ordered(a.cmp(b)),
        (EdmValueRef::Int32(a), EdmValue::Int32(b)) => Outcome::Ordered(a.cmp(b)),
        (EdmValueRef::Int64(a), EdmValue::Int32(b)) => Outcome::Ordered(a.cmp(&i64::from(*b))),
        (EdmValueRef::Int64(a), EdmValue::Int64(b)) => Outcome::Ordered(a.cmp(b)),
        (EdmValueRef::Double(a), EdmValue::Int32(b)) => double(a, f64::from(*b)),
        (EdmValueRef::Double(a), EdmValue::Int64(b)) => double(a, *b as f64),
        (EdmValueRef::Double(a), EdmValue::Double(b)) => double(a, *b),
        (EdmValueRef::Guid(a), EdmValue::Guid(b)) => Outcome::Ordered(guid_cmp(&a, b)),
        (EdmValueRef::DateTime(a), EdmValue::DateTime(b)) => Outcome::Ordered(a.cmp(b)),
        _ => Outcome::Mismatch,
    }
}
