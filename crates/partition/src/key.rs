//! Row keys: (account, container id, partition name, object name) as bytes whose order is the service's
//! order.
//!
//! ```text
//! row key        = text(account) u64-be(container id) text(partition name) text(object name)
//! text(s)        = UTF-8 of s with 00 -> 00 FF and, so that bytes sort like UTF-16 code units,
//!                  lead bytes EE -> F8 and EF -> F9; then the terminator 00 01
//! ```
//!
//! Why: Azure orders keys ordinally by UTF-16 code unit. UTF-8 sorts the same except that U+E000..U+FFFF
//! (lead bytes EE, EF) come before supplementary characters (F0..F4), whose surrogates D800..DFFF come first
//! in UTF-16. What always holds: the encoding is prefix-free, loses nothing, and byte order is (account, id,
//! partition name, object name) order, each name in UTF-16 order.

pub(crate) mod cut;
pub(crate) mod describe;
mod start;
mod text;

pub use start::{KeyStart, parse_key_start};
pub use text::{put_text, put_text_open};

use bytes::Bytes;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use text::{TERMINATOR, borrow_text, skip_text, take_text};

/// An encoded row key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey(Bytes);

/// The readable parts of a row key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKeyParts {
    /// The storage account.
    pub account: String,
    /// The container (table, queue, blob container) by id, not name.
    pub container_id: u64,
    /// The unit of transactions; a range is never split inside one.
    pub partition_name: String,
    /// The object inside the partition.
    pub object_name: String,
}

impl RowKey {
    /// The key of one row.
    pub fn new(account: &str, container_id: u64, partition_name: &str, object_name: &str) -> Self {
        // Exact for texts without bytes that are encoded, so that making it shared copies nothing.
        let capacity = account.len() + 8 + partition_name.len() + object_name.len() + 3 * TERMINATOR.len();
        let mut out = Vec::with_capacity(capacity);
        put_text(&mut out, account);
        out.extend_from_slice(&container_id.to_be_bytes());
        put_text(&mut out, partition_name);
        put_text(&mut out, object_name);
        RowKey(out.into())
    }

    /// A key from its stored bytes; not checked, see [`RowKey::parts`].
    pub fn from_bytes(bytes: Bytes) -> Self {
        RowKey(bytes)
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The smallest bytes that sort after this key and before every other.
    pub fn successor(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        out.extend_from_slice(&self.0);
        out.push(0);
        out.into()
    }

    /// The readable parts; `None` if the bytes are not a row key.
    pub fn parts(&self) -> Option<RowKeyParts> {
        parse_row_key(&self.0)
    }
}

/// The readable parts of encoded key bytes; `None` if they are not a row key.
pub fn parse_row_key(key: &[u8]) -> Option<RowKeyParts> {
    let mut rest = key;
    let account = take_text(&mut rest)?;
    let (id, after) = rest.split_first_chunk::<8>()?;
    rest = after;
    let partition_name = take_text(&mut rest)?;
    let object_name = take_text(&mut rest)?;
    let container_id = u64::from_be_bytes(*id);
    rest.is_empty().then_some(RowKeyParts { account, container_id, partition_name, object_name })
}

/// The partition name and the object name of encoded key bytes, borrowed where they hold nothing that is
/// encoded; `None` if the bytes are not a row key. For scans, which ask this of every row that they keep.
pub fn row_names(key: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let mut rest = key;
    skip_text(&mut rest)?;
    rest = rest.get(8..)?;
    let names = (borrow_text(&mut rest)?, borrow_text(&mut rest)?);
    rest.is_empty().then_some(names)
}

/// The bytes of `key` that all rows of its partition name share: splits and transactions never cut inside
/// them.
pub fn partition_prefix(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key;
    skip_text(&mut rest)?;
    rest = rest.get(8..)?;
    skip_text(&mut rest)?;
    Some(&key[..key.len() - rest.len()])
}

/// The bytes of `key` that all rows of its account share.
pub(crate) fn account_prefix(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key;
    skip_text(&mut rest)?;
    Some(&key[..key.len() - rest.len()])
}

/// The bytes of `key` that all rows of its container share.
pub(crate) fn container_prefix(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key;
    skip_text(&mut rest)?;
    rest = rest.get(8..)?;
    Some(&key[..key.len() - rest.len()])
}

/// Account and id of the container whose rows all start with `prefix`; `None` if it is not exactly that.
pub(crate) fn parse_container_prefix(prefix: &[u8]) -> Option<(String, u64)> {
    let mut rest = prefix;
    let account = take_text(&mut rest)?;
    let id: [u8; 8] = rest.try_into().ok()?;
    Some((account, u64::from_be_bytes(id)))
}

/// Bytes as text that sorts as they do.
pub(crate) fn to_hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// The bytes of such a text.
pub(crate) fn from_hexadecimal(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Some(p) => write!(
                f,
                "({}, {:#x}, {:?}, {:?})",
                p.account, p.container_id, p.partition_name, p.object_name
            ),
            None => write!(f, "RowKey({})", self.0.escape_ascii()),
        }
    }
}

/// Bounds of the rows a scan may see: `start` inclusive, `end` exclusive (`None`: to the end of the object
/// table).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key that may be seen.
    pub start: Bytes,
    /// First key that may not be seen.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Every row of an object table.
    pub fn all() -> Self {
        KeyRange { start: Bytes::new(), end: None }
    }

    /// Every row of one container.
    pub fn container(account: &str, container_id: u64) -> Self {
        let mut start = Vec::new();
        put_text(&mut start, account);
        start.extend_from_slice(&container_id.to_be_bytes());
        Self::prefix(start)
    }

    /// Every row of one partition name.
    pub fn partition(account: &str, container_id: u64, partition_name: &str) -> Self {
        let mut start = Vec::new();
        put_text(&mut start, account);
        start.extend_from_slice(&container_id.to_be_bytes());
        put_text(&mut start, partition_name);
        Self::prefix(start)
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> Self {
        let end = prefix_end(&prefix);
        KeyRange { start: prefix.into(), end }
    }

    /// Whether `key` lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_ref() && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    /// Whether no key can lie inside.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.start >= end)
    }

    /// Whether every key of `other` lies inside.
    pub fn covers(&self, other: &KeyRange) -> bool {
        let end_inside = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(other)) => other <= end,
        };
        other.start >= self.start && end_inside
    }

    /// The keys in both.
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        KeyRange { start: self.start.clone().max(other.start.clone()), end }
    }
}

/// Rows to be read: one, or all between two keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// One row.
    Point(RowKey),
    /// A range of rows.
    Range(KeyRange),
}

impl Span {
    /// The first key that may be seen.
    pub fn start(&self) -> &Bytes {
        match self {
            Span::Point(key) => key.as_bytes(),
            Span::Range(range) => &range.start,
        }
    }

    /// Whether no key can lie inside.
    fn is_empty(&self) -> bool {
        matches!(self, Span::Range(range) if range.is_empty())
    }

    /// Whether every key of this one comes before `key`.
    fn ends_before(&self, key: &[u8]) -> bool {
        match self {
            Span::Point(point) => point.as_bytes().as_ref() < key,
            Span::Range(range) => range.end.as_ref().is_some_and(|end| end.as_ref() <= key),
        }
    }
}

/// Whether each span lies behind the one before it, as a walk in key order needs them.
pub(crate) fn are_in_order(spans: &[Span]) -> bool {
    spans.windows(2).all(|pair| pair[0].ends_before(pair[1].start()))
}

/// Takes from the front of `spans`, which are in order, what lies before `end` (`None`: all of it). A range
/// that reaches beyond is cut, and its rest stays; empty ones are dropped.
pub(crate) fn take_before(spans: &mut VecDeque<Span>, end: Option<&Bytes>) -> Vec<Span> {
    let mut taken = Vec::with_capacity(spans.len());
    while let Some(span) = spans.pop_front() {
        match (span, end) {
            (span, _) if span.is_empty() => {}
            (span, Some(end)) if span.start() >= end => {
                spans.push_front(span);
                break;
            }
            (Span::Range(range), Some(end)) if range.end.as_ref().is_none_or(|last| last > end) => {
                taken.push(Span::Range(KeyRange { start: range.start, end: Some(end.clone()) }));
                spans.push_front(Span::Range(KeyRange { start: end.clone(), end: range.end }));
                break;
            }
            (span, _) => taken.push(span),
        }
    }
    taken
}

/// Takes from the back of `spans`, which are in order, what lies at or after `start`. A range that begins
/// before is cut, and its rest stays; empty ones are dropped.
pub(crate) fn take_from(spans: &mut Vec<Span>, start: &Bytes) -> Vec<Span> {
    let mut taken = Vec::with_capacity(spans.len());
    while let Some(span) = spans.pop() {
        match span {
            span if span.is_empty() => {}
            span if span.start() >= start => taken.push(span),
            Span::Range(range) if range.end.as_ref().is_none_or(|end| end > start) => {
                taken.push(Span::Range(KeyRange { start: start.clone(), end: range.end }));
                spans.push(Span::Range(KeyRange { start: range.start, end: Some(start.clone()) }));
                break;
            }
            span => {
                spans.push(span);
                break;
            }
        }
    }
    taken.reverse();
    taken
}

/// The smallest bytes after every key that starts with `prefix`; `None` if there are none.
fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn supplementary_characters_sort_before_the_private_use_area() {
        let high = RowKey::new("a", 1, "\u{1f600}", "");
        let private = RowKey::new("a", 1, "\u{e000}", "");
        assert!(high < private);
    }

    #[test]
    fn ranges_hold_their_rows_and_no_others() {
        let range = KeyRange::partition("acct", 7, "p");
        assert!(range.contains(RowKey::new("acct", 7, "p", "").as_bytes()));
        assert!(range.contains(RowKey::new("acct", 7, "p", "\u{ffff}").as_bytes()));
        assert!(!range.contains(RowKey::new("acct", 7, "p\u{0}", "").as_bytes()));
        assert!(!range.contains(RowKey::new("acct", 7, "pa", "").as_bytes()));
        assert!(!range.contains(RowKey::new("acct", 8, "p", "").as_bytes()));
        assert!(
            KeyRange::container("acct", u64::MAX)
                .contains(RowKey::new("acct", u64::MAX, "x", "y").as_bytes())
        );
    }

    fn range(start: &'static str, end: Option<&'static str>) -> Span {
        Span::Range(KeyRange { start: Bytes::from(start), end: end.map(Bytes::from) })
    }

    fn point(key: &'static str) -> Span {
        Span::Point(RowKey::from_bytes(Bytes::from(key)))
    }

    #[test]
    fn spans_are_cut_where_a_range_partition_ends() {
        let all =
            [range("a", Some("c")), point("c"), range("f", Some("f")), range("g", Some("p")), point("x")];
        let cut = |end: Option<&'static str>| {
            let mut rest = VecDeque::from(all.to_vec());
            let taken = take_before(&mut rest, end.map(Bytes::from).as_ref());
            (taken, Vec::from(rest))
        };
        let (g_p, x) = (range("g", Some("p")), point("x"));
        assert_eq!(cut(None), (vec![all[0].clone(), point("c"), g_p.clone(), x.clone()], vec![]));
        assert_eq!(cut(Some("a")), (vec![], all.to_vec()));
        assert_eq!(cut(Some("c")), (vec![all[0].clone()], all[1..].to_vec()));
        assert_eq!(cut(Some("d")), (vec![all[0].clone(), point("c")], vec![g_p.clone(), x.clone()]));
        let (taken, rest) = cut(Some("m"));
        assert_eq!(taken, [all[0].clone(), point("c"), range("g", Some("m"))]);
        assert_eq!(rest, [range("m", Some("p")), x.clone()]);
        let mut open = VecDeque::from([range("g", None)]);
        assert_eq!(take_before(&mut open, Some(&Bytes::from("h"))), [range("g", Some("h"))]);
        assert_eq!(open, [range("h", None)]);
    }

    #[test]
    fn spans_are_cut_where_a_range_partition_begins() {
        let all =
            [range("a", Some("c")), point("c"), range("f", Some("f")), range("g", Some("p")), point("x")];
        let cut = |start: &'static str| {
            let mut rest = all.to_vec();
            let taken = take_from(&mut rest, &Bytes::from(start));
            (taken, rest)
        };
        let (g_p, x) = (range("g", Some("p")), point("x"));
        assert_eq!(cut("y"), (vec![], all.to_vec()));
        assert_eq!(cut("x"), (vec![x.clone()], all[..4].to_vec()));
        assert_eq!(cut("p"), (vec![x.clone()], all[..4].to_vec()));
        assert_eq!(cut("g"), (vec![g_p.clone(), x.clone()], all[..2].to_vec()));
        assert_eq!(cut(""), (vec![all[0].clone(), point("c"), g_p, x.clone()], vec![]));
        let (taken, rest) = cut("m");
        assert_eq!(taken, [range("m", Some("p")), x]);
        assert_eq!(rest[3], range("g", Some("m")));
        let mut open = vec![range("g", None)];
        assert_eq!(take_from(&mut open, &Bytes::from("h")), [range("h", None)]);
        assert_eq!(open, [range("g", Some("h"))]);
    }

    #[test]
    fn spans_that_touch_are_in_order_and_those_that_overlap_are_not() {
        for (spans, expected) in [
            (vec![], true),
            (vec![range("a", Some("c")), point("c"), range("d", None)], true),
            (vec![range("a", Some("c")), range("c", Some("d"))], true),
            (vec![point("c"), point("c")], false),
            (vec![point("c"), range("c", None)], false),
            (vec![range("a", Some("c")), point("b")], false),
            (vec![range("a", None), point("b")], false),
            (vec![point("b"), point("a")], false),
        ] {
            assert_eq!(are_in_order(&spans), expected, "{spans:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_come_back(account in "\\PC*", id: u64, partition in any::<String>(), object in any::<String>()) {
            let key = RowKey::new(&account, id, &partition, &object);
            prop_assert_eq!(partition_prefix(key.as_bytes()).map(<[u8]>::to_vec), Some(KeyRange::partition(&account, id, &partition).start.to_vec()));
            prop_assert_eq!(row_names(key.as_bytes()), Some((partition.as_str().into(), object.as_str().into())));
            prop_assert_eq!(key.parts(), Some(RowKeyParts { account, container_id: id, partition_name: partition, object_name: object }));
        }

        #[test]
        fn byte_order_is_utf16_order(a in any::<(String, String)>(), b in any::<(String, String)>()) {
            let bytes = RowKey::new("x", 1, &a.0, &a.1).cmp(&RowKey::new("x", 1, &b.0, &b.1));
            prop_assert_eq!(bytes, (utf16(&a.0), utf16(&a.1)).cmp(&(utf16(&b.0), utf16(&b.1))));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in any::<Vec<u8>>()) {
            let parts = parse_row_key(&bytes);
            let names = parts.clone().map(|parts| (parts.partition_name.into(), parts.object_name.into()));
            if names.is_some() {
                prop_assert_eq!(row_names(&bytes), names);
            }
            if let Some(parts) = parts {
                let again = RowKey::new(&parts.account, parts.container_id, &parts.partition_name, &parts.object_name);
                prop_assert_eq!(again.as_bytes().as_ref(), bytes.as_slice());
            }
            let _ = partition_prefix(&bytes);
        }
    }
}
