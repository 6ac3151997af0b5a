//! Reading an extent of recorded length, part by part: carries out `stamp::ExtentLoad`.
//!
//! What always holds: an extent is read as a whole or an error says why not; it is never read as shorter
//! than it is recorded. A store that does not answer is tried until `may_go_on` says no.

use crate::error::StampError;
use crate::extents::parts::ReadPart;
use crate::settings::Breach;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use stamp::{ExtentLoad, ExtentName, Found, PartHeader, PartKind};

/// A part of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedPart {
    /// Its header.
    pub header: PartHeader,
    /// Its bytes.
    pub body: Bytes,
}

/// Reads the parts of an extent one after the other.
pub struct ExtentReader<'a> {
    surroundings: &'a Surroundings,
    extent: ExtentName,
    load: ExtentLoad,
    /// A planted fault: what is read instead, from back to front.
    listed: Option<Vec<LoadedPart>>,
    length: u64,
}

impl<'a> ExtentReader<'a> {
    /// Reads `extent` up to `length`.
    pub(crate) fn new(surroundings: &'a Surroundings, extent: ExtentName, length: u64) -> Self {
        ExtentReader { surroundings, extent, load: ExtentLoad::new(extent, length), listed: None, length }
    }

    /// The next part; none at the end of the extent.
    ///
    /// # Errors
    ///
    /// [`StampError::Stored`] if the extent is shorter than recorded, or broken: damage, if the range is
    /// still that of the reader. [`StampError::LeaseEnded`] if `may_go_on` said no.
    pub async fn next(&mut self, may_go_on: impl Fn() -> bool) -> Result<Option<LoadedPart>, StampError> {
        if self.surroundings.settings.planted.has(Breach::CountBehindHole) {
            return self.next_listed().await;
        }
        let mut back_off = self.surroundings.back_off();
        while let Some(offset) = self.load.next_offset() {
            if !may_go_on() {
                return Err(StampError::LeaseEnded);
            }
            let (found, body) = match self.surroundings.read_part(self.extent, offset).await {
                ReadPart::There(header, body) => (Found::Header(header), body),
                ReadPart::Not(found) => (found, Bytes::new()),
            };
            match self.load.found(found)? {
                Some(header) => return Ok(Some(LoadedPart { header, body })),
                None => back_off.wait().await,
            }
        }
        Ok(None)
    }

    /// A planted fault: every part that is listed counts.
    async fn next_listed(&mut self) -> Result<Option<LoadedPart>, StampError> {
        if self.listed.is_none() {
            let mut parts = listed_parts(self.surroundings, self.extent).await?;
            parts.retain(|part| part.header.offset < self.length);
            parts.reverse();
            self.listed = Some(parts);
        }
        Ok(self.listed.as_mut().and_then(Vec::pop))
    }
}

/// A planted fault: every part of an extent that is listed, whether it continues the chain or not.
pub(crate) async fn listed_parts(
    surroundings: &Surroundings,
    extent: ExtentName,
) -> Result<Vec<LoadedPart>, StampError> {
    let mut parts = Vec::new();
    for path in surroundings.list_parts().await?.into_iter().filter(|path| path.extent == extent) {
        if let ReadPart::There(header, body) = surroundings.read_part(extent, path.offset).await
            && header.kind == PartKind::Part
        {
            parts.push(LoadedPart { header, body });
        }
    }
    Ok(parts)
}
