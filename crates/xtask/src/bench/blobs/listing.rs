//! Pages of 5,000 of a container with very many blobs beside the same pages of one with few.
//!
//! Names are `gDDDD/NNN`: 10,000 groups below a delimiter, with so many blobs each as it takes.

use super::{BLOCK_BLOB, Bench, CONTENT_TYPE, Verdict};
use crate::Outcome;
use crate::bench::queues::element;
use crate::bench::rounds::median;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::service_client::ServiceClient;
use crate::client::shared_key::{ServiceRequest, Signer, date_now};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const GROUP_COUNT: u64 = 10_000;
/// So a prefix of one group's first digit has a whole page.
const SMALL_GROUP_SIZE: u64 = 5;
const SIGN_AGAIN_AFTER: Duration = Duration::from_secs(60);
const PAGE: &str = "5000";
/// So long nothing is written before pages are measured once more.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// A page of the long container may take so many times as long as one of the short.
const TIMES_MAX: f64 = 2.0;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Verdict>> {
    let group_size = (bench.arguments.listed_blobs / GROUP_COUNT).max(1);
    let containers = [("short", SMALL_GROUP_SIZE.min(group_size)), ("long", group_size)];
    for (container, group_size) in containers {
        bench.connect()?.expect("PUT", container, &[("restype", "container")], &[], b"", &[201])?;
        let started_at = Instant::now();
        put_all(bench, container, group_size)?;
        let seconds = started_at.elapsed().as_secs_f64();
        println!("\n{container}: {} blobs put in {seconds:.1} s", GROUP_COUNT * group_size);
    }
    println!("\nright after the writes, {} times each:", bench.arguments.listed_pages);
    let worst = measure_pages(bench, containers)?;
    // Shown, not judged: the bound is for pages right after the writes.
    println!("\nwithout writes for {} s, in which the server merges:", IDLE_FOR.as_secs());
    std::thread::sleep(IDLE_FOR);
    measure_pages(bench, containers)?;
    Ok(vec![Verdict {
        what: format!("a page of the long container takes {worst:.2} times as long at most ({TIMES_MAX})"),
        holds: worst <= TIMES_MAX,
    }])
}

/// Asks for a page of each kind of one container and the same of the other in turns, since the machine is not
/// equally fast at all times. How many times as long the second container's takes, by medians, of the kind
/// that is worst. Then all pages of each show whether every blob is listed; containers come with the sizes of
/// their groups.
fn measure_pages(bench: &Bench<'_>, containers: [(&str, u64); 2]) -> Outcome<f64> {
    let kinds: [(&str, &[(&str, &str)]); 3] = [
        ("prefix", &[("prefix", "g4")]),
        ("delimiter", &[("delimiter", "/")]),
        ("prefix and delimiter", &[("delimiter", "/"), ("prefix", "g4")]),
    ];
    let mut client = bench.connect()?;
    let mut worst: f64 = 0.0;
    for (name, parameters) in kinds {
        let (mut times, mut counts) = ([Vec::new(), Vec::new()], [0, 0]);
        for round in 0..bench.arguments.listed_pages.max(1) {
            for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let started_at = Instant::now();
                let page = page(&mut client, containers[which].0, parameters)?;
                times[which].push(started_at.elapsed().as_secs_f64() * 1e3);
                counts[which] = page.matches("<Name>").count();
            }
        }
        let ratios: Vec<f64> = times[1].iter().zip(&times[0]).map(|(long, short)| long / short).collect();
        let ratio = median(&ratios);
        for which in [0, 1] {
            let (container, count) = (containers[which].0, counts[which]);
            println!("{container:<6} {name:<22} {count:>6} entries in {:>8.1} ms", median(&times[which]));
        }
        println!("{:<6} {name:<22} {ratio:.2} times as long", containers[1].0);
        worst = worst.max(ratio);
    }
    for (container, group_size) in containers {
        let (seconds, pages) = walk(&mut client, container, GROUP_COUNT * group_size)?;
        println!("{container:<6} all pages: {pages} in {seconds:.2} s, {:.1} ms each", seconds * 1e3 / pages);
    }
    Ok(worst)
}

/// Puts all blobs, each with one byte.
fn put_all(bench: &Bench<'_>, container: &'static str, group_size: u64) -> Outcome<()> {
    let mut puts = Puts {
        address: bench.address,
        container,
        group_size,
        sent_count: 0,
        signer: Signer::new(),
        date: (date_now(), Instant::now()),
    };
    while puts.sent_count < GROUP_COUNT * group_size {
        let load = Load {
            address: bench.address,
            connection_count: bench.arguments.rounds.connections,
            warm_up_for: Duration::ZERO,
            measure_for: Duration::from_millis(500),
            expected_status: 201,
            server_process_id: None,
        };
        measure(&load, &mut puts)?;
    }
    Ok(())
}

/// Puts of one byte each; after the last blob it starts over.
struct Puts {
    address: SocketAddr,
    container: &'static str,
    group_size: u64,
    sent_count: u64,
    signer: Signer,
    /// And since when it is used.
    date: (String, Instant),
}

impl RequestSource for Puts {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.date.1.elapsed() > SIGN_AGAIN_AFTER {
            self.date = (date_now(), Instant::now());
        }
        let number = self.sent_count % (GROUP_COUNT * self.group_size);
        // The order of puts is not that of names.
        let path = format!("{}/g{:04}/{:06}", self.container, number % GROUP_COUNT, number / GROUP_COUNT);
        let request = ServiceRequest {
            verb: "PUT",
            path: &path,
            parameters: &[],
            headers: &[BLOCK_BLOB],
            content_type: CONTENT_TYPE,
        };
        let head = self.signer.service_request(self.address, &self.date.0, &request, 1);
        out.extend_from_slice(head.as_bytes());
        out.push(b'x');
        self.sent_count += 1;
    }
}

/// A page; `parameters` come before the others in the order of names.
fn page(client: &mut ServiceClient, container: &str, parameters: &[(&str, &str)]) -> Outcome<String> {
    let mut all = vec![("comp", "list"), ("maxresults", PAGE), ("restype", "container")];
    all.extend_from_slice(parameters);
    all.sort_unstable();
    Ok(client.expect("GET", container, &all, &[], b"", &[200])?.text())
}

/// Follows the markers through the whole container.
fn walk(client: &mut ServiceClient, container: &str, count: u64) -> Outcome<(f64, f64)> {
    let started_at = Instant::now();
    let (mut marker, mut pages, mut found) = (String::new(), 0.0, 0);
    loop {
        let parameters = [("marker", marker.as_str())];
        let text = page(client, container, if marker.is_empty() { &[] } else { &parameters })?;
        found += text.matches("<Name>").count() as u64;
        pages += 1.0;
        marker = element(text.as_bytes(), "NextMarker").to_owned();
        if marker.is_empty() {
            break;
        }
    }
    match found == count {
        true => Ok((started_at.elapsed().as_secs_f64(), pages)),
        false => Err(format!("{found} of {count} blobs are listed").into()),
    }
}
