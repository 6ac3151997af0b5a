//! Every part of an extent is read: chain, checksums, blocks, and what its seal lists.
//!
//! What always holds: damage of one part's body hides none behind it; a part that is missing, or whose header
//! does not read, ends the chain, so what is behind it is not looked at. A store that does not answer is an
//! error, never damage.

use crate::error::StampError;
use crate::extents::load::LoadedPart;
use crate::extents::parts::ReadPart;
use crate::layer::replay::block_in;
use crate::snapshot::parts::SnapshotParts;
use crate::snapshot::stamp_snapshot::StampSnapshot;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use stamp::{Chain, ExtentName, Found, PartKind, PartPath, StoredError, parse_seal_body};

/// How often a seal is tried to read.
const TRIES_MAX: usize = 8;

/// An object of an extent that is damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedObject {
    /// Its name in the object store.
    pub object: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What an extent turned out to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentCheck {
    /// What is damaged, in the order of the extent.
    pub damages: Vec<DamagedObject>,
    /// Parts that were read.
    pub part_count: u64,
    /// Whole blocks in them.
    pub block_count: u64,
    /// Bytes of the parts.
    pub size_bytes: u64,
    /// Whether the object store has the extent's seal.
    pub is_sealed: bool,
}

impl StampSnapshot {
    /// Checks an extent of `length` bytes. `read` gets the bytes of each part that was read.
    ///
    /// # Errors
    ///
    /// If the object store does not answer.
    pub async fn check_extent(
        &self,
        extent: ExtentName,
        length: u64,
        read: &mut (dyn FnMut(u64) + Send),
    ) -> Result<ExtentCheck, StampError> {
        let surroundings = self.surroundings();
        let mut checked = ExtentCheck::default();
        let mut parts = SnapshotParts::new(surroundings, extent, Some(length));
        let mut chain = Chain::new(extent);
        let mut lengths = Vec::new();
        loop {
            match parts.next_unchecked().await {
                Ok(Some(part)) => {
                    // It was continued by the reader already.
                    let _ = chain.extend(&part.header);
                    lengths.push(part.header.body_length);
                    read(part.header.body_length);
                    checked.part_count += 1;
                    checked.size_bytes += part.header.body_length;
                    if let Err(problem) = count_blocks(&part, &mut checked.block_count) {
                        let object = surroundings.part_name(extent, part.header.offset);
                        checked.damages.push(DamagedObject { object, problem });
                    }
                }
                Ok(None) => break,
                Err(StampError::Stored(error)) => {
                    let (object, problem) = (surroundings.part_name(extent, chain.end()), error.to_string());
                    checked.damages.push(DamagedObject { object, problem });
                    return Ok(checked);
                }
                Err(error) => return Err(error),
            }
        }
        match check_seal(surroundings, &mut chain, &lengths).await? {
            Ok(is_sealed) => checked.is_sealed = is_sealed,
            Err(problem) => {
                let object = surroundings.part_name(extent, length);
                checked.damages.push(DamagedObject { object, problem });
            }
        }
        Ok(checked)
    }
}

/// Counts the blocks of a part, each verified.
fn count_blocks(part: &LoadedPart, count: &mut u64) -> Result<(), String> {
    part.header.check_body(&part.body).map_err(|error| error.to_string())?;
    let mut at = 0;
    while at < part.body.len() {
        let (extent, start) = (part.header.place.extent, part.header.offset);
        let (_, _, behind) = block_in(extent, start, &part.body, at).map_err(|error| error.to_string())?;
        at = behind;
        *count += 1;
    }
    Ok(())
}

/// Whether there is a seal at the end of the chain, or what is wrong with it. One that its owner has closed
/// in the document alone has none, and may have a part there that never counted; an open one has none.
async fn check_seal(
    surroundings: &Surroundings,
    chain: &mut Chain,
    lengths: &[u64],
) -> Result<Result<bool, String>, StampError> {
    let (extent, end) = (chain.extent(), chain.end());
    let what = format!("the seal of extent {extent} at {end}");
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        let (header, body) = match surroundings.read_part(extent, end).await {
            ReadPart::There(header, body) => (header, body),
            ReadPart::Not(Found::NotThere) => return Ok(Ok(false)),
            ReadPart::Not(Found::Damaged(error)) => return Ok(Err(error.to_string())),
            ReadPart::Not(_) => {
                back_off.wait().await;
                continue;
            }
        };
        if header.kind == PartKind::Part {
            return Ok(Ok(false));
        }
        let listed = chain.extend(&header).and_then(|_| parse_seal_body(&body, &what));
        return Ok(match listed {
            Ok(Some(listed)) if listed != lengths => {
                let why = "it lists other parts than those that are there".to_owned();
                Err(StoredError::Malformed { what, why }.to_string())
            }
            Ok(_) => Ok(true),
            Err(error) => Err(error.to_string()),
        });
    }
    Err(StampError::store(&what, StoreError::Unavailable("no answer".to_owned())))
}

/// The objects of all extents that a listing of the object store shows. To know which of them no document
/// names, list them **before** a snapshot is read: an extent is in a document before its first part is sent.
///
/// # Errors
///
/// If the object store can't be reached.
pub async fn list_extent_objects(surroundings: &Surroundings) -> Result<Vec<PartPath>, StampError> {
    surroundings.list_parts().await
}
