//! `larimar advise`: draws a sample of a table's or a file's entities.
//!
//! A table is read whole, in parallel ranges that are found by probing, and each entity is kept or not by a
//! hash of seed and content: so each has the same chance, wherever it is, and the same seed keeps the same
//! entities, whichever worker reads them. Probing for single keys would be less work, and would prefer keys
//! behind large gaps. What always holds: no more entities are kept than are allowed; with more there is an
//! error, not a sample of another share.

use super::Selection;
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::files::format::Format;
use crate::files::records::RecordFile;
use crate::lines::row::{Row, RowError};
use crate::place::TablePlace;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use base::checksum::crc64;
use base::random::splitmix64;
use futures_util::future::LocalBoxFuture;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use storage_client::Entity;

/// Where entities are.
pub enum SampleSource {
    /// In a table, read by so many workers.
    Table(Box<TablePlace>, usize),
    /// In a file; keys that are absent or empty are taken as not designed yet.
    File(String, Format),
}

/// What is drawn.
pub struct SamplePlan {
    /// From where.
    pub source: SampleSource,
    /// Each entity's chance, more than 0 and at most 1.
    pub share: f64,
    /// Draws the same entities each time.
    pub seed: u64,
    /// Entities at most.
    pub entities_max: usize,
    /// Bytes of their JSON at most.
    pub size_bytes_max: u64,
}

/// What was drawn, in the order of keys; of a file in its own.
pub struct Drawn {
    /// The entities.
    pub entities: Vec<Entity>,
    /// How many there were in all.
    pub seen: u64,
    /// Whether they have keys.
    pub has_keys: bool,
}

/// Draws a sample.
pub fn sample<'a, 'e: 'a>(
    plan: &'a SamplePlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Drawn, ToolError>> {
    Box::pin(async move {
        match &plan.source {
            SampleSource::Table(place, workers) => of_table(plan, place, *workers, environment).await,
            SampleSource::File(path, format) => of_file(plan, path, *format, environment).await,
        }
    })
}

/// Decides by seed and content.
#[derive(Clone, Copy)]
struct Chance {
    seed: u64,
    share: f64,
}

impl Chance {
    fn keeps(self, json: &[u8]) -> bool {
        // The checksum alone is linear, and entities are similar.
        let mut mixed = crc64(&[json]) ^ self.seed.rotate_left(32);
        let drawn = splitmix64(&mut mixed) ^ splitmix64(&mut mixed).rotate_left(1);
        self.share >= 1.0 || (drawn as f64) < self.share * u64::MAX as f64
    }
}

/// What was kept, by all workers.
#[derive(Default)]
struct Room {
    entities: AtomicUsize,
    size_bytes: AtomicU64,
}

impl Room {
    /// Takes an entity with so many bytes of JSON; an error if it is too much.
    fn take(&self, plan: Bounds, size_bytes: usize) -> Result<(), ToolError> {
        self.entities.fetch_add(1, Ordering::Relaxed);
        self.size_bytes.fetch_add(size_bytes as u64, Ordering::Relaxed);
        self.check(plan)
    }

    fn check(&self, Bounds { entities_max, size_bytes_max }: Bounds) -> Result<(), ToolError> {
        let what = match () {
            () if self.entities.load(Ordering::Relaxed) > entities_max => format!("{entities_max} entities"),
            () if self.size_bytes.load(Ordering::Relaxed) > size_bytes_max => {
                format!("{size_bytes_max} bytes")
            }
            () => return Ok(()),
        };
        Err(ToolError::refused(format!("the sample would have more than {what}: draw a smaller share")))
    }
}

/// How much is kept.
#[derive(Clone, Copy)]
struct Bounds {
    entities_max: usize,
    size_bytes_max: u64,
}

impl SamplePlan {
    fn bounds(&self) -> Bounds {
        Bounds { entities_max: self.entities_max, size_bytes_max: self.size_bytes_max }
    }
}

async fn of_table(
    plan: &SamplePlan,
    place: &TablePlace,
    workers: usize,
    environment: &mut ToolEnvironment<'_>,
) -> Result<Drawn, ToolError> {
    let (room, bounds) = (Arc::new(Room::default()), plan.bounds());
    let chance = Chance { seed: plan.seed, share: plan.share };
    let sink = |_| Keeper { chance, kept: Vec::new(), room: room.clone(), bounds };
    let sinks: Vec<Keeper> = (0..workers).map(sink).collect();
    let selection = Selection { place: place.clone(), filter: None, partition: None, connections: workers };
    let scanned = selection.scan("sampling", &[], sinks, environment).await;
    room.check(bounds)?;
    let (sinks, seen) = scanned.map_err(|(error, _)| error)?;
    let mut entities: Vec<Entity> = sinks.into_iter().flat_map(|sink| sink.kept).collect();
    entities.sort_by(|a, b| (&a.partition_key, &a.row_key).cmp(&(&b.partition_key, &b.row_key)));
    Ok(Drawn { entities, seen, has_keys: true })
}

/// Keeps some of a worker's entities.
struct Keeper {
    chance: Chance,
    kept: Vec<Entity>,
    /// Of all workers.
    room: Arc<Room>,
    bounds: Bounds,
}

impl Sink for Keeper {
    fn take<'a>(
        &'a mut self,
        _: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            let mut json = Vec::new();
            for row in rows {
                json.clear();
                row.put_json(&mut json);
                if !self.chance.keeps(&json) {
                    continue;
                }
                self.room.take(self.bounds, json.len())?;
                self.kept.push(Entity::parse_json(&json).map_err(ToolError::refused)?);
            }
            Ok(Vec::new())
        })
    }
}

async fn of_file(
    plan: &SamplePlan,
    path: &str,
    format: Format,
    environment: &ToolEnvironment<'_>,
) -> Result<Drawn, ToolError> {
    let mut file = RecordFile::open(&*environment.disk, path, format, (0, 1)).await?;
    let chance = Chance { seed: plan.seed, share: plan.share };
    let room = Room::default();
    let mut drawn = Drawn { entities: Vec::new(), seen: 0, has_keys: true };
    while let Some(window) = file.next_window().await? {
        if environment.stop.is_set() {
            return Err(ToolError::Stopped);
        }
        for line in &window.lines {
            let wrong = |what: String| ToolError::Line { path: path.to_owned(), line: line.number, what };
            let text = std::str::from_utf8(&window.text[line.at.clone()]).unwrap_or_default();
            drawn.seen += 1;
            if !chance.keeps(text.as_bytes()) {
                continue;
            }
            room.take(plan.bounds(), text.len())?;
            let (entity, has_keys) = entity_of(text).map_err(wrong)?;
            drawn.has_keys &= has_keys;
            drawn.entities.push(entity);
        }
    }
    Ok(drawn)
}

/// A line's entity, and whether it has keys.
fn entity_of(line: &str) -> Result<(Entity, bool), String> {
    let mut keyed = Cow::Borrowed(line);
    // One key is named at a time.
    for _ in 0..2 {
        let Err(RowError::NoKey(key)) = Row::parse(&keyed) else { break };
        let rest = keyed.trim_start().strip_prefix('{').unwrap_or_default();
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        keyed = Cow::Owned(format!("{{\"{key}\":\"\"{comma}{rest}"));
    }
    let row = Row::parse(&keyed);
    let row = row.and_then(|row| row.check().map(|()| row)).map_err(|error| error.to_string())?;
    let has_keys = !row.partition_key.is_empty() || !row.row_key.is_empty();
    let mut json = Vec::new();
    row.put_json(&mut json);
    Ok((Entity::parse_json(&json)?, has_keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage_client::Value;

    #[test]
    fn lines_may_have_no_keys() {
        let (entity, has_keys) = entity_of(r#"{"A":1}"#).expect("an entity");
        assert_eq!((entity.value("A"), has_keys), (Some(&Value::Int32(1)), false));
        assert!(!entity_of("{}").expect("an entity").1);
        assert!(entity_of(r#"{"PartitionKey":"p","RowKey":"r"}"#).expect("an entity").1);
        let (one, has_keys) = entity_of(r#"{"A":1,"RowKey":"r"}"#).expect("an entity");
        assert_eq!((one.row_key.as_str(), one.partition_key.as_str(), has_keys), ("r", "", true));
        assert!(entity_of("[]").is_err() && entity_of(r#"{"A":"#).is_err());
    }

    #[test]
    fn a_sample_is_bounded_by_entities_and_bytes() {
        let (room, bounds) = (Room::default(), Bounds { entities_max: 3, size_bytes_max: 100 });
        assert!(room.take(bounds, 50).is_ok() && room.take(bounds, 50).is_ok());
        let refused = room.take(bounds, 1).expect_err("too much").to_string();
        assert_eq!(refused, "the sample would have more than 100 bytes: draw a smaller share");
        let refused = room.take(bounds, 0).expect_err("too many").to_string();
        assert_eq!(refused, "the sample would have more than 3 entities: draw a smaller share");
    }

    #[test]
    fn the_seed_draws_and_the_share_is_kept() {
        let lines: Vec<String> =
            (0..100_000).map(|index| format!("{{\"RowKey\":\"r{index:06}\"}}")).collect();
        let drawn = |seed, share| {
            let chance = Chance { seed, share };
            lines.iter().filter(|line| chance.keeps(line.as_bytes())).cloned().collect::<Vec<_>>()
        };
        assert_eq!(drawn(1, 0.01), drawn(1, 0.01));
        assert_ne!(drawn(1, 0.01), drawn(2, 0.01));
        for seed in 0..5 {
            // Within five standard deviations.
            assert!((840..=1160).contains(&drawn(seed, 0.01).len()), "{seed}: {}", drawn(seed, 0.01).len());
        }
        assert_eq!(drawn(1, 1.0).len(), lines.len());
    }
}
