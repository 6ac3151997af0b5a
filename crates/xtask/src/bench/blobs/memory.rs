//! A very large block blob, up and down by one client: the server's memory at its peak beside that before.
//!
//! It is uploaded twice: in blocks and a list of them, and in one request. Digests of what comes back are
//! compared.

use super::{BLOCK_BLOB, Bench, CONTAINER, Verdict, mib};
use crate::Outcome;
use crate::client::content::fill;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};

const BLOCK_SIZE_BYTES: u64 = 64 << 20;
const PART_SIZE_BYTES: usize = 256 << 10;
/// A first, smaller blob.
const FIRST_SIZE_BYTES: u64 = 128 << 20;
const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// How often it is looked whether it still frees memory, at most.
const SETTLE_ROUNDS_MAX: usize = 6;
const GROWTH_MIB_MAX: f64 = 64.0;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Verdict>> {
    let size = bench.arguments.memory_mib << 20;
    let mut memory = Memory { lowest: settled(bench)?, highest: 0 };
    println!("\nmemory: a blob of {} MiB; the server has {:.0} MiB", mib(size), mib(memory.lowest));
    for (name, in_blocks) in [("blocks", true), ("whole", false)] {
        let uploaded = memory
            .follow(bench, size, &format!("upload, {name}"), || upload(bench, name, in_blocks, size))?;
        let downloaded =
            memory.follow(bench, size, &format!("download, {name}"), || download(bench, name))?;
        if uploaded != downloaded {
            return Err(format!("{name}: other bytes came back").into());
        }
    }
    let growth = mib(memory.highest.saturating_sub(memory.lowest));
    Ok(vec![Verdict {
        what: format!(
            "resident memory between {:.0} and {:.0} MiB while {} MiB went up and down: it grew by {growth:.0} MiB \
             ({GROWTH_MIB_MAX} MiB)",
            mib(memory.lowest),
            mib(memory.highest),
            mib(size)
        ),
        holds: growth < GROWTH_MIB_MAX,
    }])
}

/// What the server has once what starting took (the journal was read whole) is freed. It is freed bit by bit,
/// and only while something is done: until it falls by less than a tenth.
fn settled(bench: &Bench<'_>) -> Outcome<u64> {
    let mut before = u64::MAX;
    for _ in 0..SETTLE_ROUNDS_MAX {
        upload(bench, "first", true, FIRST_SIZE_BYTES)?;
        download(bench, "first")?;
        std::thread::sleep(SETTLED_AFTER);
        let now = bench.server.resident_bytes()?;
        if now / 10 * 11 > before {
            return Ok(now.min(before));
        }
        before = now;
    }
    Ok(before)
}

/// What the server had: the least at rest, before or after, and the most at any time.
struct Memory {
    lowest: u64,
    highest: u64,
}

impl Memory {
    fn follow<T>(
        &mut self,
        bench: &Bench<'_>,
        size: u64,
        name: &str,
        act: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        bench.server.reset_peak()?;
        let started_at = Instant::now();
        let done = act()?;
        let seconds = started_at.elapsed().as_secs_f64();
        let (peak, now) = (bench.server.peak_resident_bytes()?, bench.server.resident_bytes()?);
        println!(
            "{name:<18} {:>6.0} MiB/s, {:.0} MiB at the peak, {:.0} MiB afterwards",
            mib(size) / seconds,
            mib(peak),
            mib(now)
        );
        self.highest = self.highest.max(peak);
        self.lowest = self.lowest.min(now);
        Ok(done)
    }
}

type Sha = [u8; 32];

fn upload(bench: &Bench<'_>, name: &str, in_blocks: bool, size: u64) -> Outcome<Sha> {
    let mut client = bench.connect()?;
    let (mut state, mut sha) = (size, Sha256::new());
    let mut part = vec![0; PART_SIZE_BYTES];
    let mut next = |bytes: &mut [u8]| {
        fill(&mut state, bytes);
        sha.update(&*bytes);
    };
    let path = format!("{CONTAINER}/{name}");
    if !in_blocks {
        client.put_streamed(&path, &[], &[BLOCK_BLOB], size, &mut part, &mut next)?;
        return Ok(sha.finalize().into());
    }
    let mut list = String::from("<BlockList>");
    let (mut at, mut index) = (0, 0);
    while at < size {
        let id = STANDARD.encode(format!("{index:06}"));
        let now = BLOCK_SIZE_BYTES.min(size - at);
        // These ids have as many bytes as need no padding, and no character that needs escaping.
        let parameters = [("blockid", id.as_str()), ("comp", "block")];
        client.put_streamed(&path, &parameters, &[], now, &mut part, &mut next)?;
        list.push_str(&format!("<Latest>{id}</Latest>"));
        at += now;
        index += 1;
    }
    list.push_str("</BlockList>");
    client.expect("PUT", &path, &[("comp", "blocklist")], &[], list.as_bytes(), &[201])?;
    Ok(sha.finalize().into())
}

fn download(bench: &Bench<'_>, name: &str) -> Outcome<Sha> {
    let mut sha = Sha256::new();
    let answer =
        bench.connect()?.get_streamed(&format!("{CONTAINER}/{name}"), &[], |bytes| sha.update(bytes))?;
    match answer.status {
        200 => Ok(sha.finalize().into()),
        status => Err(format!("GET {name}: {status}").into()),
    }
}
