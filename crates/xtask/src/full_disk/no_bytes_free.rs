//! A start with 0 bytes free, because somebody else filled the disk: the server starts, reads and deletes, says of writes
//! what is missing, and goes on by itself once there is space.

use super::rows::{Answer, Client, Kind, Unit};
use super::small_disk::SmallDisk;
use crate::Outcome;
use crate::server_process::ServerProcess;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const SIZE_MIB: u64 = 300;
const KIND: Kind = Kind::Blob(1_000_000);
const UNIT_COUNT: u64 = 80;
const WRITABLE_WITHIN: Duration = Duration::from_secs(60);
/// Words of the refusal, and of the log.
const FULL: &str = "full";

/// Whether the disk fills up while the server runs, or while it does not.
pub(super) const NAMES: [&str; 2] =
    ["0 bytes free, filled while it runs", "0 bytes free, filled while it is down"];

pub(super) fn run(name: &str, binary: &Path, folder: &Path) -> Outcome<String> {
    let disk = SmallDisk::create(folder, SIZE_MIB)?;
    let data = disk.path().join("data");
    let foreign = disk.path().join("foreign");
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    let mut client = Client::connect(&server, KIND)?;
    client.prepare()?;
    std::thread::sleep(Duration::from_secs(7));
    let mut units = Vec::new();
    for number in 0..UNIT_COUNT {
        units.push(put(&mut client, number)?);
    }
    if name == NAMES[0] {
        fill(&foreign)?;
        // Something is in the journal only.
        let _ = client.put(UNIT_COUNT)?;
        server.kill()?;
    } else {
        server.kill()?;
        fill(&foreign)?;
    }
    let began_at = Instant::now();
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    let started_after = began_at.elapsed();
    let mut client = Client::connect(&server, KIND)?;
    for unit in &units {
        if client.is_whole(unit)? != Some(true) {
            return Err(format!("blob {} is not what was put", unit.number).into());
        }
    }
    fill(&foreign)?;
    let refused_with = loop {
        match client.put(UNIT_COUNT + 1)?.0 {
            Answer::Refused(words) => break words,
            _ if disk.free_bytes()? > 0 => fill(&foreign)?,
            other => return Err(format!("a write on a full disk ended with {other:?}").into()),
        }
    };
    if !refused_with.contains(FULL) || !refused_with.contains("MiB") {
        return Err(format!("the refusal does not say what is missing: {refused_with}").into());
    }
    let (gone, kept) = units.split_at(units.len() / 2);
    for unit in gone {
        if client.delete(unit)? != Answer::Done {
            return Err(format!("blob {} can't be deleted with 0 bytes free", unit.number).into());
        }
    }
    std::fs::remove_file(&foreign)?;
    let freed_at = Instant::now();
    while client.put(UNIT_COUNT + 2)?.0 != Answer::Done {
        if freed_at.elapsed() > WRITABLE_WITHIN {
            return Err("it does not go on though there is space again".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let writable_after = freed_at.elapsed();
    for unit in kept {
        if client.is_whole(unit)? != Some(true) {
            return Err(format!("blob {} is not what was put", unit.number).into());
        }
    }
    let status = server.terminate()?;
    Ok(format!(
        "started in {} ms, {} blobs read, {} deleted, writable {:.1} s after there was space, ended with {status}",
        started_after.as_millis(),
        units.len(),
        gone.len(),
        writable_after.as_secs_f64()
    ))
}

fn put(client: &mut Client, number: u64) -> Outcome<Unit> {
    match client.put(number)? {
        (Answer::Done, unit) => Ok(unit),
        (other, _) => Err(format!("a put ended with {other:?}").into()),
    }
}

/// Fills the disk to the last byte.
fn fill(path: &Path) -> Outcome<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    for size in [1 << 20, 4096, 512, 1] {
        let bytes = vec![7; size];
        while file.write_all(&bytes).is_ok() {}
    }
    let _ = file.sync_all();
    Ok(())
}
