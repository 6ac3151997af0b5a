//! The first sixth of a partition's rows is deleted, then the rest: how long a look for the first row takes,
//! and what the folder takes.

use super::rows::{Change, First, TableClient, change_all};
use super::{Stage, Verdict};
use crate::Outcome;
use std::time::Duration;

const PARTITION: &str = "p";
const TEXT_SIZE: usize = 100;
const LOOKS: usize = 21;

/// The look of median time, of many.
fn look(client: &mut TableClient) -> Outcome<First> {
    let mut looks = (0..LOOKS).map(|_| client.first(PARTITION)).collect::<Outcome<Vec<First>>>()?;
    looks.sort_by_key(|look| look.took_for);
    Ok(looks[LOOKS / 2])
}

fn show(when: &str, look: First, stage: &Stage<'_>) -> Outcome<()> {
    println!(
        "  {when}: the first row after {:.2} ms and {} requests, {:.0} MiB stored, {:.0} MiB resident",
        look.took_for.as_secs_f64() * 1e3,
        look.requests,
        stage.stored_mib()?,
        stage.resident_mib()?
    );
    Ok(())
}

fn verdicts(when: &str, look: First) -> [Verdict; 2] {
    let milliseconds = look.took_for.as_secs_f64() * 1e3;
    [
        Verdict::at_most(&format!("look for the first row {when}"), milliseconds, 2.0, "ms"),
        Verdict::at_most(&format!("look for the first row {when}"), look.requests as f64, 1.0, "requests"),
    ]
}

pub(super) fn run(stage: &mut Stage<'_>) -> Outcome<Vec<Verdict>> {
    let (rows, address) = (stage.arguments.rows, stage.server.address);
    let quiet = Duration::from_secs(stage.arguments.waits.quiet_seconds);
    let space = Duration::from_secs(stage.arguments.waits.space_seconds);
    let mut client = TableClient::connect(address)?;
    client.create_table()?;
    let empty_mib = stage.empty_mib()?;
    let partition = |_| PARTITION.to_owned();
    let rate = change_all(address, partition, 0..rows, Change::Put { text_size: TEXT_SIZE })?;
    println!("  {rows} rows put, {rate:.0}/s");
    std::thread::sleep(quiet);
    let full_mib = stage.stored_mib()? - empty_mib;
    show("full", look(&mut client)?, stage)?;
    let deleted = rows / 6;
    let rate = change_all(address, partition, 0..deleted, Change::Delete)?;
    println!("  the first {deleted} deleted, {rate:.0}/s");
    show("at once", client.first(PARTITION)?, stage)?;
    std::thread::sleep(quiet);
    let first = client.first(PARTITION)?;
    if first.number != Some(deleted) {
        return Err(format!("the first row is {first:?} and not {deleted}").into());
    }
    let after = look(&mut client)?;
    show("after quiet", after, stage)?;
    let mut found = Vec::from(verdicts("after deletions", after));
    let rate = change_all(address, partition, deleted..rows, Change::Delete)?;
    println!("  all deleted, {rate:.0}/s");
    std::thread::sleep(quiet.max(space));
    let empty = look(&mut client)?;
    if empty.number.is_some() {
        return Err(format!("a deleted row is there: {empty:?}").into());
    }
    show("empty", empty, stage)?;
    found.extend(verdicts("of none", empty));
    // What a memory table and its log hold is no row of the table any more, and is little.
    let left_mib = stage.stored_mib()? - empty_mib;
    found.push(Verdict::at_most("space of deleted rows", left_mib, full_mib / 4.0, "MiB"));
    stage.restart()?;
    let mut client = TableClient::connect(stage.server.address)?;
    let again = look(&mut client)?;
    show("started again", again, stage)?;
    found.extend(verdicts("after a restart", again));
    Ok(found)
}
