//! Finding the partition map at the start: its range, or its copy, or what the ranges' own metadata say.
//!
//! The map's range counts if all of it reads and its rows make sense. If it does not, the copy counts
//! (`keep_map_copy` says why that is never an older state), and the range is built anew from it: under names
//! of its own at first, which take the place of the former streams in one change of the stream layer. A start
//! that is cut off before that begins again, one that is cut off after it finds a map's range that reads. If
//! neither reads, each range knows its own keys: if these cover every key of each table exactly once, they
//! are the map. Else the start is refused, because a guess might serve a range in its state before a split.
//!
//! What always holds: before anything is served, range and copy hold the same, but for marks of deleted
//! containers that are too many for the copy. Such marks are never made up: what is derived has none.

use super::map_copy_stream::{FoundCopy, MapCopy, read_copy};
use super::range_ids::{FIRST_RANGE_ID, range_ids};
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::map::check_cover::check_cover;
use crate::map::choose_owner::choose_owner;
use crate::map::container_marks::{CountMarks, MarkRows, all_marks};
use crate::map::dead_containers::DeadContainers;
use crate::map::map_copy::{CollectMap, MapContent, MapRow};
use crate::map::partition_map::{MapEntry, ReadMap};
use crate::operation::{OBJECT_TABLES, ObjectTable, RowChange, RowVersion};
use crate::range_partition::{
    self, LoadError, RangeOwners, RangePartition, RangeStreams, ReadRange, Shared, is_empty, newest_owner,
};
use crate::tree::metadata::Metadata;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::{Owner, Salvaged, StreamChange, StreamName, Streams};

/// Where a map's range is built before it takes its place.
const MENDED_FOLDER: &str = "partition_map/mended/";

/// The map, open.
pub(super) struct OpenedMap {
    pub(super) range: Arc<RangePartition>,
    pub(super) copy: MapCopy,
    pub(super) entries: Vec<MapEntry>,
    /// How many marks of deleted containers there are.
    pub(super) marks: CountMarks,
    /// It was read from its range: what it does not name is an orphan for certain.
    pub(super) is_first_hand: bool,
}

/// What was found of the map's range.
enum FoundMap {
    /// It was never made, or its streams are gone.
    Absent,
    Whole(WholeMap),
    Damaged(PartitionError),
}

/// The map's range, if it reads.
struct WholeMap {
    range: Box<ReadRange>,
    content: MapContent,
    marks: CountMarks,
}

/// Where the map comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Its range.
    Range,
    /// The copy: this is wrong with the range.
    Copy(String),
    /// Nothing was ever stored.
    Fresh,
    /// The ranges' metadata: this is wrong with the others.
    Ranges(String),
}

/// Chooses by what reads. `has_ranges`: there are streams of ranges of other tables.
fn choose_source(map: &FoundMap, copy: &FoundCopy, has_ranges: bool) -> Source {
    let lost = match map {
        FoundMap::Whole(..) => return Source::Range,
        FoundMap::Damaged(error) => error.to_string(),
        FoundMap::Absent => "it has no streams".to_owned(),
    };
    match (map, copy) {
        (_, FoundCopy::Whole(_)) => Source::Copy(lost),
        (_, FoundCopy::Damaged(error)) => Source::Ranges(format!("{lost}; the copy: {error}")),
        (FoundMap::Absent, FoundCopy::Absent) if !has_ranges => Source::Fresh,
        (_, FoundCopy::Absent) => Source::Ranges(format!("{lost}; there is no copy")),
    }
}

/// What there is at the start.
struct StartState {
    map: FoundMap,
    copy: FoundCopy,
    source: Source,
}

/// Reads range and copy. Changes nothing.
async fn find(shared: &Shared) -> Result<StartState, PartitionError> {
    let streams = &shared.streams;
    let map = find_map(shared).await?;
    let mut copy = read_copy(streams).await?;
    if !matches!(map, FoundMap::Whole(..))
        && let FoundCopy::Whole(content) = &copy
        && let Err(error) = check_content(streams, content).and_then(|()| check_is_newest(streams, content))
    {
        copy = FoundCopy::Damaged(error);
    }
    let has_ranges = OBJECT_TABLES.into_iter().any(|table| !range_ids(streams, table).is_empty());
    let source = choose_source(&map, &copy, has_ranges);
    Ok(StartState { map, copy, source })
}

/// Opens the map, and mends whichever of its range and its copy does not read.
pub(super) async fn open_map(shared: &Shared) -> Result<OpenedMap, PartitionError> {
    let streams = &shared.streams;
    let StartState { map, copy, source } = find(shared).await?;
    let is_first_hand = !matches!(source, Source::Copy(_) | Source::Ranges(_));
    let WholeMap { range: read, content, mut marks } = match (source, map) {
        (_, FoundMap::Whole(whole)) => whole,
        (Source::Fresh | Source::Range, _) => {
            let (table, id) = NAME;
            RangePartition::create(shared, table, id, KeyRange::all()).await?;
            read_map(shared).await?
        }
        (Source::Copy(why), _) => {
            tracing::warn!(why, "the partition map does not read: its range is made anew from the copy");
            let FoundCopy::Whole(content) = &copy else { return Err(lost(&why)) };
            mend(shared, content).await?
        }
        (Source::Ranges(why), _) => {
            let content = derive(shared, &why).await?;
            tracing::warn!(
                why,
                "the partition map and its copy do not read: they are made anew from the ranges' own metadata"
            );
            mend(shared, &content).await?
        }
    };
    let copy = open_copy(shared, &content, copy).await?;
    let entries = entries_of(&content)?;
    // No map names it: its streams alone say whose it was.
    let owner = choose_owner(read.newest_owner(streams)?, shared.life.incarnation);
    let owners = RangeOwners { owner: Some(owner), named: None };
    let range = match RangePartition::open(shared.clone(), NAME, *read, owners).await {
        Err(LoadError::Damaged(error)) => {
            // The end of one of its streams is not certain, but all that was appended before reads.
            tracing::warn!(%error, "the partition map takes no changes: its range is made anew");
            let mended = mend(shared, &content).await?;
            marks = mended.marks;
            RangePartition::open(shared.clone(), NAME, *mended.range, owners).await?
        }
        opened => opened?,
    };
    Ok(OpenedMap { range, copy, entries, marks, is_first_hand })
}

/// What a check finds of the map, without changing anything.
pub(crate) struct MapLook {
    /// What is wrong with the range, and with the copy.
    pub(crate) range: Option<PartitionError>,
    pub(crate) copy: Option<PartitionError>,
    pub(crate) entries: Vec<MapEntry>,
    pub(crate) dead: DeadContainers,
}

/// Looks at both places of the map. An error is one with which the start is refused.
pub(crate) async fn look_at_map(shared: &Shared) -> Result<MapLook, PartitionError> {
    let StartState { map, copy, source } = find(shared).await?;
    let copy_error = match &copy {
        FoundCopy::Damaged(error) => Some(error.clone()),
        FoundCopy::Whole(_) | FoundCopy::Absent => None,
    };
    let (range, content, whole) = match (&source, map, copy) {
        (_, FoundMap::Whole(WholeMap { range, content, marks }), _) => (None, content, Some((range, marks))),
        (Source::Copy(why), _, FoundCopy::Whole(content)) => (Some(lost(why)), content, None),
        (Source::Ranges(why), ..) => (Some(lost(why)), derive(shared, why).await?, None),
        _ => (None, MapContent::default(), None),
    };
    let entries = entries_of(&content)?;
    let (rows, marks): (Arc<dyn MarkRows>, CountMarks) = match whole {
        Some((range, marks)) => (Arc::new(*range), marks),
        None => {
            let mut marks = CountMarks::default();
            content.show(&all_marks(), &mut marks);
            (Arc::new(content), marks)
        }
    };
    let at_hand_max = shared.settings.marks_at_hand_max;
    let dead = DeadContainers::new(rows, marks.counts()?, at_hand_max, &*shared.clock);
    Ok(MapLook { range, copy: copy_error, entries, dead })
}

/// The map's range.
const NAME: (ObjectTable, u64) = (ObjectTable::PartitionMap, FIRST_RANGE_ID);

fn map_streams() -> RangeStreams {
    RangeStreams::new(NAME.0, NAME.1)
}

fn lost(why: &str) -> PartitionError {
    PartitionError::Storage(format!("the partition map is lost: {why}"))
}

/// Reads the map's range. Changes nothing.
async fn find_map(shared: &Shared) -> Result<FoundMap, PartitionError> {
    let (streams, names) = (&shared.streams, map_streams());
    let is_there = streams.exists(names.metadata()) || streams.exists(names.log());
    if !is_there || streams.stat(names.metadata()).is_ok_and(|stat| is_empty(&stat)) {
        return Ok(FoundMap::Absent);
    }
    match read_map(shared).await {
        Ok(whole) => Ok(FoundMap::Whole(whole)),
        Err(LoadError::Damaged(error)) => Ok(FoundMap::Damaged(error)),
        Err(LoadError::Failed(error)) => Err(error),
    }
}

async fn read_map(shared: &Shared) -> Result<WholeMap, LoadError> {
    let range = Box::new(range_partition::read(shared, map_streams(), &KeyRange::all()).await?);
    let mut rows = CollectMap::new(shared.settings.marks_at_hand_max);
    range.scan(&KeyRange::all(), &mut rows).await?;
    let content = MapContent { version: range.last_version(), rows: rows.rows };
    check_content(&shared.streams, &content)?;
    let mut marks = CountMarks::default();
    range.scan(&all_marks(), &mut marks).await?;
    marks.counts()?;
    Ok(WholeMap { range, content, marks })
}

/// Whether the rows make sense: each table's ranges cover every key once, or it has none yet.
fn check_content(streams: &Streams, content: &MapContent) -> Result<(), PartitionError> {
    let mut entries = entries_of(content)?;
    let mut marks = CountMarks::default();
    content.show(&all_marks(), &mut marks);
    marks.counts()?;
    for table in OBJECT_TABLES {
        if entries.iter().any(|entry| entry.table == table) {
            continue;
        }
        if let Some(lost) = range_ids(streams, table).range(FIRST_RANGE_ID + 1..).next() {
            return Err(PartitionError::Storage(format!(
                "the partition map names no range of table {}, but there are streams of its range {lost}",
                table.name()
            )));
        }
        // It gets its first range in a moment.
        entries.push(MapEntry { table, id: FIRST_RANGE_ID, range: KeyRange::all(), owner: None });
    }
    check_cover(&entries)
}

/// Whether the streams that are there contradict that a copy, beside which the map does not read, is the
/// newest one: it names a range that has gone, while another one of the same table is there that it does not
/// name.
fn check_is_newest(streams: &Streams, content: &MapContent) -> Result<(), PartitionError> {
    let entries = entries_of(content)?;
    for table in OBJECT_TABLES {
        let named = |id: &u64| entries.iter().any(|entry| entry.table == table && entry.id == *id);
        let there = range_ids(streams, table);
        let gone = entries.iter().find(|entry| entry.table == table && !there.contains(&entry.id));
        if let (Some(gone), Some(other)) = (gone, there.iter().find(|id| !named(id))) {
            let (table, gone) = (table.name(), gone.id);
            return Err(PartitionError::Storage(format!(
                "it is older than the map: it names range {gone} of table {table}, which has gone, and not range {other}"
            )));
        }
    }
    Ok(())
}

fn entries_of(content: &MapContent) -> Result<Vec<MapEntry>, PartitionError> {
    let mut map = ReadMap::default();
    content.show(&ReadMap::range(), &mut map);
    map.entries()
}

/// Makes the copy the same as the content, unless it is.
async fn open_copy(
    shared: &Shared,
    content: &MapContent,
    found: FoundCopy,
) -> Result<MapCopy, PartitionError> {
    let (streams, incarnation) = (&*shared.streams, shared.life.incarnation);
    match found {
        FoundCopy::Whole(copy) if copy.rows == content.rows => {
            match MapCopy::open(streams, incarnation, content.clone()).await {
                Ok(copy) => return Ok(copy),
                Err(LoadError::Failed(error)) => return Err(error),
                Err(LoadError::Damaged(error)) => warn_of_copy(&error),
            }
        }
        FoundCopy::Whole(copy) => {
            tracing::info!("the partition map's copy lacks the map's last change, and gets it now");
            let differs_in_marks_only =
                entries_of(&copy).is_ok_and(|entries| entries_of(content) == Ok(entries));
            return MapCopy::bring_up(streams, incarnation, content.clone(), differs_in_marks_only).await;
        }
        FoundCopy::Absent => {}
        FoundCopy::Damaged(error) => warn_of_copy(&error),
    }
    MapCopy::replace(streams, incarnation, content.clone()).await
}

fn warn_of_copy(error: &PartitionError) {
    tracing::warn!(%error, "the partition map's copy does not read: it is made anew from the map, which is whole");
}

/// What the ranges' own metadata come to as a map, without marks.
async fn derive(shared: &Shared, why: &str) -> Result<MapContent, PartitionError> {
    let streams = &shared.streams;
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for table in OBJECT_TABLES {
        for id in range_ids(streams, table) {
            let names = RangeStreams::new(table, id);
            // An heir that had not got that far.
            if streams.stat(names.metadata()).is_ok_and(|stat| is_empty(&stat)) {
                continue;
            }
            // Any block will do: the keys of a range never change, and another one has another id.
            let mut found = None;
            let mut visit = |salvaged| {
                if let Salvaged::Block(_, block) = salvaged
                    && let Ok(Metadata { range, .. }) = Metadata::decode(&block)
                {
                    found = Some(range);
                }
            };
            match streams.salvage(names.metadata(), &mut visit).await.map_err(LoadError::from) {
                Ok(()) => match found {
                    Some(range) => entries.push(MapEntry { table, id, range, owner: None }),
                    None => problems.push(format!("stream {}: no block of it reads", names.metadata())),
                },
                Err(LoadError::Failed(error)) => return Err(error),
                Err(LoadError::Damaged(error)) => problems.push(error.to_string()),
            }
        }
    }
    if let Some(problem) = problems.first() {
        return Err(no_derivation(why, problem));
    }
    let mut rows: BTreeMap<RowKey, MapRow> = BTreeMap::new();
    let version = RowVersion(shared.clock.now().0.max(1));
    // Two ranges that begin at the same key are one row: an overlap that would not be seen any more.
    for entry in &entries {
        let (key, value) = entry.row();
        if rows.insert(key, (version, value)).is_some() {
            return Err(no_derivation(why, "two ranges begin at the same key"));
        }
    }
    let content = MapContent { version, rows };
    check_content(streams, &content).map_err(|error| no_derivation(why, &error.to_string()))?;
    Ok(content)
}

fn no_derivation(why: &str, problem: &str) -> PartitionError {
    PartitionError::Storage(format!(
        "the partition map does not read ({why}), and the ranges' metadata do not give it without a guess ({problem}): run \
         `larimar check DIR`, then `larimar repair DIR`"
    ))
}

/// Puts a range that holds `content` in the place of the map's range, and reads it.
async fn mend(shared: &Shared, content: &MapContent) -> Result<WholeMap, PartitionError> {
    let streams = &shared.streams;
    let left = shared.deletes(streams.list(MENDED_FOLDER))?;
    if !left.is_empty() {
        streams.multi_modify(&left).await?;
    }
    let mended = |purpose| StreamName::new(&format!("{MENDED_FOLDER}{purpose}"));
    let (metadata, log) = (mended("metadata"), mended("log"));
    let owner = Owner::first(shared.life.incarnation);
    streams.create(&[metadata.clone(), log.clone()], owner).await?;
    streams.append(&log, owner, vec![group_of(content).into()]).await?;
    let empty = Metadata { epoch: owner.epoch, ..Metadata::empty(KeyRange::all()) };
    streams.append(&metadata, owner, vec![empty.encode()]).await?;
    let names = map_streams();
    let former = streams.list(&RangePartition::streams_folder(NAME.0, NAME.1));
    let next = choose_owner(newest_owner(streams, &names)?, shared.life.incarnation);
    let delete = |stream: &StreamName| StreamChange::Delete(stream.owned_by(next));
    let mut changes: Vec<StreamChange> = former.iter().map(delete).collect();
    for (from, to) in [(metadata, names.metadata().clone()), (log, names.log().clone())] {
        let (from, to) = (from.owned_by(owner), to.owned_by(next));
        changes.push(StreamChange::Create(to.clone()));
        changes.push(StreamChange::Share { from: from.clone(), to });
        changes.push(StreamChange::Delete(from));
    }
    let outcome = streams.multi_modify(&changes).await;
    if !streams.list(MENDED_FOLDER).is_empty() {
        outcome?;
    }
    // It is done, whatever became of the former streams' extents: what could not be removed is tried again.
    Ok(read_map(shared).await?)
}

/// The content as a group of operations, and a last one that changes nothing: a replay ends at the content's
/// version.
fn group_of(content: &MapContent) -> Vec<u8> {
    let mut versions: BTreeMap<RowVersion, Vec<RowChange>> = BTreeMap::new();
    for (key, (version, value)) in &content.rows {
        let change = RowChange::Put { key: key.clone(), value: value.clone() };
        versions.entry(*version).or_default().push(change);
    }
    versions.entry(content.version).or_default();
    let mut group = Vec::new();
    commit_log::start_group(&mut group);
    for (version, changes) in &versions {
        commit_log::put_operation(&mut group, *version, changes);
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged() -> PartitionError {
        PartitionError::Storage("block".to_owned())
    }

    #[test]
    fn what_does_not_read_is_never_the_source() {
        let whole = || FoundCopy::Whole(MapContent::default());
        let lost = || FoundMap::Damaged(damaged());
        for (map, copy, has_ranges, expected) in [
            (FoundMap::Absent, FoundCopy::Absent, false, "Fresh"),
            (FoundMap::Absent, FoundCopy::Absent, true, "Ranges"),
            (FoundMap::Absent, FoundCopy::Damaged(damaged()), false, "Ranges"),
            (FoundMap::Absent, whole(), false, "Copy"),
            (lost(), whole(), true, "Copy"),
            (lost(), FoundCopy::Absent, false, "Ranges"),
            (lost(), FoundCopy::Damaged(damaged()), true, "Ranges"),
        ] {
            let source = format!("{:?}", choose_source(&map, &copy, has_ranges));
            assert!(source.starts_with(expected), "{source}, not {expected}");
        }
    }

    #[test]
    fn a_group_gives_the_content_back_and_ends_at_its_version() {
        let row = |version: u64| (RowVersion(version), bytes::Bytes::from(version.to_string()));
        let key = |name: &str| RowKey::new("", 0, "entity", name);
        let rows = [(key("a"), row(7)), (key("b"), row(3)), (key("c"), row(7))].into_iter().collect();
        for (version, count) in [(7, 2), (9, 3)] {
            let content = MapContent { version: RowVersion(version), rows: BTreeMap::clone(&rows) };
            let operations = commit_log::parse_group(&group_of(&content)).unwrap();
            assert_eq!(operations.len(), count);
            assert!(operations.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert_eq!(operations.last().unwrap().0, RowVersion(version));
            let found = operations.iter().flat_map(|(version, changes)| {
                changes.iter().map(move |change| match change {
                    RowChange::Put { key, value } => (key.clone(), (*version, value.clone())),
                    RowChange::Delete { .. } => panic!("nothing goes"),
                })
            });
            assert_eq!(found.collect::<BTreeMap<_, _>>(), rows);
        }
    }
}
