//! Small puts and gets beside the bare server, and of 4 MiB beside what the disk writes and loopback HTTP
//! carries.
//!
//! A large put is carried and then written, so its yardstick is the slower of the two. Rounds alternate
//! between all of them, so that a slow minute of the machine hits all.

use super::{BLOCK_BLOB, Bench, CONTAINER, Requests, Verdict, mib};
use crate::Outcome;
use crate::bench::rounds::{Series, median};
use crate::client::content::content;
use crate::client::load::{Load, measure};
use crate::client::server_process::ServerProcess;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

const LARGE_SIZE_BYTES: usize = 4 << 20;
/// Blobs of a round before it starts over.
const SMALL_COUNT: u64 = 100_000;
/// Large blobs, written again and again.
const LARGE_COUNT: u64 = 64;
/// The file that the disk is measured with starts over at this size.
const DISK_FILE_SIZE_BYTES_MAX: u64 = 1 << 30;
const SMALL_PUT_PERCENT_MIN: f64 = 40.0;
const LARGE_PERCENT_MIN: f64 = 50.0;

fn load(bench: &Bench<'_>, asked: &Asked, connection_count: usize) -> Load {
    Load {
        address: asked.address,
        connection_count,
        warm_up_for: Duration::from_millis(500),
        measure_for: Duration::from_secs(bench.arguments.rounds.seconds),
        expected_status: asked.status,
        server_process_id: Some(asked.process_id),
    }
}

/// A percentage per round, and of these the median.
fn percent(of: &[f64], yardstick: &[f64]) -> f64 {
    let ratios: Vec<f64> = of.iter().zip(yardstick).map(|(one, whole)| 100.0 * one / whole).collect();
    median(&ratios)
}

/// What is measured side by side.
const KINDS: [&str; 4] = ["bare PUT", "durable put", "bare GET", "get"];

/// In which order a round measures the kinds: who goes first changes.
fn order(round: usize) -> [usize; 4] {
    if round.is_multiple_of(2) { [0, 1, 2, 3] } else { [1, 0, 3, 2] }
}

/// Whom a kind asks, and what answers it.
struct Asked {
    address: SocketAddr,
    process_id: u32,
    status: u16,
}

fn asked(kind: usize, bare: &ServerProcess, bench: &Bench<'_>) -> Asked {
    let (address, process_id) =
        if kind.is_multiple_of(2) { (bare.address, bare.id()) } else { (bench.address, bench.server.id()) };
    let status = match kind {
        0 => 204,
        1 => 201,
        _ => 200,
    };
    Asked { address, process_id, status }
}

pub(super) fn run_small(bench: &Bench<'_>) -> Outcome<Vec<Verdict>> {
    let arguments = bench.arguments;
    let size = arguments.small_size_bytes;
    let bare = ServerProcess::start_bare(bench.bare_program, &bench.folder, size)?;
    println!(
        "\nsmall: {} connections, {} rounds of {} s, blobs of {size} B",
        arguments.rounds.connections, arguments.rounds.rounds, arguments.rounds.seconds
    );
    let mut series = KINDS.map(Series::new);
    for round in 0..arguments.rounds.rounds {
        for kind in order(round) {
            let asked = asked(kind, &bare, bench);
            let paths = (0..SMALL_COUNT).map(|number| {
                // Scattered, so that puts don't arrive in the order of names.
                format!("{round}/{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            });
            let mut requests = match kind {
                0 | 1 => Requests::puts(asked.address, paths, content(7, size)),
                // Those that were written first are there for certain.
                _ => Requests::gets(asked.address, paths.take(4096)),
            };
            series[kind].add(measure(&load(bench, &asked, arguments.rounds.connections), &mut requests)?)?;
        }
        let rates: Vec<String> =
            series.iter().map(|one| format!("{} {:.0}/s", one.name, one.last())).collect();
        println!("round {}: {}", round + 1, rates.join(", "));
    }
    series.iter().for_each(Series::print);
    let puts = percent(&series[1].rates, &series[0].rates);
    let gets = percent(&series[3].rates, &series[2].rates);
    println!("get of {size} B: {gets:.1} % of the bare server");
    Ok(vec![Verdict {
        what: format!(
            "put {size} B at {puts:.1} % of the bare server's requests/s ({SMALL_PUT_PERCENT_MIN} %)"
        ),
        holds: puts >= SMALL_PUT_PERCENT_MIN,
    }])
}

pub(super) fn run_large(bench: &Bench<'_>) -> Outcome<Vec<Verdict>> {
    let arguments = bench.arguments;
    let bare = ServerProcess::start_bare(bench.bare_program, &bench.folder, LARGE_SIZE_BYTES)?;
    println!(
        "\nlarge: {} connections, {} rounds of {} s, blobs of {LARGE_SIZE_BYTES} B",
        arguments.large_connections, arguments.rounds.rounds, arguments.rounds.seconds
    );
    let paths = || (0..LARGE_COUNT).map(|number| format!("large{number}"));
    let body = content(7, LARGE_SIZE_BYTES);
    let mut client = bench.connect()?;
    for path in paths() {
        client.expect("PUT", &format!("{CONTAINER}/{path}"), &[], &[BLOCK_BLOB], &body, &[201])?;
    }
    let mut series = KINDS.map(Series::new);
    let mut disk = Vec::new();
    for round in 0..arguments.rounds.rounds {
        disk.push(disk_writes_per_second(
            &bench.folder.join("disk"),
            &body,
            Duration::from_secs(arguments.rounds.seconds),
        )?);
        for kind in order(round) {
            let asked = asked(kind, &bare, bench);
            let mut requests = match kind {
                0 | 1 => Requests::puts(asked.address, paths(), body.clone()),
                _ => Requests::gets(asked.address, paths()),
            };
            let load = load(bench, &asked, arguments.large_connections);
            series[kind].add(measure(&load, &mut requests)?)?;
        }
        let rates: Vec<String> = series
            .iter()
            .map(|one| format!("{} {:.0} MiB/s", one.name, one.last() * mib(LARGE_SIZE_BYTES as u64)))
            .collect();
        println!(
            "round {}: disk {:.0} MiB/s, {}",
            round + 1,
            disk[round] * mib(LARGE_SIZE_BYTES as u64),
            rates.join(", ")
        );
    }
    println!("disk, 4 MiB and fdatasync: median {:.0} /s", median(&disk));
    series.iter().for_each(Series::print);
    let slower: Vec<f64> = disk.iter().zip(&series[0].rates).map(|(disk, bare)| disk.min(*bare)).collect();
    let puts = percent(&series[1].rates, &slower);
    let gets = percent(&series[3].rates, &series[2].rates);
    Ok(vec![
        Verdict {
            what: format!(
                "put 4 MiB at {puts:.1} % of the slower of disk and loopback ({LARGE_PERCENT_MIN} %)"
            ),
            holds: puts >= LARGE_PERCENT_MIN,
        },
        Verdict {
            what: format!("get 4 MiB at {gets:.1} % of loopback HTTP ({LARGE_PERCENT_MIN} %)"),
            holds: gets >= LARGE_PERCENT_MIN,
        },
    ])
}

/// Writes one after the other, each followed by `fdatasync`.
fn disk_writes_per_second(path: &Path, body: &[u8], for_at_least: Duration) -> Outcome<f64> {
    let mut file = File::create(path)?;
    let (started_at, mut count, mut size) = (Instant::now(), 0, 0);
    while started_at.elapsed() < for_at_least {
        if size >= DISK_FILE_SIZE_BYTES_MAX {
            file = File::create(path)?;
            size = 0;
        }
        file.write_all(body)?;
        file.sync_data()?;
        size += body.len() as u64;
        count += 1;
    }
    let rate = f64::from(count) / started_at.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}
