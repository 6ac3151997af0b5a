//! A steady mix for a long time: rows and messages that come and go, overwritten rows, gets. Memory, time and
//! descriptors must stay what they were.

use super::rows::{Change, GROUP_ROWS, TableClient};
use super::{Stage, Verdict};
use crate::Outcome;
use crate::client::service_client::ServiceClient;
use hdrhistogram::Histogram;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A row is deleted when so many have come after it.
const KEPT_ROWS: u64 = 200_000;
const HOT_ROWS: u64 = 20_000;
/// Between two rounds of a worker.
const PAUSE: Duration = Duration::from_millis(20);
const TEXT_SIZE: usize = 200;
/// What memory and time may grow by after the first third.
const GROWTH_PERCENT_MAX: f64 = 10.0;
/// More descriptors than after the first third: files come and go.
const DESCRIPTORS_MORE_MAX: f64 = 64.0;

#[derive(clap::Args)]
pub(crate) struct SoakArguments {
    /// Minutes of the steady mix.
    #[arg(long, default_value_t = 30)]
    pub(super) soak_minutes: u64,
}

/// A look at the end of a minute.
struct Minute {
    resident_mib: f64,
    p99_ms: f64,
    descriptors: f64,
}

fn timed(histogram: &Mutex<Histogram<u64>>, work: impl FnOnce() -> Outcome<()>) -> Result<(), String> {
    let began_at = Instant::now();
    work().map_err(|error| error.to_string())?;
    let took_ns = began_at.elapsed().as_nanos().min(u128::from(u64::MAX)) as u64;
    let mut histogram = histogram.lock().map_err(|_| "a worker panicked")?;
    histogram.record(took_ns).map_err(|error| error.to_string())
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let minutes = stage.arguments.size.soak.soak_minutes;
    let address = stage.server.address;
    let queues = stage.server.queue_address.ok_or("the server has no Queue service")?;
    TableClient::connect(address)?.create_table()?;
    ServiceClient::connect(queues, "application/xml")?.expect("PUT", "soak", &[], &[], b"", &[201])?;
    let histogram = Mutex::new(Histogram::<u64>::new(3)?);
    let ends = AtomicBool::new(false);
    let flow = || -> Result<(), String> {
        let mut client = TableClient::connect(address).map_err(|error| error.to_string())?;
        let (put, mut next) = (Change::Put { text_size: TEXT_SIZE }, 0);
        while !ends.load(Ordering::Relaxed) {
            timed(&histogram, || client.change("flow", next..next + GROUP_ROWS, put))?;
            if next >= KEPT_ROWS {
                let gone = next - KEPT_ROWS;
                timed(&histogram, || client.change("flow", gone..gone + GROUP_ROWS, Change::Delete))?;
            }
            timed(&histogram, || client.first("flow").map(drop))?;
            next += GROUP_ROWS;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    };
    let overwrites = || -> Result<(), String> {
        let mut client = TableClient::connect(address).map_err(|error| error.to_string())?;
        let (put, mut at) = (Change::Put { text_size: TEXT_SIZE }, 0);
        while !ends.load(Ordering::Relaxed) {
            timed(&histogram, || client.change("hot", at..at + GROUP_ROWS, put))?;
            at = (at + GROUP_ROWS) % HOT_ROWS;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    };
    let messages = || -> Result<(), String> {
        let body = "<QueueMessage><MessageText>c29hayBzb2FrIHNvYWs=</MessageText></QueueMessage>".as_bytes();
        let mut client =
            ServiceClient::connect(queues, "application/xml").map_err(|error| error.to_string())?;
        while !ends.load(Ordering::Relaxed) {
            timed(&histogram, || {
                client.expect("POST", "soak/messages", &[], &[], body, &[201])?;
                let got = client.expect("GET", "soak/messages", &[], &[], b"", &[200])?.text();
                let part = |tag: &str| {
                    let from = got.find(&format!("<{tag}>"))? + tag.len() + 2;
                    Some(got[from..].split('<').next()?.to_owned())
                };
                if let (Some(id), Some(receipt)) = (part("MessageId"), part("PopReceipt")) {
                    let path = format!("soak/messages/{id}");
                    let receipt = receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
                    client.expect("DELETE", &path, &[("popreceipt", &receipt)], &[], b"", &[204])?;
                }
                Ok(())
            })?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    };
    let looks = std::thread::scope(|scope| -> Outcome<Vec<Minute>> {
        let workers = [scope.spawn(flow), scope.spawn(overwrites), scope.spawn(messages)];
        let mut looks = Vec::new();
        for minute in 1..=minutes {
            std::thread::sleep(Duration::from_secs(60));
            let look = look(stage, &histogram)?;
            println!(
                "  minute {minute}: {:.0} MiB resident, p99 {:.1} ms, {:.0} descriptors, {:.0} MiB stored",
                look.resident_mib,
                look.p99_ms,
                look.descriptors,
                stage.stored_mib()?
            );
            looks.push(look);
            // One that has ended so early has failed.
            if workers.iter().any(|worker| worker.is_finished()) {
                break;
            }
        }
        ends.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok(looks)
    })?;
    let settled = &looks[(looks.len() / 3).min(looks.len().saturating_sub(1))..];
    let Some(first) = settled.first() else { return Ok(Vec::new()) };
    let most = |of: fn(&Minute) -> f64| settled.iter().map(of).fold(0.0, f64::max);
    let half = settled.len().div_ceil(2);
    let middle = |minutes: &[Minute]| {
        let mut p99s: Vec<f64> = minutes.iter().map(|minute| minute.p99_ms).collect();
        p99s.sort_by(f64::total_cmp);
        p99s.get(p99s.len() / 2).copied().unwrap_or(0.0)
    };
    let (early_ms, late_ms) = (middle(&settled[..half]), middle(&settled[half..]));
    let factor = 1.0 + GROWTH_PERCENT_MAX / 100.0;
    let resident_mib = most(|minute| minute.resident_mib);
    let descriptors = most(|minute| minute.descriptors);
    Ok(vec![
        Verdict::at_most("memory after the first third", resident_mib, first.resident_mib * factor, "MiB"),
        Verdict::at_most("median p99 of the last third", late_ms, early_ms * factor, "ms"),
        Verdict::at_most("descriptors", descriptors, first.descriptors + DESCRIPTORS_MORE_MAX, ""),
    ])
}

/// What the minute was like; the next one begins.
fn look(stage: &Stage<'_>, histogram: &Mutex<Histogram<u64>>) -> Outcome<Minute> {
    let mut histogram = histogram.lock().map_err(|_| "a worker panicked")?;
    let p99_ms = histogram.value_at_quantile(0.99) as f64 / 1e6;
    histogram.reset();
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", stage.server.id()))?.count() as f64;
    Ok(Minute { resident_mib: stage.resident_mib()?, p99_ms, descriptors })
}
