//! Row blocks: some ten KiB of sorted rows, prefix-compressed, then compressed as a whole.
//!
//! `layout` draws their bytes, `builder` writes them; here they are read: one row by its key, or all in
//! order. What always holds: a block that parsed may still hold rows that do not, and these are errors, not
//! panics.

mod builder;
mod directory;
mod layout;

pub(super) use builder::RowBlockBuilder;
pub(super) use layout::ROW_BLOCK_SIZE_BYTES;

use super::abbreviated_keys::head;
use super::overflow::OverflowPlace;
use crate::operation::RowVersion;
use base::codec::{DecodeError, Decoder};
use bytes::Bytes;
use directory::RowDirectory;
use layout::{KIND_ROWS, KIND_ROWS_WITH_OVERFLOW, LZ4, RESTART_ROW_COUNT, UNCOMPRESSED, shared_prefix};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// No block is larger when uncompressed: one row of the largest size, generously.
const UNCOMPRESSED_SIZE_BYTES_MAX: u64 = 64 << 20;

/// A decoded row block. Copies share it.
#[derive(Clone, Debug)]
pub(crate) struct RowBlock(Arc<Content>);

#[derive(Debug)]
struct Content {
    with_overflow: bool,
    rows: Bytes,
    /// Encoded starts of each eighth row.
    restarts: Bytes,
    /// Whether a row was looked up.
    asked: AtomicBool,
    /// Made at the second look-up: they cost more than one, and many blocks are read for one and leave the
    /// cache again.
    heads: OnceLock<RowDirectory>,
}

impl RowBlock {
    pub(crate) fn parse(mut payload: Bytes) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(&payload);
        let with_overflow = match decoder.u8("row block kind")? {
            KIND_ROWS => false,
            KIND_ROWS_WITH_OVERFLOW => true,
            _ => return Err(DecodeError("row block kind")),
        };
        let compression = decoder.u8("row block compression")?;
        let size = decoder.varint("row block size")?;
        if size > UNCOMPRESSED_SIZE_BYTES_MAX {
            return Err(DecodeError("row block size"));
        }
        let body = decoder.rest();
        let rows = match compression {
            UNCOMPRESSED => {
                let start = payload.len() - body.len();
                payload.split_off(start)
            }
            LZ4 => lz4_flex::block::decompress(body, size as usize)
                .map_err(|_| DecodeError("row block compression"))?
                .into(),
            _ => return Err(DecodeError("row block compression")),
        };
        Self::from_content(rows, size, with_overflow)
    }

    fn from_content(mut rows: Bytes, size: u64, with_overflow: bool) -> Result<Self, DecodeError> {
        if rows.len() as u64 != size {
            return Err(DecodeError("row block size"));
        }
        let malformed = DecodeError("row block restarts");
        let count_at = rows.len().checked_sub(4).ok_or(malformed.clone())?;
        let count = Decoder::new(&rows[count_at..]).u32("row block restarts")? as usize;
        let restarts_at =
            count.checked_mul(4).and_then(|size| count_at.checked_sub(size)).ok_or(malformed)?;
        let restarts = rows.slice(restarts_at..count_at);
        rows.truncate(restarts_at);
        Ok(RowBlock(Arc::new(Content {
            with_overflow,
            rows,
            restarts,
            asked: AtomicBool::new(false),
            heads: OnceLock::new(),
        })))
    }

    /// Whether it has more than [`RESTART_ROW_COUNT`] rows: usually, whether they are smaller than 2 KiB.
    pub(super) fn has_many_rows(&self) -> bool {
        self.0.restarts.len() > 4
    }

    /// With what look-ups add to it.
    pub(crate) fn size_bytes(&self) -> usize {
        let row_count_max = self.restarts_len() * RESTART_ROW_COUNT;
        self.0.rows.len() + self.0.restarts.len() + row_count_max * RowDirectory::BYTES_PER_ROW
    }

    /// Where the `index`th listed row starts; beyond the rows if the list is malformed.
    fn restart(&self, index: usize) -> usize {
        let place = self.0.restarts.get(index * 4..index * 4 + 4).and_then(|bytes| bytes.first_chunk::<4>());
        place.map_or(self.0.rows.len(), |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// The whole key of the `index`th listed row.
    fn restart_key(&self, index: usize) -> Result<&[u8], DecodeError> {
        let row = self.0.rows.get(self.restart(index)..).ok_or(DecodeError("row block restarts"))?;
        let mut decoder = Decoder::new(row);
        if decoder.varint("shared key length")? != 0 {
            return Err(DecodeError("row block restarts"));
        }
        decoder.bytes("row key")
    }

    /// How many rows are listed.
    fn restarts_len(&self) -> usize {
        self.0.restarts.len() / 4
    }

    /// The first listed row that starts at `at` or behind it.
    fn first_restart_from(&self, at: usize) -> usize {
        let (mut low, mut high) = (0, self.restarts_len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.restart(middle) < at { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The last listed row that is not after the key; the first one, if all are.
    fn restart_before(&self, key: &[u8]) -> Result<usize, DecodeError> {
        let (mut low, mut high) = (0, self.restarts_len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.restart_key(middle)? <= key { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// The heads for a look-up, unless it is the first one.
    fn heads(&self) -> Result<Option<&RowDirectory>, DecodeError> {
        let content = &*self.0;
        if content.heads.get().is_none() && content.asked.swap(true, Relaxed) {
            let made = self.directory()?;
            content.heads.get_or_init(|| made);
        }
        Ok(content.heads.get())
    }

    /// Walks all rows for their directory.
    fn directory(&self) -> Result<RowDirectory, DecodeError> {
        let mut starts = Vec::new();
        let mut rows = self.rows();
        let mut prefix = Vec::new();
        let mut start = 0;
        while rows.step()?.is_some() {
            if starts.is_empty() {
                prefix.extend_from_slice(rows.key());
            }
            starts.push(u32::try_from(start).map_err(|_| DecodeError("row start"))?);
            start = rows.at;
        }
        prefix.truncate(shared_prefix(&prefix, rows.key()));
        let mut heads = Vec::with_capacity(starts.len());
        let mut rows = self.rows();
        while rows.step()?.is_some() {
            heads.push(head(rows.key().strip_prefix(&*prefix).ok_or(DecodeError("row order"))?));
        }
        if !heads.is_sorted() {
            return Err(DecodeError("row order"));
        }
        Ok(RowDirectory::new(&prefix, &heads, &starts))
    }

    /// The row with this key.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<FoundRow>, DecodeError> {
        let content = &*self.0;
        let Some(heads) = self.heads()? else { return self.walk_to(key) };
        for start in heads.rows_with_head_of(key).filter_map(|at| heads.start(at)) {
            let row = row_at(&content.rows, start, content.with_overflow)?.ok_or(DecodeError("row start"))?;
            // What it shares with the row before has to lie in what was compared.
            if row.shared > heads.compared_len() {
                return self.walk_to(key);
            }
            if key.get(row.shared..) == Some(row.rest) {
                return Ok(Some(self.found(&row)));
            }
        }
        Ok(None)
    }

    fn found(&self, row: &EncodedRow<'_>) -> FoundRow {
        let value = row.value_start.map(|start| self.0.rows.slice(start..row.end));
        FoundRow { version: row.version, value, overflow: row.overflow }
    }

    /// The row with this key, by its neighbours.
    fn walk_to(&self, key: &[u8]) -> Result<Option<FoundRow>, DecodeError> {
        let mut at = self.restart(self.restart_before(key)?);
        // How much of the searched key the row before shares; that row is before the key.
        let mut matched = 0;
        let mut last_key_len = 0;
        while let Some(row) = row_at(&self.0.rows, at, self.0.with_overflow)? {
            if row.shared > last_key_len {
                return Err(DecodeError("shared key length"));
            }
            last_key_len = row.shared + row.rest.len();
            at = row.end;
            match row.shared.cmp(&matched) {
                // It differs from the key where the row before did.
                Ordering::Greater => continue,
                // It goes beyond the row before where that one and the key are the same.
                Ordering::Less => break,
                Ordering::Equal => {}
            }
            let (rest, sought) = (row.rest, &key[matched..]);
            let more = shared_prefix(rest, sought);
            match rest[more..].cmp(&sought[more..]) {
                Ordering::Less => matched += more,
                Ordering::Equal => return Ok(Some(self.found(&row))),
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    /// Its rows in order, without most of those before `start`.
    pub(crate) fn rows_near(&self, start: &[u8]) -> Result<RowIterator, DecodeError> {
        self.heads()?;
        let mut rows = self.rows();
        rows.pass_before(start)?;
        Ok(rows)
    }

    /// Its rows in order.
    pub(crate) fn rows(&self) -> RowIterator {
        RowIterator { block: self.clone(), at: 0, key: Vec::new() }
    }
}

/// A row as a block holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRow {
    pub(crate) version: RowVersion,
    /// `None`: it is deleted.
    pub(crate) value: Option<Bytes>,
    /// What follows the value.
    pub(crate) overflow: Option<OverflowPlace>,
}

/// Walks a row block. The key is rebuilt in place; values are slices of the block.
#[derive(Clone)]
pub(crate) struct RowIterator {
    block: RowBlock,
    /// Where the next row starts.
    at: usize,
    key: Vec<u8>,
}

/// A row as it is encoded.
struct EncodedRow<'a> {
    /// Bytes of the key that the key before has too.
    shared: usize,
    /// The key's other bytes.
    rest: &'a [u8],
    version: RowVersion,
    /// Where its value starts; `None`: the row is deleted. It ends with the row.
    value_start: Option<usize>,
    /// What follows the value.
    overflow: Option<OverflowPlace>,
    /// Where the next row starts.
    end: usize,
}

/// The row that starts at `at`; `None` at the end.
fn row_at(rows: &[u8], at: usize, with_overflow: bool) -> Result<Option<EncodedRow<'_>>, DecodeError> {
    let mut decoder = Decoder::new(rows.get(at..).ok_or(DecodeError("row start"))?);
    if decoder.is_empty() {
        return Ok(None);
    }
    let shared = decoder.varint("shared key length")? as usize;
    let rest = decoder.bytes("row key")?;
    let version = RowVersion(decoder.u64("row version")?);
    let value_len = decoder.varint("row value length")?;
    let mut overflow = None;
    let value_start = match value_len.checked_sub(1) {
        None => None,
        Some(len) => {
            if with_overflow {
                overflow = OverflowPlace::take(&mut decoder)?;
            }
            let value_start = rows.len() - decoder.rest().len();
            let len = usize::try_from(len).map_err(|_| DecodeError("row value length"))?;
            decoder.take(len, "row value")?;
            Some(value_start)
        }
    };
    let end = rows.len() - decoder.rest().len();
    Ok(Some(EncodedRow { shared, rest, version, value_start, overflow, end }))
}

/// Where the value of the row that an iterator stands on lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPosition {
    pub(crate) version: RowVersion,
    /// Start and end in the block; `None`: the row is deleted.
    value: Option<(usize, usize)>,
    /// What follows the value.
    pub(crate) overflow: Option<OverflowPlace>,
}

impl RowIterator {
    /// Steps to the next row.
    pub(crate) fn step(&mut self) -> Result<Option<RowPosition>, DecodeError> {
        let content = &*self.block.0;
        let Some(row) = row_at(&content.rows, self.at, content.with_overflow)? else { return Ok(None) };
        if row.shared > self.key.len() {
            return Err(DecodeError("shared key length"));
        }
        self.key.truncate(row.shared);
        self.key.extend_from_slice(row.rest);
        self.at = row.end;
        let value = row.value_start.map(|start| (start, row.end));
        Ok(Some(RowPosition { version: row.version, value, overflow: row.overflow }))
    }

    /// Passes over rows before `key`, which lies ahead: [`RESTART_ROW_COUNT`] of them are left at most. It
    /// stands on no row until the next step.
    pub(crate) fn pass_before(&mut self, key: &[u8]) -> Result<(), DecodeError> {
        let Some(heads) = self.block.0.heads.get() else { return self.pass_listed_before(key) };
        let Range { start: passed, end } = heads.rows_with_head_of(key);
        if end - passed > RESTART_ROW_COUNT {
            return self.pass_listed_before(key);
        }
        let start = heads.start(passed).unwrap_or(self.block.0.rows.len());
        if start > self.at {
            self.at = start;
            // All that the row can share with the one before, whose head is another.
            self.key.clear();
            heads.put_compared(passed, &mut self.key);
        }
        Ok(())
    }

    /// As [`Self::pass_before`], by the listed rows. The search begins where it stands and doubles its
    /// strides: a short way costs little, however long the block is.
    fn pass_listed_before(&mut self, key: &[u8]) -> Result<(), DecodeError> {
        let block = &self.block;
        let count = block.restarts_len();
        let is_before = |index: usize| Ok(block.restart_key(index)? <= key);
        let (mut low, mut stride) = (block.first_restart_from(self.at), 1);
        if low >= count || !is_before(low)? {
            return Ok(());
        }
        let mut high = low + stride;
        while high < count && is_before(high)? {
            low = high;
            stride *= 2;
            high = low + stride;
        }
        high = high.min(count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_before(middle)? { low = middle } else { high = middle }
        }
        let start = self.block.restart(low);
        if start < self.at {
            return Err(DecodeError("row block restarts"));
        }
        self.at = start;
        self.key.clear();
        Ok(())
    }

    /// Key of the row it stands on.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Value of the row at `position`.
    pub(crate) fn value_ref(&self, position: RowPosition) -> Option<&[u8]> {
        position.value.map(|(start, end)| &self.block.0.rows[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use stream::{ExtentId, Location};

    /// What a row shares with the one before is not stored with it: beyond the heads it has not been
    /// compared.
    #[test]
    fn keys_that_differ_only_after_their_abbreviation_are_distinct() {
        let mut builder = RowBlockBuilder::default();
        for key in ["a", "cccccccccccca1", "ccccccccccccb2"] {
            builder.add(key.as_bytes(), RowVersion(1), Some(key.as_bytes()), None);
        }
        let block = RowBlock::parse(builder.finish()).unwrap();
        for _ in 0..3 {
            assert!(block.find(b"ccccccccddddb2").unwrap().is_none());
            let found = block.find(b"ccccccccccccb2").unwrap().expect("the row");
            assert_eq!(found.value.as_deref(), Some(&b"ccccccccccccb2"[..]));
        }
    }

    /// A scan that jumps would have gone round for ever.
    #[test]
    fn listed_rows_that_lead_back_are_an_error() {
        let mut builder = RowBlockBuilder::default();
        let key = |row: usize| format!("{row:04}").into_bytes();
        for row in 0..4 * RESTART_ROW_COUNT {
            builder.add(&key(row), RowVersion(1), None, None);
        }
        let block = RowBlock::parse(builder.finish()).unwrap();
        let last = block.restarts_len() - 1;
        let content = &*block.0;
        let restarts = [&content.restarts[..4 * last], &[0; 4]].concat().into();
        let (rows, asked, heads) = (content.rows.clone(), AtomicBool::new(false), OnceLock::new());
        let malformed = RowBlock(Arc::new(Content { with_overflow: false, rows, restarts, asked, heads }));
        let mut iterator = malformed.rows();
        for _ in 0..=RESTART_ROW_COUNT {
            iterator.step().unwrap();
        }
        assert!(iterator.pass_before(&key(4 * RESTART_ROW_COUNT)).is_err());
    }

    /// Heads would have made up the beginning of a key.
    #[test]
    fn keys_in_the_middle_that_begin_otherwise_are_an_error() {
        let mut builder = RowBlockBuilder::default();
        for key in ["aa1", "bb2", "aa3"] {
            builder.add(key.as_bytes(), RowVersion(1), None, None);
        }
        let block = RowBlock::parse(builder.finish()).unwrap();
        let found: Vec<_> = (0..3).map(|_| block.find(b"bb2").is_ok()).collect();
        assert_eq!(found, [true, false, false], "the first look-up makes no heads");
    }

    impl RowIterator {
        fn count_left(mut self) -> usize {
            let mut count = 0;
            while self.step().unwrap().is_some() {
                count += 1;
            }
            count
        }
    }

    proptest! {
        #[test]
        fn rows_come_back(rows in prop::collection::btree_map(
            prop::collection::vec(0u8..3, 0..12),
            (any::<u64>(), prop::option::of((prop::collection::vec(0u8..4, 0..300), prop::option::of(any::<u16>())))),
            1..40,
        ), others in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 20), with_overflow: bool) {
            let place = |at: u16| OverflowPlace {
                location: Location { extent: ExtentId(at.into()), offset: 3 * u64::from(at), len: 7 },
                size_bytes: u32::from(at) + 1,
            };
            let rows: BTreeMap<Vec<u8>, FoundRow> = rows
                .into_iter()
                .map(|(key, (version, value))| {
                    let overflow = value.as_ref().and_then(|(_, at)| *at).filter(|_| with_overflow).map(place);
                    let value = value.map(|(value, _)| Bytes::from(value));
                    (key, FoundRow { version: RowVersion(version), value, overflow })
                })
                .collect();
            let mut builder = RowBlockBuilder::new(with_overflow);
            for (key, row) in &rows {
                builder.add(key, row.version, row.value.as_deref(), row.overflow);
            }
            let block = RowBlock::parse(builder.finish()).unwrap();
            let mut found = BTreeMap::new();
            let mut iterator = block.rows();
            while let Some(position) = iterator.step().unwrap() {
                let value = iterator.value_ref(position).map(Bytes::copy_from_slice);
                let RowPosition { version, overflow, .. } = position;
                found.insert(iterator.key().to_vec(), FoundRow { version, value, overflow });
            }
            prop_assert_eq!(&found, &rows);
            for (key, row) in &rows {
                let found = block.find(key).unwrap();
                prop_assert_eq!(found.as_ref(), Some(row));
                let mut missing = key.clone();
                missing.push(0);
                prop_assert!(rows.contains_key(&missing) || block.find(&missing).unwrap().is_none());
            }
            for other in &others {
                prop_assert_eq!(block.find(other).unwrap().is_some(), rows.contains_key(other));
            }
            for start in others.iter().chain(rows.keys()) {
                let (mut iterator, mut keys) = (block.rows_near(start).unwrap(), Vec::new());
                let mut left_out = rows.len();
                while iterator.step().unwrap().is_some() {
                    keys.push(iterator.key().to_vec());
                    left_out -= 1;
                }
                prop_assert!(keys.iter().eq(rows.keys().skip(left_out)), "the last rows, whole");
                let before = rows.range::<Vec<u8>, _>(..start).count();
                prop_assert!(left_out <= before && before - left_out <= RESTART_ROW_COUNT, "{left_out} of {before}");
            }
            // From each row on.
            for start in others.iter().chain(rows.keys()) {
                for steps in 0..rows.len() {
                    let mut iterator = block.rows();
                    for _ in 0..steps {
                        iterator.step().unwrap();
                    }
                    if iterator.key() >= start.as_slice() {
                        break;
                    }
                    for by_heads in [false, true] {
                        let mut iterator = iterator.clone();
                        match by_heads {
                            true => iterator.pass_before(start).unwrap(),
                            false => iterator.pass_listed_before(start).unwrap(),
                        }
                        let at = rows.len() - iterator.clone().count_left();
                        let before = rows.range::<Vec<u8>, _>(..start).count();
                        prop_assert!(at >= steps, "{at} behind {steps} steps");
                        prop_assert!(at <= before.max(steps), "{at} of {before}");
                        prop_assert!(before <= at + RESTART_ROW_COUNT, "{at} of {before}");
                        let next = iterator.step().unwrap().map(|_| iterator.key());
                        prop_assert_eq!(next, rows.keys().nth(at).map(Vec::as_slice));
                    }
                }
            }
        }

        #[test]
        fn any_bytes_parse_or_are_refused(
            bytes in any::<Vec<u8>>(),
            kind in prop_oneof![Just(KIND_ROWS), Just(KIND_ROWS_WITH_OVERFLOW)],
            compression in 0u8..2,
        ) {
            for payload in [bytes.clone(), [&[kind, compression], bytes.as_slice()].concat()] {
                if let Ok(block) = RowBlock::parse(payload.into()) {
                    let _ = (block.find(&bytes), block.rows_near(&bytes));
                    let mut iterator = block.rows();
                    while let Ok(Some(position)) = iterator.step() {
                        iterator.value_ref(position);
                    }
                }
            }
        }
    }
}
