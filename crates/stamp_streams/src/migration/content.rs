//! What a document says of a migration, and the changes that begin and end one: pure.

use crate::migration::MIGRATING;
use stamp::{
    Change, ChangeError, DOCUMENT_RESERVE_BYTES, DOCUMENT_SIZE_BYTES_MAX, ExtentEntry, ExtentName,
    Incarnation, KeyLimits, Mark, OwnEntry, OwnerEpoch, RangeDocument, RangeId, StampId, StreamId,
    apply_changes, encode_document,
};
use std::collections::BTreeMap;
use stream::{ExtentId, ManifestExtent, STREAM_NAME_SIZE_MAX, StreamManifest, StreamName};

/// Bytes of a document that a migration leaves free: the process that serves lists more extents, and takes no
/// writes while the document is in its reserve.
const LEFT_FREE_BYTES: usize = DOCUMENT_RESERVE_BYTES + (16 << 10);

/// What the document of a stamp's range says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There are no streams.
    Empty,
    /// A migration of the source with this fingerprint is not finished.
    Unfinished(u64),
    /// The stamp has this many streams.
    Streams(usize),
}

/// Looks at a document.
pub(crate) fn content_of(document: &RangeDocument) -> Content {
    let mut fingerprints = document.streams.values().map(|stream| fingerprint_of(&stream.purpose));
    match fingerprints.next() {
        None => Content::Empty,
        Some(Some(first)) if fingerprints.all(|other| other == Some(first)) => Content::Unfinished(first),
        Some(_) => Content::Streams(document.streams.len()),
    }
}

/// Whether a migration into this range is not finished.
pub(crate) fn is_unfinished(document: &RangeDocument) -> bool {
    document.streams.values().any(|stream| stream.purpose.starts_with(MIGRATING))
}

/// The purpose of one of the streams that list what was copied.
pub(crate) fn lane_purpose(fingerprint: u64, lane: usize) -> String {
    format!("{MIGRATING}{fingerprint:016x}/{lane}")
}

fn fingerprint_of(purpose: &str) -> Option<u64> {
    let (fingerprint, _) = purpose.strip_prefix(MIGRATING)?.split_once('/')?;
    u64::from_str_radix(fingerprint, 16).ok().filter(|_| fingerprint.len() == 16)
}

/// The streams that a document lists, as a folder's; none if an extent has no recorded length, or a name is
/// not one that upper layers give.
pub(crate) fn manifest_of(document: &RangeDocument) -> Option<StreamManifest> {
    let mut manifest = StreamManifest::default();
    for stream in document.streams.values() {
        if stream.purpose.is_empty() || stream.purpose.len() > STREAM_NAME_SIZE_MAX {
            return None;
        }
        let name = StreamName::new(&stream.purpose);
        manifest.streams.entry(name.clone()).or_default();
        for entry in &stream.extents {
            let extent = ManifestExtent { length: entry.length?, digest: None };
            manifest.list(&name, entry.name.short(), extent);
        }
    }
    Some(manifest)
}

/// What is copied already, and what must leave the lists: it was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// The extents that are whole, by their short names.
    pub(crate) whole: BTreeMap<ExtentId, (StreamId, ExtentEntry)>,
    /// The others, with the streams that list them.
    pub(crate) cut_off: Vec<(StreamId, ExtentName)>,
}

/// Finds out what the document has of the manifest's extents.
pub(crate) fn copied(document: &RangeDocument, manifest: &StreamManifest) -> Copied {
    let mut copied = Copied::default();
    for (stream, entry) in
        document.streams.iter().flat_map(|(id, stream)| stream.extents.iter().map(move |entry| (*id, entry)))
    {
        let short = entry.name.short();
        let wanted = manifest.extents.get(&short).map(|extent| extent.length);
        let is_whole = wanted.is_some() && wanted == entry.length && !copied.whole.contains_key(&short);
        if is_whole {
            copied.whole.insert(short, (stream, entry.clone()));
        } else {
            copied.cut_off.push((stream, entry.name));
        }
    }
    copied
}

/// The changes that end a migration: the manifest's streams are there and list what was copied, all others
/// go. None if an extent is missing.
pub(crate) fn last_changes(
    document: &RangeDocument,
    manifest: &StreamManifest,
    mut new_id: impl FnMut() -> StreamId,
) -> Option<Vec<Change>> {
    let copied = copied(document, manifest);
    let mut changes = Vec::new();
    for (name, extents) in &manifest.streams {
        let stream = new_id();
        changes.push(Change::CreateStream { stream, purpose: name.as_str().to_owned() });
        // Runs of extents of one stream are one change.
        let mut last: Option<(StreamId, Vec<ExtentName>)> = None;
        for extent in extents {
            let (from, entry) = copied.whole.get(extent)?;
            match &mut last {
                Some((run, names)) if run == from => names.push(entry.name),
                _ => {
                    let run = last.replace((*from, vec![entry.name]));
                    changes.extend(run.map(|(from, extents)| Change::Share { from, to: stream, extents }));
                }
            }
        }
        changes.extend(last.map(|(from, extents)| Change::Share { from, to: stream, extents }));
    }
    changes.extend(document.streams.keys().map(|lane| Change::DeleteStream { stream: *lane }));
    Some(changes)
}

/// Whether a document has room for the manifest; if not, why.
pub(crate) fn check_size(manifest: &StreamManifest, stamp: StampId) -> Result<(), String> {
    let size = size_with(manifest, stamp).map_err(|error| error.to_string())?;
    let size_max = DOCUMENT_SIZE_BYTES_MAX - LEFT_FREE_BYTES;
    if size <= size_max {
        return Ok(());
    }
    let listed: usize = manifest.streams.values().map(Vec::len).sum();
    Err(format!(
        "the document of the stamp would have {size} bytes, of {size_max} that it may have at first: {} streams \
         list {listed} extents; let the server compact the folder, or delete what is not needed",
        manifest.streams.len()
    ))
}

fn size_with(manifest: &StreamManifest, stamp: StampId) -> Result<usize, ChangeError> {
    let by = Incarnation(1);
    let own = OwnEntry { owner: Some(by), epoch: OwnerEpoch(u64::MAX) };
    let empty = RangeDocument::new(RangeId::new(by, 0), own, KeyLimits::default(), Mark::new(by, 0));
    let lane = StreamId::new(by, 0);
    let mut changes = vec![Change::CreateStream { stream: lane, purpose: lane_purpose(0, 0) }];
    for (id, found) in &manifest.extents {
        let (extent, length) = (ExtentName::of_short(by, *id), found.length);
        changes.push(Change::AddExtent { stream: lane, extent });
        changes.push(Change::RecordLength { stream: lane, extent, length });
    }
    let document = apply_changes(&empty, &changes)?.document;
    let mut counter = 0;
    let last = last_changes(&document, manifest, || {
        counter += 1;
        StreamId::new(by, counter)
    });
    let document = apply_changes(&document, &last.unwrap_or_default())?.document;
    Ok(encode_document(&document, stamp).len())
}

#[cfg(test)]
mod tests;
