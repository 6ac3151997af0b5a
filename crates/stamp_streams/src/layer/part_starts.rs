//! Where the parts of extents begin: a block's place names an offset in its extent, an object is named after
//! the offset of its part.
//!
//! Of an extent that is open in this process the writer knows it; of a sealed one the seal's body says it. An
//! extent of more parts than a seal lists is walked once. What always holds: starts are those of an unbroken
//! chain from 0 to the extent's recorded length; at most [`KEPT_STARTS_MAX`] are kept.

use crate::error::StampError;
use crate::extents::header_ahead::HeadersAhead;
use crate::extents::parts::ReadPart;
use crate::surroundings::Surroundings;
use parking_lot::Mutex;
use stamp::{ExtentLoad, ExtentName, Found, PartKind, StoredError, parse_seal_body};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Starts that are kept, 8 bytes each.
pub(super) const KEPT_STARTS_MAX: usize = 4 << 20;

/// Where an extent's parts begin, and where the last one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Starts {
    starts: Vec<u64>,
    end: u64,
}

impl Starts {
    /// Of parts of these lengths.
    pub(super) fn of(lengths: &[u64]) -> Option<Self> {
        let mut end: u64 = 0;
        let mut starts = Vec::with_capacity(lengths.len());
        for length in lengths {
            starts.push(end);
            end = end.checked_add(*length)?;
        }
        Some(Starts { starts, end })
    }

    /// Of parts that begin there, up to `end`.
    fn until(mut starts: Vec<u64>, end: u64) -> Self {
        starts.retain(|start| *start < end);
        Starts { starts, end }
    }

    /// The part that has the byte at `offset`: where it begins and ends.
    pub(crate) fn part_at(&self, offset: u64) -> Option<(u64, u64)> {
        if offset >= self.end {
            return None;
        }
        let behind = self.starts.partition_point(|start| *start <= offset);
        let start = *self.starts.get(behind.checked_sub(1)?)?;
        Some((start, self.starts.get(behind).copied().unwrap_or(self.end)))
    }

    /// Begins and ends of the parts from the one that has `offset` on.
    pub(crate) fn parts_from(&self, offset: u64) -> Vec<(u64, u64)> {
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        self.starts.iter().copied().zip(ends).filter(|(_, end)| *end > offset).collect()
    }

    /// Where the last part ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

#[derive(Default)]
struct Kept {
    /// Starts of parts that were pushed to extents which are open, or were when this process pushed them: one
    /// extent a stream and as many parts as a seal lists.
    open: BTreeMap<ExtentName, Vec<u64>>,
    extents: BTreeMap<ExtentName, (u64, Arc<Starts>)>,
    count: usize,
    uses: u64,
}

impl Kept {
    fn keep(&mut self, extent: ExtentName, starts: Arc<Starts>) {
        self.uses += 1;
        self.count += starts.starts.len();
        if let Some((_, before)) = self.extents.insert(extent, (self.uses, starts)) {
            self.count -= before.starts.len();
        }
        while self.count > KEPT_STARTS_MAX && self.extents.len() > 1 {
            let oldest = self.extents.iter().min_by_key(|(_, (used, _))| *used).map(|(extent, _)| *extent);
            let Some((_, dropped)) = oldest.and_then(|extent| self.extents.remove(&extent)) else { break };
            self.count -= dropped.starts.len();
        }
    }
}

/// The starts of sealed extents, those that were used last.
#[derive(Default)]
pub(crate) struct PartStarts(Mutex<Kept>);

impl PartStarts {
    /// The starts of a sealed extent of this length.
    pub(crate) async fn sealed(
        &self,
        surroundings: &Surroundings,
        extent: ExtentName,
        length: u64,
        may_go_on: impl Fn() -> bool,
    ) -> Result<Arc<Starts>, StampError> {
        if let Some(starts) = self.kept(extent) {
            return Ok(starts);
        }
        if let Some(starts) = self.close(extent, length) {
            return Ok(starts);
        }
        let starts = Arc::new(read_starts(surroundings, extent, length, may_go_on).await?);
        self.0.lock().keep(extent, starts.clone());
        Ok(starts)
    }

    /// What this process knows of an extent that it wrote, once that is sealed. What was pushed and not
    /// acknowledged would have stopped the range.
    fn close(&self, extent: ExtentName, length: u64) -> Option<Arc<Starts>> {
        let mut kept = self.0.lock();
        let starts = Arc::new(Starts::until(kept.open.remove(&extent)?, length));
        kept.keep(extent, starts.clone());
        Some(starts)
    }

    /// Of extents that are sealed or gone by now only as many are kept as of others. `length_of`: none, the
    /// extent is gone.
    pub(super) fn settle(&self, length_of: impl Fn(ExtentName) -> Option<Option<u64>>) {
        let mut kept = self.0.lock();
        let open: Vec<ExtentName> = kept.open.keys().copied().collect();
        for extent in open {
            match length_of(extent) {
                Some(None) => {}
                // Of one that is gone readers may still hold places.
                sealed_or_gone => {
                    let length = sealed_or_gone.flatten().unwrap_or(u64::MAX);
                    let starts = kept.open.remove(&extent).unwrap_or_default();
                    kept.keep(extent, Arc::new(Starts::until(starts, length)));
                }
            }
        }
    }

    /// A part of an open extent was given its place.
    pub(super) fn appended(&self, extent: ExtentName, start: u64) {
        let mut kept = self.0.lock();
        let starts = kept.open.entry(extent).or_default();
        // Whoever gave out places in order may come here in another.
        let at = starts.partition_point(|other| *other < start);
        starts.insert(at, start);
    }

    /// The part of an open extent that has the byte at `offset`, which was acknowledged. The end may be that
    /// of a later part.
    pub(super) fn open_part_at(&self, extent: ExtentName, offset: u64) -> Option<(u64, u64)> {
        let kept = self.0.lock();
        // It was sealed, or left its stream, since the caller looked.
        if let Some((_, starts)) = kept.extents.get(&extent) {
            return starts.part_at(offset);
        }
        let starts = kept.open.get(&extent)?;
        let behind = starts.partition_point(|start| *start <= offset);
        let start = *starts.get(behind.checked_sub(1)?)?;
        Some((start, starts.get(behind).copied().unwrap_or(u64::MAX)))
    }

    /// The parts of an open extent up to `end`, where what is acknowledged ends.
    pub(super) fn open(&self, extent: ExtentName, end: u64) -> Starts {
        let kept = self.0.lock();
        Starts::until(kept.open.get(&extent).cloned().unwrap_or_default(), end)
    }

    fn kept(&self, extent: ExtentName) -> Option<Arc<Starts>> {
        let mut kept = self.0.lock();
        kept.uses += 1;
        let now = kept.uses;
        let (used, starts) = kept.extents.get_mut(&extent)?;
        *used = now;
        Some(starts.clone())
    }
}

/// Reads where the parts of a sealed extent begin: from its seal, or from one header after the other.
async fn read_starts(
    surroundings: &Surroundings,
    extent: ExtentName,
    length: u64,
    may_go_on: impl Fn() -> bool,
) -> Result<Starts, StampError> {
    let mut back_off = surroundings.back_off();
    let what = format!("the seal of extent {extent} at {length}");
    loop {
        if !may_go_on() {
            return Err(StampError::LeaseEnded);
        }
        match surroundings.read_part(extent, length).await {
            ReadPart::There(header, body) if header.kind == PartKind::Seal => {
                let Some(lengths) = parse_seal_body(&body, &what)? else { break };
                let starts = Starts::of(&lengths).filter(|starts| starts.end() == length);
                let why = || "the parts that it lists do not end there".to_owned();
                return starts.ok_or_else(|| StoredError::Malformed { what, why: why() }.into());
            }
            // An extent that its owner closed alone has no seal there yet, and may have parts behind its end.
            ReadPart::There(..) | ReadPart::Not(Found::NotThere) => break,
            ReadPart::Not(Found::Damaged(error)) => return Err(error.into()),
            ReadPart::Not(_) => back_off.wait().await,
        }
    }
    walk(surroundings, extent, length, may_go_on).await
}

async fn walk(
    surroundings: &Surroundings,
    extent: ExtentName,
    length: u64,
    may_go_on: impl Fn() -> bool,
) -> Result<Starts, StampError> {
    let mut load = ExtentLoad::new(extent, length);
    let (mut ahead, mut lengths) = (HeadersAhead::default(), Vec::new());
    let mut back_off = surroundings.back_off();
    while let Some(offset) = load.next_offset() {
        if !may_go_on() {
            return Err(StampError::LeaseEnded);
        }
        match load.found(ahead.read(surroundings, extent, offset).await)? {
            Some(header) => lengths.push(header.body_length),
            None => back_off.wait().await,
        }
    }
    let why = || "its parts end behind every offset".to_owned();
    let what = || format!("extent {extent}");
    Starts::of(&lengths).ok_or_else(|| StoredError::Malformed { what: what(), why: why() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::Incarnation;

    #[test]
    fn each_offset_lies_in_one_part() {
        let starts = Starts::of(&[10, 5, 1]).unwrap();
        for (offset, part) in [
            (0, Some((0, 10))),
            (9, Some((0, 10))),
            (10, Some((10, 15))),
            (14, Some((10, 15))),
            (15, Some((15, 16))),
            (16, None),
        ] {
            assert_eq!(starts.part_at(offset), part, "{offset}");
        }
        assert_eq!(starts.parts_from(12), [(10, 15), (15, 16)]);
        assert_eq!(starts.parts_from(16), []);
        assert_eq!(Starts::of(&[]).unwrap().part_at(0), None);
        assert_eq!(Starts::of(&[u64::MAX, 1]), None);
    }

    #[test]
    fn what_was_written_is_known_while_it_is_open_sealed_and_gone() {
        let (kept, name) = (PartStarts::default(), |counter| ExtentName::new(Incarnation(1), counter));
        for extent in [1, 2, 3] {
            [0, 20, 10].into_iter().for_each(|start| kept.appended(name(extent), start));
        }
        kept.settle(|extent| match extent.0.counter {
            1 => Some(None),
            // Its last part was not acknowledged.
            2 => Some(Some(20)),
            _ => None,
        });
        let open: Vec<_> = kept.0.lock().open.keys().copied().collect();
        assert_eq!(open, [name(1)]);
        assert_eq!(kept.open(name(1), 20).parts_from(0), [(0, 10), (10, 20)]);
        for (extent, part) in [(1, Some((20, u64::MAX))), (2, None), (3, Some((20, u64::MAX)))] {
            assert_eq!(kept.open_part_at(name(extent), 25), part, "{extent}");
            assert_eq!(kept.open_part_at(name(extent), 12), Some((10, 20)), "{extent}");
        }
    }

    #[test]
    fn no_more_are_kept_than_the_bound_says() {
        let kept = PartStarts::default();
        let large = Arc::new(Starts { starts: vec![0; KEPT_STARTS_MAX / 3], end: 1 });
        let name = |counter| ExtentName::new(Incarnation(1), counter);
        for counter in 0..3 {
            kept.0.lock().keep(name(counter), large.clone());
        }
        assert!(kept.kept(name(0)).is_some());
        kept.0.lock().keep(name(3), large.clone());
        let there: Vec<_> = (0..4).map(|counter| kept.kept(name(counter)).is_some()).collect();
        assert_eq!(there, [true, false, true, true], "the one that was not used for longest goes");
    }
}
