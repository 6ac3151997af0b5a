//! `larimar check --stamp`: reads a stamp as it was at one moment, and says what is damaged and what that
//! means.
//!
//! Every part of every extent that a document names is read, then the ranges over them, as of a folder.
//! Objects that nothing names wait for collection, which is no damage. What always holds: nothing in either
//! store is written; damage of a stamp that is served is said only if a newer snapshot has it, too.

use crate::Failure;
use crate::check::{EXIT_DAMAGED, text};
use crate::output::progress::Progress;
use crate::places::ContainerNames;
use crate::places::container_names::container_names_of_stamp;
use crate::stamp_commands::check_parts::{CheckedParts, Look, check_parts};
use crate::stamp_commands::holes::{Hole, find_holes, judge};
use crate::stamp_commands::opened::OpenedStamp;
use crate::stamp_commands::print;
use partition::{FolderCheck, check_stamp_streams};
use stamp::{ExtentName, PartPath};
use stamp_streams::list_extent_objects;
use std::collections::BTreeSet;
use std::process::ExitCode;
use stream::{StreamDamage, Streams};

/// How often the ranges of a served stamp are checked until no damage is found.
const ROUNDS_MAX: usize = 2;

/// Checks it and prints what is found.
pub(super) async fn check(stamp: &OpenedStamp, is_quiet: bool) -> Result<ExitCode, Failure> {
    let surroundings = stamp.surroundings();
    let failed = |error| Failure::of_work(&error);
    // What no document names is known only if the objects are listed first.
    let objects = list_extent_objects(surroundings).await.map_err(failed)?;
    let first = stamp.snapshot().await?;
    let look = Look::read(surroundings, Some(first)).await.map_err(failed)?;
    let unnamed = Unnamed::of(&objects, &look);
    let settings = &surroundings.settings;
    let holes = find_holes(&objects, &look.open(), settings.stamp);
    let (missing, holes) = judge(holes, settings.window.parts_max, &look);
    let mut bar = Progress::with_plain_lines(is_quiet);
    let (mut look, mut parts) = check_parts(surroundings, look, &mut bar).await.map_err(failed)?;
    parts.damages.extend(missing);
    let mut found = FolderCheck::default();
    for round in 1..=ROUNDS_MAX {
        bar.line("the ranges are checked");
        found = check_ranges(stamp, &look, &parts.damages).await?;
        let is_more = found.damages.len() > parts.damages.len();
        if !is_more || !look.snapshot.is_served() || round == ROUNDS_MAX {
            break;
        }
        // What its server has dropped since is no damage.
        look = Look::read(surroundings, None).await.map_err(failed)?;
    }
    bar.clear();
    let is_served = look.snapshot.is_served();
    found.extent_count = parts.extent_count;
    found.block_count = parts.block_count;
    found.size_bytes = parts.size_bytes;
    // Where nothing is damaged nothing has to be named.
    let names = if found.damages.is_empty() { None } else { Some(names(stamp, &look).await) };
    let mut said = text(&stamp.name, &found, names.as_ref(), None);
    put_notes(&mut said, &stamp.name, is_served, look.snapshot.revision().0, &parts, &unnamed);
    if look.snapshot.has_unfinished_migration() {
        said.push_str(&format!(
            "{}: a migration into it is not finished, and no process serves it: run larimar migrate again\n",
            stamp.name
        ));
    }
    for Hole { object, behind_count, .. } in holes {
        said.push_str(&format!(
            "{}: there is no {object}, and {behind_count} objects lie behind it: a writer that died may have left them, \
             and they were never acknowledged; if something above names it, it has gone\n",
            stamp.name
        ));
    }
    print(&said);
    Ok(if found.damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DAMAGED) })
}

/// Checks what lies in the streams.
async fn check_ranges(
    stamp: &OpenedStamp,
    look: &Look,
    damages: &[StreamDamage],
) -> Result<FolderCheck, Failure> {
    let mut all = FolderCheck { is_fresh: true, ..FolderCheck::default() };
    // As long as one process serves a stamp there is one range, which has all streams.
    for (index, layer) in look.layers.iter().enumerate() {
        let streams = Streams::of_stamp(layer.clone());
        let damages = if index == 0 { damages.to_vec() } else { Vec::new() };
        let found = check_stamp_streams(&stamp.env, &streams, damages).await;
        let found = found.map_err(|error| Failure::of_work(&error))?;
        all.is_fresh &= found.is_fresh;
        all.damages.extend(found.damages);
        all.range_count += found.range_count;
        all.row_count += found.row_count;
        all.log_change_count += found.log_change_count;
    }
    Ok(all)
}

/// Names of the containers, as far as they can be read.
async fn names(stamp: &OpenedStamp, look: &Look) -> ContainerNames {
    let mut names = ContainerNames::default();
    for layer in &look.layers {
        let streams = Streams::of_stamp(layer.clone());
        names = container_names_of_stamp(&stamp.env, &streams, names).await;
    }
    names
}

/// Objects that no document names.
struct Unnamed {
    object_count: usize,
    extents: BTreeSet<ExtentName>,
    /// Those that the next sweep has to note first.
    not_noted_count: usize,
}

impl Unnamed {
    fn of(objects: &[PartPath], look: &Look) -> Self {
        let is_unnamed = |path: &&PartPath| !look.lengths.contains_key(&path.extent);
        let unnamed: Vec<&PartPath> = objects.iter().filter(is_unnamed).collect();
        let extents: BTreeSet<ExtentName> = unnamed.iter().map(|path| path.extent).collect();
        let dropped = look.snapshot.dropped();
        let not_noted_count = extents.iter().filter(|extent| !dropped.contains_key(extent)).count();
        Unnamed { object_count: unnamed.len(), extents, not_noted_count }
    }
}

fn put_notes(
    text: &mut String,
    name: &str,
    is_served: bool,
    revision: u64,
    parts: &CheckedParts,
    unnamed: &Unnamed,
) {
    if is_served {
        text.push_str(&format!(
            "{name}: it is being served: it was read as it was at revision {revision} of etcd, open extents to their \
             ends then\n"
        ));
    }
    if !parts.changed.is_empty() {
        let names: Vec<String> = parts.changed.iter().map(ToString::to_string).collect();
        text.push_str(&format!("{name}: changed meanwhile, and not looked at: {}\n", names.join(", ")));
    }
    if !unnamed.extents.is_empty() {
        text.push_str(&format!(
            "{name}: {} objects of {} extents that no document names wait for collection ({} extents to be noted by a \
             sweep first); that is no damage\n",
            unnamed.object_count,
            unnamed.extents.len(),
            unnamed.not_noted_count
        ));
    }
    text.push_str(&format!("{name}: {} parts were read\n", parts.part_count));
}
