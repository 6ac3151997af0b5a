//! The parts of a stamp's extents, each read and verified, before the check of what lies in them.
//!
//! What always holds: what a served stamp dropped meanwhile is no damage: what is damaged is looked at again
//! in a newer snapshot, and said to have changed if nothing names it there.

use crate::output::progress::Progress;
use stamp::ExtentName;
use stamp_streams::{DamagedObject, ExtentCheck, SnapshotLayer, StampError, StampSnapshot, Surroundings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::{DamagedPart, StreamDamage, StreamLayer};

/// How often a snapshot is taken until no document has changed while the open extents' ends were looked for.
const LOOKS_MAX: usize = 10;

/// A stamp at one moment, to read.
pub(crate) struct Look {
    pub(super) snapshot: StampSnapshot,
    pub(super) layers: Vec<Arc<SnapshotLayer>>,
    /// All extents that the documents list, with their lengths.
    pub(super) lengths: BTreeMap<ExtentName, u64>,
    /// Open extents whose chain is broken.
    broken: Vec<(ExtentName, StampError)>,
}

impl Look {
    /// Reads the documents and finds the ends of open extents; again, if a document has changed between. What
    /// parts before those ends name is then in the documents.
    pub(crate) async fn read(
        surroundings: &Surroundings,
        first: Option<StampSnapshot>,
    ) -> Result<Self, StampError> {
        let mut next = first;
        for _ in 0..LOOKS_MAX {
            let snapshot = match next.take() {
                Some(snapshot) => snapshot,
                None => read(surroundings).await?,
            };
            let (mut layers, mut broken) = (Vec::new(), Vec::new());
            for range in snapshot.ranges().keys() {
                let (layer, broken_tails) = SnapshotLayer::open_damaged(&snapshot, *range).await?;
                layers.push(layer);
                broken.extend(broken_tails);
            }
            let after = read(surroundings).await?;
            let marks = |snapshot: &StampSnapshot| -> Vec<_> {
                snapshot.ranges().iter().map(|(id, range)| (*id, range.document.mark)).collect()
            };
            if marks(&after) == marks(&snapshot) {
                let lengths = layers.iter().flat_map(|layer| layer.lengths()).collect();
                return Ok(Look { snapshot, layers, lengths, broken });
            }
            next = Some(after);
        }
        Err(StampError::Raced("the stamp changes faster than it can be looked at: try again".to_owned()))
    }

    /// The open ones of them.
    pub(crate) fn open(&self) -> BTreeMap<ExtentName, u64> {
        let ranges = self.snapshot.ranges().values();
        let open = ranges.flat_map(|range| range.document.unsealed().map(|(_, entry)| entry.name));
        open.filter_map(|extent| Some((extent, *self.lengths.get(&extent)?))).collect()
    }

    async fn check(&self, extent: ExtentName, read: &mut (dyn FnMut(u64) + Send)) -> CheckedExtent {
        let length = self.lengths.get(&extent).copied().unwrap_or(0);
        let mut checked = self.snapshot.check_extent(extent, length, read).await?;
        let broken = self.broken.iter().filter(|(name, _)| *name == extent);
        for (_, error) in broken {
            match error {
                StampError::Stored(error) => {
                    let object = format!("extent {extent}");
                    checked.damages.push(DamagedObject { object, problem: error.to_string() });
                }
                error => return Err(error.clone()),
            }
        }
        Ok(checked)
    }

    pub(super) fn streams_of(&self, extent: ExtentName) -> Vec<stream::StreamName> {
        let short = extent.short();
        let streams = self.layers.iter().flat_map(|layer| {
            let lists = move |name: &stream::StreamName| {
                layer.stat(name).is_ok_and(|stat| stat.extents.iter().any(|(extent, _)| *extent == short))
            };
            layer.list("").into_iter().filter(lists)
        });
        streams.collect()
    }
}

type CheckedExtent = Result<ExtentCheck, StampError>;

async fn read(surroundings: &Surroundings) -> Result<StampSnapshot, StampError> {
    let snapshot = StampSnapshot::read(surroundings).await?;
    snapshot.ok_or_else(|| StampError::Raced("the stamp is gone from etcd meanwhile".to_owned()))
}

/// What was found of the parts.
#[derive(Default)]
pub(super) struct CheckedParts {
    pub(super) damages: Vec<StreamDamage>,
    pub(super) extent_count: u64,
    pub(super) part_count: u64,
    pub(super) block_count: u64,
    pub(super) size_bytes: u64,
    /// Extents that were damaged or gone, and that a newer snapshot does not name.
    pub(super) changed: BTreeSet<ExtentName>,
}

/// Reads all parts. If something is damaged and the stamp is served, that is looked at again, and the newer
/// look comes back.
pub(super) async fn check_parts(
    surroundings: &Surroundings,
    mut look: Look,
    progress: &mut Progress,
) -> Result<(Look, CheckedParts), StampError> {
    let mut found = CheckedParts::default();
    let all = look.lengths.values().sum();
    let mut done = 0;
    let mut damaged = Vec::new();
    progress.bar(done, all);
    for extent in look.lengths.keys().copied() {
        let mut note = |bytes| {
            done += bytes;
            progress.bar(done, all);
        };
        let checked = look.check(extent, &mut note).await?;
        found.extent_count += 1;
        found.part_count += checked.part_count;
        found.block_count += checked.block_count;
        found.size_bytes += checked.size_bytes;
        if !checked.damages.is_empty() {
            damaged.push((extent, checked.damages));
        }
    }
    if !damaged.is_empty() && look.snapshot.is_served() {
        look = Look::read(surroundings, None).await?;
        let again = std::mem::take(&mut damaged);
        for (extent, _) in again {
            if !look.snapshot.names(extent) {
                found.changed.insert(extent);
                continue;
            }
            let checked = look.check(extent, &mut |_| ()).await?;
            if !checked.damages.is_empty() {
                damaged.push((extent, checked.damages));
            }
        }
    }
    for (extent, damages) in damaged {
        let streams = look.streams_of(extent);
        let damages = damages.into_iter().map(|DamagedObject { object: place, problem }| StreamDamage {
            place,
            problem,
            part: DamagedPart::File,
            streams: streams.clone(),
        });
        found.damages.extend(damages);
    }
    Ok((look, found))
}
