//! Plans the lines of a window: which go together in one entity group.
//!
//! What always holds: a batch has one partition, each of its keys once, and fits the protocol's bounds; lines
//! with the same key are never in the same portion.

use crate::error::ToolError;
use crate::files::records::row_of;
use crate::files::window::Window;
use base::FixedHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Range;
use storage_client::GROUP_OPERATIONS_MAX;

/// Lines of a portion, at most.
const PORTION_LINES_MAX: usize = 16_384;
/// Bytes of a group, at most; the protocol has 4 MiB.
const BATCH_SIZE_BYTES_MAX: usize = 3 << 20;
/// Bytes of a group's part around its entity, about, without its keys.
const PART_SIZE_BYTES: usize = 512;
/// Bytes that an encoded byte of a key takes.
const ENCODED_SIZE_BYTES: usize = 3;

/// An entity that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Where its JSON is in the window.
    pub(crate) at: Range<usize>,
    /// Its line in the file.
    pub(crate) number: u64,
    /// Where the line ends in the file.
    pub(crate) file_end: u64,
    pub(crate) row_key: String,
}

/// Entities of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) partition_key: String,
    pub(crate) items: Vec<Item>,
    size_bytes: usize,
}

/// What is sent of a window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) batches: Vec<Batch>,
    /// Hashes of its keys.
    pub(crate) keys: BTreeSet<u64>,
    /// The first line of the window that is not in it.
    pub(crate) end: usize,
    /// That line's key is in this portion or in one that is under way.
    pub(crate) is_repeated: bool,
}

/// Plans lines from `start` on. `is_under_way` says whether a key is being written.
pub(crate) fn plan(
    window: &Window,
    path: &str,
    start: usize,
    is_under_way: impl Fn(u64) -> bool,
) -> Result<Portion, ToolError> {
    let mut portion = Portion { end: start, ..Portion::default() };
    // The batch of each partition that has room yet.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut last: Option<usize> = None;
    for line in window.lines.iter().skip(start).take(PORTION_LINES_MAX) {
        let row = row_of(&window.text[line.at.clone()], path, line.number)?;
        let failed = |what: String| ToolError::Line { path: path.to_owned(), line: line.number, what };
        row.check().map_err(|error| failed(error.to_string()))?;
        let hash = FixedHasher::with_seed(0).hash_one((&*row.partition_key, &*row.row_key));
        if is_under_way(hash) || !portion.keys.insert(hash) {
            portion.is_repeated = true;
            break;
        }
        portion.end += 1;
        let keys = row.partition_key.len() + row.row_key.len();
        let size_bytes = PART_SIZE_BYTES + line.at.len() + keys * ENCODED_SIZE_BYTES;
        let (number, file_end) = (line.number, line.file_end);
        let item = Item { at: line.at.clone(), number, file_end, row_key: row.row_key.into_owned() };
        let same = last.filter(|last| portion.batches[*last].partition_key == *row.partition_key);
        let place = same.or_else(|| open.get(&*row.partition_key).copied());
        let place = place.filter(|place| portion.batches[*place].has_room(size_bytes));
        let place = place.unwrap_or_else(|| {
            let partition_key = row.partition_key.to_string();
            open.insert(partition_key.clone(), portion.batches.len());
            portion.batches.push(Batch { partition_key, items: Vec::new(), size_bytes: 0 });
            portion.batches.len() - 1
        });
        let batch = &mut portion.batches[place];
        batch.size_bytes += size_bytes;
        batch.items.push(item);
        last = Some(place);
    }
    Ok(portion)
}

impl Batch {
    fn has_room(&self, size_bytes: usize) -> bool {
        self.items.len() < GROUP_OPERATIONS_MAX && self.size_bytes + size_bytes <= BATCH_SIZE_BYTES_MAX
    }
}

/// Entities that a worker gets at once, at least, unless there are fewer.
const JOB_ITEMS_MIN: usize = 50;

/// Puts batches together for workers: small ones of several partitions.
pub(crate) fn jobs(batches: Vec<Batch>) -> Vec<Vec<Batch>> {
    let (mut jobs, mut job, mut items) = (Vec::new(), Vec::new(), 0);
    for batch in batches {
        items += batch.items.len();
        job.push(batch);
        if items >= JOB_ITEMS_MIN {
            jobs.push(std::mem::take(&mut job));
            items = 0;
        }
    }
    if !job.is_empty() {
        jobs.push(job);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::window::Line;

    fn window(entities: &[(&str, &str, usize)]) -> Window {
        let (mut text, mut lines) = (Vec::new(), Vec::new());
        for (index, (partition, row, size)) in entities.iter().enumerate() {
            let start = text.len();
            let filler = "x".repeat(*size);
            text.extend_from_slice(
                format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"S\":\"{filler}\"}}")
                    .as_bytes(),
            );
            let number = 1 + index as u64;
            lines.push(Line { at: start..text.len(), number, file_end: text.len() as u64 });
        }
        Window { end: text.len() as u64, text, lines }
    }

    fn shown(portion: &Portion) -> Vec<String> {
        let rows =
            |batch: &Batch| batch.items.iter().map(|item| item.row_key.clone()).collect::<Vec<_>>().join("");
        portion.batches.iter().map(|batch| format!("{}:{}", batch.partition_key, rows(batch))).collect()
    }

    #[test]
    fn a_batch_has_one_partition_and_keys_come_once_at_a_time() {
        let window = window(&[("p", "1", 1), ("q", "1", 1), ("p", "2", 1), ("p", "1", 1), ("q", "2", 1)]);
        let first = plan(&window, "f", 0, |_| false).expect("a portion");
        assert_eq!(shown(&first), ["p:12", "q:1"]);
        assert_eq!((first.end, first.is_repeated), (3, true));
        let waiting = plan(&window, "f", 3, |key| first.keys.contains(&key)).expect("a portion");
        assert_eq!((waiting.end, waiting.is_repeated, waiting.batches.len()), (3, true, 0));
        let second = plan(&window, "f", 3, |_| false).expect("a portion");
        assert_eq!(
            (shown(&second), second.end, second.is_repeated),
            (vec!["p:1".to_owned(), "q:2".to_owned()], 5, false)
        );
    }

    #[test]
    fn batches_fit_the_bounds_of_groups() {
        let rows: Vec<String> = (0..250).map(|row| format!("{row:03}")).collect();
        let of_size = |size| {
            let entities: Vec<(&str, &str, usize)> =
                rows.iter().map(|row| ("p", row.as_str(), size)).collect();
            plan(&window(&entities), "f", 0, |_| false).expect("a portion").batches
        };
        let counts = |batches: &[Batch]| batches.iter().map(|batch| batch.items.len()).collect::<Vec<_>>();
        assert_eq!(counts(&of_size(10)), [100, 100, 50]);
        let large = of_size(60 << 10);
        assert!(large.iter().all(|batch| batch.size_bytes <= BATCH_SIZE_BYTES_MAX), "{:?}", counts(&large));
        assert_eq!(large.iter().map(|batch| batch.items.len()).sum::<usize>(), 250);
    }

    #[test]
    fn small_batches_go_together() {
        let partitions: Vec<String> = (0..120).map(|partition| format!("p{partition}")).collect();
        let entities: Vec<(&str, &str, usize)> =
            partitions.iter().map(|partition| (partition.as_str(), "r", 1)).collect();
        let batches = plan(&window(&entities), "f", 0, |_| false).expect("a portion").batches;
        assert_eq!(jobs(batches).iter().map(Vec::len).collect::<Vec<_>>(), [50, 50, 20]);
        assert_eq!(jobs(Vec::new()).len(), 0);
    }

    #[test]
    fn a_line_that_is_no_entity_is_named() {
        let mut window = window(&[("p", "1", 1), ("p", "2", 1)]);
        let at = window.lines[1].at.end - 2;
        window.text[at] = b'\n';
        let error = plan(&window, "f", 0, |_| false).expect_err("a mistake").to_string();
        assert!(error.starts_with("f: line 2: "), "{error}");
        let window = Window {
            text: br#"{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Guid","A":"x"}"#.to_vec(),
            ..window
        };
        let window =
            Window { lines: vec![Line { at: 0..window.text.len(), number: 7, file_end: 0 }], ..window };
        let error = plan(&window, "f", 0, |_| false).expect_err("a mistake").to_string();
        assert_eq!(error, "f: line 7: property A: \"x\" is no Edm.Guid");
    }
}
