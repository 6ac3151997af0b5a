//! Rows in at the end of a partition and out at its start, at a steady rate: how long a look for the first
//! one takes meanwhile.

use super::rows::{Change, GROUP_ROWS, TableClient, change_all};
use super::{Stage, Verdict};
use crate::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PARTITION: &str = "p";
const TEXT_SIZE: usize = 100;
/// Rows between those that come and those that go.
const BACKLOG: u64 = 20_000;
const LOOK_EVERY: Duration = Duration::from_millis(50);
const SHOW_EVERY: Duration = Duration::from_secs(10);

/// How much flows, and for how long.
#[derive(clap::Args)]
pub(super) struct FlowArguments {
    /// Seconds of the steady flow.
    #[arg(long, default_value_t = 60)]
    pub(super) flow_seconds: u64,
    /// Rows a second, in and out, of the steady flow.
    #[arg(long, default_value_t = 20_000)]
    pub(super) flow_rate: u64,
}

/// Changes a group of rows at each beat.
fn beat(stage: &Stage<'_>, first: u64, change: Change, has_ended: &AtomicBool) -> Result<u64, String> {
    let group = Duration::from_secs_f64(GROUP_ROWS as f64 / stage.arguments.flow.flow_rate as f64);
    let mut client = TableClient::connect(stage.server.address).map_err(|error| error.to_string())?;
    let (began_at, mut groups) = (Instant::now(), 0);
    while !has_ended.load(Ordering::Relaxed) {
        std::thread::sleep((group * groups).saturating_sub(began_at.elapsed()));
        let from = first + u64::from(groups) * GROUP_ROWS;
        client.change(PARTITION, from..from + GROUP_ROWS, change).map_err(|error| error.to_string())?;
        groups += 1;
    }
    Ok(u64::from(groups) * GROUP_ROWS)
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let flow_for = Duration::from_secs(stage.arguments.flow.flow_seconds);
    let mut client = TableClient::connect(stage.server.address)?;
    client.create_table()?;
    let put = Change::Put { text_size: TEXT_SIZE };
    change_all(stage.server.address, |_| PARTITION.to_owned(), 0..BACKLOG, put)?;
    let has_ended = AtomicBool::new(false);
    let mut looks: Vec<(Duration, f64)> = Vec::new();
    let counts = std::thread::scope(|scope| -> Outcome<(u64, u64)> {
        let putting = scope.spawn(|| beat(stage, BACKLOG, put, &has_ended));
        let deleting = scope.spawn(|| beat(stage, 0, Change::Delete, &has_ended));
        let began_at = Instant::now();
        let mut shown = 0;
        let outcome = loop {
            let elapsed = began_at.elapsed();
            if elapsed >= flow_for {
                break Ok(());
            }
            match client.first(PARTITION) {
                Ok(first) => looks.push((elapsed, first.took_for.as_secs_f64() * 1e3)),
                Err(error) => break Err(error),
            }
            if elapsed.as_secs() / SHOW_EVERY.as_secs() > shown {
                shown += 1;
                let since = SHOW_EVERY * (shown as u32 - 1);
                let (half, most) = quantiles(looks.iter().filter(|(at, _)| *at >= since));
                println!("  after {:3} s: p50 {half:.2} ms, p99 {most:.2} ms", shown * SHOW_EVERY.as_secs());
            }
            std::thread::sleep(LOOK_EVERY);
        };
        has_ended.store(true, Ordering::Relaxed);
        let join = |writer: std::thread::ScopedJoinHandle<'_, Result<u64, String>>| {
            writer.join().map_err(|_| "a writer panicked".to_owned())?
        };
        let counts = (join(putting)?, join(deleting)?);
        outcome.map(|()| counts)
    })?;
    let seconds = flow_for.as_secs_f64();
    println!("  {:.0} rows/s in, {:.0} out", counts.0 as f64 / seconds, counts.1 as f64 / seconds);
    let half = flow_for / 2;
    let (_, first_half) = quantiles(looks.iter().filter(|(at, _)| *at < half));
    let (_, second_half) = quantiles(looks.iter().filter(|(at, _)| *at >= half));
    let (_, all) = quantiles(looks.iter());
    Ok(vec![
        Verdict::at_most("look for the first row in a flow, p99", all, 20.0, "ms"),
        // Flat: not as it grows.
        Verdict::at_most("p99 of the second half", second_half, (first_half * 1.5).max(10.0), "ms"),
    ])
}

/// The median and the 99th part of a hundred.
pub(super) fn quantiles<'a>(looks: impl Iterator<Item = &'a (Duration, f64)>) -> (f64, f64) {
    let mut looks: Vec<f64> = looks.map(|(_, took)| *took).collect();
    looks.sort_by(f64::total_cmp);
    let at = |share: f64| looks.get((looks.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    (at(0.5), at(0.99))
}
