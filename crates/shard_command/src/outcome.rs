//! What came of an operation: as text for people, as JSON for programs, and whether something is amiss.

use serde_json::{Value, json};
use shard_map::{Catalog, Diff, Name, ShardMap, State};
use shard_store::{Difference, Entry, Published, Recovery};
use std::fmt::Write as _;

/// Pins of a map that are shown as text; the document has all.
const PINS_SHOWN_MAX: usize = 20;

/// What came of an operation.
#[derive(Debug)]
pub enum Outcome {
    /// The catalog was changed, or would be.
    Changed {
        /// What is different.
        diff: Diff,
        /// Whether nothing was changed.
        is_dry: bool,
    },
    /// The catalog, or one map of it.
    Shown(Catalog, Option<Name>),
    /// The catalog's document.
    Exported(Catalog),
    /// The home is whole.
    Checked {
        /// The catalog.
        catalog: Catalog,
        /// Differences to the copies.
        differences: Vec<Difference>,
        /// Whether copies were looked at.
        has_copies: bool,
    },
    /// Changes of the past.
    History(Vec<Entry>),
    /// Copies were written.
    Published(Published),
    /// A map was made out of copies.
    Recovered {
        /// The map.
        catalog: Catalog,
        /// What was decided on the way.
        recovery: Recovery,
        /// Whether nothing was changed.
        is_dry: bool,
    },
}

/// What is to be done about work whose mapping is not frozen any more.
const END_THEM: &str =
    "look at `shard status`, end moves with `shard undo` and run `shard repair` before the map is changed";

impl Outcome {
    /// Whether something is to be done yet: copies differ, or shards wait.
    pub fn is_amiss(&self) -> bool {
        match self {
            Outcome::Checked { differences, .. } => !differences.is_empty(),
            Outcome::Published(published) => !published.is_complete(),
            _ => false,
        }
    }

    /// For people: lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    /// For programs.
    pub fn json(&self) -> Value {
        match self {
            Outcome::Changed { diff, is_dry } => json!({ "dry_run": is_dry, "change": diff }),
            Outcome::Shown(catalog, _) | Outcome::Exported(catalog) => document(catalog),
            Outcome::Checked { catalog, differences, .. } => {
                let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
                json!({ "catalog": catalog.name(), "epoch": catalog.epoch(), "differences": differences })
            }
            Outcome::History(entries) => {
                let entry =
                    |entry: &Entry| json!({ "at": entry.at, "note": entry.note, "change": entry.diff });
                Value::Array(entries.iter().map(entry).collect())
            }
            Outcome::Published(Published { epoch, written, held, failed }) => {
                let held = held
                    .iter()
                    .map(|held| json!({ "shard": held.shard, "map": held.map, "waits_for": held.waits_for }));
                json!({ "epoch": epoch, "written": written, "held": held.collect::<Vec<_>>(), "failed": failed })
            }
            Outcome::Recovered { catalog, recovery, is_dry } => {
                let superseded = recovery.superseded.iter().map(|(map, mapping, shard, newer)| {
                    json!({ "map": map, "mapping": mapping, "shard": shard, "is_on": newer })
                });
                let from_map = recovery
                    .from_map
                    .iter()
                    .map(|(map, mapping, shard)| json!({ "map": map, "mapping": mapping, "shard": shard }));
                let frozen = |frozen: &[(Name, String, String)]| {
                    let each = frozen
                        .iter()
                        .map(|(map, mapping, by)| json!({ "map": map, "mapping": mapping, "by": by }));
                    each.collect::<Vec<_>>()
                };
                json!({
                    "dry_run": is_dry, "catalog": document(catalog), "superseded": superseded.collect::<Vec<_>>(),
                    "from_map": from_map.collect::<Vec<_>>(), "frozen": frozen(&recovery.frozen),
                    "thawed": frozen(&recovery.thawed), "map_lost": recovery.is_map_lost,
                })
            }
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        match self {
            Outcome::Changed { diff, is_dry } => changed(out, diff, *is_dry),
            Outcome::Shown(catalog, map) => shown(out, catalog, map.as_ref()),
            Outcome::Exported(catalog) => writeln!(out, "{}", catalog.to_json_pretty()),
            Outcome::Checked { catalog, differences, has_copies } => {
                differences.iter().try_for_each(|one| writeln!(out, "{one}"))?;
                let copies = match (has_copies, differences.len()) {
                    (false, _) => "no shard's copy was looked at".to_owned(),
                    (true, 0) => "all copies are as the map is".to_owned(),
                    (true, count) => format!("{count} differences"),
                };
                writeln!(
                    out,
                    "catalog {} at epoch {}: the home is whole; {copies}",
                    catalog.name(),
                    catalog.epoch()
                )
            }
            Outcome::History(entries) => entries.iter().try_for_each(|entry| {
                writeln!(out, "{}  epoch {}  {}", entry.at, entry.diff.to, entry.note)?;
                lines(out, &entry.diff)
            }),
            Outcome::Published(published) => {
                for (shard, why) in &published.failed {
                    writeln!(out, "shard {shard}: not reached: {why}")?;
                }
                for held in &published.held {
                    let waits: Vec<&str> = held.waits_for.iter().map(Name::as_str).collect();
                    writeln!(
                        out,
                        "shard {}: waits with map {} for {}",
                        held.shard,
                        held.map,
                        waits.join(", ")
                    )?;
                }
                writeln!(out, "epoch {}: {} copies written", published.epoch, published.written.len())
            }
            Outcome::Recovered { catalog, recovery, is_dry } => {
                for (map, mapping, shard, newer) in &recovery.superseded {
                    writeln!(out, "map {map}: {mapping} is on {newer}, not on {shard}")?;
                }
                for (map, mapping, shard) in &recovery.from_map {
                    writeln!(out, "map {map}: {mapping} is on {shard} as the old map says; no copy has it")?;
                }
                for (map, mapping, by) in &recovery.frozen {
                    writeln!(out, "map {map}: {mapping} is frozen by {by}, as in the old map")?;
                }
                for (map, mapping, by) in &recovery.thawed {
                    writeln!(
                        out,
                        "map {map}: {mapping} was frozen by {by} and has other keys now: {END_THEM}"
                    )?;
                }
                if recovery.is_map_lost {
                    writeln!(out, "no copy says what moves and repairs had frozen: {END_THEM}")?;
                }
                let (name, epoch) = (catalog.name(), catalog.epoch());
                match is_dry {
                    true => writeln!(out, "dry run: catalog {name} would be recovered at epoch {epoch}"),
                    false => writeln!(out, "catalog {name} is recovered at epoch {epoch}; publish it next"),
                }
            }
        }
    }
}

fn document(catalog: &Catalog) -> Value {
    // What is written is JSON.
    serde_json::from_str(&catalog.to_json()).unwrap_or_default()
}

fn changed(out: &mut String, diff: &Diff, is_dry: bool) -> std::fmt::Result {
    lines(out, diff)?;
    match (diff.is_empty(), is_dry) {
        (true, _) => writeln!(out, "nothing to change: epoch {}", diff.from),
        (false, true) => {
            writeln!(out, "dry run: nothing was changed; epoch {} would follow {}", diff.to, diff.from)
        }
        (false, false) => writeln!(out, "epoch {}", diff.to),
    }
}

/// A line for each shard and map that is different.
fn lines(out: &mut String, diff: &Diff) -> std::fmt::Result {
    let verb = |old: bool, new: bool| match (old, new) {
        (false, _) => "added",
        (_, false) => "removed",
        _ => "changed",
    };
    for edit in &diff.shards {
        writeln!(out, "  shard {}: {}", edit.name, verb(edit.old.is_some(), edit.new.is_some()))?;
    }
    for edit in &diff.maps {
        let verb = verb(edit.old.is_some(), edit.new.is_some());
        let (pins, ranges, placed) = (edit.pins.len(), edit.ranges.len(), edit.virtual_shards.len());
        writeln!(
            out,
            "  map {}: {verb}: {pins} pins, {ranges} ranges, {placed} runs of virtual shards",
            edit.name
        )?;
    }
    Ok(())
}

fn shown(out: &mut String, catalog: &Catalog, only: Option<&Name>) -> std::fmt::Result {
    writeln!(out, "catalog {} at epoch {}", catalog.name(), catalog.epoch())?;
    for shard in catalog.shards() {
        let tags: Vec<String> = shard.tags.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        writeln!(out, "  shard {}  {}  {}{}", shard.name, shard.location, shard.state, tags.concat())?;
    }
    let maps = catalog.maps().filter(|map| only.is_none_or(|only| only == map.name()));
    maps.into_iter().try_for_each(|map| map_lines(out, map))
}

fn map_lines(out: &mut String, map: &ShardMap) -> std::fmt::Result {
    writeln!(out, "  map {} of {}", map.name(), map.key_type())?;
    let state = |state: State| if state == State::Online { String::new() } else { format!("  {state}") };
    for (key, placement) in map.pins().take(PINS_SHOWN_MAX) {
        writeln!(out, "    pin {}  {}{}", map.key_text(key), placement.shard, state(placement.state))?;
    }
    if map.pins().len() > PINS_SHOWN_MAX {
        writeln!(out, "    and {} more pins", map.pins().len() - PINS_SHOWN_MAX)?;
    }
    for (low, range) in map.ranges() {
        let keys = map.range_text(low, range.high.as_ref());
        writeln!(out, "    range {keys}  {}{}", range.placement.shard, state(range.placement.state))?;
    }
    for (first, last, placement) in map.virtual_shards().map(|layer| layer.runs()).unwrap_or_default() {
        writeln!(out, "    virtual shards {first} to {last}  {}{}", placement.shard, state(placement.state))?;
    }
    for (mapping, frozen) in map.frozen().take(PINS_SHOWN_MAX) {
        writeln!(out, "    frozen: {} by {}", map.mapping_text(mapping), frozen.by)?;
    }
    if map.frozen().len() > PINS_SHOWN_MAX {
        writeln!(out, "    and {} more are frozen", map.frozen().len() - PINS_SHOWN_MAX)?;
    }
    Ok(())
}
