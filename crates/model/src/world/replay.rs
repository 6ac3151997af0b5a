//! What a document says that its log has: the checkpoint's writes, then those of the extents, within the
//! keys.

use crate::object_store::ObjectStore;
use crate::setting::Breach;
use crate::setting::Breaches;
use crate::world::history::History;
use crate::world::names::{Write, is_within};
use stamp::{ExtentLoad, ExtentName, KeyLimits, PartKind, RangeDocument, StoredError};

/// Replays the log of `document` as its loader does. An error is a broken chain, or an extent that is short.
pub(crate) fn replay(
    document: &RangeDocument,
    store: &ObjectStore,
    history: &History,
    breaches: Breaches,
) -> Result<Vec<Write>, StoredError> {
    let mut writes = Vec::new();
    for (id, stream) in &document.streams {
        for ordinal in 0..stream.trim.ordinal {
            let checkpointed = history.checkpointed.get(&(*id, ordinal));
            let kept = checkpointed.into_iter().flatten();
            writes.extend(kept.filter(|write| is_within(**write, &document.keys)));
        }
        for entry in &stream.extents {
            let Some(length) = entry.length else { continue };
            let read = match breaches.has(Breach::CountBehindHole) {
                true => listed_writes(entry.name, length, store),
                false => extent_writes(entry.name, length, store)?,
            };
            let limits = entry.limits.clone().unwrap_or_else(|| document.keys.clone());
            let limits: KeyLimits = limits.intersection(&document.keys);
            writes.extend(read.into_iter().filter(|write| is_within(*write, &limits)));
        }
    }
    Ok(writes)
}

/// The writes in an extent of this length.
pub(crate) fn extent_writes(
    extent: ExtentName,
    length: u64,
    store: &ObjectStore,
) -> Result<Vec<Write>, StoredError> {
    let mut load = ExtentLoad::new(extent, length);
    let mut writes = Vec::new();
    while let Some(offset) = load.next_offset() {
        if let Some(header) = load.found(store.read(extent, offset))? {
            writes.push(header.body_checksum);
        }
    }
    Ok(writes)
}

fn listed_writes(extent: ExtentName, length: u64, store: &ObjectStore) -> Vec<Write> {
    let parts = store.objects_of(extent).filter(|header| header.kind == PartKind::Part);
    parts.filter(|header| header.offset < length).map(|header| header.body_checksum).collect()
}
