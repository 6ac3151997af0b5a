//! What damage means, in words for the operator.

use crate::map::map_copy::is_copy;
use crate::operation::ObjectTable;
use stream::{DamagedPart, StreamDamage};

/// Damage that everything depends on.
pub(super) const NO_START: &str = "the server refuses to start: no row can be read until the folder is restored from a \
                                   backup";

/// Damage of what a range can't be loaded without.
pub(super) const NOT_SERVED: &str = "requests for them fail until the folder is repaired, all others are served: run \
                                     `larimar repair DIR` with the server stopped";

/// Damage of the journal.
const JOURNAL_LOST: &str = "what only the journal had is lost: extents that may lack it are named besides; no other row is \
                            touched";

/// Damage of the partition map's range.
pub(super) const MAP_MENDED: &str = "the next start reads the partition map's copy and makes the map anew from it, unless \
                                     the copy is damaged, too; no row is lost";

/// Damage of the copy.
pub(super) const COPY_MENDED: &str =
    "the next start makes the partition map's copy anew from the map; no row is lost";

/// The same two of a stamp of several processes, whose bytes are an object store's matter.
const STAMP_NO_START: &str = "the stamp can't be served: no row can be read until what is damaged is restored in the object \
                              store";
const STAMP_NOT_SERVED: &str = "requests for them fail until what is damaged is restored in the object store, all others are \
                                served";

/// The meaning for a stamp, which has neither a folder nor a repair.
pub(super) fn of_stamp(meaning: &str) -> String {
    meaning
        .replace(NO_START, STAMP_NO_START)
        .replace(NOT_SERVED, STAMP_NOT_SERVED)
        .replace("; a repair removes what names them", "")
}

/// What damage of a file means that no range explains.
pub(super) fn meaning_of(damage: &StreamDamage) -> String {
    if damage.part == DamagedPart::Mended {
        return "nothing is lost: the same is kept elsewhere, and the next start writes it anew".to_owned();
    }
    let Some(stream) = damage.streams.first() else {
        return match damage.place.starts_with("journal/") {
            true => JOURNAL_LOST.to_owned(),
            false => NO_START.to_owned(),
        };
    };
    let mut parts = stream.as_str().splitn(3, '/');
    let (table, range, purpose) = (parts.next(), parts.next(), parts.next());
    let Some((table, range, purpose)) =
        table.zip(range).zip(purpose).map(|((table, range), purpose)| (table, range, purpose))
    else {
        return match is_copy(stream) {
            true => COPY_MENDED.to_owned(),
            false => format!("stream {stream} can't be read whole"),
        };
    };
    let others = match damage.streams.len() {
        1 => String::new(),
        count => format!(" (and {} more streams)", count - 1),
    };
    let of_range = format!("range {range} of table {table}{others}");
    if table == ObjectTable::PartitionMap.name() && !matches!(damage.part, DamagedPart::Flipped { .. }) {
        return format!("the {purpose} of {of_range}: {MAP_MENDED}");
    }
    match damage.part {
        DamagedPart::Exchanged => {
            return format!(
                "it holds the {purpose} of {of_range}: what is read from it may be something else than what was \
                 acknowledged, without any error; restore the folder from a backup"
            );
        }
        DamagedPart::Flipped { .. } => {
            return format!(
                "it holds the {purpose} of {of_range}: it is read as it was written; a repair writes it anew"
            );
        }
        DamagedPart::End { .. } => {
            return match purpose {
                "metadata" | "log" => format!(
                    "it holds the {purpose} of {of_range}: what was appended last may be lost, and any of its rows may \
                     have been changed there; {NOT_SERVED}"
                ),
                _ => format!(
                    "it holds the {purpose} of {of_range}: what was appended last may be lost; rows that lie in what is \
                     there are read as ever"
                ),
            };
        }
        DamagedPart::File | DamagedPart::Block { .. } | DamagedPart::Mended => {}
    }
    let is_file = damage.part == DamagedPart::File;
    match purpose {
        "metadata" if is_file => {
            format!("it holds the metadata of {of_range}, all of its rows; {NOT_SERVED}")
        }
        "log" if is_file => {
            format!("it holds the log of {of_range}, newest changes of all of its rows; {NOT_SERVED}")
        }
        "metadata" => {
            format!("the metadata of {of_range}, all of its rows: unless newer ones follow, {NOT_SERVED}")
        }
        "log" => format!(
            "the log of {of_range}: if rows changed there are not in checkpoints yet, any of its rows may have been; \
             {NOT_SERVED}"
        ),
        _ if is_file => {
            format!("it holds the {purpose} of {of_range}: requests for rows that lie there fail")
        }
        _ if purpose.starts_with("row_data/") => {
            format!("{purpose} of {of_range}: no row that is in use, or other damage hides which")
        }
        _ => format!("{purpose} of {of_range} can't be read whole"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_no_folder_and_no_repair() {
        for meaning in [NO_START, NOT_SERVED] {
            let told = of_stamp(&format!("a; {meaning}"));
            assert!(told.starts_with("a; ") && told.contains("object store"), "{told}");
            assert!(!told.contains("folder") && !told.contains("repair"), "{told}");
        }
    }
    use stream::{ExtentId, StreamName};

    #[test]
    fn each_kind_of_damage_has_a_meaning_of_its_own() {
        let meaning = |part, streams: &[&str]| {
            let streams = streams.iter().map(|name| StreamName::new(name)).collect();
            meaning_of(&StreamDamage { place: String::new(), problem: String::new(), part, streams })
        };
        let block = DamagedPart::Block { extent: ExtentId(1), offset: 0 };
        let (log, both) = (["entity/2/log"], ["entity/2/log", "entity/3/log"]);
        let table = [
            (meaning(DamagedPart::File, &[]), "refuses to start"),
            (
                meaning(DamagedPart::File, &log),
                "it holds the log of range 2 of table entity, newest changes of all of its rows; requests for them fail",
            ),
            (meaning(block, &log), "the log of range 2 of table entity: if rows"),
            (meaning(block, &["entity/2/metadata"]), "all others are served"),
            (
                meaning(DamagedPart::File, &["blob/2/data"]),
                "it holds the data of range 2 of table blob: requests for rows",
            ),
            (meaning(block, &["partition_map/1/log"]), "the partition map's copy"),
            (meaning(DamagedPart::File, &["partition_map/copy"]), "makes the partition map's copy anew"),
            (
                meaning(DamagedPart::Exchanged, &log),
                "the log of range 2 of table entity: what is read from it may be",
            ),
            (meaning(DamagedPart::Exchanged, &both), "(and 1 more streams): what is read"),
        ];
        for (told, expected) in table {
            assert!(told.contains(expected), "{told}");
        }
    }
}
