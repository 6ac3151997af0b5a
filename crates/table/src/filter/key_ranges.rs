//! Which rows a filter can match: a few boxes of (PartitionKey interval, RowKey interval), and from them key
//! ranges.
//!
//! Intervals are half-open ranges of encoded keys. With `e` the encoding of a text (it ends in 00 01) and
//! `e+` the same with its last byte 02, no key lies strictly between `e` and `e+`:
//!
//! ```text
//! eq  [e, e+)     ge  [e, ∞)     gt  [e+, ∞)     le  [0, e+)     lt  [0, e)     ne  [0, e) and [e+, ∞)
//! startswith  [p, p+1)     p the encoding without its end, p+1 the least bytes behind all that begin with p
//! ```
//!
//! Neither `p` nor `p+1` ends in 00 01 or 00 02: in a text 00 is followed by FF, so they are taken neither
//! for a text nor for the bound after one.
//!
//! `and` intersects boxes, `or` collects them, `not` is pushed down to the comparisons; whatever is not about
//! keys is taken as "any row". What always holds: a row that matches the filter lies in one of the boxes, and
//! the number of boxes is at most [`BOXES_MAX`], where needed by taking in more rows than can match.

use super::expression::Operator;
use super::predicate::{Node, Predicate};
use crate::error::KeyColumn;
use crate::queries::query_class::QueryClass;
use partition::{KeyRange, RowKey, Span};

/// Boxes kept for one filter at most.
pub(crate) const BOXES_MAX: usize = 128;

/// The encoding of the empty text: no key is less.
const LEAST: &[u8] = &[0, 1];

/// The rows that can match a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRanges {
    boxes: Vec<KeyBox>,
}

/// Rows between keys of both columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyBox {
    pub(super) partition: Interval,
    pub(super) row: Interval,
}

/// Encoded keys of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: Vec<u8>,
    /// Exclusive; `None`: no bound.
    pub(super) high: Option<Vec<u8>>,
}

impl Interval {
    fn all() -> Self {
        Interval { low: Vec::new(), high: None }
    }

    fn intersect(&self, other: &Interval) -> Option<Interval> {
        let low = (&self.low).max(&other.low);
        let high = match (&self.high, &other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.as_ref().or(b.as_ref()),
        };
        if high.is_some_and(|high| low >= high) {
            return None;
        }
        Some(Interval { low: low.clone(), high: high.cloned() })
    }

    /// The smallest interval around both.
    fn hull(self, other: Interval) -> Interval {
        Interval {
            low: self.low.min(other.low),
            high: match (self.high, other.high) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            },
        }
    }

    /// Whether it holds one text only.
    pub(super) fn is_point(&self) -> bool {
        is_text(&self.low) && self.high.as_ref().is_some_and(|high| *high == after(&self.low))
    }

    pub(super) fn has_bound(&self) -> bool {
        self.low.as_slice() > LEAST || self.high.is_some()
    }
}

/// Whether `bytes` is the encoding of a text, not the bound after one.
fn is_text(bytes: &[u8]) -> bool {
    bytes.ends_with(&[0, 1])
}

/// The bound right after the text with this encoding.
fn after(encoded: &[u8]) -> Vec<u8> {
    let mut bound = encoded.to_vec();
    if let Some(last) = bound.last_mut() {
        *last = 2;
    }
    bound
}

impl KeyBox {
    fn all() -> Self {
        KeyBox { partition: Interval::all(), row: Interval::all() }
    }

    fn intersect(&self, other: &KeyBox) -> Option<KeyBox> {
        Some(KeyBox {
            partition: self.partition.intersect(&other.partition)?,
            row: self.row.intersect(&other.row)?,
        })
    }

    fn hull(self, other: KeyBox) -> KeyBox {
        KeyBox { partition: self.partition.hull(other.partition), row: self.row.hull(other.row) }
    }

    pub(super) fn class(&self) -> QueryClass {
        match (self.partition.is_point(), self.row.is_point()) {
            (true, true) => QueryClass::Point,
            (true, false) => QueryClass::RowRange,
            _ if self.partition.has_bound() => QueryClass::PartitionRange,
            _ => QueryClass::TableScan,
        }
    }

    /// The rows of the table at `container` that lie in the box, and some more if it spans partitions.
    fn span(&self, container: &KeyRange) -> Span {
        let mut start = container.start.to_vec();
        start.extend_from_slice(&self.partition.low);
        // Rows of the first partition begin at the box's first RowKey; after that, partitions are taken whole
        // …
        if is_text(&self.partition.low) {
            start.extend_from_slice(&self.row.low);
        }
        if self.class() == QueryClass::Point {
            return Span::Point(RowKey::from_bytes(start.into()));
        }
        let end = self.partition.high.as_ref().map(|high| {
            let mut end = container.start.to_vec();
            match &self.row.high {
                // … up to the last one, which ends at the box's last RowKey.
                Some(row_high) if high.ends_with(&[0, 2]) => {
                    end.extend_from_slice(&high[..high.len() - 1]);
                    end.push(1);
                    end.extend_from_slice(row_high);
                }
                _ => end.extend_from_slice(high),
            }
            end.into()
        });
        Span::Range(KeyRange { start: start.into(), end: end.or_else(|| container.end.clone()) })
    }
}

impl KeyRanges {
    /// All rows.
    pub(crate) fn all() -> Self {
        KeyRanges { boxes: vec![KeyBox::all()] }
    }

    /// The rows that a predicate can match.
    pub(crate) fn derive(predicate: &Predicate) -> Self {
        KeyRanges { boxes: derive(&predicate.root, false) }
    }

    /// The boxes, in no order.
    pub(super) fn boxes(&self) -> &[KeyBox] {
        &self.boxes
    }

    /// How much of a table has to be read.
    pub(crate) fn class(&self) -> QueryClass {
        let classes = self.boxes.iter().map(KeyBox::class);
        classes.max().unwrap_or(QueryClass::Point)
    }

    /// The rows of the table at `container` to be read that lie before `end`: disjoint and in key order.
    pub(crate) fn spans_before(&self, container: &KeyRange, end: &[u8]) -> Vec<Span> {
        let spans = self.spans(container, None).into_iter();
        spans.filter_map(|span| part_before(span, end)).collect()
    }

    /// The rows of the table at `container` to be read, from `start` on: disjoint and in key order.
    pub(crate) fn spans(&self, container: &KeyRange, start: Option<&[u8]>) -> Vec<Span> {
        let mut spans: Vec<Span> = self.boxes.iter().map(|key_box| key_box.span(container)).collect();
        spans.sort_by(|a, b| a.start().cmp(b.start()));
        let mut disjoint: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match disjoint.last_mut() {
                Some(last) if reaches(last, span.start()) => extend_over(last, span),
                _ => disjoint.push(span),
            }
        }
        match start {
            Some(start) => disjoint.into_iter().filter_map(|span| rest_from(span, start)).collect(),
            None => disjoint,
        }
    }
}

/// The part of a span before `end`.
fn part_before(span: Span, end: &[u8]) -> Option<Span> {
    match span {
        Span::Point(key) => (key.as_bytes().as_ref() < end).then_some(Span::Point(key)),
        Span::Range(mut range) => {
            if range.end.as_deref().is_none_or(|last| last > end) {
                range.end = Some(end.to_vec().into());
            }
            (!range.is_empty()).then_some(Span::Range(range))
        }
    }
}

/// Whether a span that starts at `start`, not before `span`, touches it.
fn reaches(span: &Span, start: &[u8]) -> bool {
    match span {
        Span::Point(key) => start == key.as_bytes().as_ref(),
        Span::Range(range) => range.end.as_ref().is_none_or(|end| start <= end.as_ref()),
    }
}

/// Extends `span` over `next`, which it reaches.
fn extend_over(span: &mut Span, next: Span) {
    match (&mut *span, next) {
        (Span::Range(range), Span::Range(next)) => {
            range.end = match (range.end.take(), next.end) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
        }
        (Span::Range(range), Span::Point(key)) => {
            // A point at the very end is one row more.
            if range.end.as_ref().is_some_and(|end| end == key.as_bytes()) {
                range.end = Some(key.successor());
            }
        }
        // A range that starts at the point holds it.
        (Span::Point(_), Span::Range(next)) => *span = Span::Range(next),
        (Span::Point(_), Span::Point(_)) => {}
    }
}

/// The part of a span from `start` on.
fn rest_from(span: Span, start: &[u8]) -> Option<Span> {
    match span {
        Span::Point(key) => (key.as_bytes().as_ref() >= start).then_some(Span::Point(key)),
        Span::Range(mut range) => {
            if range.start.as_ref() < start {
                range.start = start.to_vec().into();
            }
            (!range.is_empty()).then_some(Span::Range(range))
        }
    }
}

/// Boxes outside which `node` is false, or true if `negated`.
fn derive(node: &Node, negated: bool) -> Vec<KeyBox> {
    match node {
        Node::And(terms) if !negated => all_of(terms, negated),
        Node::Or(terms) if negated => all_of(terms, negated),
        Node::And(terms) | Node::Or(terms) => {
            let boxes = terms.iter().flat_map(|term| derive(term, negated)).collect();
            bounded(boxes)
        }
        Node::Not(inner) => derive(inner, !negated),
        Node::Constant(value) if *value == negated => Vec::new(),
        Node::Key { column, operator, encoded } => {
            let operator = if negated { operator.negated() } else { *operator };
            let intervals = intervals(operator, encoded).into_iter();
            intervals.map(|interval| box_of(*column, interval)).collect()
        }
        Node::KeyPrefix { column, encoded } => {
            let intervals = prefix_intervals(encoded, negated).into_iter();
            intervals.map(|interval| box_of(*column, interval)).collect()
        }
        Node::Constant(_) | Node::Timestamp { .. } | Node::Property { .. } | Node::PropertyPrefix { .. } => {
            vec![KeyBox::all()]
        }
    }
}

fn box_of(column: KeyColumn, interval: Interval) -> KeyBox {
    match column {
        KeyColumn::PartitionKey => KeyBox { partition: interval, row: Interval::all() },
        KeyColumn::RowKey => KeyBox { partition: Interval::all(), row: interval },
    }
}

fn intervals(operator: Operator, encoded: &[u8]) -> Vec<Interval> {
    let below = |high: Vec<u8>| Interval { low: Vec::new(), high: Some(high) };
    let from = |low: Vec<u8>| Interval { low, high: None };
    let at = || encoded.to_vec();
    match operator {
        Operator::Equal => vec![Interval { low: at(), high: Some(after(encoded)) }],
        Operator::NotEqual => vec![below(at()), from(after(encoded))],
        Operator::Less => vec![below(at())],
        Operator::LessOrEqual => vec![below(after(encoded))],
        Operator::Greater => vec![from(after(encoded))],
        Operator::GreaterOrEqual => vec![from(at())],
    }
}

/// The texts that begin with this one, or all others. There are no others if it is empty.
fn prefix_intervals(encoded: &[u8], negated: bool) -> Vec<Interval> {
    let end = KeyRange::prefix(encoded.to_vec()).end.map(|end| end.to_vec());
    match negated {
        false => vec![Interval { low: encoded.to_vec(), high: end }],
        true => {
            let below = Interval { low: Vec::new(), high: Some(encoded.to_vec()) };
            let above = end.map(|end| Interval { low: end, high: None });
            above.into_iter().chain((!encoded.is_empty()).then_some(below)).collect()
        }
    }
}

/// The intersection of what each term allows.
fn all_of(terms: &[Node], negated: bool) -> Vec<KeyBox> {
    let each = terms.iter().map(|term| derive(term, negated));
    each.reduce(|boxes, allowed| both(&boxes, &allowed)).unwrap_or_else(|| vec![KeyBox::all()])
}

/// At most [`BOXES_MAX`] boxes, as each list has, that hold what both lists hold, and nothing outside the
/// hull of either.
fn both(a: &[KeyBox], b: &[KeyBox]) -> Vec<KeyBox> {
    let both: Vec<KeyBox> = a.iter().flat_map(|a| b.iter().filter_map(|b| a.intersect(b))).collect();
    if both.len() <= BOXES_MAX {
        return both;
    }
    // Either list, cut at the hull of the other, is correct; take the one that touches fewer rows.
    let (a, b) = (inside_hull(a, b), inside_hull(b, a));
    if class_of(&b) < class_of(&a) { b } else { a }
}

/// The parts of `boxes` in the hull of `others`.
fn inside_hull(boxes: &[KeyBox], others: &[KeyBox]) -> Vec<KeyBox> {
    match others.iter().cloned().reduce(KeyBox::hull) {
        Some(hull) => boxes.iter().filter_map(|key_box| key_box.intersect(&hull)).collect(),
        None => Vec::new(),
    }
}

fn class_of(boxes: &[KeyBox]) -> Option<QueryClass> {
    boxes.iter().map(KeyBox::class).max()
}

/// The same boxes, or at most [`BOXES_MAX`] that contain them.
fn bounded(mut boxes: Vec<KeyBox>) -> Vec<KeyBox> {
    if boxes.len() <= BOXES_MAX {
        return boxes;
    }
    // Joining neighbours in key order adds the fewest rows.
    boxes.sort_by(|a, b| (&a.partition.low, &a.row.low).cmp(&(&b.partition.low, &b.row.low)));
    let group = boxes.len().div_ceil(BOXES_MAX);
    let mut out: Vec<KeyBox> = Vec::with_capacity(BOXES_MAX);
    for (index, key_box) in boxes.into_iter().enumerate() {
        match out.pop() {
            Some(last) if index % group != 0 => out.push(last.hull(key_box)),
            Some(last) => out.extend([last, key_box]),
            None => out.push(key_box),
        }
    }
    out
}
