//! Ranges of a page blob: rows of regions, each with the ranges that were written there. What is in none
//! reads as zero.
//!
//! ```text
//! value   = pieces, u8 format (1, or 2 with what was cleared), varint count, range*,
//!           [varint count, cleared*]
//! range   = varint first page in the region, varint pages, varint index of its piece,
//!           varint offset in the piece
//! cleared = varint first page in the region, varint pages, varint ticks
//! ```
//!
//! What always holds: the ranges of a region ascend and do not overlap, nor do they with what was cleared. A
//! snapshot has rows of its own that name the same pieces, so its bytes are shared and its ranges never
//! change. Written pages that are cleared while there are snapshots leave behind when that was: since an
//! earlier snapshot they have changed.

use crate::limits::{PAGE_REGION_SIZE_BYTES, PAGE_SIZE_BYTES};
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use partition::{Piece, put_pieces, take_pieces};

const FORMAT: u8 = 1;
const FORMAT_WITH_CLEARED: u8 = 2;

/// Bytes that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRange {
    /// First byte, in the blob.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Where they are.
    pub(crate) piece: Piece,
    /// Where they begin in the piece.
    pub(crate) piece_offset: u64,
}

impl PageRange {
    /// First byte and end, in the blob.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.start, self.end())
    }

    fn end(&self) -> u64 {
        self.start + self.len
    }

    /// The part of it from `start` to `end`.
    pub(crate) fn cut(&self, start: u64, end: u64) -> Option<PageRange> {
        let (from, to) = (self.start.max(start), self.end().min(end));
        (from < to).then(|| PageRange {
            start: from,
            len: to - from,
            piece: self.piece,
            piece_offset: self.piece_offset + (from - self.start),
        })
    }
}

/// The region that holds a byte.
pub(crate) fn region_of(at: u64) -> u64 {
    at / PAGE_REGION_SIZE_BYTES
}

/// The bytes of a region.
pub(crate) fn region_bounds(region: u64) -> (u64, u64) {
    (region * PAGE_REGION_SIZE_BYTES, (region + 1) * PAGE_REGION_SIZE_BYTES)
}

/// The ranges after `start..end` was cleared and `written`, if anything, put there.
pub(crate) fn replaced(
    ranges: &[PageRange],
    start: u64,
    end: u64,
    written: Option<PageRange>,
) -> Vec<PageRange> {
    let before = ranges.iter().filter_map(|range| range.cut(0, start));
    let after = ranges.iter().filter_map(|range| range.cut(end, u64::MAX));
    before.chain(written.and_then(|written| written.cut(start, end))).chain(after).collect()
}

/// Bytes that had been written and were cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cleared {
    /// First byte, in the blob.
    pub(crate) start: u64,
    /// Where they end.
    pub(crate) end: u64,
    /// When they were cleared.
    pub(crate) at: Ticks,
}

/// A region of a page blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    /// What is written.
    pub(crate) ranges: Vec<PageRange>,
    /// What was, as long as there are snapshots that may know of it.
    pub(crate) cleared: Vec<Cleared>,
}

impl Region {
    /// Whether it needs no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.cleared.is_empty()
    }

    /// Clears `start..end`, and keeps in mind what of it was written.
    pub(crate) fn clear(&mut self, start: u64, end: u64, at: Ticks) {
        let gone = self.ranges.iter().filter_map(|range| range.cut(start, end));
        let gone = joined(gone.map(|range| range.span()));
        self.cleared.extend(gone.into_iter().map(|(start, end)| Cleared { start, end, at }));
        self.cleared.sort_unstable_by_key(|cleared| cleared.start);
        self.ranges = replaced(&self.ranges, start, end, None);
    }

    /// Puts `written` in the place of what is there.
    pub(crate) fn write(&mut self, written: PageRange) {
        let (start, end) = written.span();
        self.ranges = replaced(&self.ranges, start, end, Some(written));
        let cut = |cleared: &Cleared, from: u64, to: u64| {
            let (start, end) = (cleared.start.max(from), cleared.end.min(to));
            (start < end).then_some(Cleared { start, end, at: cleared.at })
        };
        let around = |cleared: &Cleared| [cut(cleared, 0, start), cut(cleared, end, u64::MAX)];
        self.cleared = self.cleared.iter().flat_map(around).flatten().collect();
    }

    /// The value of its row.
    pub(crate) fn encode(&self, region: u64) -> Vec<u8> {
        let mut out = encode_ranges(region, &self.ranges, !self.cleared.is_empty());
        if !self.cleared.is_empty() {
            let (base, _) = region_bounds(region);
            out.put_varint(self.cleared.len() as u64);
            for cleared in &self.cleared {
                out.put_varint((cleared.start - base) / PAGE_SIZE_BYTES);
                out.put_varint((cleared.end - cleared.start) / PAGE_SIZE_BYTES);
                out.put_varint(cleared.at.0);
            }
        }
        out
    }

    /// Reads its row.
    pub(crate) fn decode(region: u64, value: &[u8]) -> Result<Region, DecodeError> {
        let mut decoder = Decoder::new(value);
        let pieces = take_pieces(&mut decoder)?;
        let format = decoder.u8("region format")?;
        if format != FORMAT && format != FORMAT_WITH_CLEARED {
            return Err(DecodeError("region format"));
        }
        let ranges = take_ranges(&mut decoder, region, &pieces)?;
        let mut cleared: Vec<Cleared> = Vec::new();
        if format == FORMAT_WITH_CLEARED {
            for _ in 0..decoder.varint("cleared count")? {
                let (start, end) = take_span(&mut decoder, region)?;
                if cleared.last().is_some_and(|last| last.end > start) {
                    return Err(DecodeError("cleared pages"));
                }
                cleared.push(Cleared { start, end, at: Ticks(decoder.varint("time of clearing")?) });
            }
        }
        decoder.finish("region row")?;
        Ok(Region { ranges, cleared })
    }
}

/// First byte and end of pages of a region.
fn take_span(decoder: &mut Decoder<'_>, region: u64) -> Result<(u64, u64), DecodeError> {
    let (base, region_end) = region_bounds(region);
    let pages = |number: u64| number.checked_mul(PAGE_SIZE_BYTES).ok_or(DecodeError("page"));
    let start = base.checked_add(pages(decoder.varint("first page")?)?).ok_or(DecodeError("page"))?;
    let end = start.checked_add(pages(decoder.varint("pages")?)?).ok_or(DecodeError("page"))?;
    if start < end && end <= region_end { Ok((start, end)) } else { Err(DecodeError("page range")) }
}

/// The value of a region's row that says nothing of what was cleared.
pub(crate) fn encode_region(region: u64, ranges: &[PageRange]) -> Vec<u8> {
    encode_ranges(region, ranges, false)
}

fn encode_ranges(region: u64, ranges: &[PageRange], with_cleared: bool) -> Vec<u8> {
    let mut pieces: Vec<Piece> = ranges.iter().map(|range| range.piece).collect();
    pieces.sort_unstable();
    pieces.dedup();
    let mut out = Vec::new();
    put_pieces(&mut out, &pieces);
    out.put_u8_field(if with_cleared { FORMAT_WITH_CLEARED } else { FORMAT });
    out.put_varint(ranges.len() as u64);
    let (base, _) = region_bounds(region);
    for range in ranges {
        out.put_varint((range.start - base) / PAGE_SIZE_BYTES);
        out.put_varint(range.len / PAGE_SIZE_BYTES);
        out.put_varint(pieces.binary_search(&range.piece).unwrap_or(0) as u64);
        out.put_varint(range.piece_offset);
    }
    out
}

/// Reads what a region's row says of what is written.
pub(crate) fn decode_region(region: u64, value: &[u8]) -> Result<Vec<PageRange>, DecodeError> {
    Region::decode(region, value).map(|region| region.ranges)
}

fn take_ranges(
    decoder: &mut Decoder<'_>,
    region: u64,
    pieces: &[Piece],
) -> Result<Vec<PageRange>, DecodeError> {
    let mut ranges: Vec<PageRange> = Vec::new();
    for _ in 0..decoder.varint("range count")? {
        let (start, end) = take_span(decoder, region)?;
        let len = end - start;
        let index =
            usize::try_from(decoder.varint("piece index")?).map_err(|_| DecodeError("piece index"))?;
        let piece = *pieces.get(index).ok_or(DecodeError("piece index"))?;
        let range = PageRange { start, len, piece, piece_offset: decoder.varint("piece offset")? };
        let follows = ranges.last().is_none_or(|last| last.end() <= start);
        let there = range.piece_offset.checked_add(len).is_some_and(|to| to <= piece.size_bytes());
        if !follows || !there {
            return Err(DecodeError("page range"));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// Bytes without their places, neighbours joined: what a listing shows.
pub(crate) fn joined(ranges: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match out.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => out.push((start, end)),
        }
    }
    out
}

/// Bytes as `(start, end)`, in order.
pub(crate) type Spans = Vec<(u64, u64)>;

/// What differs between two states of a blob: bytes written since, and bytes cleared since, each `(start,
/// end)`.
pub(crate) fn difference(old: &[PageRange], new: &[PageRange]) -> (Spans, Spans) {
    let mut cuts: Vec<u64> = old.iter().chain(new).flat_map(|range| [range.start, range.end()]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut written, mut cleared) = (Vec::new(), Vec::new());
    let (mut at_old, mut at_new) = (0, 0);
    for pair in cuts.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        while at_old < old.len() && old[at_old].end() <= start {
            at_old += 1;
        }
        while at_new < new.len() && new[at_new].end() <= start {
            at_new += 1;
        }
        let before = old.get(at_old).and_then(|range| range.cut(start, end));
        let after = new.get(at_new).and_then(|range| range.cut(start, end));
        match (before, after) {
            (before, Some(after)) if before != Some(after) => written.push((start, end)),
            (Some(_), None) => cleared.push((start, end)),
            _ => {}
        }
    }
    (joined(written), joined(cleared))
}

/// What was cleared since an earlier state: with what was written and cleared again in between, as `between`
/// shows.
///
/// `now` are the bytes that are written, in order and apart. It is gone through once, as the others are when
/// they are sorted: a large blob has a million ranges, and its snapshots have as many.
pub(crate) fn cleared_since(
    cleared: Spans,
    mut between: Spans,
    now: impl IntoIterator<Item = (u64, u64)>,
) -> Spans {
    between.extend(cleared);
    between.sort_unstable();
    let mut now = now.into_iter().peekable();
    let mut out = Spans::new();
    // Everything before is returned, or is written now.
    let mut told = 0;
    for (start, end) in between {
        told = start.max(told);
        while told < end {
            let Some(&(from, to)) = now.peek() else {
                out.push((told, end));
                told = end;
                break;
            };
            if told < from {
                out.push((told, from.min(end)));
            }
            told = if end <= from { end } else { told.max(to.min(end)) };
            if to <= told {
                now.next();
            }
        }
    }
    joined(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_written_and_cleared_since_is_cleared() {
        type Table<'a> = &'a [(&'a [(u64, u64)], &'a [(u64, u64)], &'a [(u64, u64)], &'a [(u64, u64)])];
        let table: Table<'_> = &[
            // Cleared, written in between, written now, and what is returned.
            (&[], &[], &[], &[]),
            (&[], &[], &[(0, 5)], &[]),
            (&[(0, 5)], &[], &[], &[(0, 5)]),
            (&[], &[(0, 15)], &[(0, 5), (10, 15)], &[(5, 10)]),
            (&[(20, 40)], &[(0, 25)], &[(0, 5), (10, 15)], &[(5, 10), (15, 40)]),
            (&[(5, 10)], &[], &[(0, 5), (10, 15)], &[(5, 10)]),
            // Spans in each other, next to each other, and twice.
            (&[], &[(0, 100), (10, 20), (10, 20), (20, 30), (90, 120)], &[(80, 100)], &[(0, 80), (100, 120)]),
            (&[(3, 4)], &[(0, 2), (2, 3)], &[], &[(0, 4)]),
            // One range over many spans, and one span over many ranges.
            (&[(0, 2), (4, 6), (8, 10)], &[], &[(1, 9)], &[(0, 1), (9, 10)]),
            (&[], &[(0, 10)], &[(1, 2), (3, 4), (5, 6)], &[(0, 1), (2, 3), (4, 5), (6, 10)]),
            // Ranges before, between and behind the spans.
            (&[(10, 12), (20, 22)], &[], &[(0, 3), (14, 16), (22, 30)], &[(10, 12), (20, 22)]),
            (&[(10, 12), (20, 22)], &[], &[(0, 11), (15, 21)], &[(11, 12), (21, 22)]),
            (&[(10, 20)], &[], &[(10, 20)], &[]),
            (&[(10, 20)], &[], &[(5, 25)], &[]),
        ];
        for (cleared, between, now, expected) in table {
            let found = cleared_since(cleared.to_vec(), between.to_vec(), now.to_vec());
            assert_eq!(found, *expected, "{cleared:?} {between:?} {now:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_told_as_cleared_is_what_each_byte_says(
            spans in proptest::collection::vec((0u64..40, 1u64..12), 0..8),
            cuts in proptest::collection::btree_set(0u64..50, 0..10),
        ) {
            let spans: Spans = spans.into_iter().map(|(start, len)| (start, start + len)).collect();
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let now: Spans = cuts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            let is_in =
                |spans: &[(u64, u64)], at: u64| spans.iter().any(|(start, end)| (*start..*end).contains(&at));
            let (cleared, between) = spans.split_at(spans.len() / 2);
            let told = cleared_since(cleared.to_vec(), between.to_vec(), now.clone());
            for at in 0..60 {
                prop_assert_eq!(is_in(&told, at), is_in(&spans, at) && !is_in(&now, at), "{}", at);
            }
            prop_assert!(told.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", told);
        }
    }

    /// All ranges of the blob were gone through for each span of its snapshots: on a large blob that took
    /// minutes, in which nothing else was done.
    #[test]
    fn the_ranges_of_a_large_blob_are_gone_through_once() {
        const COUNT: u64 = 500_000;
        let between: Spans = (0..COUNT).map(|number| (number * 4096, number * 4096 + 2048)).collect();
        let steps = std::cell::Cell::new(0);
        let now = (0..COUNT).map(|number| {
            steps.set(steps.get() + 1);
            (number * 4096 + 512, number * 4096 + 1024)
        });
        let told = cleared_since(Vec::new(), between, now);
        assert!(steps.get() <= COUNT, "{} steps", steps.get());
        assert_eq!(told.len() as u64, 2 * COUNT);
        assert_eq!(told[..2], [(0, 512), (1024, 2048)]);
    }

    fn range(start: u64, len: u64, piece: u64) -> PageRange {
        PageRange { start, len, piece: Piece::for_tests(piece, 0, 1 << 20), piece_offset: start }
    }

    #[test]
    fn writes_cut_what_was_there() {
        let ranges = replaced(&[range(0, 4096, 1)], 512, 1024, Some(range(512, 512, 2)));
        assert_eq!(ranges, [range(0, 512, 1), range(512, 512, 2), range(1024, 3072, 1)]);
        let cleared = replaced(&ranges, 0, 2048, None);
        assert_eq!(cleared, [range(2048, 2048, 1)]);
        let row = encode_region(0, &ranges);
        assert_eq!(decode_region(0, &row), Ok(ranges));
    }

    #[test]
    fn what_was_cleared_is_kept_in_mind_until_it_is_written() {
        let cleared = |start, end, at| Cleared { start, end, at: Ticks(at) };
        let mut region = Region { ranges: vec![range(0, 4096, 1)], cleared: Vec::new() };
        assert_eq!(region.encode(0), encode_region(0, &region.ranges), "the format of old");
        region.clear(1024, 2048, Ticks(5));
        region.clear(512, 3072, Ticks(6));
        let expected = [cleared(512, 1024, 6), cleared(1024, 2048, 5), cleared(2048, 3072, 6)];
        assert_eq!(region.cleared, expected);
        assert_eq!(region.ranges, [range(0, 512, 1), range(3072, 1024, 1)]);
        assert_eq!(Region::decode(0, &region.encode(0)), Ok(region.clone()));
        region.write(range(1536, 1024, 2));
        let expected = [cleared(512, 1024, 6), cleared(1024, 1536, 5), cleared(2560, 3072, 6)];
        assert_eq!(region.cleared, expected);
        region.clear(0, 1 << 18, Ticks(7));
        assert!(region.ranges.is_empty() && !region.is_empty());
        // A row of nothing but what was cleared comes back, too.
        let last = PAGE_REGION_SIZE_BYTES * 8;
        let far = Region { ranges: vec![range(last - 512, 512, 1)], cleared: vec![] };
        for mut region in [region, far] {
            let number = if region.ranges.is_empty() { 0 } else { 7 };
            let (start, end) = region_bounds(number);
            region.clear(start, end, Ticks(8));
            let row = region.encode(number);
            assert_eq!(decode_region(number, &row), Ok(vec![]));
            assert_eq!(Region::decode(number, &row), Ok(region));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_region_or_refused(bytes: Vec<u8>, region in 0u64..1 << 30) {
            let _ = Region::decode(region, &bytes);
        }
    }

    #[test]
    fn differences() {
        let old = [range(0, 1024, 1), range(2048, 512, 1)];
        let new = [range(0, 512, 1), range(512, 512, 2), range(4096, 512, 2)];
        assert_eq!(difference(&old, &new), (vec![(512, 1024), (4096, 4608)], vec![(2048, 2560)]));
        assert_eq!(difference(&old, &old), (vec![], vec![]));
        assert_eq!(difference(&[], &new), (vec![(0, 1024), (4096, 4608)], vec![]));
    }
}
