//! A range moves from one database to the other and back, with nobody beside it.

use crate::databases::{Databases, SHARDS, TABLE};
use crate::{Outcome, median};
use parking_lot::Mutex;
use shard_backend::{DigestKey, MoveMode};
use shard_map::Name;
use shard_mover::{MoveState, Mover, MoverSettings, NamedDigestKey, Phase, PlannedMove, Shards};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows a second that are copied and verified.
const ROWS_PER_SECOND_MIN: f64 = 50_000.0;
const ROWS_OF_TENANT: u64 = 1000;

/// When each phase was first met.
type Phases = Arc<Mutex<Vec<(Phase, Instant)>>>;

fn mover(databases: &Databases) -> Outcome<Mover> {
    let backend = |shard: &&str| -> Outcome<_> { Ok((Name::parse(shard)?, databases.backend(shard))) };
    let shards =
        Shards { locals: databases.locals()?, backends: SHARDS.iter().map(backend).collect::<Outcome<_>>()? };
    let key = NamedDigestKey { id: "bench".to_owned(), key: DigestKey::new([7; 16]) };
    let outside = (databases.env.clock.clone(), databases.env.random.clone());
    let (records, schema) = (databases.records.clone(), databases.schema.clone());
    Ok(Mover::new(records, shards, schema, MoverSettings::new(key), outside))
}

/// Moves the range and deletes the source's rows; seconds from the first to the last step of the move, and
/// those of copying and verifying.
async fn move_range(databases: &Databases, from: &str, to: &str, rows: u64) -> Outcome<(f64, f64)> {
    let planned = PlannedMove {
        map: Name::parse("m")?,
        mapping: Databases::first_range()?,
        from: Name::parse(from)?,
        to: Name::parse(to)?,
        mode: MoveMode::ReadOnly,
        rows,
        bytes: 200 * rows,
        pause: Duration::ZERO,
    };
    let mover = mover(databases)?;
    let phases: Phases = Arc::default();
    let seen = phases.clone();
    let sink = move |progress: shard_mover::Progress| {
        let mut phases = seen.lock();
        if phases.last().is_none_or(|(phase, _)| *phase != progress.phase) {
            phases.push((progress.phase, Instant::now()));
        }
    };
    let started_at = Instant::now();
    let id = mover.begin(&planned).await?;
    let ended = mover.finish(&id, &sink).await?;
    let whole_seconds = started_at.elapsed().as_secs_f64();
    let MoveState::Done { certificate } = ended.state() else {
        return Err(format!("the move ended as {:?}", ended.state()).into());
    };
    let moved: u64 = certificate.tables.iter().map(|table| table.rows).sum();
    if moved != rows {
        return Err(format!("the certificate is of {moved} rows, not of {rows}").into());
    }
    let copying_at = phases.lock().iter().find(|(phase, _)| *phase == Phase::Copying).map(|(_, at)| *at);
    let copying_at = copying_at.unwrap_or(started_at);
    let work_seconds = whole_seconds - copying_at.duration_since(started_at).as_secs_f64();
    mover.delete_source(&id, &|_| {}).await?;
    Ok((whole_seconds, work_seconds))
}

/// Whether rows move fast enough.
pub(crate) async fn run(databases: &Databases, rows: u64, moves: usize) -> Outcome<bool> {
    // Texts that differ, so that a row has 200 bytes with its key.
    let fill = format!(
        "INSERT INTO {TABLE} SELECT row / {ROWS_OF_TENANT}, row % {ROWS_OF_TENANT}, \
         left(repeat(md5(row::text), 6), 188) FROM generate_series(0, {}) AS row",
        rows.saturating_sub(1)
    );
    databases.run(SHARDS[0], &fill);
    databases.run(SHARDS[0], &format!("VACUUM ANALYZE {TABLE}"));
    databases.run(SHARDS[0], "CHECKPOINT");
    println!("moves of {rows} rows of 200 bytes:");
    let mut rates = Vec::new();
    for index in 0..2 * moves {
        let (from, to) = (SHARDS[index % 2], SHARDS[(index + 1) % 2]);
        let (whole_seconds, work_seconds) = move_range(databases, from, to, rows).await?;
        let rate = rows as f64 / whole_seconds;
        println!("  {from} to {to}: {whole_seconds:.1} s, {work_seconds:.1} of copying on; {rate:.0} rows/s");
        rates.push(rate);
        databases.run(from, &format!("VACUUM {TABLE}"));
    }
    let rate = median(rates);
    let holds = rate >= ROWS_PER_SECOND_MIN;
    println!(
        "  median {rate:.0} rows/s moved and verified ({ROWS_PER_SECOND_MIN:.0} at least){}",
        if holds { "" } else { ": TOO SLOW" }
    );
    Ok(holds)
}
