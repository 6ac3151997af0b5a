//! The parts of an extent: up to its recorded length, or of an open one up to the end of its chain.
//!
//! What always holds: parts come in order from offset 0 on, each continuing the chain of those before it; an
//! extent of recorded length is read as a whole or an error says why not; an open one ends at its seal, or
//! where nothing is: what lies behind a hole was never acknowledged.

use crate::error::StampError;
use crate::extents::load::LoadedPart;
use crate::extents::parts::ReadPart;
use crate::snapshot::parts_ahead::{Hint, ObjectRead, PartsAhead};
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use stamp::{Chain, ExtentLoad, ExtentName, Found, Link, PartHeader, PartKind, parse_seal_body};

/// What ends the parts of an extent.
enum Until {
    Length(ExtentLoad, u64),
    /// The end of the chain.
    Chain(Chain),
    Ended,
}

/// Reads the parts of an extent one after the other, ahead of who asks.
pub struct SnapshotParts {
    surroundings: Surroundings,
    extent: ExtentName,
    until: Until,
    end: u64,
    ahead: Option<PartsAhead>,
}

impl SnapshotParts {
    /// Reads `extent` up to its recorded length, or, without one, to the end of its chain.
    pub(crate) fn new(surroundings: &Surroundings, extent: ExtentName, length: Option<u64>) -> Self {
        let until = match length {
            Some(length) => Until::Length(ExtentLoad::new(extent, length), length),
            None => Until::Chain(Chain::new(extent)),
        };
        SnapshotParts { surroundings: surroundings.clone(), extent, until, end: 0, ahead: None }
    }

    /// Bytes of the parts that were read.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The next part; none at the end.
    ///
    /// # Errors
    ///
    /// [`StampError::Stored`] if the extent is shorter than recorded, its chain is broken or a part is
    /// damaged; [`StampError::Store`] if the store does not answer. Nothing is read behind an error.
    pub async fn next(&mut self) -> Result<Option<LoadedPart>, StampError> {
        let Some(part) = self.next_unchecked().await? else { return Ok(None) };
        part.header.check_body(&part.body)?;
        Ok(Some(part))
    }

    /// The next part, whose body the caller checks against its header: behind one whose body is damaged the
    /// chain can be followed on.
    ///
    /// # Errors
    ///
    /// As of [`Self::next`], but for bodies.
    pub async fn next_unchecked(&mut self) -> Result<Option<LoadedPart>, StampError> {
        let offset = match &self.until {
            Until::Length(load, _) => load.next_offset(),
            Until::Chain(chain) => Some(chain.end()),
            Until::Ended => None,
        };
        let Some(offset) = offset else { return Ok(None) };
        let ahead = match &mut self.ahead {
            Some(ahead) => ahead,
            None => {
                let hints = self.hints().await;
                self.ahead.insert(PartsAhead::new(&self.surroundings, self.extent, hints))
            }
        };
        let (found, body) = match ahead.read(offset).await {
            ObjectRead::There(header, body) => (Found::Header(header), body),
            ObjectRead::NotThere => (Found::NotThere, Default::default()),
            ObjectRead::Damaged(error) => (Found::Damaged(error), Default::default()),
            ObjectRead::NoAnswer => {
                let error = StoreError::Unavailable("no answer".to_owned());
                let what = format!("part at {offset} of extent {}", self.extent);
                return Err(StampError::store(&what, error));
            }
        };
        let next = self.step(found);
        if !matches!(next, Ok(Some(_))) {
            self.until = Until::Ended;
        }
        let Some(header) = next? else { return Ok(None) };
        self.end = header.end();
        Ok(Some(LoadedPart { header, body }))
    }

    /// The part that counts; none at the end.
    fn step(&mut self, found: Found) -> Result<Option<PartHeader>, StampError> {
        match (&mut self.until, found) {
            (Until::Length(load, _), found) => Ok(load.found(found)?),
            (Until::Chain(chain), Found::Header(header)) => {
                Ok((chain.extend(&header)? == Link::Part).then_some(header))
            }
            (Until::Chain(_), Found::Damaged(error)) => Err(error.into()),
            (Until::Chain(_) | Until::Ended, _) => Ok(None),
        }
    }

    /// Where the parts likely lie: by the seal, or by a listing.
    async fn hints(&self) -> Vec<Hint> {
        if let Until::Length(_, length) = &self.until
            && let ReadPart::There(header, body) = self.surroundings.read_part(self.extent, *length).await
            && header.kind == PartKind::Seal
            && let Ok(Some(lengths)) = parse_seal_body(&body, "the seal")
        {
            let mut offset: u64 = 0;
            let hint = |length: &u64| {
                let hint = (offset, *length);
                offset = offset.saturating_add(*length);
                hint
            };
            return lengths.iter().map(hint).collect();
        }
        let mut offsets = self.surroundings.list_offsets(self.extent, 0).await.unwrap_or_default();
        if let Until::Length(_, length) = &self.until {
            offsets.retain(|offset| offset < length);
        }
        offsets.sort_unstable();
        let ends = offsets.iter().skip(1).copied().chain(offsets.last().copied());
        offsets.iter().copied().zip(ends).map(|(offset, end)| (offset, end - offset)).collect()
    }
}
